"""What scripts that make many runs share: GPUs, a folder, how they begin, one job, a table row by row."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, WorkloadError
from pysim.machine.devices import device

from .options import name_list, positive_int

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from types import ModuleType

    import numpy as np
    from numpy.typing import NDArray

    from pysim.program.job import Job

    from .script import Script


def several_gpus(parser: ArgumentParser, args: Namespace) -> None:
    """Set ``args.gpus`` to the GPUs that ``--gpu`` lists, and ``args.gpu`` to the first.

    Ends the process with a line on stderr for one that there is not, or that is listed twice.
    """
    try:
        args.gpus = name_list(args.gpu) if isinstance(args.gpu, str) else args.gpu
    except ArgumentTypeError as error:
        parser.error(f"--gpu: {error}")
    for name in args.gpus:
        try:
            device(name)
        except ConfigError as error:
            parser.error(f"--gpu: {error}")
    args.gpu = args.gpus[0]


def add_folder(parser: ArgumentParser, name: str) -> None:
    """Add the options of a study whose points are kept in folder ``name`` of ``results``.

    ``args`` gets ``folder``, ``jobs`` (None: one a core) and ``dry_run``.
    """
    folder = Path("results") / name
    text = f"folder of all points, from which calls go on (default: {folder})"
    parser.add_argument("--folder", type=Path, default=folder, help=text)
    text = "points at a time (default: one a core)"
    parser.add_argument("--jobs", type=positive_int, default=None, metavar="N", help=text)
    parser.add_argument("--dry-run", action="store_true", help="plan the points and count them, no more")


def begin(script: Script, stats: ModuleType, unit: str = "TBs") -> tuple[Any, Callable[[str], None]]:
    """Check that the result can be written, before anything is simulated; return a log, and what prints.

    ``stats``: the package that writes results, which ``pysim`` does not import; ``unit``: what its ``Log``
    counts. What prints shows a line at once: on stdout, or on stderr with ``--json``.
    """
    stats.check_writable(script.path, script.options.force, script.configuration)
    log = stats.Log(script.options.quiet, unit=unit)
    return log, log.say if script.options.json else partial(print, flush=True)


def simulate_in_order(
    script: Script, job: Job, tables: Sequence[str] | str, log: Any = None
) -> tuple[np.void, dict[str, NDArray[np.void]]]:
    """Simulate a job in stream order; return its row of ``runs``, and all tables.

    Raises WorkloadError with the reason where the job cannot run.
    """
    listed = script.simulate(job, "stream", tables=tables, progress=log).listed()
    (run,) = listed["runs"]
    if run["status"] != b"ok":
        raise WorkloadError(f"{job.name}: {run['reason'].decode()}")
    return run, listed


def print_table(
    script: Script, stats: ModuleType, table: Iterable[tuple[str, ...]], first: str = "--:"
) -> None:
    """Print a Markdown table row by row, as it is simulated, and write the runs to the result file.

    ``table``: cells of the heads, then of each row; ``first``: alignment of the first column.
    """
    log, show = begin(script, stats)
    for number, cells in enumerate(table):
        show(f"| {' | '.join(cells)} |")
        if number == 0:
            show(f"|{first}|" + "--:|" * (len(cells) - 1))
    script.save(stats, {"runs": script.finished_runs()} if script.finished.runs else {}, log.say)
