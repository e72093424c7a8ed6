"""The kernel that adds the parts of a split k after an ``xmma`` GEMM: a TB adds a tile, part by part."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.warp_program import Op

    Ints = NDArray[np.int64]

WIDTH = 4  # bytes a lane of its loads and stores: `alignc4` in the kernel's name
OUTPUTS = 16  # sums of a thread at most: the grid of the sweep has a second z where a tile has more
BEGIN, PART = 1000, 60  # cycles before the first load, an estimate; instructions of a part beside its loads
REGISTERS = 72
LAST_M, LAST_N = 1, 2


def tile_sum(
    parts: Tensor,
    splits: int,
    tile: tuple[int, int],
    warps: int,
    memory: Memory,
    bias: Sequence[Tensor] = (),
) -> tuple[Kernel, Tensor]:
    """Return the kernel that adds ``splits`` parts of C, and C, n x m of 4-byte elements.

    ``parts``: splits * n x m; ``tile``: elements along m and n; ``warps``: of a TB, as the GEMM's.
    ``bias``: none, or one of each row in m.
    """
    n, m = parts.rows // splits, parts.cols
    c = memory.tensor("C", n, m, 4)
    tm, tn = tile
    slabs = max(1, tm * tn // (OUTPUTS * WARP * warps))  # of a tile along n, a TB each
    slabs = min(slabs, 2) if tn % 2 == 0 else 1
    high = tn // slabs
    grid = (-(-n // high), -(-m // tm), 1)

    def variant(kind: int) -> tuple[Op, ...]:
        cols = m - (grid[1] - 1) * tm if kind & LAST_M else tm
        rows = n - (grid[0] - 1) * high if kind & LAST_N else high
        code, pitch = Code(), m * 4
        code.compute(int=40, control=4)
        code.delay(BEGIN)
        for part in range(splits):
            of = Tile(0, pitch, 4, high, tm, bx=high * pitch, by=tm * 4)
            loads = tile_ops(of, warps, WIDTH, (rows, cols), part * n * pitch)
            code.compute(int=PART, control=4)
            for patterns in loads:
                code.load(0, *patterns, bypass_l1=True)
            code.wait(0)
            code.compute(fp32=len(loads), chain=4)
        for patterns in (
            tile_ops(Tile(2, pitch, 4, 1, tm, by=tm * 4), warps, WIDTH, (1, cols)) if bias else ()
        ):
            code.load(0, *patterns)
        code.wait(0)
        to = Tile(1, pitch, 4, high, tm, bx=high * pitch, by=tm * 4)
        for patterns in tile_ops(to, warps, WIDTH, (rows, cols)):
            code.store(1, *patterns)
        code.exit()
        return tuple(code.ops)

    tb = np.arange(grid[0] * grid[1], dtype=np.int64)
    kinds = LAST_M * (tb // grid[0] == grid[1] - 1) + LAST_N * (tb % grid[0] == grid[0] - 1)
    found = sorted(set(kinds.tolist()))
    row = np.zeros(4, np.uint32)
    row[found] = np.arange(len(found))
    code = [(variant(kind),) * warps for kind in found]
    program = warp_specialized("tile_sum", code, row[kinds], registers=REGISTERS, smem=0, args=2 + len(bias))

    def region(first: int, tbs: Ints) -> Ints:
        x, y = np.asarray(tbs, np.int64) % grid[0], np.asarray(tbs, np.int64) // grid[0]
        rows = first + x * high, first + np.minimum((x + 1) * high, n)
        return np.stack([*rows, y * tm, np.minimum((y + 1) * tm, m)], 1)

    reads = [Access(parts, "read", partial(region, part * n)) for part in range(splits)]

    def of_bias(tbs: Ints) -> Ints:
        first, end, *cols = region(0, tbs).T
        return np.stack([0 * first, 0 * end + 1, *cols], 1)

    added = (Access(each, "read", of_bias) for each in bias)
    accesses = (*reads, Access(c, "write", partial(region, 0)), *added)
    return Kernel("tile_sum", program, grid, (parts, c, *bias), accesses), c
