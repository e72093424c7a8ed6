"""Raster order: which way a grid runs over the tiles of a GEMM, and so in which order TBs are dispatched.

The grid's x is dispatched first. A kernel made for x along a row of C's tiles runs down a column when x and
y are swapped everywhere: in the grid, in the addresses read and written, and in which TBs are last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pysim.program.warp_program import Affine, Op, TensorTile

from .split_k_serial import LAST_X, LAST_Y


def _place(place: Affine) -> Affine:
    return replace(place, bx=place.by, by=place.bx)


def _part(part: TensorTile) -> TensorTile:
    return replace(part, row=_place(part.row), col=_place(part.col))


def swap_xy(op: Op) -> Op:
    """Return an op with x and y swapped; its semaphores, if any, are not."""
    assert op.sem is None
    patterns = tuple(replace(each, bx=each.by, by=each.bx) for each in op.patterns)
    return replace(op, patterns=patterns, tile=None if op.tile is None else _part(op.tile))


def swap_xy_ops(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return code with x and y swapped."""
    return tuple(map(swap_xy, ops))


def swap_xy_variant(number: int) -> int:
    """Return the variant of a program with x first for TBs that are last in x, y, z as the bits say."""
    kept = number & ~(LAST_X | LAST_Y)
    return kept | LAST_Y * bool(number & LAST_X) | LAST_X * bool(number & LAST_Y)
