"""The command ``pysim export``: results in the formats of other tools."""

from __future__ import annotations

import argparse
from pathlib import Path

from pysim.cli.checks import chosen_tables
from pysim.errors import InputError


def export(args: argparse.Namespace) -> None:
    """Write the tables of a result file, or of a sweep, as Parquet files."""
    from pysim import stats
    from pysim.program.memory_budget import limit
    from pysim.stats.export.parquet import table_names

    path = Path(args.results)
    try:
        results = stats.SweepResults(path) if path.is_dir() else stats.Results(path)
        known = table_names(results)
        if isinstance(results, stats.Results):
            results.verify()
    except stats.StoreError as error:
        raise InputError(str(error)) from error
    chosen = chosen_tables(args.tables, known, path)
    made = stats.to_parquet(
        results,
        args.out,
        tables=chosen,
        partial=args.partial,
        force=args.force,
        most_bytes=(args.max_memory or limit()) // 3,  # they are joined, and made in memory
    )
    print(f"wrote {', '.join(map(str, made))}")
