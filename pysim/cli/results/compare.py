"""The command ``pysim compare``: what differs between two results."""

from __future__ import annotations

import argparse
import json

from pysim.cli.commands.results import FRAMES
from pysim.cli.entry import lose_output
from pysim.cli.exit_codes import EXIT_ERROR, EXIT_USAGE
from pysim.errors import InputError

LINES = 10


def compare(args: argparse.Namespace) -> int:
    """Print what differs; return the exit code of diff: 0 equal, 1 different, 2 for whatever goes wrong."""
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
