"""What stands for each measured kernel and chain.

A name without an entry (in :data:`workloads.hw.TEMPLATES`, or in ``CHAINS`` here) is a case that cannot be
simulated, which counts as 100 % error.
"""

from __future__ import annotations

from collections.abc import Callable

from pysim import Job, WorkloadError
from workloads.hw import job_of

# chain of deps.csv -> job, from dtype, tile and params of its row
CHAINS: dict[str, Callable[[str, str, str], Job]] = {}


def kernel_job(kernel: str, params: str, launches: int) -> Job:
    """Return the job of ``launches`` equal launches of a measured kernel in one stream."""
    job = job_of(kernel, params)
    return Job(job.name, list(job.kernels) * launches)


def chain_job(chain: str, dtype: str, tile: str, params: str) -> Job:
    """Return the job of a measured chain."""
    if chain not in CHAINS:
        raise WorkloadError(f"no workload for chain {chain}")
    return CHAINS[chain](dtype, tile, params)
