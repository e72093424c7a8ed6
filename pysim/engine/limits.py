"""Lower bound and estimates of a job's time without a simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.analysis.lower_bound import Bounds, estimator
from pysim.clock import Clock
from pysim.machine.system import Machine, resolve
from pysim.schemes.registry import parse_scheme

from .arguments import check_job_form
from .session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.schemes.scheme import Scheme

ESTIMATE_KINDS = {
    "free": (False, False),
    "launch": (True, False),
    "shared": (False, True),
    "launch, shared": (True, True),
}


def estimates(config: Config, job: Job) -> dict[str, float]:
    """Return four list schedules of a job in microseconds, by names of ``ESTIMATE_KINDS``.

    free: launches take no time and TBs do not contend; launch: kernels are admitted ``gpu.cp.admit`` apart;
    shared: running TBs share ports, L2 and DRAM bandwidth. The column ``estimate_us`` of results is *shared*.
    """
    session = Session(config, job, 1, Clock())
    programs, costs = session.costs(config)
    values = config.encoded()
    made = estimator(job, session.deps, programs, costs, values, session.traffic(values))
    return {
        name: made.estimate_us(launch=launch, bandwidth=bandwidth)
        for name, (launch, bandwidth) in ESTIMATE_KINDS.items()
    }


def bound(
    gpu: Machine,
    job: Job,
    scheme: str | Scheme = "stream",
    overrides: Mapping[str, float | int | str] | None = None,
) -> Bounds:
    """Return ``bound_us`` and ``estimate_us`` of a job in microseconds, as ``simulate`` reports them.

    The bound holds for all schemes of the same kind as ``scheme``: it differs between TBs that wait inside
    their programs and TBs that wait before dispatch. The estimate is a list schedule, not a limit. ``gpu``
    and ``overrides``: as in ``simulate``. Raises ConfigError for unknown names, WorkloadError for an empty
    job and for what is no job.
    """
    config = resolve(gpu, overrides)
    check_job_form(job)
    choice = parse_scheme(scheme)
    return Session(config, job, 1, Clock()).bounds(config.replaced(choice.pins), choice).of_whole()
