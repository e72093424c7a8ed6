"""Batched fp16 and bf16 GEMMs on an H200: as the nearest product of a sweep was launched.

cuBLAS weighs tiles against waves as for a single GEMM, but with other prices, which are not known: what
``nvjet`` knows of single GEMMs names 24 % of the tiles. So a product takes tile, stages and cluster of the
nearest of 612 measured ones with the same transposes: distances of log2 of m and n count twice, of k half,
of the batch once. Of sizes m, n, k that are left out in whole, 50 % of the tiles are right.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from pysim.errors import WorkloadError

from . import nvjet
from .choice import GemmChoice, Problem
from .nvjet_kernels import Nvjet

TABLE = "h200_gemm_batched.csv"
WEIGHTS = (2.0, 2.0, 0.5, 1.0)  # of m, n, k and batch
PLAIN = 64, 64, 8
PLAIN_NAME = (
    "sm80_xmma_gemm_f32f32_f32f32_f32_{layout}_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4"
    "_execute_kernel__5x_cublas"
)
NUMBERS = ("m", "n", "k", "batch", "tile_m", "tile_n", "stages", "cluster_m", "cluster_n", "shared_memory_B")


@dataclass(frozen=True, slots=True)
class Measured:
    """A row of the sweep."""

    sizes: tuple[int, int, int, int]
    trans: str
    tile: tuple[int, int]
    letter: str
    stages: int
    cluster: tuple[int, int]
    smem: int

    @property
    def kernel(self) -> Nvjet:
        """The kernel, with the cluster that was seen."""
        return Nvjet(*self.tile, self.letter == "N", self.stages, (self.cluster,))


@lru_cache(maxsize=1)
def sweep() -> tuple[Measured, ...]:
    """Return the measured products."""
    text = files("pysim.workloads").joinpath("measured", TABLE).read_text(encoding="utf-8")
    made = []
    for row in csv.DictReader(io.StringIO(text)):
        m, n, k, batch, tm, tn, stages, cm, cn, smem = (int(row[name]) for name in NUMBERS)
        made.append(Measured((m, n, k, batch), row["trans"], (tm, tn), row["letter"], stages, (cm, cn), smem))
    return tuple(made)


def nearest(problem: Problem) -> Measured:
    """Return the measured product that is nearest to a problem.

    Of transposes that were not measured it is the nearest of any whose tile takes them.
    """
    trans = problem.trans_a + problem.trans_b
    sizes = problem.m, problem.n, problem.k, problem.batch
    same = [row for row in sweep() if row.trans == trans]
    same = same or [row for row in sweep() if row.kernel.takes(problem.trans_a, problem.trans_b)]

    def distance(row: Measured) -> float:
        pairs = zip(WEIGHTS, row.sizes, sizes, strict=True)
        return sum(weight * abs(math.log2(a / b)) for weight, a, b in pairs)

    return min(same, key=distance)


def _plain(problem: Problem) -> GemmChoice:
    """Return the FFMA kernel of a batch of fp32 products: seen in one network alone."""
    m, n, _ = PLAIN
    layout = (problem.trans_a + problem.trans_b).lower()
    name = PLAIN_NAME.format(layout=layout)
    grid = -(-problem.n // n), -(-problem.m // m), problem.batch
    reason = "as PyTorch's attention in fp32 got it: 96 products of 128 x 128 x 64 and 64 x 128 x 128, NN"
    return GemmChoice(name, "sm80_xmma_gemm", PLAIN, 3, grid=grid, reasons=(reason,))


def choose(problem: Problem) -> GemmChoice:
    """Return the kernel of a batched problem; raise WorkloadError for what was not measured.

    That are types but fp16, bf16 and fp32, and rows that do not begin at multiples of 16 B.
    """
    if problem.dtype == "fp32" and problem.alignment() == 4:
        return _plain(problem)
    if problem.item != 2 or problem.alignment() < 8:
        raise WorkloadError(
            f"batched GEMM of {problem.m} x {problem.n} x {problem.k}, {problem.dtype}: fp16 and bf16 with"
            " rows that begin at multiples of 16 B are known alone"
        )
    row = nearest(problem)
    m, n, k, batch = row.sizes
    reason = f"as measured for {batch} products of {m} x {n} x {k} {row.trans}, the nearest of the sweep"
    made = nvjet.as_choice(nvjet.Candidate(row.kernel, row.cluster, 1, problem), 0.0)
    return GemmChoice(
        made.name, made.family, made.tile, row.stages, row.cluster, 1, "", made.order, made.cooperative,
        made.grid, reasons=(reason, *made.reasons),
    )  # fmt: skip
