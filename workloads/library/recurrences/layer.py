"""A recurrent pass on the tensors of a network: its inputs, weights, outputs, and their gradients.

The kernels are those of ``rnn``. Outputs are the states, [steps * batch, H], a row a sequence, step after
step; of a pass in reverse the last step comes first. A pass of one kernel (``rnn_persistent``) takes rows
from the first to the last in either direction: its thread blocks (TBs) use the same ones. What a step makes
for itself is in the workspace of the call, where each step overwrites what the one before left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Access, Tensor

from .recurrent import GATES
from .rnn import KEPT, after_inputs, back_cell, cell_reads, check_pass, kept, many_steps, rows_of
from .rnn_cells import Field, bias_gradient, cell_kernel, clear, transpose
from .rnn_gemms import Gemms
from .rnn_persistent import SEQUENCES, UNITS, persistent_back, persistent_lstm

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from pysim.program.job import Kernel, Memory
    from pysim.workloads.library.moved import Made

    from .recurrent import Recurrent


@dataclass(frozen=True, slots=True)
class Weights:
    """Of inputs [G H, inputs], of states [G H, H], and both biases [1, 2 G H]; or their gradients."""

    ih: Tensor
    hh: Tensor
    bias: Tensor

    @property
    def all(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three."""
        return self.ih, self.hh, self.bias


@dataclass(slots=True)
class Launched:
    """Kernels of a call in the order of their launches: before its steps, of each step, after them.

    ``weights``: of the gradients of weights, after all others.
    """

    before: list[Kernel] = field(default_factory=list)
    steps: list[list[Kernel]] = field(default_factory=list)
    after: list[Kernel] = field(default_factory=list)
    weights: list[Kernel] = field(default_factory=list)

    @property
    def kernels(self) -> list[Kernel]:
        """All of them."""
        steps = (kernel for step in self.steps for kernel in step)
        return [*self.before, *steps, *self.after, *self.weights]


class Pass:
    """A layer of one direction: ``forward`` once, then ``backward`` once, if the pass is trained.

    ``y``: the outputs, after ``forward``; ``held``: what forward leaves for backward. ``dx`` and
    ``gradients``: after ``backward``.
    """

    dx: Tensor | None = None
    gradients: Weights | None = None

    def __init__(
        self,
        p: Recurrent,
        memory: Memory,
        x: Tensor,
        weights: Weights,
        *,
        reverse: bool = False,
        first: tuple[Tensor, ...] = (),
        out: Field | None = None,
        known: dict[Hashable, Made] | None = None,
    ) -> None:
        """Raise WorkloadError for operands that do not fit, and kernels without template.

        ``first``: the states before the first step (h, and c of an LSTM); cleared ones if none are given.
        ``out``: columns of a tensor that get the outputs, too, as where directions are side by side.
        ``known``: calls of GEMMs that passes share.
        """
        wanted = (p.batch * p.steps, p.into), (p.wide, p.into), (p.wide, p.hidden), (1, 2 * p.wide)
        given = [(each.rows, each.cols) for each in (x, *weights.all)]
        if list(wanted) != given or any(each.item != p.item for each in (x, *weights.all)):
            raise WorkloadError(f"rnn: inputs and weights of {given}: must be {list(wanted)} of {p.item} B")
        check_pass(p)
        many_steps(p, int(p.persistent))
        if p.persistent and out is not None:
            raise WorkloadError("rnn: outputs beside others: of a kernel for each step alone")
        batch, hidden, item, rows = p.batch, p.hidden, p.item, p.batch * p.steps
        self.p, self.memory, self.x, self.w, self.reverse = p, memory, x, weights, reverse
        self.gemms = Gemms(p, memory, workspace=True, known=known)
        self.turned = weights
        self.given, self.out = bool(first), out
        self.h0 = first[0] if first else memory.tensor("h0", batch, hidden, item)
        self.gates, self.held = x, list[Tensor]()
        if not p.persistent:
            self.y = memory.tensor("y", rows, hidden, item)
        if p.cell == "lstm":
            self.c = memory.tensor("c", rows + batch, hidden, item)
            self.c0 = first[1] if first else self.step(self.c, 0)
        if self.trained and KEPT[p.cell] and not p.persistent:
            self.reserve = memory.tensor("reserve", rows, KEPT[p.cell] * hidden, item)

    @property
    def trained(self) -> bool:
        """Whether what backward needs is kept."""
        return self.p.direction == "forward_backward"

    def step(self, whole: Tensor, number: int, many: int = 1) -> Tensor:
        """Return the rows of ``many`` steps."""
        return rows_of(whole, number, self.p.batch, many)

    def time(self, number: int) -> int:
        """Return which input the pass takes in a step."""
        return self.p.steps - 1 - number if self.reverse else number

    def state(self, number: int) -> Tensor:
        """Return the state before a step."""
        return self.step(self.y, self.time(number - 1)) if number else self.h0

    def cell(self, number: int) -> Tensor:
        """Return the cells of an LSTM before a step."""
        return self.step(self.c, number) if number else self.c0

    def forward(self) -> Launched:
        """Return the kernels forward."""
        p, memory = self.p, self.memory
        made = Launched()
        if not self.given:
            made.before.append(clear("clear_h", self.h0))
        if p.cell == "lstm" and not self.given:
            made.before.append(clear("clear_c", self.c0))
        if p.turned:
            pairs = [(w, memory.tensor("turned", w.cols, w.rows, w.item)) for w in (self.w.ih, self.w.hh)]
            made.before += [transpose("transpose", old, new) for old, new in pairs]
            self.turned = replace(self.w, ih=pairs[0][1], hh=pairs[1][1])
        kernels, self.gates = self.gemms.make("input", self.turned.ih, self.x)
        made.before += kernels
        if p.persistent:
            kept_states, states = persistent_lstm(p, self.w.hh, self.gates, memory)
            made.steps.append(kept_states)
            first = states.address + SEQUENCES * states.pitch
            self.y = Tensor("y", p.batch * p.steps, p.hidden, p.item, first)
            self.held = [self.gates, states]
        else:
            made.steps = [self._forward(number) for number in range(p.steps)]
            self.held = [self.y]
            if p.cell == "lstm":
                self.held.append(self.c)
            if self.trained and KEPT[p.cell]:
                self.held.append(self.reserve)
        return made

    def _forward(self, number: int) -> list[Kernel]:
        p, now, before = self.p, self.time(number), self.state(number)
        kernels, state = self.gemms.make("hidden", self.turned.hh, before)
        reads = cell_reads(p, state, self.step(self.gates, now), self.w.bias)
        writes = [Field(self.step(self.y, now))]
        if self.out is not None:
            writes.append(Field(self.step(self.out.tensor, now), self.out.col))
        if p.cell == "gru":
            reads.append(Field(before))
        if p.cell == "lstm":
            reads.append(Field(self.cell(number)))
            writes.append(Field(self.cell(number + 1)))
        if self.trained and KEPT[p.cell]:
            writes += kept(p, self.step(self.reserve, number))
        cell = cell_kernel(f"{p.cell}_cell", reads, writes, (p.batch, p.hidden), GATES[p.cell], p.cost)
        return [*kernels, cell]

    def backward(
        self,
        dy: Tensor,
        col: int = 0,
        into: Tensor | None = None,
        *,
        dh: Tensor | None = None,
        gradients: Weights | None = None,
    ) -> Launched:
        """Return the kernels backward.

        ``dy``: gradients of the outputs in its columns from ``col`` on. ``into``: where gradients of the
        inputs of another direction are, to which these are added. ``dh``: the gradient of the last state.
        ``gradients``: where those of the weights go, which somebody cleared; new memory if none are given.
        """
        p, memory = self.p, self.memory
        if not self.trained:
            raise WorkloadError(f"rnn: backward of a pass {p.direction}")
        made = Launched()
        if p.persistent:
            kernels, dgates = persistent_back(p, self.w.hh, self.gates, Field(self.step(dy, 0), col), memory)
            read = Access(dy, "read", partial(_own_units, dy.rows, col))
            kernels = [
                replace(k, accesses=(*k.accesses, read)) if k.name == "persistent_lstm_back" else k
                for k in kernels
            ]
            made.steps.append(kernels)
        else:
            dgates = memory.tensor("dgates", p.batch * p.steps, p.wide, p.item)
            made.steps = self._backward(Field(dy, col), dgates, dh)
        inputs, self.dx = self.gemms.make("input_back", self.w.ih, dgates, into)
        made.after = list(inputs)
        made.weights = self._weights(dgates, self.dx, gradients)
        return made

    def _backward(self, dy: Field, dgates: Tensor, last: Tensor | None) -> list[list[Kernel]]:
        p, made = self.p, []
        dh, dc = (self.memory.tensor(name, p.batch, p.hidden, p.item) for name in ("dh", "dc"))
        dh = last or dh
        for number in reversed(range(p.steps)):
            now = self.step(dgates, self.time(number))
            given = Field(self.step(dy.tensor, self.time(number)), dy.col), dh, dc
            cells = [self.cell(number + at) for at in (0, 1)] if p.cell == "lstm" else [dc, dc]
            reserve = self.step(self.reserve, number) if KEPT[p.cell] else now
            states = self.state(number), self.state(number + 1)
            cell = back_cell(p, given, reserve, states, (cells[0], cells[1]), now)
            kernels, dh = self.gemms.make("back", self.w.hh, now)
            made.append([cell, *kernels])
        return made

    def _weights(self, dgates: Tensor, dx: Tensor, wanted: Weights | None) -> list[Kernel]:
        """Return gradients of weights; of the state's, first and other steps add up in place."""
        p, gemms, many = self.p, self.gemms, self.p.steps - 1
        weights: list[Kernel] = []
        if wanted is None:
            wanted, dw = self._new_gradients()
            weights.append(clear("clear_dw", dw))
        kernels, made_ih = gemms.make("weights", self.x, dgates, wanted.ih)
        weights += kernels
        kernels, made_hh = gemms.make("weights_first", self.h0, self.step(dgates, self.time(0)), wanted.hh)
        weights += kernels
        if many:
            later = self.step(self.y, int(self.reverse), many), self.step(dgates, 1 - self.reverse, many)
            kernels, made_hh = gemms.make("weights_hidden", *later, wanted.hh)
            weights += kernels
        self.gradients = Weights(_first(made_ih, wanted.ih), _first(made_hh, wanted.hh), wanted.bias)
        sums = bias_gradient("bias_gradient", dgates, wanted.bias, GATES[p.cell], p.cost)
        return [*after_inputs(weights, dx), sums]

    def _new_gradients(self) -> tuple[Weights, Tensor]:
        """Return new memory for gradients of weights, and that of both matrices as one row."""
        p, memory = self.p, self.memory
        first = -(-p.wide * p.into * p.item // ALIGN) * ALIGN // p.item  # elements before those of states
        dw = memory.tensor("dw", 1, first + p.wide * p.hidden, p.item)
        dw_ih = Tensor("dw_ih", p.wide, p.into, p.item, dw.address)
        dw_hh = Tensor("dw_hh", p.wide, p.hidden, p.item, dw.address + first * p.item)
        return Weights(dw_ih, dw_hh, memory.tensor("db", 1, 2 * p.wide, p.item)), dw


def _first(made: Tensor, wanted: Tensor) -> Tensor:
    """Return a GEMM's result; of one whose parts of k are one below the other, the first."""
    return replace(wanted, address=made.address)


def _own_units(rows: int, col: int, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    zero, first = np.zeros_like(tbs), col + tbs * UNITS
    return np.stack([zero, zero + rows, first, first + UNITS], 1)
