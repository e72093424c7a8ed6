"""Bound and estimates of a job's time without a run: what no scheme beats, and what list schedules take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.analysis.lower_bound import Bounds, estimator
from pysim.clock import Clock
from pysim.machine.config import Config
from pysim.machine.devices import Device
from pysim.machine.system import Gpu, System, resolve
from pysim.schemes.registry import parse_scheme

from .session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pysim.program.job import Job

KINDS = {
    "free": (False, False),
    "launch": (True, False),
    "shared": (False, True),
    "launch, shared": (True, True),
}


def estimates(config: Config, job: Job) -> dict[str, float]:
    """Return the four list schedules of a job in microseconds, by names of ``KINDS``.

    free: neither launches nor ports, L2 and DRAM cost anything; launch: kernels come ``gpu.cp.admit`` apart;
    shared: running TBs share ports, L2 and DRAM. The column ``estimate_us`` of results is *shared*.
    """
    session = Session(config, job, 1, Clock())
    programs, costs = session.costs(config)
    made = estimator(job, session.deps, programs, costs, config.encoded())
    return {
        name: made.estimate_us(launch=launch, bandwidth=bandwidth)
        for name, (launch, bandwidth) in KINDS.items()
    }


def bound(
    gpu: System | Gpu | Device | Config | str,
    job: Job,
    scheme: str = "stream",
    overrides: Mapping[str, float | int | str] | None = None,
) -> Bounds:
    """Return what ``simulate`` writes as ``bound_us`` and ``estimate_us``, without the run.

    No scheme of the family of ``scheme`` beats the bound (TBs that wait inside their programs have another
    one than those that wait before dispatch); the estimate is a list schedule, and no limit. ``gpu``,
    ``overrides``: as of ``simulate``. Raises ConfigError for names that there are not.
    """
    config = resolve(gpu, overrides)
    choice = parse_scheme(scheme)
    return Session(config, job, 1, Clock()).bounds(config.replaced(choice.pins), choice)
