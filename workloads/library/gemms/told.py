"""A GEMM kernel as a profiler names it, and the launches that stand for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.choices.choice import Problem

from .gemm_launches import gemm_launches, split_k_sum
from .hopper_gemm import HopperGemm
from .launches import Launch, launches_of
from .nvjet_gemm import nvjet_gemm
from .staged_gemm import StagedGemm, staged_gemm
from .staged_kernels import staged_kernel
from .vector_dots import ATOMIC, LARGEK_ROWS, WARPS

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory, Tensor

STAGED = ("sm80_xmma", "cutlass")
# most TBs of a grid, registers of a thread, shared memory of a TB (B): CUDA's, compute capability 9.0
GRID, REGISTERS, SMEM = (2**31 - 1, 65535, 65535), 255, 232448


def _within(number: object, least: int, most: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and least <= number <= most


@dataclass(frozen=True, slots=True)
class Told:
    """A launch as a profiler reports it.

    ``grid``: TBs in x, y and z; ``registers`` a thread; ``smem`` bytes a TB; ``summed``: a kernel of its own
    adds the parts of a split K.
    """

    name: str
    grid: tuple[int, int, int]
    registers: int
    smem: int
    summed: bool = False

    def __post_init__(self) -> None:
        """Refuse names that are no text; grids, registers and bytes beyond CUDA's limits."""
        if not isinstance(self.name, str):
            raise WorkloadError(f"kernel {self.name!r:.60}: its name must be text")
        grid = self.grid if isinstance(self.grid, tuple) else ()
        if len(grid) != 3 or not all(map(_within, grid, (1, 1, 1), GRID)):
            raise WorkloadError(
                f"kernel {self.name[:60]}: grid {self.grid!r:.60}: must be three positive sizes,"
                f" at most {'x'.join(map(str, GRID))}"
            )
        if not _within(self.registers, 1, REGISTERS) or not _within(self.smem, 0, SMEM):
            raise WorkloadError(
                f"kernel {self.name[:60]}: {self.registers!r:.20} registers, {self.smem!r:.20} B: must be"
                f" 1 to {REGISTERS} and 0 to {SMEM}"
            )

    @property
    def tbs(self) -> int:
        """TBs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


def told_of(text: str) -> Told:
    """Read ``name|grid|registers|shared memory``, and ``|sum`` where a kernel adds the parts of K.

    Raises WorkloadError for other text.

    >>> told_of("nvjet_sm90_hsh_64x16_64x16_2x1_v_bz_TNT|2x64x1|168|180692").grid
    (2, 64, 1)
    """
    match = re.fullmatch(r"(\S+)\|(\d+)x(\d+)x(\d+)\|(\d+)\|(\d+)(\|sum)?", text)
    if match is None:
        raise WorkloadError(f"kernel {text[:60]!r}: must be name|grid|registers|shared memory[|sum]")
    x, y, z, registers, smem = (int(match[number]) for number in range(2, 7))
    return Told(match[1], (x, y, z), registers, smem, match[7] is not None)


def told_hopper(told: Told, problem: Problem) -> HopperGemm:
    """Return the GEMM of an ``nvjet`` kernel; refuse other names."""
    return nvjet_gemm(told.name, problem, told.tbs, told.registers, told.smem)


def told_launches(
    told: Told, problem: Problem, memory: Memory, operands: tuple[Tensor, Tensor]
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM and its C, n x m (contiguous in m).

    ``operands``: A as m x k (``trans_a`` T) or k x m, B as n x k or k x n (``trans_b`` T). Raises
    WorkloadError for a kernel that has no template.
    """
    if told.name.startswith("nvjet"):
        return gemm_launches(told_hopper(told, problem), memory, operands)
    check_told(told, problem)
    if not told.name.startswith(STAGED):
        parts = told.grid[2]
        launch = Launch(told.name, told.grid, parts, "serial" if parts > 1 else "", told.registers, told.smem)
        return launches_of(launch, problem, memory, operands)
    gemm = told_staged(told, problem)
    kernel, c = staged_gemm(gemm, memory, operands)
    if gemm.reduction != "kernel":
        return (kernel,), c
    added, c = split_k_sum(c, gemm.split_k, memory, gemm.out)
    return (kernel, added), c


def check_told(told: Told, problem: Problem) -> None:
    """Raise WorkloadError for a kernel that has no template."""
    if told.name.startswith("nvjet"):
        told_hopper(told, problem)
    elif told.name.startswith(STAGED):
        told_staged(told, problem)
    elif not told.name.startswith(tuple(WARPS)):
        raise WorkloadError(f"kernel {told.name[:60]}: no template for it")
    elif told.name.startswith(ATOMIC) and told.grid[0] != -(-problem.m // LARGEK_ROWS):
        raise WorkloadError(f"kernel {told.name[:60]}: no template for TBs that have not {LARGEK_ROWS} rows")


def told_staged(told: Told, problem: Problem) -> StagedGemm:
    """Return the GEMM of a kernel for Turing or Ampere; refuse names that ``staged_kernel`` does not know.

    z of the grid is parts of k in all rows of the sweep.
    """
    tile, order, copy = staged_kernel(told.name, told.registers, told.smem)
    parts = told.grid[2]
    return StagedGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=tile,
        order=order,
        copy=copy,
        split_k=parts,
        reduction="" if parts == 1 else "kernel" if told.summed else "serial",
        out=problem.item,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
    )
