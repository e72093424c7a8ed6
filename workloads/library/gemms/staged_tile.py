"""Tiles of kernels written for Turing and Ampere: how a TB cuts its work, and what a warp issues for it.

A TB makes ``tm`` x ``tn`` of C, ``tk`` of K a step, from tiles in shared memory. FFMA: a thread multiplies
fragments of ``thread_tile``, which it loads 16 B at a time. mma: a warp multiplies 16 x 8 x 16 of fp16, or
16 x 8 x 8 of tf32, in the same time, of fragments that ldmatrix loads; Turing's 16 x 8 x 8 of fp16 are taken
to take half of it. FFMA on elements of 8 B: complex numbers, four multiplies each; on elements of 2 B:
fp32 in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pysim.errors import WorkloadError
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.kernels.tiling import lds_wavefronts

Unit = Literal["ffma", "mma"]
MMA_ROWS, MMA_COLS, MMA_BYTES = 16, 8, 32  # of a multiply of the tensor pipe: rows, columns, bytes of k
FRAGMENT_ROWS, FRAGMENT_BYTES = 16, 32  # of an ldmatrix.x4
WAVEFRONTS = 4  # of an ldmatrix.x4
STAGES = 6  # at most
# Instructions that round a value to tf32 once it has left shared memory: whether it is finite, and an
# addition (CUTLASS, numeric_conversion.h: round_half_ulp_truncate)
ROUND = 2
COMPLEX = 8  # bytes of a complex number


@dataclass(frozen=True, slots=True)
class StagedTile:
    """How a TB cuts a GEMM: ``tm`` along m, ``tn`` along n, ``tk`` of K a step, ``warps`` along m and n.

    ``stages``: k-steps in shared memory. ``item``: bytes of an element of A and B. ``unit``: what multiplies.
    ``registers`` a thread, ``smem`` bytes a TB:
    as launched.
    """

    tm: int
    tn: int
    tk: int
    warps: tuple[int, int]
    stages: int
    unit: Unit
    item: int
    registers: int
    smem: int

    def __post_init__(self) -> None:
        """Refuse tiles that warps cannot share evenly."""
        down, across = self.warps
        if self.tm % down or self.tn % across or min(self.tm, self.tn, self.tk) < 8 or self.count > 32:
            raise WorkloadError(f"tile {self.name}: {down} x {across} warps cannot share it")
        if not 1 <= self.stages <= STAGES:
            raise WorkloadError(f"tile {self.name}: {self.stages} stages: must be from 1 to {STAGES}")

    @property
    def name(self) -> str:
        """Sizes and stages."""
        return f"{self.tm}x{self.tn}x{self.tk}_{self.stages}"

    @property
    def count(self) -> int:
        """Warps of a TB."""
        return self.warps[0] * self.warps[1]

    @property
    def warp_tile(self) -> tuple[int, int]:
        """Rows along m and columns along n that are one warp's."""
        return self.tm // self.warps[0], self.tn // self.warps[1]

    @property
    def outputs(self) -> int:
        """Sums of a thread."""
        rows, cols = self.warp_tile
        return max(1, rows * cols // WARP)

    @property
    def thread_tile(self) -> tuple[int, int]:
        """Rows and columns that are one thread's, as square as they can be (FFMA)."""
        rows = 1
        while rows * rows * 4 <= self.outputs:
            rows *= 2
        if self.warp_tile[0] > self.warp_tile[1]:
            rows = self.outputs // rows
        rows = min(rows, self.warp_tile[0])
        return rows, self.outputs // rows

    @property
    def groups(self) -> int:
        """Groups of a k-step, of which a warp loads the fragments of the next while it multiplies one's."""
        return self.tk if self.unit == "ffma" else max(1, self.tk * self.item // MMA_BYTES)

    @property
    def work(self) -> Work:
        """What a warp issues for a group."""
        return _ffma(self) if self.unit == "ffma" else _mma(self)


@dataclass(frozen=True, slots=True)
class Work:
    """Instructions of one warp: multiplies, loads from shared memory, their wavefronts, and ``rounds``."""

    fp32: int
    tensor: int
    loads: int
    wavefronts: int
    rounds: int = 0


def _ffma(t: StagedTile) -> Work:
    depth = t.tk // t.groups
    loads = waves = 0
    size = COMPLEX if t.item == COMPLEX else 4  # bytes in shared memory
    multiplies = 4 if t.item == COMPLEX else 1
    for length, span in zip(t.thread_tile, t.warp_tile, strict=True):
        width = min(16, size * length)
        count = -(-size * length // 16)
        loads += count
        waves += count * lds_wavefronts(span // length * width, width)
    return Work(t.outputs * depth * multiplies, 0, loads * depth, waves * depth)


def _mma(t: StagedTile) -> Work:
    rows, cols = t.warp_tile
    many = -(-rows // MMA_ROWS) * -(-cols // MMA_COLS)
    fragments = -(-rows // FRAGMENT_ROWS) + -(-cols // FRAGMENT_ROWS)
    values = (rows + cols) * MMA_BYTES // (t.item * WARP)  # of a thread
    return Work(0, many, fragments, WAVEFRONTS * fragments, ROUND * values if t.item == 4 else 0)
