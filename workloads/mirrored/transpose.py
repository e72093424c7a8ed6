"""Transposes of 32 x 32 tiles by 32 x 8 threads: naive, and through shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Memory
from pysim.program.warp_program import Pattern
from pysim.workloads.kernels.tiles import blocks_of

from .blocks.transposes import NAIVE, TILED
from .code import Launch, Warp, launch
from .lanes import always, mask
from .stream import positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE = 32
WARPS = 8  # a warp is a row of the tile, and three more, 8 rows apart


def _edges(grid: tuple[int, int]) -> NDArray[np.int64]:
    """Row of each TB: 1 where it is the last in x, and 2 more where it is the last in y."""
    tb = np.arange(grid[0] * grid[1], dtype=np.int64)
    last_y: NDArray[np.int64] = (tb // grid[0] == grid[1] - 1).astype(np.int64)
    last_x: NDArray[np.int64] = (tb % grid[0] == grid[0] - 1).astype(np.int64)
    return last_x + 2 * last_y


def _transpose(name: str, rows: int, cols: int, registers: int, smem: int) -> Launch:
    positive(name, rows=rows, cols=cols)
    memory = Memory()
    source, target = memory.tensor("in", rows, cols, 4), memory.tensor("out", cols, rows, 4)
    grid = (-(-cols // TILE), -(-rows // TILE))
    code: list[list[Warp]] = []
    for edge in range(4):
        wide = cols - (grid[0] - 1) * TILE if edge & 1 else TILE
        high = rows - (grid[1] - 1) * TILE if edge & 2 else TILE
        build = _naive_warp if name == "transpose_naive" else _tiled_warp
        code.append([build(rows, cols, y, wide, high) for y in range(WARPS)])

    def x(tb: NDArray[np.int64]) -> NDArray[np.int64]:
        return tb % grid[0]

    def y(tb: NDArray[np.int64]) -> NDArray[np.int64]:
        return tb // grid[0]

    size = (TILE, TILE)
    accesses = (
        Access(source, "read", blocks_of(source, size, y, x)),
        Access(target, "write", blocks_of(target, size, x, y)),
    )
    return launch(
        name, (*grid, 1), code, _edges(grid), (source, target), accesses,
        warps=WARPS, registers=registers, smem=smem,
    )  # fmt: skip


def _read(rows: int, cols: int, y: int, wide: int, high: int, k: int) -> tuple[Pattern, ...]:
    """Read row y + 8k of the tile: a lane a column."""
    lanes = mask(wide) if y + 8 * k < high else 0
    pitch = 4 * cols
    return (Pattern(0, 4, base=(y + 8 * k) * pitch, bx=4 * TILE, by=TILE * pitch, s0=4, lanes=lanes),)


def _naive_warp(rows: int, cols: int, y: int, wide: int, high: int) -> Warp:
    """Row r of the tile is written to column r: each lane writes a row of its own."""
    pitch = 4 * rows
    ops = [_read(rows, cols, y, wide, high, k) for k in range(4)]
    ops = [
        part
        for k, load in enumerate(ops)
        for part in (
            load,
            (
                Pattern(
                    1, 4, base=4 * (y + 8 * k), bx=TILE * pitch, by=4 * TILE, s0=pitch, lanes=load[0].lanes
                ),
            ),
        )
    ]
    w = Warp()
    # the last of the four rows is skipped by a whole warp, the others lane by lane
    w.run(NAIVE["full" if y + 24 < high else "cut"], lambda name, _: ops[int(name)])
    return w


def _tiled_warp(rows: int, cols: int, y: int, wide: int, high: int) -> Warp:
    """Row r of the tile is read through shared memory as a column, and written as a row."""
    w = Warp()
    order = (1, 2, 0, 3)  # in which the SASS loads the four rows
    w.run(TILED["load"], lambda name, _: _read(rows, cols, y, wide, high, order[int(name)]))
    pitch = 4 * rows
    for k in range(4):
        at = Pattern(1, 4, base=(y + 8 * k) * pitch, bx=TILE * pitch, by=4 * TILE, s0=4, lanes=mask(high))
        kind = "store" if y + 8 * k < wide else "skip"
        w.run(TILED[f"{kind}{k}"], always(at))
        if kind == "store" and k < 3 and high < TILE:
            w.mix(cbu=1)  # lanes that skip the store reach the end of the branch on their own
    return w


def transpose_naive(rows: int = 1024, cols: int = 1024) -> Launch:
    """out[c, r] = in[r, c], fp32, without shared memory."""
    return _transpose("transpose_naive", rows, cols, 20, 0)


def transpose_tiled(rows: int = 1024, cols: int = 1024) -> Launch:
    """out[c, r] = in[r, c], fp32, through a 32 x 33 tile."""
    return _transpose("transpose_tiled", rows, cols, 30, TILE * (TILE + 1) * 4)
