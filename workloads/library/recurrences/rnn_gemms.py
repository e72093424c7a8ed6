"""GEMMs of a recurrent pass by role: told ones, those of cuBLAS on an H200, or those of another GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.workloads.library.choices.chooser import HOPPER, chosen
from pysim.workloads.library.gemms.launches import gemm, launches_of, predicted
from pysim.workloads.library.gemms.told import told_launches
from pysim.workloads.library.moved import Launches, Made, Repeats

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pysim.program.job import Kernel, Memory, Tensor

    from .recurrent import Recurrent


class Gemms:
    """The GEMMs of a pass; those of its steps are made once, and then on other tensors.

    ``workspace``: GEMMs of a role write where the one before did. ``known``: what other passes made.
    """

    def __init__(
        self,
        p: Recurrent,
        memory: Memory,
        *,
        workspace: bool = False,
        known: dict[Hashable, Made] | None = None,
    ) -> None:
        self.p, self.memory = p, memory
        self.repeats = Repeats(memory, workspace, {} if known is None else known)

    def make(
        self, role: str, a: Tensor, b: Tensor, into: Tensor | None = None
    ) -> tuple[tuple[Kernel, ...], Tensor]:
        """Return the kernels of a role's GEMM, and its result; ``into``: where it goes."""
        key = self.p.problem(role), self.p.kernels.get(role), self.p.device
        kernels, (result,) = self.repeats.call(
            key, (a, b), lambda: self._made(role, (a, b)), name=role, into=into
        )
        return tuple(kernels), result

    def _made(self, role: str, operands: tuple[Tensor, Tensor]) -> Launches:
        kernels, result = self._launched(role, operands)
        return kernels, (result,)

    def _launched(self, role: str, operands: tuple[Tensor, Tensor]) -> tuple[tuple[Kernel, ...], Tensor]:
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
