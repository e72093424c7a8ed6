"""``pysim completion``: scripts that complete commands, options and names, made from the table of commands.

A script holds all words itself, so that no Python starts where somebody presses the tab key.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from .command import CODES
from .commands import COMMANDS
from .options import SHARED
from .tree import tree

BASH = """\
_pysim() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
    local command="" names="" options="" head=""
    COMPREPLY=()
    [[ $COMP_CWORD -gt 1 ]] && command="${COMP_WORDS[1]}"
    if [[ $cur == "=" ]]; then  # in bash --option=value is three words
        cur=""
    elif [[ $prev == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    elif [[ $cur == --*=* ]]; then
        prev="${cur%%=*}" head="${cur%%=*}=" cur="${cur#*=}"
    fi
    case "$command" in
@CASES@
    esac
    [[ $cur == -* ]] && names="$options"
    [[ $cur == *,* ]] && head="$head${cur%,*},"
    COMPREPLY=($(compgen -P "$head" -W "$names" -- "${cur##*,}"))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2> /dev/null
    return 0
}
complete -o default -F _pysim pysim
"""
ZSH = """\
(( $+functions[compdef] )) || { autoload -U +X compinit && compinit; }
autoload -U +X bashcompinit && bashcompinit
"""


@cache
def _listed() -> Mapping[str, Sequence[str]]:
    """Return the names that the commands list, by command."""
    from pysim.machine.devices import DEVICES
    from pysim.machine.mechanisms import MECHANISMS
    from pysim.schemes.registry import SCHEMES
    from pysim.units import ROWS
    from pysim.workloads.registry import WORKLOADS
    from pysim.workloads.templates import KERNELS

    from .table_reference import known_tables

    return {
        "devices": tuple(DEVICES),
        "kernels": (*KERNELS, "choose"),
        "workloads": tuple(WORKLOADS),
        "schemes": tuple(SCHEMES),
        "mechanisms": tuple(MECHANISMS),
        "tables": tuple(known_tables()),
        "parameters": tuple(ROWS),
        "commands": (*COMMANDS, CODES),
    }


def _names(words: Sequence[str] | str, metavar: str = "") -> Sequence[str]:
    """Return the words of an option or operand; those of KEY=VALUE end with the sign."""
    names = _listed()[words] if isinstance(words, str) else words
    return [f"{name}=" for name in names] if "=" in metavar else names


def _options(name: str) -> Iterator[tuple[argparse.Action, Sequence[str]]]:
    """Yield the options of a command, each with the words that it takes, as far as they are known."""
    rows = {**SHARED, **{row.name: row for row in COMMANDS[name].options}}
    parser = tree(COMMANDS, [name])[1]
    for action in parser._actions if parser is not None else ():
        if not action.option_strings or action.help == argparse.SUPPRESS:
            continue
        row = rows.get(action.option_strings[-1].removeprefix("--"))
        words = _names(row.words, row.metavar) if row else tuple(map(str, action.choices or ()))
        yield action, words


def _operands(name: str) -> list[str]:
    return [word for row in COMMANDS[name].operands for word in _names(row.words)]


def _bash() -> str:
    lines = [f'    "") names="{" ".join(COMMANDS)}" options="--help --version" ;;']
    for name in COMMANDS:
        flags: list[str] = []
        free: list[str] = []
        cases: list[str] = []
        for action, words in _options(name):
            flags += action.option_strings
            if words:
                cases.append(f'{"|".join(action.option_strings)}) names="{" ".join(words)}" options="" ;;')
            elif action.nargs != 0:
                free += action.option_strings
        if free:
            cases.append(f"{'|'.join(free)}) return 0 ;;")  # a file, or what nobody can list
        lines.append(f'    {name})\n        names="{" ".join(_operands(name))}" options="{" ".join(flags)}"')
        lines += ['        case "$prev" in', *(f"        {case}" for case in cases), "        esac ;;"]
    return BASH.replace("@CASES@", "\n".join(lines))


def _fish() -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = []
    for name, command in COMMANDS.items():
        lines.append(f"complete -c pysim -f -n __fish_use_subcommand -a {name} -d {quoted(command.summary)}")
        start = f"complete -c pysim -n '__fish_seen_subcommand_from {name}'"
        if operands := _operands(name):
            lines.append(f"{start} -a {quoted(' '.join(operands))}")
        for action, words in _options(name):
            flags = [
                f"-l {flag[2:]}" if flag[:2] == "--" else f"-s {flag[1:]}" for flag in action.option_strings
            ]
            takes = "" if action.nargs == 0 else f" -x -a {quoted(' '.join(words))}" if words else " -r"
            doc = (action.help or "").replace("%%", "%")
            lines.append(f"{start} {' '.join(flags)}{takes} -d {quoted(doc)}")
    return "\n".join(lines) + "\n"


def completion(args: argparse.Namespace) -> None:
    """Print the script for a shell."""
    made = _fish() if args.shell == "fish" else _bash()
    print(f"{ZSH if args.shell == 'zsh' else ''}{made}", end="")
