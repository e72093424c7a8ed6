"""TBs that wait inside for other TBs of their kernel, as table schemes launch them.

A TB that a table has launched holds its place until those that it waits for have been launched too. They
wait for nobody (``Kernel.tb_edges``), so it is enough that nothing keeps them back: a TB is launched when
what they need is done as well, and lower TBs go first among those that are ready. The edges are then more
than the data asks for, by these alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import csr_offsets, expand_ranges

from .groups import Dependences, Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel

    Ints = NDArray[np.int64]


class Waiters:
    """Which TBs of a kernel wait for which, by the one that is waited for."""

    def __init__(self, pairs: Ints, tbs: int) -> None:
        order = np.argsort(pairs[:, 1], kind="stable")
        self.who = pairs[order, 0]
        self.ptr = csr_offsets(np.bincount(pairs[:, 1], minlength=tbs))

    def joined(self, tbs: Ints) -> Ints:
        """Return the TBs and those that wait for any of them, sorted."""
        more = self.who[expand_ranges(self.ptr[tbs], self.ptr[tbs + 1] - self.ptr[tbs])]
        return np.union1d(tbs, more) if len(more) else tbs

    def joined_all(self, tbs: Ints, ptr: Ints) -> tuple[Ints, Ints]:
        """Return each of the sets ``tbs[ptr[i]:ptr[i + 1]]`` with those that wait for it."""
        made = [self.joined(tbs[ptr[i] : ptr[i + 1]]) for i in range(len(ptr) - 1)]
        sizes = np.array([len(one) for one in made], np.int64)
        return np.concatenate([np.zeros(0, np.int64), *made]), csr_offsets(sizes)


def waiters_of(kernel: Kernel) -> Waiters | None:
    """Return who waits inside a kernel; None: nobody does."""
    return None if kernel.tb_edges is None else Waiters(kernel.tb_edges, kernel.tbs)


def inherit_producers(job: Job, deps: Dependences) -> Dependences:
    """Return the edges with which a TB also waits for the producers of TBs that it waits for inside."""
    known: Sequence[Waiters | None] = [waiters_of(kernel) for kernel in job.kernels]
    if not any(known):
        return deps
    made = []
    for group in deps.groups:
        mine = known[group.kernel]
        who = group.consumers if mine is None else mine.joined(group.consumers)
        made.append(Group(group.kernel, group.producers, group.kinds, who))
    return deps.with_groups(made)


def one_workspace(kernel: Kernel, other: Kernel) -> bool:
    """Whether TBs of both kernels wait inside for what lies in the same tensor: they must not overlap."""
    if kernel.tb_edges is None or other.tb_edges is None:
        return False
    written = [access.tensor for access in other.accesses if access.mode != "read"]
    return any(a.tensor is tensor for a in kernel.accesses if a.mode != "read" for tensor in written)
