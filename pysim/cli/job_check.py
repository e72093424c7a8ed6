"""The command ``pysim check``: a job's definitions, its addresses against its regions, and its races."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import InputError, WorkloadError

if TYPE_CHECKING:
    import argparse

    from pysim.program.job import Job


def _job_of_file(path: Path) -> Job:
    """Run a Python file and return its ``job``, or what its ``make_job()`` returns."""
    import runpy

    from pysim.program.job import Job

    names = runpy.run_path(str(path), run_name="pysim_check")
    made = names["make_job"]() if callable(names.get("make_job")) else names.get("job")
    if not isinstance(made, Job):
        raise InputError(f"{path}: must define job, a Job, or a function make_job that returns one")
    return made


def check(args: argparse.Namespace) -> None:
    """Check every kernel, TB and iteration of a job; say how much was checked."""
    from pysim.dependence.dependences import dependences
    from pysim.program.definition_check import check_job
    from pysim.program.pattern_check import check_patterns
    from pysim.workloads.registry import make

    path = Path(args.workload)
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        job = _job_of_file(path)
    else:
        job = make(args.workload, args.gpu)
    check_job(job)
    count = check_patterns(job, every=True)
    if races := dependences(job).races:
        some = ", ".join(f"{first} -> {second}" for first, second in races[:8])
        raise WorkloadError(
            f"job {job.name}: {len(races)} races between streams without an event: kernels {some}"
        )
    tbs = sum(kernel.tbs for kernel in job.kernels)
    print(f"{job.name}: {count} kernels of {len(job.kernels)} launches, {tbs:,} TBs: no fault found")
