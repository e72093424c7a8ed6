"""The command ``pysim``: lists devices, schemes and more, shows TB graphs, writes traces."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NamedTuple

from pysim import __version__
from pysim.errors import ConfigError
from pysim.sweep.commands import COMMANDS as BATCHES
from pysim.units import suggest

from . import dependence_graph, job_check, listings, writing
from .doctor import DOCTOR
from .options import natural_int, number_ranges, positive_int
from .parser import Parser
from .results import COMMANDS as RESULT_FILES

OTHERS = {**BATCHES, **RESULT_FILES, DOCTOR.name: DOCTOR}  # commands with parsers of their own


class Command(NamedTuple):
    """One command and the options that it takes. ``operands``: their names; brackets: may be left out."""

    run: Callable[[argparse.Namespace], None]
    doc: str
    options: tuple[str, ...] = ()
    operands: tuple[str, ...] = ("[NAME]",)


COMMANDS: dict[str, Command] = {
    "devices": Command(
        listings.devices, "list the GPUs; with a name or FILE.toml: each parameter with its source"
    ),
    "kernels": Command(
        listings.kernels, "list the kernel templates with their arguments; with a name: its docstring"
    ),
    "workloads": Command(listings.workloads, "list the workloads; with a name: its keys and defaults"),
    "schemes": Command(listings.schemes, "list the scheduling schemes and their options"),
    "parameters": Command(
        listings.parameters,
        "list the parameters of --set, or those of a group such as gpu.l2",
        ("gpu", "markdown"),
    ),
    "tables": Command(
        listings.tables, "list the tables of result files; with a name: its columns", ("markdown",)
    ),
    "calibrate": Command(
        writing.calibrate,
        "make a device file from the micro.json that tests/hw/suite/micro.cu wrote to a folder",
        ("base", "output", "force"),
        ("FOLDER",),
    ),
    "dependences": Command(
        dependence_graph.dependences,
        "show which TBs depend on which in a workload (name:key=value,...), trace or result file",
        ("gpu", "granularity", "rename", "window", "picture", "output", "json", "kernels", "force"),
        ("WORKLOAD|FOLDER|FILE.h5",),
    ),
    "check": Command(
        job_check.check,
        "check that a workload, or the job of a Python file, touches only what it declares, and for races",
        ("gpu",),
        ("WORKLOAD|FILE.py",),
    ),
    "mechanisms": Command(listings.mechanisms, "list the mechanisms of --without and what switches them off"),
    "write-trace": Command(
        writing.write_trace,
        "write a workload (name:key=value,...) as a SASS trace to a folder",
        ("gpu", "binary", "compress", "kernels", "force"),
        ("WORKLOAD", "FOLDER"),
    ),
}


def _granularity(text: str) -> str:
    from pysim.program.regions import GRANULES

    if text not in GRANULES:
        hint = suggest(text, GRANULES) or f": must be one of {', '.join(GRANULES)}"
        raise argparse.ArgumentTypeError(f"unknown value {text!r}{hint}")
    return text


def _window(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"must be FIRST:LAST, not {text!r}")
    made = natural_int(first), natural_int(last)
    if made[0] > made[1]:
        raise argparse.ArgumentTypeError(f"{text} is an empty range")
    return made


class CommandOption(NamedTuple):
    """An option of some commands. ``kind`` None: a flag without a value."""

    metavar: str
    kind: Callable[[str], object] | None
    doc: str
    default: object = None


OPTIONS: dict[str, CommandOption] = {
    "gpu": CommandOption("NAME", str, "show the values of this GPU (parameters), or take its kernels"),
    "base": CommandOption("NAME", str, "GPU that gives the values that were not measured (default: h200)"),
    "output": CommandOption("FILE", str, "file to write: the device (.toml), or the TB graph (.h5)"),
    "granularity": CommandOption(
        "WORD", _granularity, "conflicts by sector, line or page (default: sector)", "sector"
    ),
    "rename": CommandOption("", None, "give every value its own memory, so that no buffer is reused"),
    "window": CommandOption(
        "FIRST:LAST", _window, "kernels of --picture and --json, from 0 on (default: 0:3)"
    ),
    "picture": CommandOption("FILE", str, "draw the kernels of --window: .svg, .dot (Graphviz) or .png"),
    "json": CommandOption("", None, "print one JSON object"),
    "markdown": CommandOption("", None, "print a Markdown table"),
    "binary": CommandOption("SM", positive_int, "SM version of the instructions (default: 70)", 70),
    "compress": CommandOption("", None, "compress the trace files with xz"),
    "kernels": CommandOption("LIST", number_ranges, "only these launches, counted from 1, such as 3-7,9"),
    "force": CommandOption("", None, "replace an existing file, or the trace in a folder"),
}


def _no_command(text: str) -> str:
    known = (*COMMANDS, *OTHERS)
    return f"no command {text}{suggest(text, known) or ': there are ' + ', '.join(known)}"


def _command_name(text: str) -> str:
    if text not in COMMANDS:
        raise argparse.ArgumentTypeError(_no_command(text))
    return text


def _check(parser: Parser, args: argparse.Namespace) -> None:
    """Refuse what the command does not take; set ``name`` and ``out`` to its operands."""
    command = COMMANDS[args.command]
    for name, row in OPTIONS.items():
        if getattr(args, name) not in (None, False, row.default) and name not in command.options:
            owners = " and ".join(t for t, other in COMMANDS.items() if name in other.options)
            parser.error(f"--{name} goes with the command {owners}")
    least = sum(not name.startswith("[") for name in command.operands)
    if len(args.operands) > len(command.operands):
        parser.error(f"unexpected argument {args.operands[len(command.operands)]!r}")
    if len(args.operands) < least:
        parser.error(f"{args.command} needs {' and '.join(command.operands)}")
    args.name, args.out = (*args.operands, None, None)[:2]


def _usage(name: str) -> str:
    return " ".join(
        ["pysim", name, *COMMANDS[name].operands, "[OPTION ...]" if COMMANDS[name].options else ""]
    )


def _help_of(name: str) -> str:
    """Return the help of one command: usage, what it does, its options."""
    command = COMMANDS[name]
    parser = Parser(prog="pysim", usage=_usage(name).rstrip(), description=command.doc, add_help=False)
    for option in command.options:
        _add_option(parser, option, OPTIONS[option].doc)
    return parser.format_help()


def _add_option(parser: Parser, name: str, text: str) -> None:
    row = OPTIONS[name]
    flags = (f"--{name}",) if name != "output" else ("-o", "--output")
    if row.kind is None:
        parser.add_argument(*flags, action="store_true", help=text)
    else:
        parser.add_argument(*flags, metavar=row.metavar, type=row.kind, default=row.default, help=text)


def _parser() -> Parser:
    known = {name: row.doc for name, row in OTHERS.items()} | {
        name: row.doc for name, row in COMMANDS.items()
    }
    width = max(map(len, known)) + 2
    lines = [f"  {name:<{width}}{doc}" for name, doc in known.items()]
    parser = Parser(
        prog="pysim",
        usage="pysim COMMAND [NAME] [OPTION ...]\n       pysim help [COMMAND]",
        description="GPU simulator for dependent kernels. The experiments are the scripts in configs/.",
        epilog="commands:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pysim {__version__}")
    parser.add_argument("command", type=_command_name, metavar="COMMAND", help="one of the commands below")
    parser.add_argument("operands", nargs="*", metavar="NAME", help="what to show or use, see below")
    for name, row in OPTIONS.items():
        owners = ", ".join(t for t, command in COMMANDS.items() if name in command.options)
        _add_option(parser, name, f"{owners}: {row.doc}")
    return parser


def _help_wanted(words: list[str]) -> str | None:
    """Return what ``help`` and its other forms print; None: no help is asked for."""
    if not words or words in (["help"], ["-h"], ["--help"]):
        return _parser().format_help()
    if words[0] == "help":
        if len(words) > 2:
            raise ConfigError(f"unexpected argument {words[2]!r}")
        if words[1] in OTHERS:
            return None
        if words[1] not in COMMANDS:
            raise ConfigError(_no_command(words[1]))
        return _help_of(words[1])
    if words[0] in COMMANDS and {"-h", "--help"} & set(words):
        return _help_of(words[0])
    return None


def run() -> int | None:
    """Read the command line and run the command; without arguments print the help. Return the exit status."""
    words = sys.argv[1:]
    text = _help_wanted(words)
    if text is not None:
        print(text, end="")
        return None
    if words[0] == "help":
        words = [words[1], "--help"]
    if words[0] in OTHERS:
        return OTHERS[words[0]].run(words[1:])
    parser = _parser()
    args = parser.parse_args()
    _check(parser, args)
    COMMANDS[args.command].run(args)
    return None
