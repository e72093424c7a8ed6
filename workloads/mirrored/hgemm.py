"""HGEMM with mma.sync m16n8k16, ldmatrix and a 3-stage cp.async pipeline; C = A B, row-major, fp16."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor
from pysim.program.warp_program import Affine, Pattern, TensorTile
from pysim.workloads.kernels.tiles import collapse

from .blocks.hgemms import HGEMM4, HGEMM4_OUT, HGEMM8, HGEMM8_OUT, HGEMM64
from .code import STORES, Launch, Warp, launch
from .lanes import always
from .sgemm import MAX_STEPS, gemm_accesses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .blocks import Block

ITEM = 2
BK = 32
STAGES = 3
PAD = 16  # bytes between rows in shared memory


@dataclass(frozen=True, slots=True)
class Hgemm:
    """One tiling: ``bm`` x ``bn`` x 32, ``wm`` x ``wn`` outputs a warp; ``out``: its stores one by one."""

    name: str
    bm: int
    bn: int
    wm: int
    wn: int
    registers: int
    blocks: Mapping[str, Block]
    out: Sequence[tuple[Block, Block]] = ()
    static: int = 0  # bytes of shared memory besides the stages

    @property
    def warps(self) -> int:
        """Warps of a TB."""
        return (self.bm // self.wm) * (self.bn // self.wn)

    @property
    def smem(self) -> int:
        """Shared memory of a TB in bytes: three stages of A and B with rows padded by 16 B."""
        return STAGES * (self.bm * (BK + 8) + BK * (self.bn + 8)) * ITEM + self.static


H128W8 = Hgemm("hgemm_128x128x32_8warps", 128, 128, 64, 32, 125, HGEMM8, HGEMM8_OUT)
H128W4 = Hgemm("hgemm_128x128x32_4warps", 128, 128, 64, 64, 208, HGEMM4, HGEMM4_OUT)
H64 = Hgemm("hgemm_64x64x32", 64, 64, 32, 32, 80, HGEMM64)


def _into(first: int, row: int) -> int:
    """Return where in a line of shared memory a cp.async writes: row ``first`` of ``row`` bytes, padded."""
    return first * (row + PAD) % 128


@dataclass(frozen=True, slots=True)
class _Tile:
    """The addresses of one TB's tile, of which ``rows`` rows exist."""

    kind: Hgemm
    m: int
    n: int
    k: int
    rows: int

    def copies(self) -> tuple[int, int]:
        """LDGSTS of a warp for B and for A."""
        threads = 32 * self.kind.warps
        return BK * self.kind.bn // 8 // threads, self.kind.bm * BK // 8 // threads

    def a(self, warp: int, j: int, step: int) -> Pattern:
        """Copy rows of A; those that do not exist are filled with zeros and not read."""
        pitch = ITEM * self.k
        first = warp * 8 + j * 8 * self.kind.warps
        high = max(0, min(8, self.rows - first))
        return Pattern(
            0, 16, base=first * pitch + step * ITEM * BK, by=self.kind.bm * pitch, bz=self.m * pitch,
            step=ITEM * BK, s0=16, s1=pitch, minor=4, lanes=(1 << 4 * high) - 1,
            into=_into(first, ITEM * BK), into_pitch=ITEM * BK + PAD,
        )  # fmt: skip

    def b(self, warp: int, j: int, step: int) -> Pattern:
        """Copy rows of B."""
        pitch = ITEM * self.n
        across = self.kind.bn // 8
        first = (warp + j * self.kind.warps) * (32 // across)
        return Pattern(
            1, 16, base=(first + step * BK) * pitch, bx=ITEM * self.kind.bn, bz=self.k * pitch,
            step=BK * pitch, s0=16, s1=pitch, minor=across,
            into=_into(first, ITEM * self.kind.bn), into_pitch=ITEM * self.kind.bn + PAD,
        )  # fmt: skip

    def copied(self, of_a: bool, warp: int, j: int, step: int) -> Pattern:
        """Return the pattern of a cp.async of A or of B."""
        return self.a(warp, j, step) if of_a else self.b(warp, j, step)

    def needed(self, step: int) -> TensorTile:
        """Return what a stage reads of A, ``step`` stages from where the loop is."""
        row = Affine(by=self.kind.bm, bz=self.m)
        return TensorTile(0, row, self.rows, Affine(base=step * BK, step=BK), BK)

    def made(self) -> TensorTile:
        """Return what the TB makes of C."""
        row = Affine(by=self.kind.bm, bz=self.m)
        return TensorTile(2, row, self.rows, Affine(bx=self.kind.bn), self.kind.bn)

    def c(self, warp: int, row: int, col: int) -> Pattern:
        """Store a pair of outputs a lane: 8 rows from ``row`` and 8 columns from ``col`` on."""
        pitch = ITEM * self.n
        across = self.kind.bn // self.kind.wn
        top = warp // across * self.kind.wm + row
        left = warp % across * self.kind.wn + col
        high = max(0, min(8, self.rows - top))
        return Pattern(
            2, 4, base=top * pitch + ITEM * left, bx=ITEM * self.kind.bn, by=self.kind.bm * pitch,
            bz=self.m * pitch, s0=4, s1=pitch, minor=4, lanes=(1 << 4 * high) - 1,
        )  # fmt: skip


def _out(w: Warp, tile: _Tile, warps: range) -> None:
    """Add the stores; warps of which no row exists skip them one by one."""

    def at(row: int, col: int) -> tuple[Pattern, ...]:
        return collapse([tile.c(warp, row, col) for warp in warps])

    def drain() -> None:
        """Wait for all cp.async."""

    kind = tile.kind
    if not kind.out:
        # named by their row; 16 bytes are 8 columns
        last = at(24, 0)
        cut = "out_cut" in kind.blocks and not any(p.lanes for p in last)
        block = kind.blocks["out_cut" if cut else "out"]
        for part in block:
            if part == "group":
                drain()
            else:
                w.run((part,), lambda name, offset: at(int(name[1:]), offset // ITEM))
        return
    w.run_with(kind.blocks["out"], lambda _number: None, drain)
    places = [(i, j, half) for i in range(0, kind.wm, 16) for j in range(0, kind.wn, 8) for half in (0, 8)]
    for number, ((i, j, half), (on, off)) in enumerate(zip(places, kind.out, strict=True)):
        spot = at(i + half, j)
        active = {p.lanes for p in spot}
        w.run(on if any(active) else off, always(*spot))
        if active - {0, 0xFFFFFFFF} and number < len(places) - 1:
            w.mix(cbu=1)
    w.run(kind.blocks.get("end", ()))


def _code(tile: _Tile, steps: int, warps: range) -> Warp:
    """Code of some warps of a TB; each has patterns of its own."""
    blocks = tile.kind.blocks
    many = tile.copies()[0]
    w = Warp(output=tile.made())

    def copy(number: int, *, slot: int, step: int, looped: bool) -> None:
        """Add LDGSTS ``number`` of a stage: those of B come first."""
        of_a = number >= many
        j = number - many if of_a else number
        if number == many:
            part = tile.needed(0 if looped else step)
            w.needs(part, level=0 if looped else 2, ahead=STAGES - 1 if looped else 0)
        stages, level, ahead = (STAGES, 0, STAGES - 1) if looped else (0, 2, 0)
        load = partial(w.load, slot, bypass=True, stages=stages, level=level, ahead=ahead)
        made = [tile.copied(of_a, warp, j, step) for warp in warps]
        load(*collapse(made), smem=1)

    def nothing(_number: int) -> None:
        """Load nothing."""

    w.run(blocks["pre"])
    for step in range(STAGES - 1):
        if step < steps:
            w.run_with(blocks[f"load{step}"], partial(copy, slot=step, step=step, looped=False))
        w.run(blocks["commit" if step == 0 else "init"])
    w.run(blocks["loop"])
    looped = max(0, steps - (STAGES - 1))
    if looped:
        mark = w.begin()
        w.run_with(blocks["top"], nothing, lambda: w.wait(0, stages=STAGES, level=0))
        w.run_with(blocks["load"], partial(copy, slot=0, step=0, looped=True))
        w.run(blocks["math"])
        w.end(mark, looped)
    for step in range(looped, steps):
        w.run_with(blocks["top"], nothing, partial(w.wait, step % STAGES))
        w.run(blocks["math"])
    w.main_done()
    _out(w, tile, warps)
    assert STORES >= STAGES
    return w


def hgemm(
    name: str, a: Tensor, b: Tensor, c: Tensor, kind: Hgemm, *, batch: int = 1, stream: int = 0
) -> Launch:
    """C = A B of ``batch`` stacked GEMMs: a is [batch M, K], b [batch K, N], c [batch M, N].

    N must be a multiple of the tile's columns and K of 32, as in the source.
    """
    m, k, n = c.rows // batch, a.cols, c.cols
    if (a.rows, b.rows, b.cols) != (batch * m, batch * k, n) or c.rows % batch:
        raise WorkloadError(
            f"{name}: A {a.rows} x {a.cols}, B {b.rows} x {b.cols}, C {c.rows} x {n}: no GEMM"
        )
    if n % kind.bn or k % BK or not 1 <= k // BK <= MAX_STEPS:
        raise WorkloadError(f"{name}: N = {n}, K = {k}: must be multiples of {kind.bn} and {BK}")
    grid = (n // kind.bn, -(-m // kind.bm), batch)
    steps = k // BK
    rest = m - (grid[1] - 1) * kind.bm
    code: list[list[Warp]] = []
    which = None
    if grid[1] > 1 or rest == kind.bm:
        code.append([_code(_Tile(kind, m, n, k, kind.bm), steps, range(kind.warps))])
    if rest < kind.bm:
        cut = _Tile(kind, m, n, k, rest)
        # where stores are predicated all warps run one code
        alike = not kind.out and "out_cut" not in kind.blocks
        each = [range(kind.warps)] if alike else [range(w, w + 1) for w in range(kind.warps)]
        code.append([_code(cut, steps, warps) for warps in each])
        if len(code) > 1:
            tb = np.arange(grid[0] * grid[1] * grid[2], dtype=np.int64)
            which = (tb // grid[0] % grid[1] == grid[1] - 1).astype(np.int64)
    accesses = gemm_accesses(a, b, c, grid, (kind.bm, kind.bn, m, k))
    return launch(
        name, grid, code, which, (a, b, c), accesses,
        warps=kind.warps, registers=kind.registers, smem=kind.smem, stream=stream,
        parameters=3 if kind.static else 2,  # in chains the semaphores are arguments after the operands
    )  # fmt: skip


def _measured(kind: Hgemm, m: int, n: int, k: int) -> Launch:
    if min(m, n, k) < 1:
        raise WorkloadError(f"{kind.name}: M = {m}, N = {n}, K = {k}: must be positive")
    memory = Memory()
    a, b, c = memory.tensor("A", m, k, ITEM), memory.tensor("B", k, n, ITEM), memory.tensor("C", m, n, ITEM)
    return hgemm(kind.name, a, b, c, kind)


def hgemm_128x128x32_8warps(m: int = 1024, n: int = 1024, k: int = 1024) -> Launch:
    """C = A B in fp16 by tiles of 128 x 128 x 32, 64 x 32 a warp."""
    return _measured(H128W8, m, n, k)


def hgemm_128x128x32_4warps(m: int = 1024, n: int = 1024, k: int = 1024) -> Launch:
    """C = A B in fp16 by tiles of 128 x 128 x 32, 64 x 64 a warp."""
    return _measured(H128W4, m, n, k)


def hgemm_64x64x32(m: int = 1024, n: int = 1024, k: int = 1024) -> Launch:
    """C = A B in fp16 by tiles of 64 x 64 x 32, 32 x 32 a warp."""
    return _measured(H64, m, n, k)
