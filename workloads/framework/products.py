"""Matrix products as PyTorch hands them to cuBLAS on an H200: from shapes to launches."""

from __future__ import annotations

from collections.abc import Sequence

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.workloads.library import batched, nvjet
from pysim.workloads.library.choice import GemmChoice, Problem
from pysim.workloads.library.gemm_launches import gemm_launches
from pysim.workloads.library.hopper_epilogue import Epilogue
from pysim.workloads.library.hopper_gemm import STEP, HopperGemm, Split

SPLITS: dict[str, Split] = {"coopA": "m", "coopB": "n", "": "none"}
RESULTS = 16384  # bytes of shared memory for results of two groups


def _said(problem: Problem) -> str:
    return f"product of {problem.m} x {problem.n} x {problem.k}"


def hopper_of(problem: Problem, choice: GemmChoice, epilogue: Epilogue = "none") -> HopperGemm:
    """Return a chosen ``nvjet`` kernel with its problem.

    Shared memory beside stages and results is 100 B and 24 a stage, to some bytes.
    """
    if choice.family != "nvjet":
        raise WorkloadError(
            f"product of {problem.m} x {problem.n} x {problem.k}: {choice.name} has no template"
        )
    return HopperGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=choice.tile[:2],
        stages=choice.stages,
        cluster=choice.cluster,
        tbs=choice.tbs,
        split=SPLITS[choice.cooperative],
        n_fast=choice.order == "h",
        split_k=choice.split_k,
        batch=problem.batch,
        epilogue=epilogue,
        smem=choice.stages * (sum(choice.tile[:2]) * STEP + 24) + RESULTS + 100,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
    )


def product(
    memory: Memory, problem: Problem, operands: Sequence[Tensor], epilogue: Epilogue = "none"
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the launches of a product and its result; ``operands``: A, B and a bias, in BLAS terms.

    Raises WorkloadError for kernels without a template.
    """
    if problem.alignment() * problem.item < 16 or problem.item != 2:
        raise WorkloadError(
            f"product of {problem.m} x {problem.n} x {problem.k}: rows of 16 B and 2 B items alone"
        )
    choice = batched.choose(problem) if problem.batch > 1 else nvjet.choose(problem)
    return gemm_launches(hopper_of(problem, choice, epilogue), memory, operands)
