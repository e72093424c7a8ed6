"""Which memory a job writes, and which of it an L1 may still hold as it was before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .copies import l1_stale_ranges
from .regions import SECTOR, expand_ranges, union

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .job import Job, Kernel

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OverwrittenMemory:
    """Memory of which a job makes a second version, after kernels may have left the first in an L1.

    ``spans``: sorted disjoint byte ranges of whole sectors, (n, 2). ``read_by``: one element a kernel,
    whether it reads any of them after they were first overwritten, so that an L1 may hold an older version.
    """

    spans: Ints
    read_by: NDArray[np.bool_]


def sector_spans(kernel: Kernel, writes: bool) -> Ints:
    """Return the whole sectors that a launch reads, or those that it writes or updates, by whole tensors."""
    tensors = [a.tensor for a in kernel.accesses if (a.mode != "read") == writes]
    made = [np.array([(t.address, t.address + t.nbytes) for t in tensors], np.int64).reshape(-1, 2)]
    if kernel.footprint is not None:
        ranges = kernel.footprint.written_ranges if writes else kernel.footprint.read_ranges
        made.append(ranges(kernel.tbs, kernel.name))
    spans = np.concatenate(made)
    return union(np.stack([spans[:, 0] // SECTOR, -(-spans[:, 1] // SECTOR)], axis=1) * SECTOR)


def overwritten_by_job(job: Job) -> OverwrittenMemory:
    """Return the memory that a kernel or copy writes after it was read or written, by itself or before.

    All other memory has one version as long as the job runs: no L1 can hold an older one.
    """
    reads, writes = ([sector_spans(k, mode) for k in job.kernels] for mode in (False, True))
    cuts = np.unique(np.concatenate([np.empty((0, 2), np.int64), *reads, *writes]))
    read_by = np.zeros(len(job.kernels), np.bool_)
    seen = np.zeros(len(cuts), np.bool_)  # of the piece from each cut to the next
    again = seen.copy()

    def pieces(spans: Ints) -> Ints:
        first, end = np.searchsorted(cuts, spans).T
        return expand_ranges(first, end - first)

    for index, (read, written) in enumerate(zip(reads, writes, strict=True)):
        if len(read):
            mine = pieces(read)
            read_by[index] = again[mine].any()
            seen[mine] = True
        if len(written):
            mine = pieces(written)
            again[mine] |= seen[mine]
            seen[mine] = True
    at = np.flatnonzero(again)
    return OverwrittenMemory(union(np.stack([cuts[at], cuts[at + 1]], axis=1)), read_by)


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
