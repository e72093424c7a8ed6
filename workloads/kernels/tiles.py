"""How the warps of a TB share the loads and stores of a rectangular tile of a row-major tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.warp_program import Code, Pattern

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Tensor

WARP = 32


@dataclass(frozen=True, slots=True)
class Tile:
    """A ``rows`` x ``cols`` tile of argument ``arg``, and how far TB and loop move it (bytes).

    ``base``: bytes before the first TB's tile.
    """

    arg: int
    pitch: int
    item: int
    rows: int
    cols: int
    bx: int = 0
    by: int = 0
    bz: int = 0
    step: int = 0
    base: int = 0

    def aligned(self, width: int) -> bool:
        """Whether each row of the tile begins and ends at a multiple of ``width`` bytes, in all TBs."""
        return not any(at % width for at in (self.pitch, self.cols * self.item, self.bz, self.base))


def vector_width(tile: Tile, warps: int, widest: int = 16) -> int:
    """Bytes a lane: the widest that alignment allows and that still gives each warp something to do."""
    width = widest
    row = tile.cols * tile.item
    while width > tile.item and not tile.aligned(width):
        width //= 2
    while width > max(tile.item, 4) and tile.rows * row < WARP * width * warps:
        width //= 2
    return width


def collapse(patterns: Sequence[Pattern]) -> tuple[Pattern, ...]:
    """One pattern with a warp stride where the list of patterns (one a warp) is affine in the warp."""
    first = patterns[0]
    if len(patterns) == 1:
        return (first,)
    stride = patterns[1].base - first.base
    if all(p == replace(first, base=first.base + stride * w) for w, p in enumerate(patterns)):
        return (replace(first, warp=stride),)
    return tuple(patterns)


def tile_ops(
    tile: Tile, warps: int, width: int, valid: tuple[int, int], base: int = 0
) -> list[tuple[Pattern, ...]]:
    """List the memory instructions that touch exactly the ``valid`` (rows, cols) of a tile.

    Lanes run along a row first, so a warp's instruction covers ``32 * width`` contiguous bytes or several
    shorter rows. Lanes outside are masked; an instruction without any lane in all warps is left out.
    """
    vector = width // tile.item
    along = min(WARP, tile.cols // vector)
    down = WARP // along
    blocks = max(1, tile.cols // (vector * WARP))
    units = -(-tile.rows // down) * blocks
    ops: list[tuple[Pattern, ...]] = []
    for first in range(0, units, warps):
        patterns = []
        for unit in range(first, first + warps):
            row, col = unit // blocks * down, unit % blocks * WARP * vector
            high = min(down, valid[0] - row) if unit < units else 0
            wide = min(along, -(-(valid[1] - col) // vector))
            lanes = sum(((1 << wide) - 1) << (line * along) for line in range(high)) if wide > 0 else 0
            offset = tile.base + base + row * tile.pitch + col * tile.item
            patterns.append(
                Pattern(
                    tile.arg, width, base=offset, bx=tile.bx, by=tile.by, bz=tile.bz, step=tile.step,
                    s0=width, s1=tile.pitch, minor=along, lanes=lanes,
                )
            )  # fmt: skip
        if any(p.lanes for p in patterns):
            ops.append(collapse(patterns))
    return ops


def emit_loads(
    code: Code, slot: int, ops: list[tuple[Pattern, ...]], *, level: int = 2, ahead: int = 0
) -> None:
    """Add the loads of a tile; level 2 is never looped over, so its counter stays 0."""
    for patterns in ops:
        code.load(slot, *patterns, level=level, ahead=ahead)


def blocks_of(
    tensor: Tensor, size: tuple[int, int], row: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    col: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> Callable[[NDArray[np.int64]], NDArray[np.int64]]:  # fmt: skip
    """Footprint of TBs that own block (row(tb), col(tb)) of ``size`` (rows, cols), cut at the edge."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        tbs = np.asarray(tbs, dtype=np.int64)
        r, c = row(tbs) * size[0], col(tbs) * size[1]
        ends = np.minimum(r + size[0], tensor.rows), np.minimum(c + size[1], tensor.cols)
        return np.stack(np.broadcast_arrays(r, ends[0], c, ends[1]), axis=1).astype(np.int64)

    return regions
