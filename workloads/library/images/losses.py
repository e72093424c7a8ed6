"""The negative log likelihood of classes, one TB of a warp (native/cuda/Loss of PyTorch 2.11).

``nll_loss_forward_reduce_cuda_kernel_2d`` and its backward: lane i takes rows i, i + 32, ...: a class of 8 B,
then an element of the row. Counts are by reason; the profile of ``lenet_b64_fp32_fwdbwd`` has 2.2 and 1.6 us.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.images import INDEX
from pysim.workloads.library.memory.pointwise_parts import paired, shuffles, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def nll_forward(shares: Tensor, classes: Tensor, loss: Tensor) -> Kernel:
    """Return the kernel that adds up the elements of the classes; ``classes``: 8 B a row of ``shares``."""
    program = _program(shares.rows, shares.pitch, shares.item, forward=True)
    accesses = whole(shares), whole(classes), whole(loss, "write")
    return Kernel("nll_loss", program, (1, 1, 1), (shares, classes, loss), accesses)


def nll_backward(gradient: Tensor, classes: Tensor, of_shares: Tensor) -> Kernel:
    """Return the kernel that writes the gradient at the class of each row; the first stands for them."""
    program = _program(of_shares.rows, of_shares.pitch, of_shares.item, forward=False)

    def column(tbs: Ints) -> Ints:
        return np.tile(np.array([0, of_shares.rows, 0, 1], np.int64), (len(tbs), 1))

    accesses = whole(gradient), whole(classes), Access(of_shares, "write", column)
    return Kernel("nll_loss_backward", program, (1, 1, 1), (gradient, classes, of_shares), accesses)


@lru_cache(maxsize=64)
def _program(rows: int, pitch: int, item: int, *, forward: bool) -> Program:
    code = Code()
    code.compute(int=16, control=3)
    if not forward:
        code.load(0, paired(Pattern(0, item, lanes=1)), level=2)
    for first in range(0, rows, WARP):
        lanes = (1 << min(WARP, rows - first)) - 1
        code.load(0, Pattern(1, INDEX, base=first * INDEX, s0=INDEX, lanes=lanes), level=2)
        code.wait(0)
        code.compute(int=16, control=3)
        at = paired(Pattern(0 if forward else 2, item, base=first * pitch, s0=pitch, lanes=lanes))
        if forward:
            code.load(0, at, level=2)
            code.wait(0)
            code.compute(fp32=2)
        else:
            code.store(1, at, level=2)
    if forward:
        shuffles(code, 1)
        code.store(1, paired(Pattern(2, item, lanes=1)), level=2)
    code.exit()
    return Program("nll_loss", (tuple(code.ops),), 1, 32, 0, 3)
