"""Cells of recurrent layers, forward and backward: one kernel, or each operation of a gate its own kernel.

One kernel is PyTorch's fused cell (``_thnn_fused_lstm_cell``, ``_thnn_fused_gru_cell``), for which cuDNN's
stands in. Else they are those of ``nn.LSTMCell`` and ``nn.GRUCell`` written out in Python and run in eager
mode; backward come the gradients of these operations, and what joins the gradients of gates. A cell writes
the gradients of both products of its gates, which are one but of a GRU with its own kernels, whose candidate
gates the product of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pysim.program.job import Kernel, Memory, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.library.recurrences.recurrent import GATES
from pysim.workloads.library.recurrences.rnn import KEPT
from pysim.workloads.library.recurrences.rnn_cells import CELL, Cost, Field, cell_kernel

FUSED = stand_in("cuDNN's cell, for PyTorch's fused one")
EAGER = stand_in("vectorized_elementwise_kernel, with an element a thread", measured=False)
POINTWISE = Cost(begin=24, access=4, gate=8, wait=(20, 40))
FUNCTIONS = ("sigmoid", "tanh", "sigmoid_backward", "tanh_backward")  # with exponentials and divisions


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a cell reads: ``gates``: products of its input, or (``skip``) the input, which each gate adds.

    ``state``: the product of its state; ``biases``: those that a fused cell adds; ``h``, ``c``: the states
    before the step.
    """

    gates: Tensor
    state: Tensor
    biases: tuple[Tensor, ...]
    h: Tensor
    c: Tensor
    skip: bool


@dataclass(slots=True)
class Cell:
    """A cell of ``hidden`` units in a step: ``forward``, then ``backward`` where it is trained."""

    kind: str
    hidden: int
    batch: int
    given: Inputs
    y: Tensor
    c: Tensor
    memory: Memory
    fused: bool
    trained: bool
    kernels: list[Kernel]
    kept: dict[str, Tensor]

    @classmethod
    def of(
        cls, kind: str, size: tuple[int, int], given: Inputs, results: tuple[Tensor, Tensor], memory: Memory,
        *, fused: bool, trained: bool,
    ) -> Cell:  # fmt: skip
        """Return a cell; ``size``: batch and units; ``results``: the states after the step."""
        batch, hidden = size
        return cls(kind, hidden, batch, given, *results, memory, fused, trained, [], {})

    def forward(self) -> list[Kernel]:
        """Return the kernels that make the states after the step."""
        steps = {"lstm": self._lstm, "gru": self._gru, "vanilla": self._vanilla}
        return self._taken(self._fused if self.fused else steps[self.kind])

    def backward(self, dh: Tensor, dc: Tensor | None, dgates: Tensor) -> tuple[list[Kernel], Tensor, Tensor]:
        """Return kernels, the gradient of the state's product, and what passes by it to the states before.

        ``dgates``: where the gradient of the gates' product goes. What passes is that of ``c`` of an LSTM,
        and of ``h`` of a GRU; a vanilla cell has none.
        """
        steps = {"lstm": self._lstm_back, "gru": self._gru_back, "vanilla": self._vanilla_back}
        found: list[Tensor] = []

        def run() -> None:
            found.extend((self._fused_back if self.fused else steps[self.kind])(dh, dc, dgates))

        kernels = self._taken(run)
        return kernels, found[0], found[1]

    def _taken(self, run: Callable[[], None]) -> list[Kernel]:
        self.kernels = []
        run()
        return self.kernels

    def gate(self, tensor: Tensor, number: int) -> Field:
        """Return a gate's columns of a product; with ``skip`` all gates read one input."""
        one = self.given.skip and tensor is self.given.gates
        return Field(tensor, 0 if one else number * self.hidden)

    def make(self, name: str, *reads: Field | Tensor, into: Field | None = None) -> Tensor:
        """Launch an operation on [batch, units]; return its result, a new tensor or that of ``into``."""
        fields = [each if isinstance(each, Field) else Field(each) for each in reads]
        target = into or Field(self.memory.tensor(name, self.batch, self.hidden, self.y.item))
        self._launch(name, fields, [target], int(name in FUNCTIONS))
        return target.tensor

    def _launch(self, name: str, reads: Sequence[Field], writes: Sequence[Field], gates: int) -> None:
        kernel = cell_kernel(name, reads, writes, (self.batch, self.hidden), gates, POINTWISE)
        self.kernels.append(replace(kernel, library=EAGER))

    def _joined(self, parts: Sequence[Tensor], into: Tensor) -> Tensor:
        """Put gradients of gates side by side."""
        targets = [Field(into, number * self.hidden) for number in range(len(parts))]
        self._launch("cat", [Field(part) for part in parts], targets, 0)
        return into

    def _reserve(self) -> list[Field]:
        """Return what a fused cell keeps for its gradient."""
        many = KEPT[self.kind] if self.trained else 0
        if many and "reserve" not in self.kept:
            self.kept["reserve"] = self.memory.tensor("reserve", self.batch, many * self.hidden, self.y.item)
        return [Field(self.kept["reserve"], number * self.hidden) for number in range(many)]

    def _fused(self) -> None:
        x, many = self.given, GATES[self.kind]
        reads = [self.gate(each, g) for each in (x.state, x.gates) for g in range(many)]
        reads += [Field(bias, g * self.hidden, shared=True) for bias in x.biases for g in range(many)]
        writes = [Field(self.y)]
        if self.kind == "gru":
            reads.append(Field(x.h))
        if self.kind == "lstm":
            reads.append(Field(x.c))
            writes.append(Field(self.c))
        reads = list(dict.fromkeys(reads))
        kernel = cell_kernel(
            f"{self.kind}_cell", reads, [*writes, *self._reserve()], (self.batch, self.hidden), many, CELL
        )
        self.kernels.append(replace(kernel, library=FUSED))

    def _fused_back(self, dh: Tensor, dc: Tensor | None, dgates: Tensor) -> tuple[Tensor, Tensor]:
        x, many, passed = self.given, GATES[self.kind], self.memory.tensor("passed", *self._size())
        reads, writes = [Field(dh), *self._reserve()], [Field(dgates, g * self.hidden) for g in range(many)]
        if self.kind == "vanilla":
            reads.append(Field(self.y))
        if self.kind == "gru":
            reads.append(Field(x.h))
        if self.kind == "lstm":
            reads += [Field(x.c), Field(self.c), *([] if dc is None else [Field(dc)])]
        if self.kind != "vanilla":
            writes.append(Field(passed))
        size = self.batch, self.hidden
        kernel = cell_kernel(f"{self.kind}_cell_back", reads, writes, size, many, CELL)
        self.kernels.append(replace(kernel, library=FUSED))
        return dgates, passed

    def _size(self) -> tuple[int, int, int]:
        return self.batch, self.hidden, self.y.item

    def _lstm(self) -> None:
        x, k = self.given, self.kept
        gates = self.memory.tensor("gates", self.batch, 4 * self.hidden, self.y.item)
        both = [self.gate(each, g) for each in (x.gates, x.state) for g in range(4)]
        self._launch("add", list(dict.fromkeys(both)), [Field(gates, g * self.hidden) for g in range(4)], 0)
        for name, number, function in (
            ("i", 0, "sigmoid"), ("f", 1, "sigmoid"), ("g", 2, "tanh"), ("o", 3, "sigmoid")
        ):  # fmt: skip
            k[name] = self.make(function, self.gate(gates, number))
        kept, new = self.make("mul", k["f"], x.c), self.make("mul", k["i"], k["g"])
        self.make("add", kept, new, into=Field(self.c))
        k["tanh"] = self.make("tanh", self.c)
        self.make("mul", k["o"], k["tanh"], into=Field(self.y))

    def _lstm_back(self, dh: Tensor, dc: Tensor | None, dgates: Tensor) -> tuple[Tensor, Tensor]:
        x, k = self.given, self.kept
        do, dt = self.make("mul", dh, k["tanh"]), self.make("mul", dh, k["o"])
        found = self.make("tanh_backward", dt, k["tanh"])
        dc = found if dc is None else self.make("add", dc, found)
        di, dg = self.make("mul", dc, k["g"]), self.make("mul", dc, k["i"])
        df, passed = self.make("mul", dc, x.c), self.make("mul", dc, k["f"])
        given = (("i", di, "sigmoid"), ("f", df, "sigmoid"), ("g", dg, "tanh"), ("o", do, "sigmoid"))
        parts = [self.make(f"{function}_backward", each, k[name]) for name, each, function in given]
        return self._joined(parts, dgates), passed

    def _gru(self) -> None:
        x, k = self.given, self.kept
        for number, name in enumerate("rz"):
            total = self.make("add", self.gate(x.gates, number), self.gate(x.state, number))
            k[name] = self.make("sigmoid", total)
        gated = self.make("mul", k["r"], self.gate(x.state, 2))
        k["n"] = self.make("tanh", self.make("add", self.gate(x.gates, 2), gated))
        k["less"] = self.make("sub", x.h, k["n"])
        self.make("add", k["n"], self.make("mul", k["z"], k["less"]), into=Field(self.y))

    def _gru_back(self, dh: Tensor, dc: Tensor | None, dgates: Tensor) -> tuple[Tensor, Tensor]:
        x, k = self.given, self.kept
        dz, passed = self.make("mul", dh, k["less"]), self.make("mul", dh, k["z"])
        dn = self.make("add", dh, self.make("neg", passed))
        inner = self.make("tanh_backward", dn, k["n"])
        dr, state = self.make("mul", inner, self.gate(x.state, 2)), self.make("mul", inner, k["r"])
        dz, dr = self.make("sigmoid_backward", dz, k["z"]), self.make("sigmoid_backward", dr, k["r"])
        self._joined([dr, dz, inner], dgates)
        own = self.memory.tensor("dstate", self.batch, 3 * self.hidden, self.y.item)
        return self._joined([dr, dz, state], own), passed

    def _vanilla(self) -> None:
        total = self.make("add", self.given.gates, self.given.state)
        self.make("relu", total, into=Field(self.y))

    def _vanilla_back(self, dh: Tensor, dc: Tensor | None, dgates: Tensor) -> tuple[Tensor, Tensor]:
        made = self.make("relu_backward", dh, self.y, into=Field(dgates))
        return made, made
