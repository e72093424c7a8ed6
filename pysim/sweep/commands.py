"""The commands of batches: ``pysim run``, ``sweep``, ``work``, ``status`` and ``collect``.

Only what reads options is imported at the top: the help of ``run`` and ``sweep`` imports this module.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.cli.entry import Terminated
from pysim.cli.exit_codes import EXIT_ERROR, EXIT_TERMINATED
from pysim.cli.options import SHARED, Options
from pysim.errors import ConfigError

if TYPE_CHECKING:
    from pysim.cli.parser import Parser

    from .engines.choice import Engine
    from .folder import Status
    from .sweep import Sweep

SHOWN_FAILURES = 10
_KEY = "key_"  # before the names of a workload's keys among those of options


def add_keys(parser: Parser, words: Sequence[str]) -> None:
    """Add the keys of the workload that is the first word, if it is one, as options.

    A key that a shared option is named like is given in the workload's text alone. Ends with a usage error at
    an unknown workload.
    """
    if not words or words[0].startswith("-") or words[0].endswith(".toml"):
        return
    from pysim.workloads.registry import WORKLOADS, arguments_of, unknown_workload

    name = words[0].partition(":")[0]
    if name not in WORKLOADS:
        parser.error(unknown_workload(name))
    group = parser.add_argument_group(f"keys of {name} (or name:key=value,...)")
    for key, row in arguments_of(name).items():
        if key in SHARED:
            continue
        shown = int(row.default) if isinstance(row.default, bool) else row.default
        text = f"default: {shown}" if shown != "" else None
        group.add_argument(f"--{key}", dest=f"{_KEY}{key}", metavar="VALUE", help=text)


def _text(args: argparse.Namespace) -> str:
    """Return the workload of the command line as name:key=value,..."""
    head, _, rest = args.workload.partition(":")
    given = [
        f"{name.removeprefix(_KEY)}={value}"
        for name, value in vars(args).items()
        if name.startswith(_KEY) and value is not None
    ]
    text = ",".join(filter(None, [rest, *given]))
    return f"{head}:{text}" if text else head


def run(args: argparse.Namespace) -> None:
    """Simulate one workload and write its result file, as compare_schemes does."""
    from pysim.cli.script import Script

    args.workload = _text(args)
    script = Script.start("run", args.parser, args, ("workload",))

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


def sweep(args: argparse.Namespace) -> int:
    """Simulate what is missing of a grid of points."""
    from .engines import choice

    made, out = _from_file(args) if args.workload.endswith(".toml") else (_from_options(args), None)
    where: Path | None = args.out or out
    if where is None:
        raise ConfigError("no folder: give --out FOLDER")
    engine = choice.chosen(args.parser, args)
    return _launch(made, where, args) if engine is None else _submit(made, where, args, engine)


def _from_options(args: argparse.Namespace) -> Sweep:
    from .sweep import Sweep

    options = Options.from_args(args)
    return Sweep(
        _text(args),
        _grid(args.parser, args.grid or ()),
        schemes=options.schemes,
        gpu=options.gpu,
        settings=options.overrides(),
        tables=options.tables or (),
        rename=options.rename,
    )


def _from_file(args: argparse.Namespace) -> tuple[Sweep, Path | None]:
    """Read the sweep from its file, which says all that decides results."""
    from .engines import choice
    from .sweep import Sweep

    mine = ("-o", "--out", "--jobs", "--threads", "--quiet", "--json", "--dry-run", "--max-memory")
    for word in args.words:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in (*mine, *choice.FLAGS):
            args.parser.error(f"{name}: a sweep of a file takes {', '.join((*mine, *choice.FLAGS))} alone")
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


def status(args: argparse.Namespace) -> int:
    """Say how many points of a sweep are done, running, failed and missing."""
    from .folder import SweepFolder

    _tell(SweepFolder(args.folder).status(), Path(args.folder), args.json)
    return 0


def collect(args: argparse.Namespace) -> None:
    """Write the results of a sweep to one file."""
    from pysim import stats
    from pysim.cli.checks import chosen_tables
    from pysim.program.memory_budget import limit

    from .folder import SweepFolder

    folder = SweepFolder(args.folder)
    _ = folder.plan  # a folder without a sweep is wrong input
    known = stats.SweepResults(folder.path).names() if args.tables else ()
    runs = stats.collect(
        folder.path,
        args.out,
        tables=chosen_tables(args.tables, (*known, "all"), folder.path),
        partial=args.partial,
        force=args.force,
        most_bytes=(args.max_memory or limit()) // 3,  # they are joined, and HDF5 makes the file in memory
    )
    print(f"wrote {args.out}: {runs:,} runs")


def work_command(args: argparse.Namespace) -> int:
    """Simulate the missing points of a sweep in this process."""
    try:
        return _work(args)
    except Terminated:
        if not args.child:
            raise
        return EXIT_TERMINATED  # the parent says why it stops its workers


def _work(args: argparse.Namespace) -> int:
    from .folder import SweepFolder
    from .worker import Shard, work

    folder, shard = SweepFolder(args.folder), Shard(*(args.shard or ()))
    if args.child:  # Ctrl-C reaches all processes of a terminal: the parent stops its workers by SIGTERM
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid() if args.child else None
    failed = work(folder, shard, args.threads, args.max_memory, not args.child, parent, args.max_time)
    if not args.quiet:
        for key in failed:
            print(f"{folder.plan.name_of(key)}: {folder.failure(key)}")
    return EXIT_ERROR if failed else 0
