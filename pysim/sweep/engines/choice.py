"""The options by which a command line chooses an engine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pysim.cli.options import natural_int, positive_int

from .dask import Dask
from .launching import Shares, Submission
from .slurm import Slurm, max_array_size
from .submitit import Submitit

if TYPE_CHECKING:
    from pysim.cli.parser import Parser
    from pysim.sweep.folder import SweepFolder

ENGINES = ("local", "slurm", "submitit", "dask")
Engine = Slurm | Submitit | Dask  # those that give work away


class EngineOption(NamedTuple):
    """An option of some engines: the field of their class that it sets."""

    flag: str
    field: str
    metavar: str
    kind: Callable[[str], object]
    engines: tuple[str, ...]
    doc: str


_SLURM = ("slurm", "submitit")
OPTIONS = (
    EngineOption(
        "--tasks", "tasks", "N", positive_int, (*_SLURM, "dask"),
        "tasks that share the points (default: one a point, or as many as one array takes)",
    ),
    EngineOption("--time", "time", "TIME", str, _SLURM, "limit of a task, such as 2:00:00"),
    EngineOption("--throttle", "throttle", "N", natural_int, _SLURM, "most tasks at once (default: all)"),
    EngineOption(
        "--signal", "signal_s", "SECONDS", positive_int, _SLURM,
        "send USR1 so long before the limit (default: 120)",
    ),
    EngineOption("--partition", "partition", "NAME", str, _SLURM, "partition of the array"),
    EngineOption("--account", "account", "NAME", str, _SLURM, "account that pays"),
    EngineOption("--job-name", "name", "NAME", str, _SLURM, "name of the array (default: pysim-FOLDER)"),
    EngineOption("--scheduler", "scheduler", "ADDRESS", str, ("dask",), "Dask's scheduler, such as tcp://node7:8786"),
)  # fmt: skip


FLAGS = ("--engine", "--sbatch", *(row.flag for row in OPTIONS))


def add_options(parser: Parser, _words: Sequence[str]) -> None:
    """Add ``--engine`` and the options of the engines."""
    group = parser.add_argument_group("engine")
    text = "what runs the points (default: processes of this machine)"
    group.add_argument("--engine", choices=ENGINES, default="local", help=text)
    for row in OPTIONS:
        names = " and ".join(row.engines)
        group.add_argument(
            row.flag,
            dest=f"engine_{row.field}",
            type=row.kind,
            metavar=row.metavar,
            help=f"{names}: {row.doc}",
        )
    text = "slurm and submitit: a further option of sbatch, such as --sbatch=--qos=low; may be given again"
    group.add_argument("--sbatch", metavar="OPTION", action="append", default=[], help=text)


def chosen(parser: Parser, args: argparse.Namespace) -> Engine | None:
    """Return the engine of the command line; None: local processes.

    Ends with a usage error at an option that another engine takes.
    """
    given = {}
    for row in OPTIONS:
        value = getattr(args, f"engine_{row.field}")
        if value is None:
            continue
        if args.engine not in row.engines:
            parser.error(f"{row.flag} goes with --engine {' or '.join(row.engines)}")
        given[row.field] = value
    if args.sbatch and args.engine not in _SLURM:
        parser.error(f"--sbatch goes with --engine {' or '.join(_SLURM)}")
    if args.engine == "local":
        return None
    if args.jobs is not None:
        parser.error("--jobs goes with --engine local")
    given |= {"threads": args.threads or 1, "max_memory": args.max_memory}
    if args.engine == "dask":
        return Dask(**given)
    kind = Slurm if args.engine == "slurm" else Submitit
    return kind(**given, directives=tuple(args.sbatch))


def rehearsed(engine: Engine, folder: SweepFolder) -> str:
    """Return what ``--dry-run`` prints: the script of Slurm, for others how many tasks would run."""
    if type(engine) is Slurm:
        return engine.script(folder)
    name = type(engine).__name__.lower()
    limit = max_array_size() if isinstance(engine, Slurm) else None
    shares = Shares.of_folder(folder, engine.tasks, limit)
    return f"{Submission(name, 'would run', len(shares.numbers), shares.note())}\n"
