"""The command ``pysim check``: a job's definitions, its addresses against its regions, and its races."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import ConfigError, InputError, InternalError, SimError, WorkloadError, brief

if TYPE_CHECKING:
    import argparse

    from pysim.program.job import Job


def _failed_line(path: Path, error: Exception) -> str:
    """Return file and line of an error: the innermost line of the user's file, or of one beside it."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{error.filename}:{error.lineno}"
    folder = path.absolute().parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).absolute().parent == folder:
            return f"{frame.filename}:{frame.lineno}"
    return str(path)


def _job_of_file(path: Path) -> Job:
    """Run a Python file and return its ``job``, or what its ``make_job()`` returns.

    It finds the modules beside it, as under ``python FILE.py``. InputError names the line that failed.
    """
    import runpy

    from pysim.program.job import Job

    sys.path.insert(0, str(path.parent.absolute()))
    try:
        names = runpy.run_path(str(path), run_name="pysim_check")
        made = names["make_job"]() if callable(names.get("make_job")) else names.get("job")
    except Exception as error:
        # pysim's own errors say what is wrong
        if isinstance(error, SimError | InternalError) or getattr(error, "user_error", False):
            raise
        said = brief(error.msg if isinstance(error, SyntaxError) else str(error), 200)
        raise InputError(f"{_failed_line(path, error)}: {type(error).__name__}: {said}") from error
    finally:
        sys.path.pop(0)
    if not isinstance(made, Job):
        raise InputError(f"{path}: must define job, a Job, or a function make_job that returns one")
    return made


def _job(args: argparse.Namespace) -> Job:
    """Return the job of the operand."""
    from pysim.workloads.registry import make

    path = Path(args.workload)
    if path.suffix != ".py":
        return make(args.workload, args.gpu)
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return _job_of_file(path)


def _refuse_recorded(text: str) -> None:
    """Raise InputError for a path that is no Python file: a trace, profile or result."""
    from pysim.workloads.registry import WORKLOADS

    path = Path(text)
    if path.exists() and path.suffix != ".py" and text.partition(":")[0] not in WORKLOADS:
        raise InputError(
            f"{text}: a trace, profile or result: its code cannot be changed: give a workload or a FILE.py"
        )


def check(args: argparse.Namespace) -> int:
    """Check every kernel, TB and iteration of a job; say how much was checked, or what is unsafe."""
    from pysim.dependence.dependences import dependences
    from pysim.program.definition_check import check_job
    from pysim.program.pattern_check import check_patterns

    waits = args.pdl or args.cusync is not None
    for name in ("at", "trigger", "plan", "prove", "json"):
        if getattr(args, name) not in (None, False) and not (
            args.pdl or (waits and name in ("prove", "json"))
        ):
            raise ConfigError(f"--{name}: only with --pdl{' or --cusync' * (name in ('prove', 'json'))}")
    if args.pdl and args.cusync is not None:
        raise ConfigError("--pdl, --cusync: one of them at a time")
    if waits:
        from .pdl_check import pdl_check, tile_check

        _refuse_recorded(args.workload)
        args.gpu = args.gpu or "h200"
        return (pdl_check if args.pdl else tile_check)(args, _job(args))
    job = _job(args)
    check_job(job)
    count = check_patterns(job, every=True)
    if races := dependences(job).races:
        some = ", ".join(f"{first} -> {second}" for first, second in races[:8])
        raise WorkloadError(
            f"job {job.name}: {len(races)} races between streams without an event: kernels {some}"
        )
    tbs = sum(kernel.tbs for kernel in job.kernels)
    print(f"{job.name}: {count} kernels of {len(job.kernels)} launches, {tbs:,} TBs: no fault found")
    return 0
