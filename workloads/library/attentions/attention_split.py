"""FlashAttention-2's split over keys, for few queries: the forward kernel of a part, and the combination.

Parts of the keys go to thread blocks (TBs) of their own, which write O and LSE of their part in fp32; another
kernel weighs and adds them. How many parts there are is FlashAttention's published rule. Of one query a head,
the heads that share keys become the queries of one plane (``grouped``).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import MMA_16816, Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Op, Pattern, Program
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.hopper import SHUFFLE

from .attention_flash import INTS_COPY, REGISTERS, WARPS, FlashTile, FlashWriter
from .attention_problem import Attention, row_access

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

TILES = {64: FlashTile(64, 256), 128: FlashTile(64, 128)}
MOST_SPLITS = 128
BUSY, GOOD = 0.8, 0.85  # of the SMs without a split; of the best share of the last wave
COMBINE_THREADS, COMBINE_SMEM = 128, 640
COMBINE_COLD = 2200  # cycles until a TB has the code; found with rows of both halves
COMBINE_ROWS = {64: 8, 128: 4}  # of a TB


def split_count(problem: Attention, sms: int) -> int:
    """Return the parts of the keys: the fewest that fill waves of 2 x ``sms`` TBs about as well as any."""
    tile = TILES[problem.d]
    blocks, slots = -(-problem.k // tile.n), 2 * sms
    tbs = problem.planes * -(-problem.q // tile.m)
    if tbs >= BUSY * slots:
        return 1
    shares = {}
    for parts in range(1, min(MOST_SPLITS, slots, blocks) + 1):
        if parts == 1 or -(-blocks // parts) != -(-blocks // (parts - 1)):
            waves = tbs * parts / slots
            shares[parts] = waves / -(-tbs * parts // slots)
    best = max(shares.values())
    return next(parts for parts, share in shares.items() if share >= GOOD * best)


def grouped(problem: Attention) -> Attention:
    """Return the problem of one query with the heads that share keys as queries of one plane."""
    if problem.q != 1 or problem.heads == problem.kv_heads:
        return problem
    return replace(problem, heads=problem.kv_heads, q=problem.heads // problem.kv_heads, causal=False)


def flash_split(
    problem: Attention, parts: int, memory: Memory, operands: tuple[Tensor, Tensor, Tensor] | None = None
) -> tuple[tuple[Kernel, Kernel], Tensor]:
    """Return the kernel of the parts, the combination, and O [planes * q, d].

    Raises WorkloadError where heads share keys: see :func:`grouped`.
    """
    p, tile = problem, TILES[problem.d]
    p.require_own_keys("FlashAttention-2's split over keys")
    if operands is None:
        operands = p.rows(memory, "Q"), p.rows(memory, "K", keys=True), p.rows(memory, "V", keys=True)
    q, k, v = operands
    sums = memory.tensor("O parts", parts * p.planes * p.q, p.d, 4)
    lse = memory.tensor("LSE parts", parts * p.planes, p.q, 4)
    blocks = -(-p.k // tile.n)
    each = -(-blocks // parts)
    across = -(-p.q // tile.m)
    grid = (across, parts, p.planes)
    code: dict[tuple[int, int], int] = {}
    lists: list[tuple[Op, ...]] = []
    rows_of = np.zeros((parts, across), np.uint32)
    for part in range(parts):
        for x in range(across):
            begin = part * each * tile.n
            end = min(p.k, begin + each * tile.n, (x + 1) * tile.m if p.causal else p.k)
            shape = max(0, end - begin), -(-max(0, end - begin) // tile.n)
            if shape not in code:
                code[shape] = len(lists)
                lists.append(FlashWriter(p, tile, shape[1], shape[0], each * tile.n).whole())
            rows_of[part, x] = code[shape]
    rows = np.tile(rows_of.reshape(-1), p.planes)
    smem = (tile.m + 2 * tile.n) * p.pitch
    program = warp_specialized(
        "flash_fwd_splitkv", [(ops,) * WARPS for ops in lists], rows, registers=REGISTERS, smem=smem, args=5
    )
    kernel = Kernel(
        "flash_fwd_splitkv", program, grid, (q, k, v, sums, lse),
        _split_accesses(p, tile, parts, each, (q, k, v, sums, lse)), tensor=MMA_16816,
    )  # fmt: skip
    combination, o = _combine(p, parts, memory, sums, lse)
    return (kernel, combination), o


def _split_accesses(
    p: Attention, tile: FlashTile, parts: int, each: int, tensors: tuple[Tensor, ...]
) -> tuple[Access, ...]:
    """Return what the TBs of the parts read and write."""
    q, k, v, sums, lse = tensors
    across = -(-p.q // tile.m)

    def plane(tbs: Ints) -> Ints:
        return tbs // (across * parts)

    def part(tbs: Ints) -> Ints:
        return tbs // across % parts

    def first(tbs: Ints) -> Ints:
        return plane(tbs) * p.q + tbs % across * tile.m

    def last(tbs: Ints) -> Ints:
        return plane(tbs) * p.q + np.minimum((tbs % across + 1) * tile.m, p.q)

    def keys(tbs: Ints) -> Ints:
        return plane(tbs) * p.k + part(tbs) * each * tile.n

    def keys_end(tbs: Ints) -> Ints:
        return plane(tbs) * p.k + np.minimum((part(tbs) + 1) * each * tile.n, p.k)

    def of_part(rows: int, tbs: Ints) -> Ints:
        return part(tbs) * p.planes * rows

    return (
        row_access(q, "read", first, last),
        row_access(k, "read", keys, keys_end),
        row_access(v, "read", keys, keys_end),
        row_access(sums, "write", lambda t: of_part(p.q, t) + first(t), lambda t: of_part(p.q, t) + last(t)),
        row_access(lse, "write", lambda t: of_part(1, t) + plane(t), lambda t: of_part(1, t) + plane(t) + 1),
    )


def _combine(p: Attention, parts: int, memory: Memory, sums: Tensor, lse: Tensor) -> tuple[Kernel, Tensor]:
    """Return the kernel that adds the parts of O by their weights, one part after another."""
    o = p.rows(memory, "O")
    total, height = p.planes * p.q, COMBINE_ROWS[p.d]
    grid = (-(-total // height), 1, 1)
    warps, pitch = COMBINE_THREADS // WARP, p.d * 4
    variants = []
    for number in range(8):
        rows = total - (grid[0] - 1) * height if number & 1 else height
        code = Code()
        code.compute(int=60, control=4, chain=40)
        code.delay(COMBINE_COLD)
        weights = Pattern(1, 4, bx=height * 4, s0=total * 4, s1=4, minor=min(WARP, parts))
        held = min(WARP // min(WARP, parts), rows) * min(WARP, parts)
        code.load(0, replace(weights, lanes=(1 << held) - 1), level=2)
        code.wait(0)
        code.compute(smem=4, smem_ops=4, chain=SHUFFLE)
        code.barrier()
        code.compute(smem=12, smem_ops=12, fp32=16, sfu=4, int=16, chain=10 * SHUFFLE)
        code.barrier()
        mark = code.loop_begin()
        lanes = [min(max(rows * pitch - warp * WARP * 16, 0) // 16, WARP) for warp in range(warps)]
        code.compute(int=INTS_COPY, smem=1, smem_ops=1, chain=SHUFFLE)
        code.load(0, *_by_warp(0, 16, lanes, bx=height * pitch, step=total * pitch))
        code.wait(0)
        code.compute(fp32=8, chain=8)
        if parts > 1:
            code.loop_end(mark, parts)
        code.compute(int=INTS_COPY + 2, chain=8)
        code.store(1, *_by_warp(2, 8, lanes, bx=height * p.pitch), level=2)
        code.exit()
        variants.append(tuple(code.ops))
    program = Program("flash_combine", tuple(variants), warps, 52, COMBINE_SMEM, 3)

    def first(tbs: Ints) -> Ints:
        return tbs * height

    def last(tbs: Ints) -> Ints:
        return np.minimum((tbs + 1) * height, total)

    flat = replace(lse, rows=1, cols=lse.rows * lse.cols)

    def weights_of(part: int, tbs: Ints) -> Ints:
        tbs = np.asarray(tbs, np.int64)
        zero = np.zeros_like(tbs)
        return np.stack([zero, zero + 1, part * total + first(tbs), part * total + last(tbs)], 1)

    accesses = [row_access(o, "write", first, last)]
    for part in range(parts):
        accesses += [
            row_access(sums, "read", partial(_plus, part * total, first), partial(_plus, part * total, last)),
            Access(flat, "read", partial(weights_of, part)),
        ]
    return Kernel("flash_combine", program, grid, (sums, flat, o), tuple(accesses)), o


def _plus(rows: int, of: Callable[[Ints], Ints], tbs: Ints) -> Ints:
    return rows + of(tbs)


def _by_warp(arg: int, width: int, lanes: list[int], bx: int, step: int = 0) -> tuple[Pattern, ...]:
    """Return a pattern for each warp: lanes side by side, ``lanes`` of them."""
    return tuple(
        Pattern(arg, width, base=warp * WARP * width, bx=bx, step=step, s0=width, lanes=(1 << many) - 1)
        for warp, many in enumerate(lanes)
    )
