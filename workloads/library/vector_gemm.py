"""GEMMs of few columns in fp32, A contiguous in k: a thread block (TB) of 128 threads makes 8 rows of C.

cuBLAS's ``gemv2T_kernel_val`` (one column), ``gemmSN_TN_kernel`` (grids of the sweep: 8 rows of C and up to
8 columns a TB). Each thread takes 16 B of k of every row and column; at the end the TB adds the sums of its
threads by shuffles and through shared memory.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .choice import Problem

    Table = NDArray[np.int64]

ITEM, VECTOR = 4, 16  # bytes of an element, and that a thread loads at once
WARPS, ROWS = 4, 8
FEW = {"gemv2T_kernel_val": 1, "gemmSN_TN_kernel": 8}  # columns of a TB at most: grids of the sweep
# Wavefronts of a thread's 16 B of a column of B, from shared memory for each row, where there are several
# columns: 256 of 8 rows and columns explain the 4,900 cycles of a step of 20 warps (half `fit`, k = 1536)
B_WAVES = 5
# Rows of A that a thread loads at once, of one and of several columns, fitted (half `fit`, rows above 25 us,
# whose weights exceed L2)
TOGETHER = 2, 1
BEGIN = 300  # cycles from a TB's start to its first load: parameters and addresses, an estimate
SHUFFLE = 25  # cycles of a shuffle and an addition
STEP = WARPS * WARP * VECTOR  # bytes of k of a step


@lru_cache(maxsize=256)
def _program(m: int, k: int, cols: int, last: int, registers: int, smem: int) -> Program:
    """``cols`` columns a TB, ``last`` of the last ones."""
    pitch, steps = k * ITEM, k * ITEM // STEP
    together = TOGETHER[cols > 1]
    rest = k * ITEM % STEP // VECTOR  # threads that have work in a last step

    def loads(code: Code, wide: int, step: int) -> None:
        """Load 16 B of k a thread; ``step`` -1: of the loop's step."""
        full = 0xFFFFFFFF
        lanes = [full if step < 0 else (1 << min(max(rest - WARP * w, 0), WARP)) - 1 for w in range(WARPS)]
        base, level = (0, 0) if step < 0 else (step * STEP, 2)

        def load(arg: int, at: int, bx: int, by: int) -> None:
            patterns = [
                Pattern(
                    arg, VECTOR, base=base + at + w * WARP * VECTOR, bx=bx, by=by, step=STEP, s0=VECTOR,
                    lanes=lanes[w],
                )
                for w in range(WARPS)
            ]  # fmt: skip
            code.load(0, *patterns, level=level)

        for j in range(wide):
            load(1, j * pitch, 0, cols * pitch)
        for first in range(0, ROWS, together):
            for i in range(first, first + together):
                load(0, i * pitch, ROWS * pitch, 0)
            code.wait(0)
            reads = together * wide if cols > 1 else 0
            code.compute(fp32=together * wide * 4, int=6, control=1, smem=B_WAVES * reads, smem_ops=reads)

    variants = []
    for number in range(8):
        wide, code = last if number & 2 else cols, Code()
        code.compute(int=40, control=4, chain=BEGIN)
        if steps:
            mark = code.loop_begin()
            loads(code, wide, -1)
            code.loop_end(mark, steps)
        if rest:
            loads(code, wide, steps)
        values = ROWS * wide
        for _ in range(5):
            code.compute(smem=values, smem_ops=values, fp32=values, chain=SHUFFLE)
        code.barrier()
        code.compute(smem=2, smem_ops=2, fp32=WARPS, chain=2 * SHUFFLE)
        stores = Pattern(
            2, ITEM, bx=ROWS * ITEM, by=cols * m * ITEM, s0=ITEM, s1=m * ITEM, minor=ROWS,
            lanes=(1 << min(WARP, values)) - 1,
        )  # fmt: skip
        second = Pattern(
            2, ITEM, base=4 * m * ITEM, bx=ROWS * ITEM, by=cols * m * ITEM, s0=ITEM, s1=m * ITEM, minor=ROWS,
            lanes=(1 << max(0, values - WARP)) - 1,
        )  # fmt: skip
        none = Pattern(2, ITEM, s0=ITEM, lanes=0)
        code.store(1, stores, second, none, none, level=2)
        code.exit()
        variants.append(tuple(code.ops))
    return Program("row_dots", tuple(variants), WARPS, registers, smem, 3)


def _region(across: int, sizes: tuple[int, int], cols: int, what: str, tbs: Table) -> Table:
    """Return rows of A, rows of B or a block of C, by ``what``; ``sizes``: m or n, and k."""
    (many, k), zero = sizes, np.zeros_like(tbs)
    x, y = tbs % across * ROWS, tbs // across * cols
    if what == "a":
        return np.stack([x, x + ROWS, zero, zero + k], 1)
    end = np.minimum(y + cols, many)
    return np.stack([y, end, zero, zero + k], 1) if what == "b" else np.stack([y, end, x, x + ROWS], 1)


def row_dots(
    name: str, problem: Problem, memory: Memory, operands: tuple[Tensor, Tensor], registers: int, smem: int
) -> tuple[Kernel, Tensor]:
    """Return the kernel ``name`` of ``FEW`` for A, m x k, and B, n x k, and its C, n x m.

    ``registers`` a thread and ``smem`` bytes a TB: as launched. Raises WorkloadError where m is no multiple
    of 8, or k of 4.
    """
    m, n, k = problem.m, problem.n, problem.k
    if m % ROWS or k * ITEM % VECTOR:
        raise WorkloadError(f"{name}: m = {m}, k = {k}: must be multiples of {ROWS} and {VECTOR // ITEM}")
    cols = min(n, FEW[name])
    c = memory.tensor("C", n, m, ITEM)
    grid = (m // ROWS, -(-n // cols), 1)
    program = _program(m, k, cols, (n - 1) % cols + 1, registers, smem)
    accesses = (
        Access(operands[0], "read", partial(_region, grid[0], (m, k), cols, "a")),
        Access(operands[1], "read", partial(_region, grid[0], (n, k), cols, "b")),
        Access(c, "write", partial(_region, grid[0], (n, k), cols, "c")),
    )
    return Kernel(name, program, grid, (*operands, c), accesses, library=name), c
