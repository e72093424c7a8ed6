"""What a library launches for a GEMM on Hopper: a reset, the GEMM, the sum of a split k."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memset import memset

from .hopper_epilogue import NVJET, Cost
from .hopper_gemm import HopperGemm, check_operands, hopper_gemm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

REDUCE_THREADS = 512  # <32, 16> in the name of the reduction; an element each
REDUCE_INTS = 100  # instructions of a thread beside its loads and sums, an estimate: 1.6 us for little work


def gemm_launches(
    gemm: HopperGemm,
    memory: Memory,
    operands: Sequence[Tensor] | None = None,
    cost: Cost = NVJET,
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM in their order, and its C, [batch *] n x m.

    ``operands`` are as :func:`hopper_gemm` takes them. Parts of a split k are fp32, and are added by a kernel
    of their own, which adds the bias, too. Raises WorkloadError as :func:`hopper_gemm` does.
    """
    made: list[Kernel] = []
    counter = None
    if gemm.dynamic:
        counter = memory.tensor("counter", 1, 64, 4)
        made.append(memset(counter))
    if gemm.split_k == 1:
        kernel, c = hopper_gemm(gemm, memory, operands, cost, counter)
        return (*made, kernel), c
    operands = check_operands(gemm, memory, operands)
    parts = replace(gemm, out=4, epilogue="none")
    kernel, c = hopper_gemm(parts, memory, operands[:2], cost, counter)
    made.append(kernel)
    kernel, c = split_k_sum(c, gemm.split_k, memory, gemm.out, operands[2:], cost.of_result(gemm.epilogue))
    return (*made, kernel), c


def split_k_sum(
    parts: Tensor, splits: int, memory: Memory, out: int, bias: Sequence[Tensor] = (), more: float = 0.0
) -> tuple[Kernel, Tensor]:
    """Return the kernel that adds the ``splits`` parts of a C, and C, of ``out``-byte elements.

    ``bias``: none, or a row that is added to each row of C; ``more``: cycles of an element after its sum.
    """
    c = memory.tensor("C", parts.rows // splits, parts.cols, out)
    size = c.rows * c.cols
    grid = (-(-size // REDUCE_THREADS), 1, 1)

    def of_rows(first: int, tensor: Tensor, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return whole rows that hold the elements of each TB, from row ``first`` on."""
        begin, end = tbs * REDUCE_THREADS, np.minimum((tbs + 1) * REDUCE_THREADS, size)
        zero = np.zeros_like(tbs)
        return np.stack([first + begin // c.cols, first - (-end // c.cols), zero, zero + tensor.cols], 1)

    reads = [Access(parts, "read", partial(of_rows, part * c.rows, parts)) for part in range(splits)]
    flat = replace(c, rows=1, cols=size)
    writes = Access(flat, "write", partial(_flat_rows, size))
    reads += [Access(row, "read", partial(_flat_rows, row.cols, whole=True)) for row in bias]
    biased = (bias[0].item, min(bias[0].cols, WARP)) if bias else (0, 0)
    program = _sum_program(size, splits, (parts.item, out), biased, round(more))
    return Kernel("split_k_sum", program, grid, (parts, flat, *bias), (*reads, writes)), c


def _flat_rows(size: int, tbs: NDArray[np.int64], *, whole: bool = False) -> NDArray[np.int64]:
    """Return the elements of each TB, in a tensor seen as one row; ``whole``: all of them."""
    zero = np.zeros_like(tbs)
    if whole:
        return np.stack([zero, zero + 1, zero, zero + size], 1)
    return np.stack([zero, zero + 1, tbs * REDUCE_THREADS, np.minimum((tbs + 1) * REDUCE_THREADS, size)], 1)


@lru_cache(maxsize=256)
def _sum_program(size: int, splits: int, items: tuple[int, int], bias: tuple[int, int], more: int) -> Program:
    """Each thread adds the parts of an element, one after another, and stores the sum.

    ``items``: bytes of an element of the parts, and of C; ``bias``: of the bias, and how many a warp loads;
    0: none. All warps load the first ones, which takes as long.
    """
    warps, (item, out) = REDUCE_THREADS // WARP, items
    last = (size - 1) % REDUCE_THREADS + 1

    def patterns(arg: int, item: int, base: int, width: int) -> tuple[Pattern, ...]:
        lanes = [min(max(width - WARP * warp, 0), WARP) for warp in range(warps)]
        return tuple(
            Pattern(
                arg,
                item,
                base=base + warp * WARP * item,
                bx=REDUCE_THREADS * item,
                s0=item,
                lanes=(1 << n) - 1,
            )
            for warp, n in enumerate(lanes)
        )

    variants = []
    for number in range(8):
        width = last if number & 1 else REDUCE_THREADS
        code = Code()
        code.compute(int=REDUCE_INTS, control=REDUCE_INTS // 4, chain=REDUCE_INTS)
        for part in range(splits):
            code.load(0, *patterns(0, item, part * size * item, width))
        if bias[0]:
            code.load(0, Pattern(2, bias[0], s0=bias[0], lanes=(1 << bias[1]) - 1))
        code.wait(0)
        code.compute(fp32=splits, int=8, chain=4 * splits)
        if more:
            code.delay(more)
        code.store(1, *patterns(1, out, 0, width))
        code.exit()
        variants.append(tuple(code.ops))
    return Program("split_k_sum", tuple(variants), warps, 32, 0, 3 if bias[0] else 2)
