"""GEMMs of Volta's cuBLAS and of CUTLASS for Ampere, as kernels: C = op(A) op(B) in BLAS terms.

A bias is added as PyTorch asks for it (``addmm_out_cuda_impl``, ATen/native/cuda/Blas.cpp, 2.7): from CUDA
11.4 on cuBLASLt's epilogue adds it, on Volta, too. Where C has one row (m = 1) or k is 1, the bias is copied
to all of C by a kernel, and the GEMM adds to C (beta = 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.kernels.batched_gemm import batched_gemm
from pysim.workloads.kernels.copy import copy_rows, fill
from pysim.workloads.kernels.gemm import adds_to_c, gemm
from pysim.workloads.kernels.gemm_case import Place
from pysim.workloads.library.choices.by_cost import tiling_of

from .hopper_gemm import NOT_WITHIN, Within
from .operands import checked_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.program.job import Kernel, Memory, Tensor
    from pysim.workloads.library.choices.choice import Problem


def gemm_by_cost(
    problem: Problem,
    device: str,
    memory: Memory,
    operands: Sequence[Tensor] | None = None,
    *,
    biased: bool = False,
    within: Within = NOT_WITHIN,
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM and its C, [batch *] n x m.

    ``operands``, ``within``: as ``launches.gemm`` takes them; the third is the bias if the GEMM is
    ``biased``. Where parts of a split K are added in any order, C is filled first. Raises WorkloadError for
    operands that do not fit.
    """
    m, n, k, batch = problem.m, problem.n, problem.k, problem.batch
    shapes = (m, k) if problem.trans_a == "T" else (k, m), (k, n) if problem.trans_b == "T" else (n, k)
    a, b, *bias = checked_operands(operands, _wanted(problem, shapes, within, biased), memory)
    apart = within != NOT_WITHIN
    tiling = tiling_of(problem, device, split=not apart)
    c = memory.tensor("C", batch * n, m, problem.item)
    row = bias[0] if bias else None
    a_t, b_t = problem.trans_b == "T", problem.trans_a == "T"
    if batch > 1 or apart:
        at = [_place(shape, wide) for shape, wide in zip(shapes, within, strict=True)]
        made = batched_gemm(
            "gemm", b, a, c, (n, m, k), tiling, batch, a_t=a_t, b_t=b_t, places=(at[1], at[0], None), bias=row
        )
        return (made,), c
    if row is not None and (m == 1 or k == 1 or adds_to_c(tiling)):
        made = gemm("gemm", b, a, c, tiling, a_t=a_t, b_t=b_t, beta=1.0)
        return (copy_rows("copy_bias", row, c), made), c
    made = gemm("gemm", b, a, c, tiling, a_t=a_t, b_t=b_t, bias=row)
    return ((fill("gemm_zero", c), made) if adds_to_c(tiling) else (made,)), c


Shape = tuple[int, int]


def _wanted(
    problem: Problem, shapes: tuple[Shape, Shape], within: Within, biased: bool
) -> list[tuple[str, int, int, int]]:
    """Return name, rows, columns and bytes of an element of each operand."""
    item, batch = problem.item, problem.batch
    wanted = []
    for name, (rows, cols), (wide, first) in zip("AB", shapes, within, strict=True):
        if wide and (first < 0 or first + batch * cols > wide):
            raise WorkloadError(
                f"library GEMM: {batch} x {cols} columns of {name} from {first} on in {wide}: must be inside"
            )
        wanted.append((name, rows, wide, item) if wide else (name, batch * rows, cols, item))
    return [*wanted, ("bias", 1, problem.m, item)] if biased else wanted


def _place(shape: Shape, wide: tuple[int, int]) -> Place:
    """Return where the matrices of an operand are: side by side in a wider one, or one below the other."""
    cols, first = wide
    return Place(cols, first, right=shape[1]) if cols else Place(shape[1], down=shape[0])
