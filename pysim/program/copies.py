"""Copies from the host in a job: launches that run on no SM and write memory through the L2.

A copy has RAW, WAR and WAW edges like a kernel. Its data is stored in the L2 with the L2's replacement and
leaves dirty lines, as copy engines write through the L2. (That the lines stay is GPGPU-Sim's model too; it is
not measured.) A timed copy occupies the link alone, in the order in which copies become ready, at
``host.copy_bandwidth`` after ``host.copy_latency``. An untimed copy has no cost on the launch path either: no
gap, admission, table update or host time.
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
# the tables need a program for every launch; this one never runs
_PROGRAM = Program(NAME, ((Op(OP["EXIT"], issue=1),),), 1, 8, 0, 0)


def copy_kernel(spans: Ints, timed: bool, stream: int) -> Kernel:
    """Return the launch of a copy to these byte ranges.

    ``spans``: int64 (n, 2), half open, in any order, not empty. ``timed``: it occupies the link. ``stream``:
    number of its CUDA stream.
    """
    made = union(spans)
    rows = np.zeros(len(made), np.int64), made[:, 0], made[:, 1], np.full(len(made), WRITE)
    return Kernel(NAME, _PROGRAM, (1, 1, 1), (), (), stream, Footprint.of(*rows), HostCopy(made, timed))


def l1_stale_ranges(kernels: Sequence[Kernel]) -> Ints:
    """Return the recorded memory of which an L1 may hold stale lines: sorted disjoint (n, 2) byte ranges.

    That is all that kernels write, and what copies write after an earlier kernel has read it.
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
