"""Capacity misses of an L2 by reuse distance: the bytes touched since the last use of an operand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job


class _Sums:
    """Prefix sums of numbers that change (a Fenwick tree)."""

    def __init__(self, count: int) -> None:
        self.tree = [0] * (count + 1)

    def add(self, at: int, value: int) -> None:
        at += 1
        while at < len(self.tree):
            self.tree[at] += value
            at += at & -at

    def before(self, at: int) -> int:
        total = 0
        while at > 0:
            total += self.tree[at]
            at -= at & -at
        return total


def missed_bytes(job: Job, size: int) -> NDArray[np.float64]:
    """Return, for each kernel, the bytes of its operands that an L2 of ``size`` bytes no longer holds.

    float64, (kernels,). With a reuse distance of d > ``size`` distinct bytes, the share 1 - ``size`` / d is
    taken to be evicted: the most that a cyclic scan of d bytes misses under random replacement. Operands that
    the job writes count twice, as they are written back before they are fetched. Operands are touched as a
    whole, in launch order. First touches count as hits, as they miss under every schedule.
    """
    uses = sum(len(kernel.args) for kernel in job.kernels)
    written = {
        (a.tensor.address, a.tensor.nbytes) for k in job.kernels for a in k.accesses if a.mode != "read"
    }
    sums, last = _Sums(uses), dict[tuple[int, int], int]()
    made = np.zeros(len(job.kernels))
    clock = 0
    for index, kernel in enumerate(job.kernels):
        for tensor in kernel.args:
            key = (tensor.address, tensor.nbytes)
            at = last.get(key)
            if at is not None:
                apart = sums.before(clock) - sums.before(at)
                moved = tensor.nbytes * (1 + (key in written))
                made[index] += moved * max(0.0, 1 - size / apart)
                sums.add(at, -tensor.nbytes)
            sums.add(clock, tensor.nbytes)
            last[key] = clock
            clock += 1
    return made
