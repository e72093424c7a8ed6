"""Checks of what a caller gives to ``simulate`` and ``bound``, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral

import numpy as np

from pysim.clock import Clock
from pysim.dependence.dependences import Dependences
from pysim.errors import ConfigError, WorkloadError, brief
from pysim.program.job import Job, Kernel
from pysim.program.regions import csr_offsets
from pysim.results.schema import DTYPES

_NO_JOB = "give a pysim.Job, such as workloads.make returns"


def check_job_form(job: object) -> None:
    """Raise WorkloadError for what is no job, and for a job whose kernels or events are of another type."""
    if not isinstance(job, Job):
        raise WorkloadError(_no_job(job))
    if not isinstance(job.name, str):
        raise WorkloadError(f"job {brief(job.name)}: its name must be a text")
    where = f"job {brief(job.name)}"
    parts: dict[str, object] = {"kernels": job.kernels, "events": job.events}
    for name, items in parts.items():
        if isinstance(items, str | bytes) or not isinstance(items, Sequence):
            raise WorkloadError(f"{where}: {name} is {type(items).__name__}: must be a list or a tuple")
    for number, kernel in enumerate(job.kernels):
        if not isinstance(kernel, Kernel):
            raise WorkloadError(
                f"{where}: kernels[{number}] is {type(kernel).__name__}: must be a pysim.Kernel"
            )
    for number, event in enumerate(job.events):
        if not _is_pair(event):
            raise WorkloadError(
                f"{where}: events[{number}] = {brief(event)}: must be (earlier kernel, later kernel): numbers"
            )


def _no_job(given: object) -> str:
    what = brief(given) if isinstance(given, str) else type(given).__name__
    if isinstance(given, str):
        return f"{what} is no job: give workloads.make({brief(given)!r})"
    if isinstance(given, Kernel):
        return f"{what} is no job: give pysim.Job(name, [kernel])"
    if isinstance(given, list | tuple) and given and all(isinstance(each, Kernel) for each in given):
        return f"a {what} of kernels is no job: give pysim.Job(name, kernels)"
    return f"{what} is no job: {_NO_JOB}"


def _is_pair(event: object) -> bool:
    return (
        isinstance(event, Sequence | np.ndarray)
        and len(event) == 2
        and all(isinstance(each, Integral) and not isinstance(each, bool) for each in event)
    )


def check_deps(deps: object, job: Job) -> None:
    """Raise ConfigError for what is no ``Result.deps``, WorkloadError for that of a job of another size."""
    if not isinstance(deps, Dependences):
        raise ConfigError(f"deps is {type(deps).__name__}: must be Result.deps of an earlier call")
    if not np.array_equal(deps.offsets, csr_offsets(np.array([k.tbs for k in job.kernels], np.int64))):
        raise WorkloadError(
            f"job {brief(job.name)}: deps are of another job: their kernels have other numbers of TBs"
        )


def thread_count(threads: object) -> int | None:
    """Return a number of threads, None as it is. Raises ConfigError for what is no integer from 1 on."""
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, Integral):
        raise ConfigError(
            f"threads = {brief(threads)} ({type(threads).__name__}): must be an integer, or None"
        )
    if threads < 1:
        raise ConfigError(f"threads = {brief(threads)}: must be at least 1")
    return int(threads)


def check_calls(**functions: Callable[..., object] | None) -> None:
    """Raise ConfigError for an argument that is neither None nor a function."""
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise ConfigError(f"{name} = {brief(function)}: must be a function, or None")


def check_clock(clock: object) -> None:
    """Raise ConfigError for what is neither None nor a ``pysim.clock.Clock``."""
    if clock is not None and not isinstance(clock, Clock):
        raise ConfigError(f"clock is {type(clock).__name__}: must be a pysim.clock.Clock, or None")


def table_names(tables: str | Iterable[str]) -> list[str]:
    """Return the names of tables in a comma-separated text or a list. Raises ConfigError for others."""
    given: object = tables
    known = ("all", "none", *DTYPES)
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise ConfigError(f"tables = {brief(given)}: must be names of tables: {', '.join(known)}")
    words = given.split(",") if isinstance(given, str) else list(given)
    for word in words:
        if word not in known:
            raise ConfigError(f"no table {brief(word)!r}: there are {', '.join(known)}")
    return words
