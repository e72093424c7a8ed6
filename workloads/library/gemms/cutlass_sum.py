"""CUTLASS's sum of the parts of a split k (``ReduceSplitK``): a TB adds four rows, part by part.

A warp has a row, a lane 16 B of the result (4 elements of fp32, 8 of fp16): grids are those of the sweep.
Four parts are loaded at a time (CUTLASS, reduce_split_k.h: kPartitionsPerStage), and added before the next.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.warp_program import Op

    Ints = NDArray[np.int64]

ROWS, TOGETHER, WIDEST = 4, 4, 16  # rows of a TB; parts loaded at a time; bytes of a lane's load and store
REGISTERS = 48  # an estimate; 128 threads fill no SM
BEGIN = 800  # cycles before the first load, an estimate
LAST_X, LAST_Y = 1, 2


def cutlass_sum(parts: Tensor, splits: int, memory: Memory, out: int) -> tuple[Kernel, Tensor]:
    """Return the kernel that adds ``splits`` parts of C, of fp32, and C, n x m of ``out``-byte elements."""
    n, m = parts.rows // splits, parts.cols
    c = memory.tensor("C", n, m, out)
    each = WIDEST // out  # elements of a lane
    while m % each:
        each //= 2
    wide = WARP * each
    grid = -(-n // ROWS), -(-m // wide), 1

    def patterns(kind: int, arg: int, item: int, base: int, width: int, apart: int) -> Pattern:
        lanes = -(-(m - (grid[1] - 1) * wide) // each) if kind & LAST_Y else WARP
        pitch = m * item
        return Pattern(
            arg, width, base=base, bx=ROWS * pitch, by=wide * item, warp=pitch, s0=apart,
            lanes=(1 << lanes) - 1,
        )  # fmt: skip

    def variant(kind: int) -> tuple[Op, ...]:
        code, item = Code(), parts.item
        code.compute(int=40, control=4, chain=BEGIN)
        pieces = max(1, each * item // WIDEST)
        width = each * item // pieces
        for first in range(0, splits, TOGETHER):
            some = range(first, min(splits, first + TOGETHER))
            code.compute(int=4 * len(some), control=2)
            for part in some:
                for piece in range(pieces):
                    base = part * n * m * item + piece * width
                    code.load(0, patterns(kind, 0, item, base, width, each * item), level=2)
            code.wait(0)
            code.compute(fp32=each * len(some), chain=4 * len(some))
        code.store(1, patterns(kind, 1, out, 0, each * out, each * out), level=2)
        code.exit()
        return tuple(code.ops)

    def region(first: int, tbs: Ints) -> Ints:
        x, y = tbs % grid[0], tbs // grid[0]
        rows = first + x * ROWS, first + np.minimum((x + 1) * ROWS, n)
        return np.stack([*rows, y * wide, np.minimum((y + 1) * wide, m)], 1)

    program = Program("cutlass_sum", tuple(variant(kind) for kind in range(8)), ROWS, REGISTERS, 0, 2)
    reads = [Access(parts, "read", partial(region, part * n)) for part in range(splits)]
    accesses = (*reads, Access(c, "write", partial(region, 0)))
    return Kernel("cutlass_sum", program, grid, (parts, c), accesses), c
