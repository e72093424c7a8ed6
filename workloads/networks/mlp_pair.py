"""Two dependent GEMMs of a Transformer's MLP in fp16, as CUTLASS tiles them on Volta or Ampere."""

from __future__ import annotations

import re

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.workloads.kernels.cutlass import Multistage, cutlass_gemm
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.tiling import FETCH, Tiling

ITEM = 2
_TILE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})x(\d{1,4})x(\d{1,4})x(\d{1,4})")


def tiling(tile: str, stages: int, split_k: int) -> Tiling:
    """Return the tiling of ``"256x128x32x128x64x32"``: M, N, K of a TB, then of a warp."""
    match = _TILE.fullmatch(tile)
    if match is None:
        raise WorkloadError(f"tile {tile[:40]!r}: must be six sizes, MxNxK of a TB and of a warp")
    m, n, k, *warp = (int(size) for size in match.groups())
    if any(part == 0 or whole % part for whole, part in zip((m, n, k), warp, strict=True)):
        raise WorkloadError(f"tile {tile}: the TB's sizes must be multiples of the warp's")
    slices = k // warp[2]
    warps = (m // warp[0]) * (n // warp[1]) * slices
    name, listed = f"cutlass_{m}x{n}x{k}", (warp[0], warp[1])
    return Tiling(
        name, m, n, k, warps, "hmma", stages, split_k, slices, True, overlap=True, fetch=FETCH, warp=listed
    )


def mlp_pair(
    sizes: tuple[int, int, int, int, int],
    first: Tiling | Multistage,
    second: Tiling | Multistage,
    *,
    gated: bool = False,
) -> Job:
    """C1[m, n1] = X[m, k1] W1, then C2[m, n2] = A[m, k2] W2; ``sizes`` are m, n1, k1, n2, k2.

    A is C1 where k2 = n1. Else (gated units: the kernel in between is left out, as the authors left it out)
    it is a tensor of its own, on which nothing depends, or with ``gated`` the first k2 columns of C1, whose
    readers wait for what belongs together in all of them. Parts of a split K add to C, and nothing clears it
    before: CUTLASS takes them in order, and the first stores.
    """
    m, n1, k1, n2, k2 = sizes
    memory = Memory()
    x, w1 = memory.tensor("x", m, k1, ITEM), memory.tensor("w1", k1, n1, ITEM)
    c1, w2 = memory.tensor("xw1", m, n1, ITEM), memory.tensor("w2", k2, n2, ITEM)
    a = c1 if k2 == n1 or gated else memory.tensor("glu", m, k2, ITEM)
    c2 = memory.tensor("xw12", m, n2, ITEM)
    kernels = []
    for name, tensors, tiling in (("gemm1", (x, w1, c1), first), ("gemm2", (a, w2, c2), second)):
        if isinstance(tiling, Multistage):
            kernels.append(cutlass_gemm(name, *tensors, tiling))
        else:
            kernels.append(gemm(name, *tensors, tiling))
    return Job(f"mlp_pair:m={m},n1={n1},k1={k1}", kernels)
