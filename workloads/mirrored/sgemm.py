"""SGEMM with FFMA: one shared buffer, the next tile prefetched to registers; C = A B, row-major."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory, Tensor
from pysim.program.warp_program import Affine, Pattern, TensorTile
from pysim.workloads.kernels.tiles import collapse

from .blocks.sgemms import SGEMM32, SGEMM64, SGEMM128, SGEMM128_OUT
from .code import Launch, Warp, launch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .blocks import Block
    from .code import At

ITEM = 4
WARPS = 8
ACROSS = 16  # threads across a tile of C
MAX_STEPS = 65535


@dataclass(frozen=True, slots=True)
class Sgemm:
    """One tiling: ``bm`` x ``bn`` x ``bk``, ``tile`` x ``tile`` outputs a thread of 256."""

    name: str
    bm: int
    bn: int
    bk: int
    tile: int
    registers: int
    blocks: Mapping[str, Block]
    out: Sequence[tuple[Block, Block]] = ()  # the stores of a row, where they are apart
    static: int = 0  # bytes of shared memory besides A and B

    @property
    def smem(self) -> int:
        """Shared memory of a TB in bytes: A transposed with rows padded by 4, and B."""
        return (self.bk * (self.bm + 4) + self.bk * self.bn) * ITEM + self.static


S64 = Sgemm("sgemm_64x64x16", 64, 64, 16, 4, 64, SGEMM64)
S128 = Sgemm("sgemm_128x128x8", 128, 128, 8, 8, 128, SGEMM128, SGEMM128_OUT)
S32 = Sgemm("sgemm_32x32x32", 32, 32, 32, 2, 40, SGEMM32)


@dataclass(frozen=True, slots=True)
class _Tile:
    """The addresses of one TB's tile, of which ``rows`` rows exist."""

    kind: Sgemm
    n: int
    k: int
    rows: int
    m: int

    def a(self, warp: int) -> Pattern:
        """Read A bypassing L1; threads whose row does not exist read the first one."""
        across = self.kind.bk // 4
        down = 32 // across
        pitch = ITEM * self.k
        by, bz, step = self.kind.bm * pitch, self.m * pitch, ITEM * self.kind.bk
        first = warp * down
        base = Pattern(0, 16, base=first * pitch, by=by, bz=bz, step=step, s0=16, s1=pitch, minor=across)
        if first + down <= self.rows:
            return base
        rows = [first + lane // across for lane in range(32)]
        offsets = tuple(
            (row if row < self.rows else 0) * pitch + lane % across * 16 for lane, row in enumerate(rows)
        )
        return replace(base, base=0, offsets=offsets)

    def b(self, warp: int) -> Pattern:
        """Read B."""
        across = self.kind.bn // 4
        down = 32 // across
        pitch = ITEM * self.n
        return Pattern(
            1, 16, base=warp * down * pitch, bx=ITEM * self.kind.bn, bz=self.k * pitch,
            step=self.kind.bk * pitch, s0=16, s1=pitch, minor=across,
        )  # fmt: skip

    def needed(self) -> TensorTile:
        """Return what a step reads of A."""
        row = Affine(by=self.kind.bm, bz=self.m)
        return TensorTile(0, row, self.rows, Affine(step=self.kind.bk), self.kind.bk)

    def made(self) -> TensorTile:
        """Return what the TB makes of C."""
        row = Affine(by=self.kind.bm, bz=self.m)
        return TensorTile(2, row, self.rows, Affine(bx=self.kind.bn), self.kind.bn)

    def c(self, warp: int, i: int, j: int) -> Pattern:
        """Store row i and column j of the outputs of each thread; 8 columns are two groups of 4."""
        t = self.kind.tile
        pitch = ITEM * self.n
        wide = min(t, 4)
        col = j // 4 * (self.kind.bn // 2) + j % 4 if t == 8 else j
        lanes = sum(0xFFFF << (ACROSS * half) for half in range(2) if (2 * warp + half) * t + i < self.rows)
        return Pattern(
            2, 4, base=(2 * warp * t + i) * pitch + ITEM * col, bx=ITEM * self.kind.bn,
            by=self.kind.bm * pitch, bz=self.m * pitch, s0=ITEM * wide, s1=t * pitch, minor=ACROSS,
            lanes=lanes,
        )  # fmt: skip


def _off(patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """Return the patterns of a load that every lane skips."""
    return tuple(replace(p, lanes=0) for p in patterns[:1])


def _out(w: Warp, tile: _Tile, warps: range) -> None:
    """Add the stores; warps of which no row exists leave."""
    t = tile.kind.tile
    some = [any(tile.c(warp, i, 0).lanes for warp in warps) for i in range(t)]

    def at(i: int, j: int) -> tuple[Pattern, ...]:
        return collapse([tile.c(warp, i, j) for warp in warps])

    def stores(order: list[tuple[int, int]]) -> At:
        """Return the outputs in order, whatever their names."""
        places = iter(order)
        return lambda _name, _offset: at(*next(places))

    if not tile.kind.out:
        last = "out_cut" if not some[-1] and "out_cut" in tile.kind.blocks else "out"
        w.run(tile.kind.blocks[last], stores([(i, j) for i in range(t) for j in range(t)]))
        return
    w.run(tile.kind.blocks["out"])
    for i, (on, off) in enumerate(tile.kind.out):
        w.run(on if some[i] else off, stores([(i, j) for j in range(t)]))
        part = any(tile.c(warp, i, 0).lanes not in (0, 0xFFFFFFFF) for warp in warps)
        if part and i < t - 1:
            w.mix(cbu=1)  # lanes that skip the stores reach the end of the branch on their own
    w.run(tile.kind.blocks.get("end", ()))


def _code(tile: _Tile, steps: int, warps: range) -> Warp:
    """Code of some warps of a TB; each has a pattern of its own."""
    a = collapse([tile.a(warp) for warp in warps])
    b = collapse([tile.b(warp) for warp in warps])
    blocks = tile.kind.blocks
    w = Warp(output=tile.made())

    def fetch(slot: int, on: bool, ahead: int) -> None:
        patterns = b if slot == 0 else a
        if slot == 1 and on:
            w.needs(tile.needed(), level=0, ahead=ahead)
        moved = patterns if on else _off(patterns)
        w.load(slot, *moved, bypass=slot == 1, level=0 if on else 2, ahead=ahead)

    w.run_with(blocks["pre"], lambda slot: fetch(slot, True, 0))
    if "init" in blocks:
        w.run(blocks["init"])
    if steps > 1:
        mark = w.begin()
        w.run_with(blocks["body"], lambda slot: fetch(slot, True, 1))
        w.end(mark, steps - 1)
    # either the loads are there and off, or the last step branches past them
    w.run_with(blocks.get("last", blocks["body"]), lambda slot: fetch(slot, False, 0))
    w.main_done()
    _out(w, tile, warps)
    return w


def sgemm(
    name: str, a: Tensor, b: Tensor, c: Tensor, kind: Sgemm, *, batch: int = 1, stream: int = 0
) -> Launch:
    """C = A B of ``batch`` stacked GEMMs: a is [batch M, K], b [batch K, N], c [batch M, N].

    N must be a multiple of the tile's columns and K of its depth, as in the source.
    """
    m, k, n = c.rows // batch, a.cols, c.cols
    if (a.rows, b.rows, b.cols) != (batch * m, batch * k, n) or c.rows % batch:
        raise WorkloadError(
            f"{name}: A {a.rows} x {a.cols}, B {b.rows} x {b.cols}, C {c.rows} x {n}: no GEMM"
        )
    if n % kind.bn or k % kind.bk or not 1 <= k // kind.bk <= MAX_STEPS:
        raise WorkloadError(f"{name}: N = {n}, K = {k}: must be multiples of {kind.bn} and {kind.bk}")
    grid = (n // kind.bn, -(-m // kind.bm), batch)
    steps = k // kind.bk
    rest = m - (grid[1] - 1) * kind.bm
    code: list[list[Warp]] = []
    which = None
    if grid[1] > 1 or rest == kind.bm:
        code.append([_code(_Tile(kind, n, k, kind.bm, m), steps, range(WARPS))])
    if rest < kind.bm:
        cut = _Tile(kind, n, k, rest, m)
        code.append([_code(cut, steps, range(w, w + 1)) for w in range(WARPS)])
        if len(code) > 1:
            tb = np.arange(grid[0] * grid[1] * grid[2], dtype=np.int64)
            which = (tb // grid[0] % grid[1] == grid[1] - 1).astype(np.int64)
    accesses = gemm_accesses(a, b, c, grid, (kind.bm, kind.bn, m, k))
    return launch(
        name, grid, code, which, (a, b, c), accesses,
        warps=WARPS, registers=kind.registers, smem=kind.smem, stream=stream,
        parameters=3 if kind.static else 2,  # in chains the semaphores are arguments after the operands
    )  # fmt: skip


def gemm_accesses(
    a: Tensor, b: Tensor, c: Tensor, grid: tuple[int, int, int], tile: tuple[int, int, int, int]
) -> tuple[Access, ...]:
    """Footprint of the TBs of a GEMM: rows of A, columns of B, a tile of C; ``tile`` is bm, bn, M, K."""
    bm, bn, m, k = tile

    def spans(tbs: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        x, y, z = tbs % grid[0], tbs // grid[0] % grid[1], tbs // (grid[0] * grid[1])
        return z * m + y * bm, np.minimum(z * m + (y + 1) * bm, (z + 1) * m), x * bn, (x + 1) * bn, z * k

    def of_a(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        row, end, _, _, _ = spans(np.asarray(tbs, np.int64))
        return np.stack([row, end, row * 0, row * 0 + k], axis=1)

    def of_b(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        _, _, col, end, depth = spans(np.asarray(tbs, np.int64))
        return np.stack([depth, depth + k, col, end], axis=1)

    def of_c(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        row, end, col, last, _ = spans(np.asarray(tbs, np.int64))
        return np.stack([row, end, col, last], axis=1)

    return Access(a, "read", of_a), Access(b, "read", of_b), Access(c, "write", of_c)


def _measured(kind: Sgemm, m: int, n: int, k: int) -> Launch:
    if min(m, n, k) < 1:
        raise WorkloadError(f"{kind.name}: M = {m}, N = {n}, K = {k}: must be positive")
    memory = Memory()
    a, b, c = memory.tensor("A", m, k, ITEM), memory.tensor("B", k, n, ITEM), memory.tensor("C", m, n, ITEM)
    return sgemm(kind.name, a, b, c, kind)


def sgemm_64x64x16(m: int = 1024, n: int = 1024, k: int = 1024) -> Launch:
    """C = A B in fp32 by tiles of 64 x 64 x 16."""
    return _measured(S64, m, n, k)


def sgemm_128x128x8(m: int = 1024, n: int = 1024, k: int = 1024) -> Launch:
    """C = A B in fp32 by tiles of 128 x 128 x 8."""
    return _measured(S128, m, n, k)


def sgemm_32x32x32(m: int = 1024, n: int = 1024, k: int = 1024) -> Launch:
    """C = A B in fp32 by tiles of 32 x 32 x 32."""
    return _measured(S32, m, n, k)
