"""``pysim report``: result files as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pysim.cli.entry import reading_input
from pysim.cli.options import natural_int, positive_int
from pysim.cli.parser import Parser
from pysim.cli.subcommand import Subcommand
from pysim.errors import ConfigError, InputError, OutputError, SimError

DOC = "Show result files, or a sweep, as one HTML file that needs no network."


def report(words: list[str]) -> None:
    """Write the report of result files or of a sweep's folder."""
    parser = Parser(
        prog="pysim report",
        description=f"{DOC}\n\nExample: pysim report results/titanv_gru-....h5 -o report.html",
    )
    parser.add_argument("files", metavar="FILE.h5|FOLDER", nargs="+", help="result files, or one sweep")
    parser.add_argument("-o", "--output", metavar="FILE.html", required=True, help="file to write")
    parser.add_argument(
        "--point",
        type=natural_int,
        metavar="N",
        help="point to draw, from 0 on (default: the first that is done)",
    )
    parser.add_argument(
        "--most-tbs",
        type=positive_int,
        metavar="N",
        default=300_000,
        help="TBs of a timeline; of a larger run some SMs are left out (default: 300000)",
    )
    parser.add_argument(
        "--no-graph", action="store_true", help="do not make the job again to show all dependences of a TB"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    args = parser.parse_args(words)
    target = Path(args.output)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--output: {target}: the name of a report ends in .html")

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


REPORT = Subcommand("report", report, DOC, ("FILE|FOLDER ...",))
