"""FlashAttention-2's backward loop over queries, as PyTorch launches it on Hopper.

The algorithm is published (Dao 2023). A thread block (TB) of eight warps keeps 128 keys and their values in
shared memory and goes through tiles of ``m`` queries, the last first: S = Q K^T and P, dP = dO V^T and dS,
which go through shared memory; dV += P^T dO; dQ = dS K, added to fp32 sums in memory by reductions of a line
each; dK += dS^T Q. The next Q is copied after dP, the next dO after dV. With ``causal`` a TB ends at its
diagonal. The grid is (tiles of keys, batch, heads); an SM has one TB of 144 KiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import MMA_16816, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops

from .attention_flash import (
    COLD,
    EXP_FP32,
    EXP_INTS,
    INTS_BEGIN,
    INTS_COPY,
    LDSM_LATENCY,
    MASK_INTS,
    REGISTERS,
    gemm_ops,
)
from .attention_problem import ITEM, Attention, row_access

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WARPS, KEYS, SMEM = 8, 128, 147456
INSTRUCTIONS = {64: 1345, 128: 1021}  # of a step, in SASS
GRADIENT_FP32 = 2  # of a score: dP - sum (FADD), times P (FMUL)
INTS_REDUCE = 2  # LEA and LEA.HI.X of a reduction
# Cycles of a step besides what is counted: its three barriers and what reductions cost other warps, which
# share the LSU; found with ten rows of both halves in sight.
STEP = 1400
REDUCE_GAP = 24  # cycles more until a warp's next reduction: h200_reductions.csv, one every 25.5 cycles


@dataclass(frozen=True, slots=True)
class _Shape:
    """Queries of a tile, and m x n x k of a warp's share of S and dP, of dK and dV, and of dQ."""

    m: int
    scores: tuple[int, int, int]
    keys: tuple[int, int, int]
    queries: tuple[int, int, int]


# eight warps as 4 x 2 or 2 x 4: AtomLayoutMSdP, NdKV and MdQ in the kernels' names
SHAPES = {
    64: _Shape(128, (32, 64, 64), (32, 32, 128), (32, 32, 128)),
    128: _Shape(64, (32, 32, 128), (32, 64, 64), (32, 32, 128)),
}


class _Writer:
    """Writes the code of TBs whose keys begin at tile ``x``."""

    def __init__(self, problem: Attention, x: int) -> None:
        self.p, self.shape, self.x = problem, SHAPES[problem.d], x
        self.tiles = query_tiles(problem, x)
        self.code = Code()

    def copies(self, arg: int, near: int, slot: int, *, limit: int = 0) -> None:
        """Add the cp.async of a tile of Q or dO, ``near`` tiles before the last; in a loop with ``limit``."""
        p, m = self.p, self.shape.m
        plane = p.q * p.pitch
        at = p.q // m - 1 - near
        tile = Tile(arg, p.pitch, ITEM, m, p.d, by=p.heads * plane, bz=plane, step=-m * p.pitch)
        ops = tile_ops(tile, WARPS, 16, (m, p.d), at * m * p.pitch)
        self.code.compute(int=INTS_COPY * len(ops), chain=0)
        for patterns in ops:
            if limit:
                self.code.load(slot, *patterns, bypass_l1=True, smem=1, ahead=1, limit=limit)
            else:
                self.code.load(slot, *patterns, bypass_l1=True, smem=1, level=2)

    def keys(self) -> None:
        """Add the cp.async of K and V."""
        p = self.p
        plane = p.k * p.pitch
        for arg in (1, 2):
            tile = Tile(arg, p.pitch, ITEM, KEYS, p.d, bx=KEYS * p.pitch, by=p.heads * plane, bz=plane)
            for patterns in tile_ops(tile, WARPS, 16, (KEYS, p.d)):
                self.code.load(0, *patterns, bypass_l1=True, smem=1, level=2)

    def scalars(self, near: int, *, loop: bool) -> None:
        """Add the loads of LSE and dO O of a tile: four rows of a thread."""
        p, m = self.p, self.shape.m
        for arg in (4, 5):
            first = (p.q // m - 1 - near) * m * 4
            lanes = tuple(4 * (lane // 4) for lane in range(WARP))
            pattern = Pattern(
                arg, 4, base=first, by=p.heads * p.q * 4, bz=p.q * 4, step=-m * 4, offsets=lanes
            )
            for _ in range(self.shape.scores[0] // 8):
                self.code.load(2, pattern, level=0 if loop else 2)

    def to_shared(self, scores: int) -> None:
        """Add a warp's stores of P or dS to shared memory, 4 B a lane."""
        self.code.compute(smem=scores // 2, smem_ops=scores // 2, chain=0)

    def step(self, near: int, *, looped: int = 0) -> None:
        """Add a tile of queries: the one ``near`` tiles before the last, or those of a loop."""
        s, code = self.shape, self.code
        scores = s.scores[0] * s.scores[1] // WARP
        masked = self.p.causal and not looped
        self.scalars(near, loop=looped > 0)
        code.wait(0)
        code.barrier()
        gemm_ops(code, *s.scores, held=False)
        code.wait(2)
        if masked:
            code.compute(int=MASK_INTS * scores, chain=4)
        code.compute(fp32=(EXP_FP32 - 1) * scores, sfu=scores, int=(2 * EXP_INTS + 1) * scores // 2, chain=20)
        code.delay(STEP)
        self.to_shared(scores)
        gemm_ops(code, *s.scores, held=False)
        code.compute(fp32=GRADIENT_FP32 * scores, int=scores // 2, chain=4)
        self.next_copies(0, near, looped)
        self.to_shared(scores)
        code.barrier()
        gemm_ops(code, *s.keys, held=False)
        code.barrier()
        self.next_copies(3, near, looped)
        gemm_ops(code, *s.queries, held=False)
        self.reductions(near, loop=looped > 0)
        gemm_ops(code, *s.keys, held=False)

    def next_copies(self, arg: int, near: int, looped: int) -> None:
        """Add the copies of the next tile, if there is one."""
        if looped:
            self.copies(arg, near, 0, limit=looped)
        elif near + 1 < self.tiles:
            self.copies(arg, near + 1, 0)

    def reductions(self, near: int, *, loop: bool) -> None:
        """Add dQ of a tile to its sums: each warp takes every eighth line."""
        p, m, code = self.p, self.shape.m, self.code
        pitch = p.d * 4
        first = (p.q // m - 1 - near) * m * pitch
        each = m * pitch // 128 // WARPS
        code.compute(int=INTS_REDUCE * each, chain=0)
        for line in range(each):
            pattern = Pattern(
                6, 4, base=first + line * WARPS * 128, by=p.heads * p.q * pitch, bz=p.q * pitch,
                warp=128, step=-m * pitch, s0=4,
            )  # fmt: skip
            code.reduce(3, pattern, level=0 if loop else 2)
            code.delay(REDUCE_GAP)

    def whole(self) -> tuple[Op, ...]:
        """Return the op list."""
        code, m = self.code, self.shape.m
        code.compute(int=INTS_BEGIN, control=8, chain=40)
        self.keys()
        self.copies(0, 0, 0)
        self.copies(3, 0, 0)
        cold = round(COLD * INSTRUCTIONS[self.p.d])
        code.delay(cold)
        # the diagonal is last: a loop over what is not masked, then its tiles
        masks = min(self.tiles, KEYS // m) if self.p.causal else 0
        if looped := self.tiles - masks:
            mark = code.loop_begin()
            # in a causal TB the last tile of the loop copies the first of the diagonal
            self.step(0, looped=looped + (1 if masks else 0))
            code.loop_end(mark, looped)
        if masks:
            code.delay(cold)
        for near in range(looped, self.tiles):
            self.step(near)
        self.results()
        code.exit()
        return tuple(code.ops)

    def results(self) -> None:
        """Add the exchange of dK and dV through shared memory and their stores."""
        p, code = self.p, self.code
        sums = KEYS * p.d // (WARP * WARPS)
        plane = p.k * p.pitch
        code.compute(fp32=sums, int=sums, chain=4)
        code.barrier()
        code.compute(smem=sums, smem_ops=sums, chain=4)
        code.barrier()
        for half in (0, p.planes * plane):
            tile = Tile(7, p.pitch, ITEM, KEYS, p.d, bx=KEYS * p.pitch, by=p.heads * plane, bz=plane)
            ops = tile_ops(tile, WARPS, 16, (KEYS, p.d), half)
            code.compute(smem=4 * len(ops), smem_ops=len(ops), int=INTS_COPY * len(ops), chain=LDSM_LATENCY)
            for patterns in ops:
                code.store(4, *patterns, level=2)


def query_tiles(problem: Attention, x: int) -> int:
    """Return how many tiles of queries the TBs of tile ``x`` of the keys go through."""
    m = SHAPES[problem.d].m
    return problem.q // m - (x * KEYS // m if problem.causal else 0)


def flash_backward(
    problem: Attention,
    memory: Memory,
    operands: tuple[Tensor, Tensor, Tensor, Tensor],
    sums: tuple[Tensor, Tensor, Tensor],
) -> tuple[Kernel, Tensor]:
    """Return the kernel and its dK, below which is its dV: [2 * planes * k, d].

    ``operands``: Q, K, V, dO; ``sums``: LSE, the rows' sums of dO O, and the fp32 dQ that it adds to. Raises
    WorkloadError where queries or keys are no whole tiles, and for kv heads that queries share.
    """
    p = problem
    p.require_whole(KEYS, "backward")
    q, k, v, do = operands
    lse, dots, dq = sums
    dkv = memory.tensor("dK, dV", 2 * p.planes * p.k, p.d, ITEM)
    across = p.k // KEYS
    lists = [_Writer(p, x).whole() for x in range(across if p.causal else 1)]
    rows = np.tile(np.arange(across, dtype=np.uint32), p.planes) if p.causal else None
    program = warp_specialized(
        "flash_bwd_loop", [(ops,) * WARPS for ops in lists], rows, registers=REGISTERS, smem=SMEM, args=8
    )
    m, many = SHAPES[p.d].m, np.array([query_tiles(p, x) for x in range(across)], np.int64)

    def plane(tbs: Ints) -> Ints:
        return tbs // across % p.batch * p.heads + tbs // (across * p.batch)

    def keys(tbs: Ints) -> Ints:
        return plane(tbs) * p.k + tbs % across * KEYS

    def values(tbs: Ints) -> Ints:
        return keys(tbs) + p.planes * p.k

    def queries(tbs: Ints) -> Ints:
        return (plane(tbs) + 1) * p.q - many[tbs % across] * m

    def queries_end(tbs: Ints) -> Ints:
        return (plane(tbs) + 1) * p.q

    def plane_end(tbs: Ints) -> Ints:
        return plane(tbs) + 1

    accesses = (
        *(row_access(t, "read", queries, queries_end) for t in (q, do)),
        *(row_access(t, "read", keys, lambda tbs: keys(tbs) + KEYS) for t in (k, v)),
        *(row_access(t, "read", plane, plane_end) for t in (lse, dots)),
        row_access(dq, "update", queries, queries_end),
        row_access(dkv, "write", keys, lambda tbs: keys(tbs) + KEYS),
        row_access(dkv, "write", values, lambda tbs: values(tbs) + KEYS),
    )
    args = (q, k, v, do, lse, dots, dq, dkv)
    grid = (across, p.batch, p.heads)
    return Kernel("flash_bwd_loop", program, grid, args, accesses, tensor=MMA_16816), dkv
