"""The command ``pysim``: reads the command line, runs the command, prints help."""

from __future__ import annotations

import argparse
import sys
import textwrap

from .commands import COMMANDS
from .exit_codes import EXIT_CODES
from .tree import found, tree

CODES = "exit-codes"  # a topic of help
WIDTH = 100


def show_help(args: argparse.Namespace) -> None:
    """Print the help of a command, of all, or the exit codes."""
    if args.topic == CODES:
        for number, meaning in EXIT_CODES.items():
            print(textwrap.fill(meaning, WIDTH, initial_indent=f"{number:>3}  ", subsequent_indent=" " * 5))
        return
    root, chosen = tree(COMMANDS, [args.topic] if args.topic else [])
    print((chosen or root).format_help(), end="")


def run() -> int | None:
    """Read the command line and run the command; without arguments print the help. Return the exit code."""
    words = sys.argv[1:] or ["help"]
    root, _ = tree(COMMANDS, words)
    args = root.parse_args(words)
    if args.command is None:
        root.error(f"no command: there are {', '.join(COMMANDS)}")
    status: int | None = found(COMMANDS[args.command].target)(args)
    return status
