"""GEMM kernels of Volta and Ampere: the tile of the library that costs least (``kernels.gemm_choice``).

Which kernel cuBLAS takes on these GPUs was not recorded. Times agree with DeepBench's 320 GEMMs on a V100
(docs/accuracy.md); on an A100 tiles of CUTLASS stand in for cuBLAS's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, get_args

from pysim.errors import WorkloadError
from pysim.machine.system import resolve
from pysim.workloads.kernels import gemm_choice
from pysim.workloads.kernels.gemm import adds_to_c
from pysim.workloads.kernels.machine_hints import MachineHints

from .choice import GemmChoice, Problem

if TYPE_CHECKING:
    from pysim.workloads.kernels.gemm_choice import AnyTiling

BF16_FROM = (8, 0)  # compute capability from which on tensor cores take bf16
DEVICES = ("titan_v", "v100", "v100_32gb", "a100")


@lru_cache(maxsize=8)
def hints_of(device: str) -> MachineHints:
    """Return what the library knows of a device."""
    return MachineHints.of(resolve(device))


def has_bf16(device: str) -> bool:
    """Whether the tensor cores of a device take bf16."""
    return hints_of(device).compute_capability >= BF16_FROM


def tiling_of(problem: Problem, device: str, *, split: bool = True) -> AnyTiling:
    """Return the tile of a GEMM; ``C`` and its operands are row-major there, so rows are the problem's n.

    ``split``: whether K may be. bf16 has the tiles of fp16 from Ampere on. Raises WorkloadError for a type
    without tiles.
    """
    hints = hints_of(device)
    types = (*get_args(gemm_choice.Dtype), *(("bf16",) if has_bf16(device) else ()))
    if problem.dtype not in types:
        raise WorkloadError(
            f"library GEMM: {problem.dtype} on {device}: there are tiles of {', '.join(types)}"
        )
    return gemm_choice.choose_tiling(
        problem.n * problem.batch,  # the library takes a batch for more rows
        problem.m,
        problem.k,
        "fp32" if problem.dtype == "fp32" else "fp16",
        a_t=problem.trans_b == "T",
        b_t=problem.trans_a == "T",
        hints=hints,
        split=split and problem.batch == 1,
    )


def choose(problem: Problem, device: str) -> GemmChoice:
    """Return the kernel of a GEMM on one of ``DEVICES``."""
    tiling = tiling_of(problem, device)
    x, y, z = tiling.grid(problem.n, problem.m, problem.k)
    name, split = tiling.library, tiling.split_k
    return GemmChoice(
        name,
        name.rpartition("_")[0],
        (tiling.tn, tiling.tm, tiling.tk),
        tiling.stages,
        split_k=split,
        reduction="" if split == 1 else "update" if adds_to_c(tiling) else "serial",
        grid=(x, y, z if problem.batch == 1 else problem.batch),
        reasons=(
            "of the library's tiles it has the least analytic cost on this GPU",
            "what the library takes was not recorded on this GPU",
        ),
    )
