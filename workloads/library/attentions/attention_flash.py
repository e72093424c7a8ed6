"""FlashAttention-2's forward kernel, as PyTorch launches it on Hopper.

The algorithm is published (Dao 2023). A thread block (TB) of four warps has ``tile_m`` rows of Q in shared
memory. It goes through tiles of ``tile_n`` keys, the last first: S = Q K^T by mma.m16n8k16, the online
softmax in registers, O += P V. One tile of K and one of V are in shared memory; cp.async loads V during the
first GEMM and the next K during the second. With ``causal`` a TB ends at its diagonal, whose tiles are
masked. Tiles and shared memory are those in the kernels' names and launches: 128 x 128 for d 64 and 128 x 64
for d 128, so that an SM has two TBs. The grid is (tiles of Q, batch, heads).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import MMA_16816, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Op
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops
from pysim.workloads.library.hopper import SHUFFLE

from .attention_problem import ITEM, Attention, row_access

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WARPS, REGISTERS = 4, 255
K_STEP = 16  # of an mma
INTS_COPY, INTS_GROUP, INTS_BEGIN = 5, 4, 180  # as in workloads/kernels/cutlass.py
LDSM_LATENCY, MMA_LATENCY = 29, 25  # cycles; as on Hopper
# Instructions for a score of a thread, counted in the published source: maximum (FMNMX); scale and subtract
# (FMUL, FADD: PyTorch defines UNFUSE_FMA), exponential (EX2; without -use_fast_math a compare and two FMUL
# for denormals), sum (FADD), half a pack (F2FP). The mask of a score: index, compare, select.
# PyTorch 2.11's SASS has just these: of a step of d 64 FMUL 464, FADD 256, FMNMX 136, FSETP 136, MUFU 132,
# F2FP 64, HMMA 256, LDSM 72 of 1602 instructions.
EXP_FP32, MASK_INTS = 5, 3
# Integer-pipe instructions of a score that stand for what softmax costs beside its instructions: 4 cycles.
# Steps of one and two TBs an SM, with 64 and 128 scores a thread, and those of cuDNN's kernel all miss as
# much; the cause is not known. Found, as COLD, with 20 rows of both halves in sight.
SCORE_INTS = 2
EXP_INTS = 1 + SCORE_INTS  # FSETP
COLD = 1.3  # cycles for each instruction of a step that a TB runs for the first time
INSTRUCTIONS = {64: 1602, 128: 1166}  # of a step, in SASS
MOVES = {64: 12, 128: 59}  # MOV of a step, in SASS
COLD_UNEVEN = 2000  # more where rows do not fill their tile; found with rows of both halves


@dataclass(frozen=True, slots=True)
class FlashTile:
    """How the kernel is tiled: rows of Q and keys of a tile."""

    m: int
    n: int

    @property
    def rows(self) -> int:
        """Rows of Q of a warp."""
        return self.m // WARPS


TILES = {64: FlashTile(128, 128), 128: FlashTile(128, 64)}


def gemm_ops(
    code: Code, m: int, n: int, k: int, *, held: bool, first_wait: int = LDSM_LATENCY, waves: int = 4
) -> None:
    """Add a warp's GEMM of m x n x k: ldmatrix of the next 16 of k during the mma of those at hand.

    ``held``: the first operand is in registers already.
    """
    fragments = n // 16 + (0 if held else m // 16)
    mmas = (m // 16) * (n // 8)
    code.compute(smem=waves * fragments, smem_ops=fragments, int=INTS_GROUP, chain=first_wait)
    for group in range(k // K_STEP):
        if group + 1 < k // K_STEP:
            code.compute(
                smem=waves * fragments, smem_ops=fragments, chain=0, smem_back=waves * fragments,
                int=INTS_GROUP, tensor=mmas,
            )  # fmt: skip
        else:
            code.compute(tensor=mmas, chain=MMA_LATENCY)


class FlashWriter:
    """Writes the code of TBs that go through ``tiles`` tiles of keys, the last of which ends at key ``end``.

    ``split``: y of the grid counts parts of the keys, of so many rows, and z the planes; 0: y is the batch.
    """

    def __init__(self, problem: Attention, tile: FlashTile, tiles: int, end: int, split: int = 0) -> None:
        self.p, self.tile, self.tiles, self.end, self.split = problem, tile, tiles, end, split
        self.cold = round(COLD * INSTRUCTIONS[problem.d])
        self.uneven = end % tile.n > 0 or problem.q % tile.m > 0
        self.code = Code()

    def _apart(self, plane: int) -> dict[str, int]:
        """Return the distances of TBs in y and z for a tensor with ``plane`` bytes a plane."""
        return {"by": 0 if self.split else self.p.heads * plane, "bz": plane}

    def copies(self, arg: int, near: int, slot: int, *, loop: bool = False, limit: int = 0) -> None:
        """Add the cp.async of a tile of K or V, ``near`` tiles before the last."""
        p, t = self.p, self.tile
        at = self.tiles - 1 - near
        where = self._apart(p.k * p.pitch)
        if self.split:
            where["by"] = self.split * p.pitch
        tile = Tile(arg, p.pitch, ITEM, t.n, p.d, step=-t.n * p.pitch, **where)
        valid = min(t.n, self.end - at * t.n)
        ops = tile_ops(tile, WARPS, 16, (valid, p.d), at * t.n * p.pitch)
        self.code.compute(int=INTS_COPY * len(ops), chain=0)
        for patterns in ops:
            level, ahead = (0, 1 if limit else 0) if loop else (2, 0)
            self.code.load(slot, *patterns, bypass_l1=True, smem=1, level=level, ahead=ahead, limit=limit)

    def softmax(self, *, masked: bool, first: bool) -> None:
        """Add the softmax of a tile of scores; the sums of O are scaled in all tiles but the first."""
        t, code = self.tile, self.code
        rows = t.rows // 8  # of a thread
        scores = t.rows * t.n // WARP
        if masked:
            code.compute(int=MASK_INTS * scores, chain=4)
        code.compute(int=scores, chain=4)
        code.compute(int=2 * rows, smem=2 * rows, smem_ops=2 * rows, chain=2 * SHUFFLE)
        if not first:
            sums = t.rows * self.p.d // WARP
            code.compute(sfu=rows, fp32=2 * rows, chain=20)
            code.compute(fp32=sums + rows, chain=4)
        ints = (2 * EXP_INTS + 1) * scores // 2 + MOVES[self.p.d]
        code.compute(fp32=EXP_FP32 * scores, sfu=scores, int=ints, chain=20)

    def step(self, near: int, *, loop: bool = False, looped: int = 0) -> None:
        """Add a tile of keys: one of the loop, or the one ``near`` tiles before the last."""
        t, code, d = self.tile, self.code, self.p.d
        masks = -(-t.m // t.n) if self.p.causal else int(self.uneven)
        code.wait(0)
        code.barrier()
        if not loop:
            code.delay(self.cold + (COLD_UNEVEN if near == 0 and self.uneven else 0))
        self.copies(2, near, 1, loop=loop)
        gemm_ops(code, t.rows, t.n, d, held=False)
        self.softmax(masked=near < masks and not loop, first=near == 0)
        code.wait(1)
        code.barrier()
        if loop:
            self.copies(1, near, 0, loop=True, limit=looped)
        elif near + 1 < self.tiles:
            self.copies(1, near + 1, 0)
        gemm_ops(code, t.rows, d, t.n, held=True)

    def whole(self) -> tuple[Op, ...]:
        """Return the op list; raise WorkloadError where the last of several tiles is not full."""
        p, t, code = self.p, self.tile, self.code
        if p.q > t.m and p.q % t.m:
            raise WorkloadError(f"attention: {p.q} queries: must be at most {t.m}, or a multiple")
        q = Tile(0, p.pitch, ITEM, t.m, p.d, bx=t.m * p.pitch, **self._apart(p.q * p.pitch))
        rows = min(t.m, p.q)
        code.compute(int=INTS_BEGIN, control=8, chain=40)
        ops = tile_ops(q, WARPS, 16, (rows, p.d))
        code.compute(int=INTS_COPY * len(ops), chain=0)
        for patterns in ops:
            code.load(0, *patterns, bypass_l1=True, smem=1, level=2)
        if self.tiles:
            self.copies(1, 0, 0)
        apart = min(self.tiles, -(-t.m // t.n) if p.causal else 1)
        for near in range(apart):
            self.step(near)
        if looped := self.tiles - apart:
            code.delay(self.cold)
            mark = code.loop_begin()
            self.step(apart, loop=True, looped=looped)
            code.loop_end(mark, looped)
        self.results(rows)
        code.exit()
        return tuple(code.ops)

    def results(self, rows: int) -> None:
        """Add the last sums, the exchange of O through shared memory, and the stores of O and of the LSE."""
        p, t, code = self.p, self.tile, self.code
        each = t.rows // 8
        sums = t.rows * p.d // WARP
        item = 4 if self.split else ITEM
        code.compute(smem=2 * each, smem_ops=2 * each, fp32=2 * each, chain=2 * SHUFFLE)
        code.compute(sfu=2 * each, fp32=sums + 4 * each, int=sums // 2, chain=20)
        code.compute(smem=sums * item // 4, smem_ops=sums // 2, int=8, chain=4)
        code.barrier()
        pitch, apart = p.d * item, self._apart(p.q * p.d * item)
        lse_apart = self._apart(p.q * 4)
        if self.split:
            apart["by"], lse_apart["by"] = p.planes * p.q * pitch, p.planes * p.q * 4
        o = Tile(3, pitch, item, t.m, p.d, bx=t.m * pitch, **apart)
        ops = tile_ops(o, WARPS, 16, (rows, p.d))
        code.compute(smem=4 * len(ops), smem_ops=len(ops), chain=LDSM_LATENCY)
        code.compute(int=INTS_COPY * len(ops), chain=4)
        lse = Tile(4, p.q * 4, 4, 1, t.m, bx=t.m * 4, **lse_apart)
        for patterns in tile_ops(lse, WARPS, 4, (1, rows)):
            code.store(2, *patterns, level=2)
        for patterns in ops:
            code.store(2, *patterns, level=2)


def forward_tiles(problem: Attention, tile: FlashTile, x: int) -> int:
    """Return how many tiles of keys the TBs of row ``x`` of the grid go through."""
    last = min(problem.k, (x + 1) * tile.m) if problem.causal else problem.k
    return -(-last // tile.n)


def flash_forward(
    problem: Attention, memory: Memory, operands: tuple[Tensor, Tensor, Tensor] | None = None
) -> tuple[Kernel, Tensor, Tensor]:
    """Return the kernel, its O [planes * q, d], and the LSE of each query [planes, q].

    ``operands``: Q, K, V as :meth:`Attention.rows` makes them; None: new ones. Raises WorkloadError where
    heads share keys.
    """
    p, tile = problem, TILES[problem.d]
    p.require_own_keys("FlashAttention-2's forward kernel")
    if operands is None:
        operands = p.rows(memory, "Q"), p.rows(memory, "K", keys=True), p.rows(memory, "V", keys=True)
    q, k, v = operands
    o, lse = p.rows(memory, "O"), p.scalars(memory, "LSE")
    across = -(-p.q // tile.m)
    grid = (across, p.batch, p.heads)
    tiles = [forward_tiles(p, tile, x) for x in range(across)]
    lists = [
        FlashWriter(p, tile, many, min(p.k, many * tile.n)).whole()
        for many in (tiles if p.causal else tiles[:1])
    ]
    rows = np.tile(np.arange(across, dtype=np.uint32), p.planes) if p.causal else None
    smem = (tile.m + 2 * tile.n) * p.pitch
    program = warp_specialized(
        "flash_fwd_kernel", [(ops,) * WARPS for ops in lists], rows, registers=REGISTERS, smem=smem, args=5
    )
    many = np.array(tiles, np.int64)

    def plane(tbs: Ints) -> Ints:
        return tbs // across % p.batch * p.heads + tbs // (across * p.batch)

    def first(tbs: Ints) -> Ints:
        return plane(tbs) * p.q + tbs % across * tile.m

    def last(tbs: Ints) -> Ints:
        return plane(tbs) * p.q + np.minimum((tbs % across + 1) * tile.m, p.q)

    def keys(tbs: Ints) -> Ints:
        return plane(tbs) * p.k

    def keys_end(tbs: Ints) -> Ints:
        return plane(tbs) * p.k + np.minimum(many[tbs % across] * tile.n, p.k)

    accesses = (
        row_access(q, "read", first, last),
        row_access(k, "read", keys, keys_end),
        row_access(v, "read", keys, keys_end),
        row_access(o, "write", first, last),
        row_access(lse, "write", plane, lambda tbs: plane(tbs) + 1),
    )
    kernel = Kernel("flash_fwd_kernel", program, grid, (q, k, v, o, lse), accesses, tensor=MMA_16816)
    return kernel, o, lse
