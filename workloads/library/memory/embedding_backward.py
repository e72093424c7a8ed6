"""The gradient of an embedding with few indices: ``embedding_backward_feature_kernel`` of PyTorch 2.11.

A TB of 32 x 32 threads has 32 columns of the table's gradient, and takes 32 indices at a time: each warp
loads a row of the gradient into shared memory; of warps with one index the first adds all rows, then adds
the sum to the table's row (ATen, native/cuda/Embedding). Up to 3,072 indices; more take another path. What
each round costs beside its loads is by reason, never fitted: 512 random and 256 ascending rows of 768 took
25.2 and 8.0 us on an H100, here 21.7 and 9.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST = 3072  # indices
SIDE, INDEX, REGISTERS = 32, 8, 32
BATCH = SIDE * SIDE  # indices that a TB loads at once
BEGIN = Work(ints=30, control=4)
ROUND = Work(ints=20, fp32=4, control=6)  # a vote on equal indices, the leader's loop, addresses
SHARED = 23  # cycles


def embedding_backward(gradient: Tensor, index: Tensor, table: Tensor, taken: Ints) -> Kernel:
    """Return the kernel that adds row i of ``gradient`` to row ``taken[i]`` of ``table``, a gradient, too.

    ``index``: the tensor that holds the numbers, of 8 B. Raises WorkloadError for more than 3,072 indices,
    numbers that are no multiple of 32, and columns that are none.
    """
    many, cols, item = gradient.rows, gradient.cols, gradient.item
    if many > MOST or many % SIDE or cols % SIDE or (table.cols, table.item) != (cols, item):
        raise WorkloadError(
            f"embedding_backward: {many} rows of {cols} into {table.rows} x {table.cols}: at most {MOST},"
            f" multiples of {SIDE}"
        )
    if (
        len(taken) != many
        or index.rows * index.cols != many
        or not 0 <= taken.min() <= taken.max() < table.rows
    ):
        raise WorkloadError(f"embedding_backward: {len(taken)} indices for {many} rows of {table.rows}")
    code = [tuple(_code(warp, taken, cols, item) for warp in range(SIDE))]
    program = warp_specialized("embedding_backward", code, None, registers=REGISTERS, smem=8192, args=3)

    def columns(first: int, end: int, tbs: Ints) -> Ints:
        at = np.asarray(tbs, np.int64) * SIDE
        zero = np.zeros_like(at)
        return np.stack([zero + first, zero + end, at, at + SIDE], 1)

    def whole(tbs: Ints) -> Ints:
        return np.tile(np.array([0, index.rows, 0, index.cols], np.int64), (len(tbs), 1))

    def row(number: int) -> Access:
        return Access(table, "update", lambda tbs: columns(number, number + 1, tbs))

    accesses = (
        Access(gradient, "read", lambda tbs: columns(0, many, tbs)),
        Access(index, "read", whole),
        *(row(int(number)) for number in np.unique(taken)),
    )
    return Kernel("embedding_backward", program, (cols // SIDE, 1, 1), (gradient, index, table), accesses)


def _code(warp: int, taken: Ints, cols: int, item: int) -> tuple[Op, ...]:
    """Return the code of a warp, which has every 32nd row."""
    code, pitch = Code(), cols * item
    BEGIN.emit(code)
    for begin in range(0, len(taken), SIDE):
        if begin % BATCH == 0:
            code.load(
                0, Pattern(1, INDEX, base=(begin + warp * WARP) % len(taken) * INDEX, s0=INDEX), level=2
            )
            code.wait(0)
            code.barrier()
        number = begin + warp
        code.load(0, Pattern(0, item, base=number * pitch, bx=SIDE * item, s0=item), level=2)
        code.wait(0)
        code.compute(smem=1, smem_ops=1, chain=SHARED)
        code.barrier()
        ROUND.emit(code)
        same = taken[begin : begin + SIDE] == taken[number]
        if int(np.argmax(same)) == warp:  # the first of those with its index adds all
            code.compute(smem=int(same.sum()), smem_ops=int(same.sum()), fp32=int(same.sum()), chain=SHARED)
            at = Pattern(2, item, base=int(taken[number]) * pitch, bx=SIDE * item, s0=item)
            code.load(0, at, level=2)
            code.wait(0)
            code.compute(fp32=1, chain=4)
            code.store(1, at, level=2)
        code.barrier()
    code.exit()
    return tuple(code.ops)
