"""``pysim timeline``: a result file as a Chrome trace."""

from __future__ import annotations

import argparse

from pysim.errors import ConfigError, InputError, OutputError


def timeline(args: argparse.Namespace) -> None:
    """Write the trace of a result file."""
    target = args.out
    if not target.name.endswith((".json", ".json.gz")):
        raise ConfigError(f"--out: {target}: the name of a trace ends in .json or .json.gz")

    from pysim import stats
    from pysim.stats.export import open_runs, write_chrome_trace

    try:
        results, runs = open_runs(args.file, args.schemes, args.kernels)
    except stats.StoreError as error:
        raise InputError(str(error)) from None
    try:
        made = write_chrome_trace(results, runs, target, args.most_tbs, args.force)
    except stats.StoreError as error:
        raise OutputError(str(error)) from None
    size = target.stat().st_size / 1e6
    print(
        f"wrote {target}: {', '.join(made.runs)}: {made.slices:,} TBs, {made.arrows:,} arrows, {size:.1f} MB"
    )
