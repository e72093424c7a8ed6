"""The commands of batches: ``pysim run``, ``sweep``, ``work``, ``status`` and ``collect``.

Only what reads options is imported at the top: every call of ``pysim`` imports this module.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.cli.exit_codes import EXIT_ERROR
from pysim.cli.options import OPTIONS, Options, duration, make_parser, name_list, positive_int, size_option
from pysim.cli.parser import Parser
from pysim.cli.subcommand import Subcommand
from pysim.errors import ConfigError

if TYPE_CHECKING:
    from .engines.choice import Engine
    from .folder import Status
    from .sweep import Sweep
    from .worker import Shard

DEFAULT_TABLES = ("runs", "kernels", "stalls", "energy")
# shared options that a sweep does not take, or takes in its own way
NEVER = ("explain", "out", "force", "picture")
SHOWN_FAILURES = 10


def _workload_keys(parser: Parser, text: str) -> tuple[str, list[str]]:
    """Add the keys of a workload as options; return its name and the keys added.

    A key that a shared option is named like is given in the workload's text alone.
    """
    from pysim.units import suggest
    from pysim.workloads.registry import WORKLOADS, arguments_of

    name = text.partition(":")[0]
    if name not in WORKLOADS:
        hint = suggest(name, WORKLOADS) or ": there are " + ", ".join(WORKLOADS)
        parser.error(f"no workload {name!r}{hint}")
    shared = {row.name for row in OPTIONS}
    keys = [key for key in arguments_of(name) if key not in shared]
    group = parser.add_argument_group(f"keys of {name} (or name:key=value,...)")
    for key in keys:
        default = arguments_of(name)[key].default
        shown = int(default) if isinstance(default, bool) else default
        group.add_argument(
            f"--{key}", dest=f"key_{key}", metavar="VALUE", help=f"default: {shown}" if shown != "" else None
        )
    return name, keys


def _text(args: argparse.Namespace, keys: Sequence[str]) -> str:
    """Return the workload of the command line as name:key=value,..."""
    head, _, rest = args.workload.partition(":")
    given = [f"{key}={value}" for key in keys if (value := getattr(args, f"key_{key}")) is not None]
    text = ",".join(filter(None, [rest, *given]))
    return f"{head}:{text}" if text else head


def _operand(words: Sequence[str]) -> str | None:
    """Return the first word, if it is no option."""
    return words[0] if words and not words[0].startswith("-") else None


def run(words: list[str]) -> None:
    """Simulate one workload and write its result file, as compare_schemes does."""
    parser = make_parser(f"{RUN.doc}\n\nExample: pysim run gru --hidden 512 --schemes stream,graph")
    parser.prog = "pysim run"
    parser.add_argument(
        "workload", metavar="WORKLOAD", help="name of `pysim workloads`, or name:key=value,..."
    )
    first = _operand(words)
    keys = _workload_keys(parser, first)[1] if first else []
    args = parser.parse_args(words)
    args.workload = _text(args, keys)
    # slow imports: only after the options are read
    from pysim.cli.script import Script

    script = Script.start("run", parser, args, ("workload",))

    from pysim import stats
    from pysim.stats.pictures.bars import draw_schemes
    from pysim.workloads import make

    job = make(args.workload, script.config)
    made = script.run(job, stats, stats.Log(script.options.quiet))
    tbs = sum(kernel.tbs for kernel in made.job.kernels)
    made.report([f"workload  {args.workload}: {len(job.kernels)} kernels, {tbs:,} TBs"])
    made.write(args.workload, draw=draw_schemes)


def _grid(parser: Parser, words: Sequence[str]) -> dict[str, list[str]]:
    """Read the words of ``--grid``: key=value,value."""
    grid: dict[str, list[str]] = {}
    for word in words:
        key, equals, values = word.partition("=")
        if not equals or not key or not values:
            parser.error(f"--grid: {word!r}: must be key=value,value")
        if key in grid:
            parser.error(f"--grid: {key} is given twice")
        grid[key] = values.split(",")
    return grid


def sweep(words: list[str]) -> int:
    """Simulate what is missing of a grid of points."""
    from .engines import choice

    parser = make_parser(
        f"{SWEEP.doc} Several GPUs (--gpu a,b) are a key of it.\n\n"
        "Example: pysim sweep gru --grid hidden=512,1024 batch=16,32 --out runs/gru",
        {"schemes": ("stream", "graph", "tb_static"), "tables": DEFAULT_TABLES},
        NEVER,
        "a sweep writes a file a point to the folder of --out, and replaces none",
        "a sweep goes on by itself from what is in its folder",
    )
    parser.prog = "pysim sweep"
    parser.allow("out")
    text = "name of `pysim workloads` (name:key=value,... too), or a file that describes the sweep"
    parser.add_argument("workload", metavar="WORKLOAD|FILE.toml", help=text)
    text = "values of keys of the workload, or of parameters by path; the last key varies fastest"
    parser.add_argument("--grid", metavar="KEY=VALUES", nargs="+", default=[], action="extend", help=text)
    parser.add_argument("--out", metavar="FOLDER", dest="folder", help="folder of the sweep")
    parser.add_argument("--jobs", type=positive_int, metavar="N", help="processes (default: one a core)")
    choice.add_options(parser)
    text = "plan the points and say how many are missing; slurm: print the script; run none"
    parser.add_argument("--dry-run", action="store_true", help=text)
    first = _operand(words)
    file = first is not None and first.endswith(".toml")
    keys = [] if first is None or file else _workload_keys(parser, first)[1]
    args = parser.parse_args(words)
    made, out = _from_file(parser, args, words) if file else (_from_options(parser, args, keys), None)
    where = Path(args.folder) if args.folder else out
    if where is None:
        parser.error("no folder: give --out FOLDER")
    engine = choice.chosen(parser, args)
    return _launch(made, where, args) if engine is None else _submit(made, where, args, engine)


def _from_options(parser: Parser, args: argparse.Namespace, keys: Sequence[str]) -> Sweep:
    from .sweep import Sweep

    options = Options.from_args(args)
    return Sweep(
        _text(args, keys),
        _grid(parser, args.grid),
        schemes=options.schemes,
        gpu=options.gpu,
        settings=options.overrides(),
        tables=options.tables or (),
        rename=options.rename,
    )


def _from_file(parser: Parser, args: argparse.Namespace, words: Sequence[str]) -> tuple[Sweep, Path | None]:
    """Read the sweep from its file, which says all that decides results."""
    from .engines import choice
    from .sweep import Sweep

    mine = ("--out", "--jobs", "--threads", "--quiet", "--json", "--dry-run", "--max-memory", *choice.FLAGS)
    for word in words[1:]:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in mine:
            parser.error(f"{name}: a sweep of a file takes {', '.join(mine)} alone")
    return Sweep.from_file(args.workload)


def _launch(made: Sweep, where: Path, args: argparse.Namespace) -> int:
    """Plan the sweep, simulate what is missing, and say how it ended."""
    from .engines.local import Local
    from .folder import SweepFolder

    folder = SweepFolder(where)
    made.prepare(folder)
    if not args.dry_run:
        engine = Local(args.jobs, args.threads, args.max_memory, args.quiet)
        try:
            engine.launch(folder)
        except KeyboardInterrupt:
            _tell(folder.status(), where, args.json)
            raise
    ended = folder.status()
    _tell(ended, where, args.json)
    return EXIT_ERROR if not args.dry_run and ended.done < ended.total else 0


def _submit(made: Sweep, where: Path, args: argparse.Namespace, engine: Engine) -> int:
    """Plan the sweep and give what is missing to an engine; say how many points are done now."""
    from .engines.choice import rehearsed
    from .engines.dask import Dask
    from .folder import SweepFolder

    folder = SweepFolder(where)
    made.prepare(folder)
    if args.dry_run:
        print(rehearsed(engine, folder), end="")
        return 0
    submission = engine.launch(folder)
    if submission is not None and not args.quiet:
        print(submission, file=sys.stderr if args.json else sys.stdout)
    now = folder.status()
    _tell(now, where, args.json)
    # Dask has waited for its tasks; those of Slurm have only been submitted
    return EXIT_ERROR if isinstance(engine, Dask) and (now.failed or now.missing) else 0


def _tell(status: Status, where: Path, as_json: bool) -> None:
    """Print a status."""
    if as_json:
        print(json.dumps(status.as_dict()))
    else:
        print(f"{where}: {status}")
        for name, reason in list(status.failed.items())[:SHOWN_FAILURES]:
            print(f"  {name}: {reason}")
        if len(status.failed) > SHOWN_FAILURES:
            print(f"  ... and {len(status.failed) - SHOWN_FAILURES:,} more")


def _parser(command: Subcommand) -> Parser:
    parser = Parser(prog=f"pysim {command.name}", description=command.doc)
    parser.add_argument("folder", metavar="FOLDER", help="folder of a sweep")
    return parser


def status(words: list[str]) -> int:
    """Say how many points of a sweep are done, running, failed and missing."""
    parser = _parser(STATUS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(words)

    from .folder import SweepFolder

    _tell(SweepFolder(args.folder).status(), Path(args.folder), args.json)
    return 0


def collect(words: list[str]) -> None:
    """Write the results of a sweep to one file."""
    parser = _parser(COLLECT)
    parser.add_argument("-o", "--out", metavar="FILE.h5", required=True, help="file to write")
    parser.add_argument("--tables", type=name_list, default=(), metavar="LIST", help="tables (default: all)")
    parser.add_argument("--partial", action="store_true", help="take the points that are done")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--max-memory", type=size_option, metavar="SIZE", help="memory of the tables")
    args = parser.parse_args(words)

    from pysim import stats
    from pysim.program.memory_budget import limit

    from .folder import SweepFolder

    _ = SweepFolder(args.folder).plan  # a folder without a sweep is wrong input
    runs = stats.collect(
        args.folder,
        args.out,
        tables=() if args.tables == ("all",) else args.tables,
        partial=args.partial,
        force=args.force,
        most_bytes=(args.max_memory or limit()) // 3,  # they are joined, and HDF5 makes the file in memory
    )
    print(f"wrote {args.out}: {runs:,} runs")


def _shard(text: str) -> Shard:
    from .worker import Shard

    number, slash, of = text.partition("/")
    if not slash or not number.isdecimal() or not of.isdecimal() or len(text) > 20:
        raise argparse.ArgumentTypeError(f"must be I/N, such as 0/4, not {text!r}")
    try:
        return Shard(int(number), int(of))
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def work_command(words: list[str]) -> int:
    """Simulate the missing points of a sweep in this process."""
    parser = _parser(WORK)
    text = "only the points whose number modulo N is I, from 0 on"
    parser.add_argument("--shard", type=_shard, metavar="I/N", help=text)
    parser.add_argument("--threads", type=positive_int, default=1, metavar="N", help="of the simulator")
    parser.add_argument("--max-memory", type=size_option, metavar="SIZE", help="memory that a point may take")
    text = "after this wall time (90, 30m, 2h) write a checkpoint and exit with status 75"
    parser.add_argument("--max-time", type=duration, metavar="TIME", help=text)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)

    from .folder import SweepFolder
    from .worker import Shard, work

    folder, shard = SweepFolder(args.folder), args.shard or Shard()
    if args.child:  # Ctrl-C reaches all processes of a terminal: the parent stops its workers by SIGTERM
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid() if args.child else None
    failed = work(folder, shard, args.threads, args.max_memory, not args.child, parent, args.max_time)
    if not args.quiet:
        for key in failed:
            print(f"{folder.plan.name_of(key)}: {folder.failure(key)}")
    return EXIT_ERROR if failed else 0


RUN = Subcommand("run", run, "How long does a workload take under scheduling schemes?", ("WORKLOAD",))
SWEEP = Subcommand(
    "sweep", sweep, "Simulate the points of a grid that are missing in a folder.", ("WORKLOAD|FILE.toml",)
)
WORK = Subcommand("work", work_command, "Simulate missing points of a sweep: for batch systems.", ("FOLDER",))
STATUS = Subcommand(
    "status", status, "Say which points of a sweep are done, failed and missing.", ("FOLDER",)
)
COLLECT = Subcommand("collect", collect, "Write the results of a sweep to one file.", ("FOLDER",))
COMMANDS: Mapping[str, Subcommand] = {each.name: each for each in (RUN, SWEEP, WORK, STATUS, COLLECT)}
