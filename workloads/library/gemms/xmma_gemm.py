"""GEMMs of cuBLAS's ``sm90_xmma`` kernels: wgmma in tf32, tiles in turn, as ``hopper_gemm`` has them.

A name says the tile as n x m, and k: 32 elements of tf32, 128 B. ``warpgroupsize2``: the two consumer groups
share a tile, half its n each; else they take turns. What names do not say was tried on half ``fit``: with a y
of the grid above 1, pairs of TBs share A by multicast (cluster of 1 x 2; without it tiles of few columns come
out a third too slow), and copies end with a C of fewer columns than a tile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError

from .hopper_epilogue import Cost
from .hopper_gemm import STAGES, STEP, HopperGemm

if TYPE_CHECKING:
    from pysim.workloads.library.choices.choice import Problem

_NAME = re.compile(
    r"sm90_xmma_gemm_\w+?_tilesize(?P<n>\d+)x(?P<m>\d+)x(?P<k>\d+)_(?:cgasize1x1x1_)?warpgroupsize(?P<groups>\d)"
)
SMEM = 231424  # bytes a TB, of all of the sweep
RESULTS = 16384  # of them for results, an estimate; the others are stages
SEGMENTS = "segment_k_on"  # in the name: TBs take runs of k-steps across tiles
MOST_PARTS = 4
# From a TB's start to its first load: fitted to half `fit` (rows up to 80 us); the rest is as nvjet has it
BEGIN = 3000
STEP_CYCLES, CHUNK = 126, 240
# Cycles of a k-step for each column of a group's tile where A is contiguous in m: wgmma reads tf32 along k
# alone, so an operand is turned before it is multiplied. Fitted to half `fit` (512 x 3000 x 2816, 512 x 1500
# x 2560)
TURN = 0.6


def xmma_gemm(name: str, problem: Problem, grid: tuple[int, int, int]) -> tuple[HopperGemm, Cost]:
    """Return the GEMM of a kernel ``name`` and what its code costs; refuse other kernels.

    Where TBs take runs of k-steps across tiles, K is split into the parts that fill waves best.
    """
    found = _NAME.match(name)
    if found is None:
        raise WorkloadError(f"library GEMM: no template for kernel {name[:60]}")
    tm, tn, item = int(found["m"]), int(found["n"]), STEP // int(found["k"])
    tbs = grid[0] * grid[1] * grid[2]
    tiles = -(-problem.m // tm) * -(-problem.n // tn)
    gemm = HopperGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=(tm, tn),
        stages=min(STAGES, (SMEM - RESULTS) // ((tm + tn) * STEP)),
        cluster=(1, 2) if grid[1] > 1 and tbs % 2 == 0 else (1, 1),
        tbs=tbs,
        split="n" if found["groups"] == "2" else "none",
        split_k=_parts(tiles, tbs) if SEGMENTS in name else 1,
        item=item,
        out=item,
        smem=SMEM,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
        clipped=True,
    )
    columns = tn // 2 if gemm.split == "n" else tn
    turn = 0 if gemm.trans_a or item == 2 else round(TURN * columns)
    cost = Cost(BEGIN, begin_cluster=300, step=STEP_CYCLES, chunk=CHUNK, next_tile=900, before=turn)
    return gemm, cost


def _parts(tiles: int, tbs: int) -> int:
    """Return the fewest parts of k for which the turns of a TB are shortest."""
    return min(range(1, MOST_PARTS + 1), key=lambda parts: (-(-tiles * parts // tbs) / parts, parts))
