"""Pipelined programs: the tiles that warps take in turn, and the boxes of tensors that bulk copies move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class TileOf(NamedTuple):
    """The tile that each thread block takes in a turn, int64 each.

    ``x``, ``y``: tile in m and in n, which may lie behind the last; ``z``: plane; ``m``, ``n``: place of the
    thread block in its cluster. ``there``: whether its cluster has a tile left.
    """

    x: Ints
    y: Ints
    z: Ints
    m: Ints
    n: Ints
    there: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Tiles:
    """The output tiles of a pipelined kernel, which its warps take in turn, cluster by cluster.

    ``count``: tiles in m and in n, and planes (batches, or parts of a split k). ``cluster``: thread blocks of
    a cluster in m and in n, at most 8, consecutive in the grid's x; they take neighbouring tiles. ``n_fast``:
    the next tile is the next one in n, else in m. ``steps``: of each tile; ``last_steps``: of one in the last
    plane (0: as many).
    """

    count: tuple[int, int, int]
    steps: int
    last_steps: int = 0
    cluster: tuple[int, int] = (1, 1)
    n_fast: bool = False

    @property
    def _groups(self) -> tuple[int, int]:
        """Tiles of clusters in m and in n."""
        return -(-self.count[0] // self.cluster[0]), -(-self.count[1] // self.cluster[1])

    def turns(self, tbs: int) -> int:
        """Tiles that a thread block of ``tbs`` takes, one after another, at most."""
        across, down = self._groups
        return -(-across * down * self.count[2] // (tbs // (self.cluster[0] * self.cluster[1])))

    def of(self, numbers: Ints, tbs: int, turn: int) -> TileOf:
        """Return the tile that each thread block of ``numbers``, of a grid of ``tbs``, takes in a turn."""
        (across, down), (cm, cn) = self._groups, self.cluster
        rank = numbers % (cm * cn)
        at = numbers // (cm * cn) + turn * (tbs // (cm * cn))
        plane, at = at // (across * down), at % (across * down)
        x, y = (at // down, at % down) if self.n_fast else (at % across, at // across)
        m, n = rank % cm, rank // cm
        return TileOf(x * cm + m, y * cn + n, plane, m, n, plane < self.count[2])


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a tensor that one bulk copy moves; fields of ``gs_bulk_box`` (core_c/gs_program.h).

    ``arg``: which argument of the kernel. ``rows`` rows of ``size`` bytes, ``pitch`` bytes apart. Its first
    row is the sum of ``row`` times (1, x, y, z of the warp's tile, the thread block's place m and n in its
    cluster, counter of the op's loop); its first byte is that of ``col``. What lies outside of ``all_rows``
    rows of ``all_bytes`` is not moved. The planes of the tensor (z) are ``plane`` bytes apart.
    """

    arg: int
    rows: int
    size: int
    pitch: int
    all_rows: int
    all_bytes: int
    row: tuple[int, int, int, int, int, int, int]
    col: tuple[int, int, int, int, int, int, int]
    plane: int = 0

    def place(self, tile: TileOf, step: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return first and end row, first and end byte of what is moved in a step, by thread block.

        Rows count within the plane; where nothing is moved an end is not above its first.
        """
        terms = np.stack([np.ones_like(tile.x), *tile[:5], np.full_like(tile.x, step)])
        row, col = np.array(self.row, np.int64) @ terms, np.array(self.col, np.int64) @ terms
        row_end = np.where(tile.there, np.minimum(row + self.rows, self.all_rows), 0)
        col_end = np.minimum(col + self.size, self.all_bytes)
        return np.maximum(row, 0), row_end, np.maximum(col, 0), col_end
