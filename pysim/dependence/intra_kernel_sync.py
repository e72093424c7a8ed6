"""Intra-kernel waits under table schemes: TBs that wait by semaphore for other TBs of their kernel.

A waiting TB holds its slot until the TBs that it waits for have run (``Kernel.tb_edges``; those wait for no
TB of the kernel). To avoid a deadlock it is dispatched only when their producers are complete too, and among
ready TBs lower numbers go first. So it inherits their edges beside its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import csr_offsets, expand_ranges

from .groups import Dependences, Group, assemble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel

    Ints = NDArray[np.int64]


class IntraKernelWaits:
    """Waits between TBs of one kernel; ``pairs``: (n, 2) TB numbers, waiting TB and awaited TB.

    The TBs that wait for TB t are ``waiting[ptr[t]:ptr[t + 1]]``.
    """

    def __init__(self, pairs: Ints, tbs: int) -> None:
        order = np.argsort(pairs[:, 1], kind="stable")
        self.waiting = pairs[order, 0]
        self.ptr = csr_offsets(np.bincount(pairs[:, 1], minlength=tbs))

    def with_waiters(self, tbs: Ints) -> Ints:
        """Return these TBs and all that wait for any of them, sorted."""
        more = self.waiting[expand_ranges(self.ptr[tbs], self.ptr[tbs + 1] - self.ptr[tbs])]
        return np.union1d(tbs, more) if len(more) else tbs

    def sets_with_waiters(self, tbs: Ints, ptr: Ints) -> tuple[Ints, Ints]:
        """Return (TBs, ptr) of the sets ``tbs[ptr[i]:ptr[i + 1]]``, each with the TBs that wait for it."""
        made = [self.with_waiters(tbs[ptr[i] : ptr[i + 1]]) for i in range(len(ptr) - 1)]
        sizes = np.array([len(one) for one in made], np.int64)
        return np.concatenate([np.zeros(0, np.int64), *made]), csr_offsets(sizes)


def intra_kernel_waits(kernel: Kernel) -> IntraKernelWaits | None:
    """Return the waits between TBs of a kernel; None: it has none."""
    return None if kernel.tb_edges is None else IntraKernelWaits(kernel.tb_edges, kernel.tbs)


def inherit_producers(job: Job, deps: Dependences) -> Dependences:
    """Return edges by which a TB also waits for the producers of TBs of its kernel that it awaits."""
    known: Sequence[IntraKernelWaits | None] = [intra_kernel_waits(kernel) for kernel in job.kernels]
    if not any(known):
        return deps
    made = []
    for group in deps.groups:
        mine = known[group.kernel]
        who = group.consumers if mine is None else mine.with_waiters(group.consumers)
        made.append(Group(group.kernel, group.producers, group.kinds, who))
    return assemble(made, deps.offsets, races=deps.races)


def share_workspace(kernel: Kernel, other: Kernel) -> bool:
    """Whether TBs of both kernels wait for partial sums in the same tensor: the kernels must not overlap."""
    if kernel.tb_edges is None or other.tb_edges is None:
        return False
    written = [access.tensor for access in other.accesses if access.mode != "read"]
    return any(a.tensor is tensor for a in kernel.accesses if a.mode != "read" for tensor in written)
