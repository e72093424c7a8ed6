"""What a recurrent pass is: its cell, sizes and direction, the GEMMs in it, and which kernels it takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN
from pysim.workloads.library.arguments import (
    check_elements,
    check_names,
    check_sizes,
    check_type,
)
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.choices.chooser import DEVICES, HOPPER, MEASURED
from pysim.workloads.library.gemms.told import Told

from .rnn_cells import CELL, Cost

Pass = Literal["forward_inference", "forward_training", "forward_backward"]
PASSES = ("forward_inference", "forward_training", "forward_backward")
GATES = {"vanilla": 1, "gru": 3, "lstm": 4}
ITEM = {"fp32": 4, "fp16": 2}
ROLES = ("input", "hidden", "back", "input_back", "weights", "weights_hidden", "weights_first")
TURNED_HIDDEN = 1536  # units from which on weights are transposed
TURNED_BATCH = {
    "vanilla": 16,
    "gru": 32,
    "lstm": 64,
}  # batches from which on; all 82 shapes of the sweep agree
LANES = 16  # a persistent LSTM takes so many sequences at once
PERSISTENT = 1024  # units of a persistent LSTM at most


def least_batch(features: int, item: int) -> int:
    """Return of what a batch must be a multiple, so that rows of its steps begin at multiples of 256 B."""
    return ALIGN // math.gcd(ALIGN, features * item)


@dataclass(frozen=True)
class Recurrent:
    """A pass: ``cell`` of ``hidden`` units, ``batch`` sequences of ``steps``, and the kernels of its GEMMs.

    ``kernels``: by role, as the docstring of ``rnn`` names them; a role that is missing takes the kernel that
    cuBLAS would choose, which cuDNN follows in fp16 but not in fp32. ``inputs``: features of an input (0: as
    many as units). Raises WorkloadError for sizes that are not positive, unknown names, and states whose
    steps do not begin at multiples of 256 B.
    """

    cell: str
    hidden: int
    batch: int
    steps: int
    dtype: str
    direction: Pass
    kernels: Mapping[str, Told] = field(default_factory=dict)
    cost: Cost = CELL
    inputs: int = 0
    device: str = MEASURED
    stepwise: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no recurrent pass."""
        check_names("rnn", GATES, cell=self.cell)
        check_names("rnn", ITEM, dtype=self.dtype)
        check_names("rnn", PASSES, direction=self.direction)
        check_names("rnn", DEVICES, device=self.device)
        check_sizes("rnn", hidden=self.hidden, batch=self.batch, steps=self.steps)
        check_sizes("rnn", 0, inputs=self.inputs)
        check_type("rnn", Cost, cost=self.cost)
        check_type("rnn", Mapping, kernels=self.kernels)
        for role, told in self.kernels.items():
            check_names("rnn", ROLES, role=role)
            check_type("rnn", Told, **{f"kernels[{role!r}]": told})
        check_elements("rnn", batch_x_steps_x_gates=(self.batch, self.steps, self.wide + self.hidden))
        check_elements("rnn", batch_x_steps_x_inputs=(self.batch, self.steps, self.into))
        check_elements("rnn", gates_x_weights=(self.wide, self.into + self.hidden))
        if self.hidden % 32:
            raise WorkloadError(f"rnn: hidden = {self.hidden}: must be a multiple of 32")
        least = least_batch(self.hidden, self.item)
        if self.batch % least:
            raise WorkloadError(
                f"rnn: batch = {self.batch}: must be a multiple of {least} for hidden = {self.hidden} in"
                f" {self.dtype}: states begin at multiples of {ALIGN} B"
            )

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return ITEM[self.dtype]

    @property
    def into(self) -> int:
        """Features of an input."""
        return self.inputs or self.hidden

    @property
    def wide(self) -> int:
        """Gates times units."""
        return GATES[self.cell] * self.hidden

    @property
    def turned(self) -> bool:
        """Whether the weights are transposed first."""
        large = self.hidden >= TURNED_HIDDEN and self.batch >= TURNED_BATCH[self.cell]
        return large and self.direction != "forward_inference"

    @property
    def persistent(self) -> bool:
        """Whether one kernel runs all steps."""
        small = self.dtype == "fp16" and self.cell == "lstm" and self.hidden <= PERSISTENT
        return small and self.batch % LANES == 0 and self.device in HOPPER and not self.stepwise

    @property
    def flops(self) -> float:
        """FLOP of the GEMMs."""
        passes = 3 if "back" in self.direction else 1
        return 2.0 * self.wide * (self.into + self.hidden) * self.batch * self.steps * passes

    def problem(self, role: str) -> Problem:
        """Return the GEMM of a role."""
        wide, hidden, rows = self.wide, self.hidden, self.batch * self.steps
        forward = "N" if self.turned else "T"
        sizes = {
            "input": (wide, rows, self.into, forward, "N"),
            "hidden": (wide, self.batch, hidden, forward, "N"),
            "back": (hidden, self.batch, wide, "N", "N"),
            "input_back": (self.into, rows, wide, "N", "N"),
            "weights": (self.into, wide, rows, "N", "T"),
            "weights_hidden": (hidden, wide, max(1, rows - self.batch), "N", "T"),
            "weights_first": (hidden, wide, self.batch, "N", "T"),
        }
        return Problem(*sizes[role], self.dtype)
