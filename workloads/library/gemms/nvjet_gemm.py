"""GEMMs of cuBLAS's ``nvjet`` kernels: what a name says, as ``hopper_gemm`` has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError

from .hopper_gemm import STEP, HopperGemm, Split

if TYPE_CHECKING:
    from pysim.workloads.library.choices.choice import Problem

_NAME = re.compile(r"nvjet_sm90_\w+?_(\d+)x(\d+)_64x(\d+)_(\d)x(\d)_([hv])_")
SPLITS: dict[str, Split] = {"coopA": "m", "coopB": "n"}
REST = 16384  # bytes of shared memory of a TB beside its stages, where it is not told
MOST = 232448  # of a TB


def nvjet_gemm(name: str, problem: Problem, tbs: int, registers: int, smem: int) -> HopperGemm:
    """Return the GEMM of a kernel ``name`` of ``tbs`` TBs; refuse names that say no tile.

    Where the name has ``splitK``, parts of k are the TBs over the tiles, rounded up to whole clusters.
    ``smem``: bytes a TB; 0: not known.
    """
    found, words = _NAME.match(name), name.split("_")
    if found is None:
        raise WorkloadError(f"library GEMM: no template for kernel {name[:60]}")
    tm, tn, stages, cm, cn = (int(found[number]) for number in range(1, 6))
    tiles = -(-problem.m // (tm * cm)) * cm * -(-problem.n // (tn * cn)) * cn
    return HopperGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=(tm, tn),
        stages=stages,
        cluster=(cm, cn),
        tbs=tbs,
        split_k=max(1, tbs // tiles) if "splitK" in words else 1,
        split=next((SPLITS[word] for word in words if word in SPLITS), "none"),
        n_fast=found[6] == "h",
        batch=problem.batch,
        item=problem.item,
        out=problem.item,
        smem=smem or min(MOST, stages * (tm + tn) * STEP + REST),
        registers=registers,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
    )
