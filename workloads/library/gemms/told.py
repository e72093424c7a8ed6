"""A GEMM kernel as a profiler names it, and the launches that stand for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.choices.choice import Problem

from .hopper_gemm import HopperGemm
from .launches import STAGED, Launch, Reduction, launches_of, staged_of
from .nvjet_gemm import nvjet_gemm
from .staged_gemm import StagedGemm
from .vector_dots import ATOMIC, LARGEK_ROWS, WARPS
from .xmma_gemm import xmma_gemm

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory, Tensor

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

    @property
    def launch(self) -> Launch:
        """The launch of a GEMM: z of the grid is parts of k in all rows of the sweep."""
        parts = self.grid[2]
        reduction: Reduction = "kernel" if self.summed else "serial" if parts > 1 else ""
        return Launch(self.name, self.grid, parts, reduction, self.registers, self.smem)


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
    told: Told, problem: Problem, memory: Memory, operands: tuple[Tensor, Tensor] | None = None
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM and its C, n x m (contiguous in m).

    ``operands``: A as m x k (``trans_a`` T) or k x m, B as n x k or k x n (``trans_b`` T); None:
    new ones. Raises WorkloadError for a kernel that has no template.
    """
    check_told(told, problem)
    return launches_of(told.launch, problem, memory, operands)


def check_told(told: Told, problem: Problem) -> None:
    """Raise WorkloadError for a kernel that has no template."""
    if told.name.startswith("nvjet"):
        told_hopper(told, problem)
    elif told.name.startswith("sm90_xmma"):
        xmma_gemm(told.name, problem, told.grid)
    elif told.name.startswith(STAGED):
        told_staged(told, problem)
    elif not told.name.startswith(tuple(WARPS)):
        raise WorkloadError(f"kernel {told.name[:60]}: no template for it")
    elif told.name.startswith(ATOMIC) and told.grid[0] != -(-problem.m // LARGEK_ROWS):
        raise WorkloadError(f"kernel {told.name[:60]}: no template for TBs that have not {LARGEK_ROWS} rows")


def told_staged(told: Told, problem: Problem) -> StagedGemm:
    """Return the GEMM of a kernel for Turing or Ampere; refuse names that ``staged_kernel`` does not know."""
    return staged_of(told.launch, problem)
