"""Which memory a job writes, and which of it an L1 may still hold as it was before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .copies import l1_stale_ranges
from .regions import union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .job import Job


def _tensors_written(job: Job) -> NDArray[np.int64]:
    spans = {
        (a.tensor.address, a.tensor.address + a.tensor.nbytes)
        for k in job.kernels
        for a in k.accesses
        if a.mode != "read"
    }
    return np.array(list(spans), np.int64).reshape(-1, 2)


def written_by_job(job: Job) -> NDArray[np.int64]:
    """Return the merged address ranges that kernels and copies write or update: sorted, (n, 2)."""
    recorded = [k.footprint.written_ranges(k.tbs, k.name) for k in job.kernels if k.footprint is not None]
    return union(np.concatenate([_tensors_written(job), *recorded]))


def rewritten_by_job(job: Job) -> NDArray[np.int64]:
    """Return those of them that an L1 may hold as they were before (``copies.l1_stale_ranges``)."""
    return union(np.concatenate([_tensors_written(job), l1_stale_ranges(job.kernels)]))
