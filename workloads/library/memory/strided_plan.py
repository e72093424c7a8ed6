"""How thread blocks (TBs) of an element-wise kernel between strided tensors share its elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.workloads.kernels.tiles import WARP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_OUTER = 4  # dimensions of TBs: three of a grid, and one that x counts with the first
MOST_PIECES = 16  # rectangles that a TB takes of an operand
Operand = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How TBs take an operation: ``inner``, what one takes of each dimension, then dimensions of TBs.

    ``outer``: TBs along a dimension, which one, and how many places of it a TB moves. ``last``: places that
    are left to the last TB of the first of these, of the last of ``inner`` (0: TBs are alike, and full).
    """

    inner: tuple[int, ...]
    outer: tuple[tuple[int, int, int], ...]
    last: int = 0

    @property
    def left(self) -> tuple[int, ...]:
        """What the last TB of the first dimension takes."""
        return (*self.inner[:-1], self.last) if self.last else self.inner

    @property
    def folded(self) -> int:
        """Values of the second of four dimensions of TBs, each with a program of its own; else 1."""
        return self.outer[1][0] if len(self.outer) == MOST_OUTER else 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """TBs in x, y and z."""
        sizes = [size for size, *_ in self.outer]
        if len(sizes) == MOST_OUTER:
            sizes[:2] = [sizes[0] * sizes[1]]
        x, y, z = (*sizes, 1, 1, 1)[:3]
        return x, y, z


def plan_of(name: str, sizes: Sequence[int], chunk: int) -> Plan:
    """Return how TBs of ``chunk`` elements take ``sizes``; raise WorkloadError for too many dimensions."""
    plan = _full(sizes, chunk) or _ragged(sizes, chunk)
    if len(plan.outer) > MOST_OUTER:
        raise WorkloadError(f"{name}: sizes {sizes}: no whole TBs of {chunk} in {MOST_OUTER} dimensions")
    return plan


def _ragged(sizes: Sequence[int], chunk: int) -> Plan:
    """Return TBs that end at whole rows, or at the end of a row that is longer than they are."""
    inner, outer, whole, last = [], [], 1, 0
    for at, size in enumerate(sizes):
        if last:
            outer.append((size, at, 1))
        elif whole * size <= chunk and at + 1 < len(sizes):
            inner.append(size)
            whole *= size
        else:
            part = min(size, max(1, chunk // whole))
            inner.append(part)
            outer.append((-(-size // part), at, part))
            last = size - (outer[0][0] - 1) * part
    return Plan(tuple(inner), tuple(outer), last)


def _full(sizes: Sequence[int], chunk: int) -> Plan | None:
    """Return full TBs, or none where these would cut rows."""
    inner, outer, whole = [], [], 1
    for at, size in enumerate(sizes):
        if whole == chunk:
            outer.append((size, at, 1))
        elif whole * size <= chunk and chunk % (whole * size) == 0:
            inner.append(size)
            whole *= size
        elif size % (chunk // whole) == 0:
            part = chunk // whole
            inner.append(part)
            outer.append((size // part, at, part))
            whole = chunk
        else:
            return None
    if whole != chunk or len(outer) > MOST_OUTER or (inner[0] % WARP and WARP % inner[0]):
        return None
    return Plan(tuple(inner), tuple(outer))


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of an operand that each TB uses, from its element ``first`` on; ``cols``: of the tensor."""

    outer: tuple[int, ...]
    cols: int
    first: int
    size: tuple[int, int]
    moves: tuple[int, ...]
    last: tuple[int, int] | None = None  # the size of the last TB of the first dimension

    def __call__(self, tbs: Ints) -> Ints:
        """Return the regions of ``tbs``."""
        left = np.asarray(tbs, np.int64)
        high: int | Ints
        wide: int | Ints
        high, wide = self.size
        if self.last is not None:
            ends = left % self.outer[0] == self.outer[0] - 1
            high, wide = (np.where(ends, b, a) for a, b in zip(self.size, self.last, strict=True))
        row, col = np.full_like(left, self.first // self.cols), np.full_like(left, self.first % self.cols)
        for size, move in zip(self.outer, self.moves, strict=True):
            number, left = left % size, left // size
            row, col = row + move // self.cols * number, col + move % self.cols * number
        return np.stack([row, row + high, col, col + wide], 1)


def regions_of(name: str, plan: Plan, cols: int, operand: Operand) -> list[Region]:
    """Return the rectangles that TBs use of an operand: one, or one a place of a dimension with gaps."""
    item, first, strides, moves = operand
    firsts, size = _rectangles(plan.inner, strides, cols, first)
    left, least = _rectangles(plan.left, strides, cols, first)
    if item == 1 and plan.last:  # accesses are of pairs
        size, least = ((high, min(wide + wide % 2, cols)) for high, wide in (size, least))
    rows = any(move % cols and move > cols for move in moves)
    if size[1] > cols or rows or len(firsts) > MOST_PIECES:
        raise WorkloadError(f"{name}: a TB takes no few rectangles of an operand")
    outer = tuple(size for size, *_ in plan.outer)
    ends = [(least if one in left else (0, 0)) if plan.last else None for one in firsts]
    return [Region(outer, cols, one, size, moves, end) for one, end in zip(firsts, ends, strict=True)]


def _rectangles(
    inner: Sequence[int], strides: Sequence[int], cols: int, first: int
) -> tuple[list[int], tuple[int, int]]:
    """Return the first element of each rectangle of a TB, and rows and columns of one."""
    along = sorted((s, size) for s, size in zip(strides, inner, strict=True) if s and size > 1)
    high, wide, firsts = 1, 1, [first]
    for stride, size in along:
        if stride == wide and stride < cols and high == 1:
            wide *= size
        elif stride == high * cols:
            high *= size
        else:
            firsts = [one + place * stride for one in firsts for place in range(size)]
    return firsts, (high, wide)
