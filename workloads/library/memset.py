"""A reset of a few bytes, as a node of a CUDA graph between kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST = 256  # bytes: one store of 8 B a lane; larger ones take longer (h200_memset.csv)
# Cycles until the next kernel goes on: a chain of kernels gets 1.6 to 1.9 us longer with a memset before each
# (tests/hw/launch/h200_memset.csv); 0.85 us of it are the launch itself
WAIT = 1700


def memset(tensor: Tensor) -> Kernel:
    """Return what clears a tensor of at most 256 B: one warp, a store, and a wait.

    Raises WorkloadError for another size, and one that is no multiple of 8 B.
    """
    if not 0 < tensor.nbytes <= MOST or tensor.nbytes % 8:
        raise WorkloadError(f"memset of {tensor.nbytes} B: must be a multiple of 8 B up to {MOST}")
    code = Code()
    code.compute(int=8, control=8, chain=8)
    code.store(0, Pattern(0, 8, s0=8, lanes=(1 << tensor.nbytes // 8) - 1))
    code.delay(WAIT)
    code.exit()

    def whole(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([0, tensor.rows, 0, tensor.cols], np.int64), (len(tbs), 1))

    program = Program("memset", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel(
        "memset", program, (1, 1, 1), (tensor,), (Access(tensor, "write", whole),), programmatic=False
    )
