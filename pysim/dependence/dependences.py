"""Exact dependences between the thread blocks of a job, from footprints, at 32-byte sectors or coarser.

Edges run between kernels in launch order (RAW, WAR, WAW), never inside a kernel. They come as *group
nodes*: a counter of producer TBs that releases ranges of consumer TBs, so all-to-all stays linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import DependenceError
from pysim.program.access_regions import regions_of
from pysim.program.regions import SECTOR, csr_offsets, union

from .accesses.walk import AccessWalk
from .groups import Dependences, Group, assemble, without_edges
from .interval_sweep import KernelIntervals, recorded_intervals, sweep_intervals
from .kernel_order import reduce_preds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job

    Ints = NDArray[np.int64]

__all__ = ["Dependences", "Group", "dependences", "reduce_preds", "without_edges"]


def _clusters(job: Job, recorded: Ints, granule: int) -> tuple[dict[int, int], set[int]]:
    """Return (memory range of each tensor to walk, tensors to sweep); tensors are given by ``id``.

    Tensors that overlap in granules share a range. Ranges that one kernel alone touches, or that none
    writes, carry no edge and are left out. ``recorded``: sorted byte ranges (n, 2) that footprints touch; a
    range that meets one of them is swept, any other is walked.
    """
    tensors = {id(a.tensor): a.tensor for k in job.kernels for a in k.accesses}
    found: dict[int, int] = {}
    ends: list[int] = []
    starts: list[int] = []
    for key, tensor in sorted(tensors.items(), key=lambda item: item[1].address):
        # compared in granules: two tensors in one granule conflict
        if not ends or tensor.address // granule >= ends[-1]:
            starts.append(tensor.address // granule)
            ends.append(0)
        ends[-1] = max(ends[-1], -(-(tensor.address + tensor.nbytes) // granule))
        found[key] = len(ends) - 1
    first: dict[int, int] = {}
    shared: set[int] = set()
    written: set[int] = set()
    for index, kernel in enumerate(job.kernels):
        for access in kernel.accesses:
            where = found[id(access.tensor)]
            if first.setdefault(where, index) != index:
                shared.add(where)
            if access.mode != "read":
                written.add(where)
    met = np.searchsorted(recorded[:, 0], np.array(ends, np.int64) * granule) - 1
    known = (
        {
            where
            for where, at in enumerate(met.tolist())
            if recorded[at, 1] > starts[where] * granule and at >= 0
        }
        if len(recorded)
        else set()
    )
    alive = (shared & written) - known
    walked = {key: where for key, where in found.items() if where in alive}
    return walked, {key for key, where in found.items() if where in known}


def _ordered_before(job: Job) -> list[list[int]]:
    """Return, for each kernel, the kernels that its stream and events order directly before it.

    Raises DependenceError for an event to a kernel that there is not, or backwards.
    """
    count = len(job.kernels)
    into: dict[int, list[int]] = {}
    for before, after in job.events:
        if not (0 <= before < count and 0 <= after < count):
            raise DependenceError(f"job {job.name}: event {before} -> {after}: kernels are 0 to {count - 1}")
        if before >= after:
            raise DependenceError(
                f"job {job.name}: event {before} -> {after} points backwards in launch order: a cycle"
            )
        into.setdefault(after, []).append(before)
    last: dict[int, int] = {}
    made: list[list[int]] = []
    for index, kernel in enumerate(job.kernels):
        made.append([*into.get(index, ()), *([last[kernel.stream]] if kernel.stream in last else [])])
        last[kernel.stream] = index
    return made


def _access_intervals(job: Job, tensors: set[int], granule: int) -> list[KernelIntervals]:
    """Return the intervals of all accesses to the tensors with these ids."""
    made: list[KernelIntervals] = []
    for index, kernel in enumerate(job.kernels):
        for access in kernel.accesses:
            if id(access.tensor) in tensors:
                regions = regions_of(access, kernel.tbs, granule, f"kernel {index} ({kernel.name})")
                if len(regions):
                    lo, hi, owner = regions.intervals()
                    written = access.mode != "read"
                    made.append(KernelIntervals(index, written, lo, hi, owner, regions.tbs, regions.ptr))
    return made


def dependences(job: Job, granule: int = SECTOR) -> Dependences:
    """Return the exact edges of a job.

    Two accesses conflict if they touch the same granule of ``granule`` bytes (a multiple of 32 B) and one of
    them writes. Memory that only accesses describe is walked kernel by kernel; memory that a recorded
    footprint touches is swept by address. Raises DependenceError for events that make no order.
    """
    before = _ordered_before(job)
    offsets = csr_offsets(np.array([kernel.tbs for kernel in job.kernels], np.int64))
    parts: list[KernelIntervals] = []
    for index, kernel in enumerate(job.kernels):
        if kernel.footprint is not None:
            parts += recorded_intervals(index, kernel.footprint.sector_runs(kernel.tbs, kernel.name, granule))
    spans = [
        span
        for kernel in job.kernels
        if kernel.footprint is not None
        for span in (kernel.footprint.read_ranges(kernel.tbs), kernel.footprint.written_ranges(kernel.tbs))
    ]
    recorded = np.concatenate([np.empty((0, 2), np.int64), *spans])
    recorded = np.stack([recorded[:, 0] // granule, -(-recorded[:, 1] // granule)], axis=1) * granule
    walked, swept = _clusters(job, union(recorded), granule)
    parts = sorted(
        parts + _access_intervals(job, swept, granule), key=lambda part: (part.kernel, not part.written)
    )
    groups = AccessWalk(job, offsets, walked, granule).groups()
    return assemble(groups.merged(sweep_intervals(parts, offsets)), offsets, before)
