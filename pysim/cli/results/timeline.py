"""``pysim timeline``: a result file as a Chrome trace."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pysim.cli.options import name_list, natural_int, number_ranges, positive_int
from pysim.cli.parser import Parser
from pysim.cli.subcommand import Subcommand
from pysim.errors import ConfigError, InputError, OutputError

DOC = "Write a result file as a Chrome trace, for Perfetto (ui.perfetto.dev)."


def timeline(words: list[str]) -> None:
    """Write the trace of a result file."""
    parser = Parser(
        prog="pysim timeline",
        description=f"{DOC}\n\nExample: pysim timeline results/titanv_gru-....h5 -o trace.json.gz",
    )
    parser.add_argument("file", metavar="FILE.h5", help="result file that has the table tbs (--tables all)")
    text = "file to write: .json, or .json.gz, which Perfetto opens, too"
    parser.add_argument("-o", "--output", metavar="FILE.json", required=True, help=text)
    text = "only runs of these schemes (default: all that ran)"
    parser.add_argument("--schemes", type=name_list, default=(), metavar="LIST", help=text)
    text = "only TBs of these kernels, from 0 on, such as 3-7,9 (default: all)"
    kernels = partial(number_ranges, number=natural_int)
    parser.add_argument("--kernels", type=kernels, default=(), metavar="LIST", help=text)
    text = "most TBs of all runs together; more are refused (default: 1000000)"
    parser.add_argument("--most-tbs", type=positive_int, default=1_000_000, metavar="N", help=text)
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    args = parser.parse_args(words)
    target = Path(args.output)
    if not target.name.endswith((".json", ".json.gz")):
        raise ConfigError(f"--output: {target}: the name of a trace ends in .json or .json.gz")

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


TIMELINE = Subcommand("timeline", timeline, DOC, ("FILE.h5",))
