"""What cuBLAS launches for a GEMM on an H200, as kernels: chosen by size, or as a profiler names it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from pysim.errors import WorkloadError
from pysim.workloads.library.choices.choice import GemmChoice, Problem, checked
from pysim.workloads.library.choices.chooser import DEVICES, HOPPER, MEASURED, chosen
from pysim.workloads.library.choices.cutlass import FEW_TILES
from pysim.workloads.library.choices.kernel_resources import resources
from pysim.workloads.library.memset import memset

from .gemm_by_cost import gemm_by_cost
from .gemm_launches import gemm_launches, split_k_sum
from .hopper_epilogue import Epilogue
from .hopper_gemm import NOT_WITHIN, Within
from .nvjet_gemm import nvjet_gemm
from .operands import after_reset
from .staged_gemm import StagedGemm, staged_gemm
from .staged_kernels import staged_kernel
from .tile_sum import tile_sum
from .vector_dots import vector_dots
from .xmma_gemm import xmma_gemm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.program.job import Kernel, Memory, Tensor

Reduction = Literal["", "serial", "kernel"]
Launches = tuple[tuple["Kernel", ...], "Tensor"]
_HALF_PARTS = re.compile(r"_b?f16_s1688gemm")  # parts of a split k are fp16 or bf16 where the name says C is
BESIDE = "memset", "split_k_sum", "tile_sum"  # kernels of a launch that are not its GEMM
STAGED = "sm80_xmma", "cutlass", "void cutlass"  # beginnings of names of kernels for Turing and Ampere


@dataclass(frozen=True, slots=True)
class Launch:
    """A GEMM kernel as a profiler reports it.

    ``grid``: TBs in x, y, z; ``split_k``: parts of k, added as ``reduction`` says: by a ``kernel``, by TBs
    one after another (``serial``). ``registers`` a thread, ``smem`` bytes a TB.
    """

    name: str
    grid: tuple[int, int, int]
    split_k: int
    reduction: Reduction
    registers: int
    smem: int

    @property
    def tbs(self) -> int:
        """TBs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def gemm(
    m: int,
    n: int,
    k: int,
    *,
    memory: Memory,
    trans_a: str = "N",
    trans_b: str = "N",
    dtype: str = "fp16",
    batch: int = 1,
    epilogue: Epilogue = "none",
    operands: Sequence[Tensor] | None = None,
    within: Within = NOT_WITHIN,
    device: str = MEASURED,
) -> Launches:
    """Return the kernels that cuBLAS launches for C[m, n] = op(A) op(B), as ``choose_gemm`` predicts, and C.

    Parameters
    ----------
    m, n, k : int
        Sizes in elements, BLAS terms (column-major).
    memory : Memory
        Where new tensors are allocated.
    trans_a, trans_b : str
        ``N`` or ``T``.
    dtype : str
        ``fp16``, ``bf16``, ``tf32`` or ``fp32``.
    batch : int
        Products of as many A and B, which lie one behind another; C too.
    epilogue : str
        ``none``, ``bias``, ``bias_relu`` or ``bias_gelu``. The kernel is that without one.
    operands : sequence of Tensor, optional
        A as m x k (``T``) or k x m (``N``), B as n x k (``N``) or k x n (``T``): rows are contiguous; and a
        bias, 1 x m. All are of ``memory``. C is n x m, n x 1 for one row (m = 1).
    within : pair of pairs of int
        Of A and B, where products are side by side in the rows of a wider operand: its columns and the
        first of them; 0, 0: products are one below the other.
    device : str
        As ``choose_gemm`` takes it; the only epilogue of Volta and Ampere is ``bias``.

    Raises
    ------
    WorkloadError
        For what ``choose_gemm`` refuses, and kernels that have no template.
    """
    problem = checked(m, n, k, trans_a, trans_b, dtype, batch)
    if epilogue not in get_args(Epilogue):
        raise WorkloadError(f"library GEMM: epilogue {epilogue!r}: must be {', '.join(get_args(Epilogue))}")
    if device in HOPPER:
        return launches_of(predicted(chosen(problem), problem), problem, memory, operands, epilogue, within)
    if device not in DEVICES:
        raise WorkloadError(f"library GEMM: device {device}: there are choices for {', '.join(DEVICES)}")
    if epilogue not in ("none", "bias"):
        raise WorkloadError(f"library GEMM: epilogue {epilogue}: not on {device}")
    return gemm_by_cost(problem, device, memory, operands, biased=epilogue == "bias", within=within)


def predicted(choice: GemmChoice, problem: Problem) -> Launch:
    """Return the launch of a choice; registers and shared memory are those of the kernel in the sweep."""
    registers, smem = resources(choice.name, problem.item)
    reduction: Reduction = "kernel" if choice.reduction == "kernel" else "serial" if choice.reduction else ""
    grid = choice.grid
    if choice.family == "sm80_xmma_gemm" and choice.split_k > 1:
        tiles = -(-problem.m // choice.tile[1]) * -(-problem.n // choice.tile[0])  # a name says n, then m
        reduction = "kernel" if tiles <= FEW_TILES else "serial"
    if choice.family.startswith("sm90") and "tilesize64x" in choice.name and problem.n > 64:
        grid = -(-grid[0] // 2), 2, 1
    return Launch(choice.name, grid, choice.split_k, reduction, registers, smem)


def launches_of(
    launch: Launch,
    problem: Problem,
    memory: Memory,
    operands: Sequence[Tensor] | None = None,
    epilogue: Epilogue = "none",
    within: Within = NOT_WITHIN,
) -> Launches:
    """Return the kernels of a launch, with what resets and adds its parts of k, and C, [batch *] n x m.

    Reports show the launch's name beside its main kernel (``Kernel.library``). Raises WorkloadError for a
    kernel that has no template, and for batches and epilogues but of ``nvjet``.
    """
    kernels, c = _launches_of(launch, problem, memory, operands, epilogue, within)
    beside = [kernel.name in BESIDE for kernel in kernels]
    named = (k if side else replace(k, library=launch.name) for k, side in zip(kernels, beside, strict=True))
    return tuple(named), c


def _launches_of(
    launch: Launch,
    problem: Problem,
    memory: Memory,
    operands: Sequence[Tensor] | None,
    epilogue: Epilogue,
    within: Within,
) -> Launches:
    if launch.name.startswith("nvjet"):
        made_of = nvjet_gemm(launch.name, problem, launch.tbs, launch.registers, launch.smem)
        return gemm_launches(replace(made_of, epilogue=epilogue, within=within), memory, operands)
    if within != NOT_WITHIN:
        raise WorkloadError(f"library GEMM: no template for {launch.name[:60]} within wider operands")
    staged = launch.name.startswith(STAGED)
    plain = epilogue == "none" or (epilogue == "bias" and staged)
    if not plain or (problem.batch > 1 and not launch.name.startswith("sm80_xmma")):
        raise WorkloadError(
            f"library GEMM: no template for {launch.name[:60]}, epilogue {epilogue}, batch {problem.batch}"
        )
    if launch.name.startswith("sm90_xmma"):
        hopper, cost = xmma_gemm(launch.name, problem, launch.grid)
        made, c = gemm_launches(hopper, memory, operands, cost)
        # a kernel that adds parts stands in for TBs that do; where tiles are many, few parts meet, and C
        # is the parts, one below the other
        many = hopper.split_k > 1 and hopper.tiles[0] * hopper.tiles[1] >= hopper.tbs
        return (made[:-1], made[-1].args[0]) if many else (made, c)
    if staged:
        return _staged(launch, problem, memory, operands, epilogue == "bias")
    return vector_dots(launch.name, problem, memory, operands, launch.grid, launch.registers, launch.smem)


def staged_of(launch: Launch, problem: Problem, *, biased: bool = False) -> StagedGemm:
    """Return the GEMM of a kernel for Turing or Ampere; refuse names that ``staged_kernel`` does not know."""
    tile, order, copy = staged_kernel(launch.name, launch.registers, launch.smem)
    half = problem.item == 2 and _HALF_PARTS.search(launch.name) is not None
    return StagedGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=tile,
        order=order,
        copy=copy,
        split_k=launch.split_k,
        reduction=launch.reduction if launch.split_k > 1 else "",
        parts=2 if half else 4,
        out=problem.item,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
        batch=problem.batch,
        biased=biased,
    )


def _staged(
    launch: Launch, problem: Problem, memory: Memory, operands: Sequence[Tensor] | None, biased: bool
) -> Launches:
    made = staged_of(launch, problem, biased=biased)
    if biased and operands is None:
        raise WorkloadError("library GEMM: a bias of FFMA and mma kernels is one of the operands")
    bias = list(operands or ())[2:]
    kernel, c = staged_gemm(made, memory, operands)
    if made.reduction == "":
        return (kernel,), c
    if made.reduction == "serial":
        turns = memory.tensor("turns", 1, 64, 4)
        return (memset(turns), after_reset(kernel, turns)), c
    if made.order == "xmma":
        tile = made.tile
        added, c = tile_sum(c, made.split_k, (tile.tm, tile.tn), tile.count, memory, bias)
    else:
        added, c = split_k_sum(c, made.split_k, memory, problem.item, bias)
    return (kernel, added), replace(c)
