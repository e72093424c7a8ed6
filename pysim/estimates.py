"""Estimates of a job's time: with launches that cost and without, with shared bandwidth and without limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .bounds import estimator
from .clock import Clock
from .session import Session

if TYPE_CHECKING:
    from .config import Config
    from .job import Job

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
    return {name: made.us(launch=launch, bandwidth=bandwidth) for name, (launch, bandwidth) in KINDS.items()}
