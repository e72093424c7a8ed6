"""GEMM C[M, N] = A[M, K] B[K, N]: which writer makes a kernel follows from its tiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cutlass import Multistage, cutlass_gemm
from .volta_gemm import volta_gemm

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Tensor

    from .tiling import Tiling


def adds_to_c(tiling: Tiling | Multistage) -> bool:
    """Whether parts of a split K add to C in any order: C must be zero before (``copy.fill``)."""
    return not isinstance(tiling, Multistage) and tiling.split_k > 1 and not tiling.cutlass


def gemm(
    name: str,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    tiling: Tiling | Multistage,
    *,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    bias: Tensor | None = None,
    stream: int = 0,
) -> Kernel:
    """Make the kernel C = A B + beta C + bias, as libraries write it for Volta or Ampere, as the tiling says.

    ``a`` is [M, K] ([K, M] with ``a_t``), ``b`` is [K, N] ([N, K] with ``b_t``), ``c`` is [M, N], all
    row-major; ``bias`` is [1, N]. Parts of a split K add to C in any order on Volta, where C must hold beta C
    and the bias before (``adds_to_c``, ``copy.fill``), and in turn in CUTLASS's kernels.
    """
    if isinstance(tiling, Multistage):
        return cutlass_gemm(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta, bias=bias, stream=stream)
    return volta_gemm(name, a, b, c, tiling, a_t=a_t, b_t=b_t, beta=beta, bias=bias, stream=stream)
