"""Which kernel cuBLAS 13.1 launches for a GEMM on an H200."""

from __future__ import annotations

from pysim.errors import WorkloadError

from . import nvjet
from .choice import GemmChoice, checked

DEVICES = ("h200",)


def choose_gemm(
    m: int,
    n: int,
    k: int,
    *,
    trans_a: str = "N",
    trans_b: str = "N",
    dtype: str = "fp16",
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
    device : str
        ``h200``: choices of other devices were not measured.

    Raises
    ------
    WorkloadError
        For sizes, transposes, types and devices that are not known.
    """
    if device not in DEVICES:
        raise WorkloadError(f"library GEMM: device {device}: choices were measured on {', '.join(DEVICES)}")
    problem = checked(m, n, k, trans_a, trans_b, dtype)
    if problem.item != 2 or problem.alignment() != 8:
        what = f"{dtype} {m} x {n} x {k} {trans_a}{trans_b}"
        raise WorkloadError(f"library GEMM: {what}: only fp16 and bf16 with rows of multiples of 8 are known")
    return nvjet.choose(problem)
