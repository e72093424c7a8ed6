"""A reset of a few bytes, as a node of a CUDA graph between kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 4096  # bytes; from 64 KiB on a kernel does it, in between is not measured
# Cycles until the next kernel goes on: a chain of kernels gets 1.6 to 1.9 us longer with a memset before each
# (tests/hw/launch/h200_memset.csv); 0.85 us of it are the launch itself
WAIT = 1700


def memset(tensor: Tensor) -> Kernel:
    """Return what clears a tensor of at most 4 KiB: one warp, a store, and a wait.

    Raises WorkloadError for a larger one.
    """
    if tensor.nbytes > MOST:
        raise WorkloadError(f"memset of {tensor.nbytes} B: at most {MOST} B")
    code = Code()
    code.compute(int=8, control=8, chain=8)
    code.store(0, Pattern(0, tensor.item, s0=tensor.item, lanes=(1 << min(32, tensor.cols)) - 1))
    code.delay(WAIT)
    code.exit()

    def whole(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([0, tensor.rows, 0, tensor.cols], np.int64), (len(tbs), 1))

    program = Program("memset", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel("memset", program, (1, 1, 1), (tensor,), (Access(tensor, "write", whole),))
