"""Which kernel cuBLAS launches for a GEMM: on an H200 as version 13.1 was seen to, else by analytic cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from pysim.errors import WorkloadError

from . import batched, by_cost, nvjet, odd, small, tiled
from .choice import GemmChoice, Problem, checked

MEASURED = "h200"  # where choices were recorded
ALIKE = "h100"  # has the same SMs, and takes the same kernels in h100-networks
HOPPER = (MEASURED, ALIKE)
DEVICES = (*HOPPER, *by_cost.DEVICES)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Everything in the rule that was fitted to rows, not read off them."""

    nvjet: dict[str, float] = field(default_factory=nvjet.constants)
    tiled: tiled.Rules = tiled.ALL


ALL = Fitted()


def choose_gemm(
    m: int,
    n: int,
    k: int,
    *,
    trans_a: str = "N",
    trans_b: str = "N",
    dtype: str = "fp16",
    batch: int = 1,
    device: str = "h200",
) -> GemmChoice:
    """Return the kernel that the library launches for C[m, n] = op(A)[m, k] op(B)[k, n].

    Parameters
    ----------
    m, n, k : int
        Sizes in elements, BLAS terms (column-major); rows of A, B and C are not padded.
    trans_a, trans_b : str
        ``N`` or ``T``. A linear layer of PyTorch is (outputs, tokens, inputs, T, N).
    dtype : str
        ``fp16``, ``bf16``, ``tf32`` (fp32 data, TF32 allowed) or ``fp32``.
    batch : int
        Products of as many A and B, which lie one behind another.
    device : str
        ``h200``, where choices were recorded, ``h100``, which is taken to choose alike, or one of Volta or
        Ampere (``by_cost``).

    Raises
    ------
    WorkloadError
        For sizes, transposes, types and devices that are not known.
    """
    if device not in DEVICES:
        raise WorkloadError(f"library GEMM: device {device}: there are choices for {', '.join(DEVICES)}")
    problem = checked(m, n, k, trans_a, trans_b, dtype, batch)
    return chosen(problem) if device in HOPPER else by_cost.choose(problem, device)


def chosen(problem: Problem) -> GemmChoice:
    """Return the kernel of a problem on an H200, whose sizes were checked."""
    if problem.batch > 1:
        return batched.choose(problem)
    return small.choose(problem) or tiled_choice(problem)


def tiled_choice(problem: Problem, fitted: Fitted = ALL) -> GemmChoice:
    """Return the kernel of a problem that no kernel for vectors or few columns takes.

    Parameters
    ----------
    problem : Problem
        The GEMM.
    fitted : Fitted
        Constants, others than the package's to judge how well they forecast.
    """
    if problem.item == 4:
        return tiled.choose(problem, fitted.tiled)
    if problem.alignment() == 8:
        return nvjet.choose(problem, fitted.nvjet)
    return odd.choose(problem)
