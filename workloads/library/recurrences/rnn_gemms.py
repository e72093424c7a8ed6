"""GEMMs of a recurrent pass by role: told ones, those of cuBLAS on an H200, or those of another GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.workloads.library.choices.chooser import HOPPER, chosen
from pysim.workloads.library.gemms.launches import gemm, launches_of, predicted
from pysim.workloads.library.gemms.told import told_launches
from pysim.workloads.library.moved import Repeats

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory, Tensor

    from .recurrent import Recurrent


class Gemms:
    """The GEMMs of a pass; those of its steps are made once, and then on other tensors.

    ``workspace``: GEMMs of a role write where the one before did.
    """

    def __init__(self, p: Recurrent, memory: Memory, *, workspace: bool = False) -> None:
        self.p, self.memory, self.repeats = p, memory, Repeats(memory, workspace)

    def make(
        self, role: str, a: Tensor, b: Tensor, into: Tensor | None = None
    ) -> tuple[tuple[Kernel, ...], Tensor]:
        """Return the kernels of a role's GEMM, and its result; ``into``: where it goes."""
        return self.repeats.launches(role, (a, b), lambda: self._made(role, (a, b)), into)

    def _made(self, role: str, operands: tuple[Tensor, Tensor]) -> tuple[tuple[Kernel, ...], Tensor]:
        p, memory, problem = self.p, self.memory, self.p.problem(role)
        if role in p.kernels:
            return told_launches(p.kernels[role], problem, memory, operands)
        if p.device in HOPPER:
            return launches_of(predicted(chosen(problem), problem), problem, memory, operands)
        return gemm(
            problem.m,
            problem.n,
            problem.k,
            memory=memory,
            trans_a=problem.trans_a,
            trans_b=problem.trans_b,
            dtype=p.dtype,
            operands=operands,
            device=p.device,
        )
