"""What each launch tells L1 about its arguments, so that no load hits a line older than its producers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import intersection, overlaps, union
from pysim.program.written_memory import overwritten_by_job, rewritten_by_job, sector_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel
    from pysim.schemes.launch_plan import LaunchPlan

    Ints = NDArray[np.int64]


def fill_coherence(launches: NDArray[np.void], policy: str, job: Job, plan: LaunchPlan | None) -> None:
    """Fill the fields of ``gs_launch`` that a policy of ``scheme.coherence`` needs; two need none.

    A TB with a prologue waits after its start, too late for an invalidation there: it reads past L1 whatever
    an L1 may hold as it was before.
    """
    if policy == "bypass":
        launches["bypass"] = _bypass(job, plan)
        return
    ahead = np.array(plan.has_prologue if plan else [], bool)
    if policy == "argument":
        _mark_overwritten(launches, job, None if ahead.any() else plan)
    if ahead.any():
        launches["bypass"] = np.where(ahead, launches["overwritten"] | _bypass(job, plan), 0)
        launches["stale"] &= ~ahead


def _args_in(kernel: Kernel, memory: Ints, touched: Ints | None = None) -> int:
    """Return the arguments that overlap ``memory`` (sorted disjoint byte ranges), as bits.

    A recorded kernel touches less than its arguments hold: ``touched``; its other bits go for all of that.
    """
    bits = 0
    if touched is not None:
        memory = intersection(touched, memory)
        bits = (0xFFFFFFFF << len(kernel.args)) & 0xFFFFFFFF if len(memory) else 0
    for slot, tensor in enumerate(kernel.args):
        if overlaps(memory, tensor.address, tensor.address + tensor.nbytes):
            bits |= 1 << slot
    return bits


def _reads(kernel: Kernel) -> Ints | None:
    return None if kernel.footprint is None else kernel.footprint.read_ranges(kernel.tbs, kernel.name)


def _bypass(job: Job, plan: LaunchPlan | None = None) -> list[int]:
    """Return, for each kernel, the arguments whose memory the job writes, as bits.

    Of the persistent kernels that a plan makes of several, ops say it.
    """
    fused = Counter(plan.launch_of_kernel) if plan and plan.unfused else Counter[int]()
    written = rewritten_by_job(plan.unfused if plan and plan.unfused else job)
    return [0 if fused[i] > 1 else _args_in(k, written, _reads(k)) for i, k in enumerate(job.kernels)]


def _mark_overwritten(launches: NDArray[np.void], job: Job, plan: LaunchPlan | None) -> None:
    """Fill which arguments' lines L1 marks, and which launches may find old ones.

    Where TBs wait for TBs of their own kernel, what the kernel writes is read past L1: such a wait comes
    after the TB's start.
    """
    found = overwritten_by_job(job)
    launches["stale"] = found.read_by
    for index, kernel in enumerate(job.kernels):
        touched = _reads(kernel)
        if kernel.footprint is not None and touched is not None:
            touched = union(
                np.concatenate([touched, kernel.footprint.written_ranges(kernel.tbs, kernel.name)])
            )
        launches["overwritten"][index] = _args_in(kernel, found.spans, touched)
        if plan is not None:
            own = sector_spans(kernel, writes=True)
            launches["bypass"][index] = _args_in(kernel, own, _reads(kernel))
