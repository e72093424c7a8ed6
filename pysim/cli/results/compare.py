"""The command ``pysim compare``: what differs between two results."""

from __future__ import annotations

import argparse
import json

from pysim.cli.entry import lose_output
from pysim.cli.exit_codes import EXIT_ERROR, EXIT_USAGE
from pysim.cli.options import positive_int
from pysim.cli.parser import Parser
from pysim.cli.subcommand import Subcommand
from pysim.errors import InputError
from pysim.units import suggest

FRAMES = ("configuration", "runs", "kernels", "tables")
LINES = 10


def _frame(text: str) -> str:
    if text not in FRAMES:
        hint = suggest(text, FRAMES) or f": must be one of {', '.join(FRAMES)}"
        raise argparse.ArgumentTypeError(f"unknown value {text!r}{hint}")
    return text


def compare(words: list[str]) -> int:
    """Print what differs; return the exit status of diff: 0 equal, 1 different, 2 for whatever goes wrong."""
    parser = Parser(
        prog="pysim compare",
        description=f"{COMPARE.doc} Exit status: 0 equal, 1 different, 2 an error.",
    )
    for name in ("a", "b"):
        parser.add_argument(name, metavar=name.upper(), help="result file, or folder of a sweep")
    text = f"compare only one of {', '.join(FRAMES)}; the exit status is of it"
    parser.add_argument("--table", type=_frame, metavar="NAME", help=text)
    text = f"lines of each table, largest changes first (default: {LINES}; with --json: all)"
    parser.add_argument("--limit", type=positive_int, metavar="N", help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(words)

    from pysim import stats
    from pysim.program.memory_budget import limit

    try:
        made = stats.compare(args.a, args.b, most_bytes=limit() // 4)  # both sides, and the rows that differ
    except stats.StoreError as error:  # nothing is written: what is wrong is what was named
        raise InputError(str(error)) from error
    frames = (*FRAMES, "only_a", "only_b") if args.table is None else (args.table,)
    equal = not any(len(getattr(made, name)) for name in frames)
    try:
        if args.json:
            print(json.dumps({"equal": equal, **made.as_dict(args.limit, args.table)}), flush=True)
        else:
            print(made.text(args.limit or LINES, args.table), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk must not look like a difference
        lose_output(error)
        return EXIT_USAGE
    return 0 if equal else EXIT_ERROR


COMPARE = Subcommand("compare", compare, "Show what differs between two result files or sweeps.", ("A", "B"))
