"""Copies from the host in a job: launches that run on no SM and write memory through the L2.

A copy is a producer as a kernel is: what reads its bytes waits for it, and it waits for what still reads or
writes there. It lands in the L2 as a store does, with the L2's own replacement, and leaves dirty lines, as
copy engines write through the L2 (that their lines stay there is how GPGPU-Sim models it, too; no
measurement of ours). One that takes time uses the link alone, in the order of readiness, at
``host.copy_bandwidth`` after ``host.copy_latency``; one that takes none costs nothing on the launch path
either: no gap, no admission, no table update, no host time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .footprint import WRITE, Footprint
from .host_copy import HostCopy
from .job import Kernel
from .regions import SECTOR, intersection, union
from .warp_program import OP, Op, Program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NAME = "MemcpyHtoD"
# what the tables need of a kernel; it is never run
_PROGRAM = Program(NAME, ((Op(OP["EXIT"], issue=1),),), 1, 8, 0, 0)


def copy_kernel(spans: Ints, timed: bool, stream: int) -> Kernel:
    """Return the launch that copies to these bytes: (n, 2), any order, not empty."""
    made = union(spans)
    rows = np.zeros(len(made), np.int64), made[:, 0], made[:, 1], np.full(len(made), WRITE)
    return Kernel(NAME, _PROGRAM, (1, 1, 1), (), (), stream, Footprint.of(*rows), HostCopy(made, timed))


def l1_stale_ranges(kernels: Sequence[Kernel]) -> Ints:
    """Return the recorded memory that an L1 may hold as it was before: sorted disjoint byte ranges.

    That is what kernels write, and of copies what an earlier kernel has read.
    """
    read, fresh = np.empty((0, 2), np.int64), [np.empty((0, 2), np.int64)]
    made = [read]
    for kernel in kernels:
        if kernel.copy is None:
            if kernel.footprint is not None:
                made.append(kernel.footprint.written_ranges(kernel.tbs, kernel.name))
                fresh.append(kernel.footprint.read_ranges(kernel.tbs, kernel.name))
            tensors = [a.tensor for a in kernel.accesses if a.mode == "read"]
            fresh.append(
                np.array([(t.address, t.address + t.nbytes) for t in tensors], np.int64).reshape(-1, 2)
            )
            continue
        if len(fresh) > 1:
            read, fresh = union(np.concatenate([read, *fresh])), fresh[:1]
        made.append(intersection(kernel.copy.sectors() * SECTOR, read))
    return union(np.concatenate(made))
