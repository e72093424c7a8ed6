"""``pysim report``: result files as one HTML file."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from pysim.cli.entry import reading_input
from pysim.errors import ConfigError, InputError, OutputError, SimError


def report(args: argparse.Namespace) -> None:
    """Write the report of result files or of a sweep's folder."""
    target = args.out
    if target.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--out: {target}: the name of a report ends in .html")

    from pysim import stats
    from pysim.results.result_file import parameter_meanings
    from pysim.stats.page import open_sources, write_report

    try:
        recordings, sweep = open_sources(args.files, args.point)
        for each in recordings:
            each.edges, each.no_edges = (
                (None, "--no-graph was given") if args.no_graph else _edges(each.results)
            )
    except stats.StoreError as error:
        raise InputError(str(error)) from None
    try:
        page = write_report(recordings, target, args.most_tbs, args.force, sweep, parameter_meanings())
    except stats.StoreError as error:
        raise OutputError(str(error)) from None
    for note in page.notes:
        print(note, file=sys.stderr)
    print(f"wrote {target}: {target.stat().st_size / 1e6:.1f} MB")


def _edges(results: Any) -> tuple[Any, str]:
    """Return the ``pysim.stats.page.Edges`` of the job of a result file, or None and why there are none."""
    from pysim.cli.job_source import job_of_result
    from pysim.results.result_file import page_edges
    from pysim.workloads.registry import make

    try:
        with reading_input():
            found = job_of_result(results.path, results.configuration, results.attributes, make).deps
    except SimError as error:
        return None, str(error).removeprefix(f"{results.path}: ")
    return page_edges(found), ""
