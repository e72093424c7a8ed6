"""Commands that read result files."""

from __future__ import annotations

from functools import partial

from pysim.cli.option_types import natural_int, number_ranges, positive_int
from pysim.cli.options import SHARED, Option
from pysim.cli.tree import Command, Operand

from .common import FORCE, JSON, MEMORY, PARTIAL, RECORDS, TABLES, one_of, out

_GROUP = "results"
FRAMES = ("configuration", "runs", "kernels", "tables")

RESULTS = (
    Command(
        "report",
        _GROUP,
        "pysim.cli.results.report:report",
        "Show result files, or a sweep, as one HTML file. The page needs no network.",
        (
            ("timelines, waits and dependences of a run", "pysim report gru.h5 -o gru.html"),
            ("two results beside each other", "pysim report before.h5 after.h5 -o both.html"),
            ("a sweep, with the timeline of its point 1", "pysim report runs/gru -o sweep.html --point 1"),
        ),
        (Operand("files", "FILE.h5|FOLDER", "result files, or one sweep", "+"),),
        (
            out("FILE.html", "file to write"),
            Option(
                "point", "N", natural_int, None, "point to draw, from 0 on (default: the first that is done)"
            ),
            Option(
                "most-tbs",
                "N",
                positive_int,
                300_000,
                "TBs of a timeline; of a larger run some SMs are left out",
            ),
            Option(
                "no-graph",
                "",
                None,
                False,
                "do not make the job again to show all dependences of a TB",
            ),
            FORCE,
        ),
    ),
    Command(
        "timeline",
        _GROUP,
        "pysim.cli.results.timeline:timeline",
        "Write a result file as a Chrome trace, for Perfetto. It opens at ui.perfetto.dev.",
        (
            ("all runs of the file", "pysim timeline gru.h5 -o gru.json.gz"),
            (
                "kernels 0 to 2 under one scheme",
                "pysim timeline gru.h5 -o part.json --schemes tb_static --kernels 0-2",
            ),
        ),
        (Operand("file", "FILE.h5", "result file that has the table tbs (--tables all)"),),
        (
            out("FILE.json", "file to write: .json, or .json.gz, which Perfetto opens, too"),
            SHARED["schemes"]._replace(default=(), doc="only runs of these schemes (default: all that ran)"),
            Option(
                "kernels",
                "LIST",
                partial(number_ranges, number=natural_int),
                (),
                "only TBs of these kernels, from 0 on, such as 3-7,9 (default: all)",
            ),
            Option(
                "most-tbs", "N", positive_int, 1_000_000, "most TBs of all runs together; more are refused"
            ),
            FORCE,
        ),
    ),
    Command(
        "compare",
        _GROUP,
        "pysim.cli.results.compare:compare",
        "Show what differs between two result files or sweeps. Exit code: 0 equal, 1 different, 2 an error.",
        (
            ("configuration, runs and kernels, largest changes first", "pysim compare before.h5 after.h5"),
            (
                "the five largest changes of runs of two sweeps",
                "pysim compare runs/gru runs/again --table runs --limit 5",
            ),
        ),
        (
            Operand("a", "A", "result file, or folder of a sweep"),
            Operand("b", "B", "result file, or folder of a sweep"),
        ),
        (
            one_of(
                "table", FRAMES, None, f"compare only one of {', '.join(FRAMES)}; the exit code is of it"
            )._replace(metavar="NAME"),
            Option(
                "limit",
                "N",
                positive_int,
                None,
                "lines of each table, largest changes first (default: 10; with --json: all)",
            ),
            JSON,
        ),
    ),
    Command(
        "export",
        _GROUP,
        "pysim.cli.results.export:export",
        "Write the tables of results as Parquet files.",
        (
            ("a file a table, in a folder", "pysim export gru.h5 -o tables"),
            ("the runs of a sweep in one file", "pysim export runs/gru -o runs.parquet --tables runs"),
        ),
        (RECORDS,),
        (
            out("FOLDER", "folder that gets NAME.parquet of each table, or FILE.parquet for one table"),
            TABLES,
            PARTIAL,
            FORCE,
            MEMORY,
        ),
    ),
)
