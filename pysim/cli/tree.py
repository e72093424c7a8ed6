"""What a command of ``pysim`` is, and the tree of parsers of all commands.

A parser gets its arguments when it is the one of the command line, so the others cost nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from pysim import __version__
from pysim.units import suggest

from .checks import choice
from .options import CHECKPOINTS, SHARED, Option, add_option, add_shared
from .parser import Parser


class Operand(NamedTuple):
    """A word that is no option. ``nargs``: ``?`` or ``+``, as in argparse; ``words``: as of an Option."""

    name: str
    metavar: str
    doc: str
    nargs: str | None = None
    words: tuple[str, ...] | str = ()

    @property
    def usage(self) -> str:
        """How it is shown in the usage of its command."""
        return {"?": f"[{self.metavar}]", "+": f"{self.metavar} ..."}.get(self.nargs or "", self.metavar)


class Command(NamedTuple):
    """One command.

    ``target``: ``module:function``, which gets the parsed arguments, and ``parser`` and ``words`` with them,
    and returns an exit code (None: 0); ``examples``: what each does, and the command line; ``shared``:
    arguments of ``add_shared``, if it takes the options of scripts; ``more``: functions that add the options
    that follow from the words, each called with the parser and the words.
    """

    name: str
    group: str
    target: str
    doc: str
    examples: tuple[tuple[str, str], ...]
    operands: tuple[Operand, ...] = ()
    options: tuple[Option, ...] = ()
    shared: Mapping[str, Any] | None = None
    more: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """First sentence of its doc, without the full stop."""
        return self.doc.partition(". ")[0].removesuffix(".")

    @property
    def taken(self) -> set[str]:
        """Names of the options that it takes, but for those of ``more``."""
        mine = {row.name for row in self.options}
        if self.shared is None:
            return mine
        without = {
            *self.shared.get("left_out", ()),
            *(CHECKPOINTS if "no_checkpoints" in self.shared else ()),
        }
        return mine | (set(SHARED) - without)


def found(target: str) -> Any:
    """Return the function that ``module:function`` names."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)


def _unknown(name: str, commands: Mapping[str, Command]) -> str:
    return f"no command {name}{suggest(name, commands) or ': there are ' + ', '.join(commands)}"


def _fill(parser: Parser, command: Command, words: Sequence[str], commands: Mapping[str, Command]) -> None:
    """Give a parser the arguments of its command."""
    parser.usage = " ".join(["%(prog)s", *(row.usage for row in command.operands), "[OPTION ...]"])
    parser.description = command.doc
    lines = [line for what, example in command.examples for line in (f"  # {what}", f"  {example}")]
    parser.epilog = "\n".join(["examples:", *lines])
    for operand in command.operands:
        kind = choice(*operand.words) if isinstance(operand.words, tuple) and operand.words else str
        parser.add_argument(
            operand.name, metavar=operand.metavar, nargs=operand.nargs, type=kind, help=operand.doc
        )
    for option in command.options:
        add_option(parser, option)
    elsewhere: dict[str, list[str]] = {}
    for other in commands.values():
        for name in other.taken - command.taken:
            elsewhere.setdefault(f"--{name}", []).append(other.name)
    parser.elsewhere = {flag: ", ".join(owners) for flag, owners in elsewhere.items()}
    if command.shared is not None:
        add_shared(parser, **command.shared)
    for target in command.more:
        found(target)(parser, words)
    parser.set_defaults(parser=parser, words=words)


def tree(commands: Mapping[str, Command], words: Sequence[str]) -> tuple[Parser, Parser | None]:
    """Return the parser of all commands, and that of the command that ``words`` begin with, if they do.

    Ends with a usage error at an unknown command.
    """
    root = Parser(
        prog="pysim",
        usage="%(prog)s COMMAND [OPTION ...]",
        description="GPU simulator for dependent kernels. The experiments are the scripts in configs/.",
        epilog="`pysim help COMMAND` and `pysim COMMAND -h` show one command; `pysim help exit-codes`: what "
        "scripts and commands exit with.",
    )
    root.add_argument("--version", action="version", version=f"pysim {__version__}")
    width = max(map(len, commands)) + 2
    for group in dict.fromkeys(row.group for row in commands.values()):
        rows = [f"{row.name:<{width}}{row.summary}" for row in commands.values() if row.group == group]
        root.add_argument_group(group, "\n".join(rows))
    parsers = root.add_subparsers(dest="command", metavar="COMMAND", help=argparse.SUPPRESS)
    chosen = None
    for name, command in commands.items():
        parser = parsers.add_parser(name, prog=f"pysim {name}")
        if words and name == words[0]:
            chosen = parser
            _fill(parser, command, words[1:], commands)
    if words and chosen is None and not words[0].startswith("-"):
        root.error(_unknown(words[0], commands))
    return root, chosen
