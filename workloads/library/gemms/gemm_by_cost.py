"""GEMMs of Volta's cuBLAS and of CUTLASS for Ampere, as kernels: C = op(A) op(B) in BLAS terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.workloads.kernels.batched_gemm import batched_gemm
from pysim.workloads.kernels.copy import fill
from pysim.workloads.kernels.gemm import adds_to_c, gemm
from pysim.workloads.library.choices.by_cost import tiling_of

from .operands import checked_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.program.job import Kernel, Memory, Tensor
    from pysim.workloads.library.choices.choice import Problem


def gemm_by_cost(
    problem: Problem, device: str, memory: Memory, operands: Sequence[Tensor] | None = None
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM and its C, [batch *] n x m.

    ``operands``: as ``launches.gemm`` takes them, without a bias. Where parts of a split K are added in any
    order, C is filled first.
    """
    m, n, k, item, batch = problem.m, problem.n, problem.k, problem.item, problem.batch
    a_rows, b_rows = (
        (m, k) if problem.trans_a == "T" else (k, m),
        (k, n) if problem.trans_b == "T" else (n, k),
    )
    wanted = [("A", batch * a_rows[0], a_rows[1], item), ("B", batch * b_rows[0], b_rows[1], item)]
    a, b = checked_operands(operands, wanted, memory)
    tiling, c = tiling_of(problem, device), memory.tensor("C", batch * n, m, item)
    if batch == 1:
        made = gemm("gemm", b, a, c, tiling, a_t=problem.trans_b == "T", b_t=problem.trans_a == "T")
        return ((fill("gemm_zero", c), made) if adds_to_c(tiling) else (made,)), c
    turned = problem.trans_b == "T", problem.trans_a == "T"
    made = batched_gemm("gemm", b, a, c, (n, m, k), tiling, batch, a_t=turned[0], b_t=turned[1])
    return (made,), c
