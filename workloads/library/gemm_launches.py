"""What a library launches for a GEMM on Hopper: a reset, the GEMM, the sum of a split k."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

from .hopper_gemm import NVJET, Cost, HopperGemm, hopper_gemm

if TYPE_CHECKING:
    from numpy.typing import NDArray

REDUCE_THREADS = 512  # <32, 16> in the name of the reduction; an element each
REDUCE_INTS = 100  # instructions of a thread beside its loads and sums, an estimate: 1.6 us for little work
STATIC_TURNS = 2  # a TB that takes more tiles goes by a counter in memory, which a memset resets


def gemm_launches(
    gemm: HopperGemm,
    memory: Memory,
    operands: tuple[Tensor, Tensor] | None = None,
    cost: Cost = NVJET,
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM in their order, and its C, n x m.

    Parts of a split k are fp32, and are added by a kernel of their own. Raises WorkloadError as
    :func:`hopper_gemm` does.
    """
    made: list[Kernel] = []
    if gemm.turns > STATIC_TURNS:
        made.append(memset(memory.tensor("counter", 1, 64, 4)))
    parts = replace(gemm, out=4) if gemm.split_k > 1 else gemm
    kernel, c = hopper_gemm(parts, memory, operands, cost)
    made.append(kernel)
    if gemm.split_k > 1:
        kernel, c = split_k_sum(c, gemm.split_k, memory, gemm.out)
        made.append(kernel)
    return tuple(made), c


def split_k_sum(parts: Tensor, splits: int, memory: Memory, out: int) -> tuple[Kernel, Tensor]:
    """Return the kernel that adds the ``splits`` parts of a C, and C, of ``out``-byte elements."""
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
    kernel = Kernel("split_k_sum", _sum_program(size, splits, parts.item, out), grid, (parts, flat), (*reads, writes))
    return kernel, c


def _flat_rows(size: int, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the elements of each TB, in a tensor seen as one row."""
    zero = np.zeros_like(tbs)
    return np.stack([zero, zero + 1, tbs * REDUCE_THREADS, np.minimum((tbs + 1) * REDUCE_THREADS, size)], 1)


@lru_cache(maxsize=256)
def _sum_program(size: int, splits: int, item: int, out: int) -> Program:
    """Each thread adds the parts of an element, one after another, and stores the sum."""
    warps = REDUCE_THREADS // WARP
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
        code.wait(0)
        code.compute(fp32=splits, int=8, chain=4 * splits)
        code.store(1, *patterns(1, out, 0, width))
        code.exit()
        variants.append(tuple(code.ops))
    return Program("split_k_sum", tuple(variants), warps, 32, 0, 2)


def memset(tensor: Tensor) -> Kernel:
    """Return a kernel that clears a small tensor: one warp, a store."""
    code = Code()
    code.compute(int=8, control=8, chain=8)
    code.store(0, Pattern(0, 4, s0=4))
    code.exit()

    def whole(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([0, 1, 0, 32], np.int64), (len(tbs), 1))

    program = Program("memset", (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel("memset", program, (1, 1, 1), (tensor,), (Access(tensor, "write", whole),))
