"""A recurrent layer as a loop over steps in eager mode, forward and backward.

A step multiplies its state, and its input (``per-step``), adds it to each gate (``skip``), or takes rows of
one product of all inputs (``hoisted``). Backward each step adds its part to the gradients of weights, as
PyTorch's engine does; those of a hoisted product come after all steps. States of steps are rows of the
layer's output, so that no kernel stacks them. Under autocast all of a cell is of 16 bits: parameters are
converted once, inputs of fp32 for each product or cell, and states of fp32 that a cell begins with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Kernel, Tensor
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import HALF, converting, first_states, narrow, stored_item
from pysim.workloads.framework.tape import Tape, Value
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.moved import Moves, moved
from pysim.workloads.library.recurrences.layer import Launched
from pysim.workloads.library.recurrences.recurrent import Recurrent
from pysim.workloads.library.recurrences.rnn_cells import Field, cell_kernel, clear

from .cells import POINTWISE, Cell, Inputs

INPUTS = ("hoisted", "per-step", "skip")


@dataclass(frozen=True, slots=True)
class Way:
    """How a loop runs: ``input``: one of ``INPUTS``; ``fused``: a cell is one kernel."""

    input: str = "hoisted"
    fused: bool = True

    def __post_init__(self) -> None:
        """Refuse other inputs."""
        if self.input not in INPUTS:
            raise WorkloadError(f"input = {self.input}: must be {', '.join(INPUTS)}")


def taken(tape: Tape, x: Value, way: Way) -> Value:
    """Return inputs as a loop takes them: under autocast in 16 bits, unless each step converts its own.

    Raises WorkloadError where inputs of fp32 are added to gates, which would make all of a cell fp32.
    """
    if not tape.amp or x.tensor.item == HALF:
        return x
    if way.input == "skip":
        raise WorkloadError(
            "input = skip: under autocast: must be hoisted or per-step, as gates plus inputs of fp32 are fp32"
        )
    return x if way.input == "per-step" and not x.wanted else narrow(tape, x)


class Unrolled:
    """A layer of one direction: ``forward`` once, then ``backward`` once, if the tape is in training.

    ``y``: the outputs, [steps * batch, H]. After ``backward`` ``dx`` and ``found`` are gradients of inputs
    (if these want them) and of ``weights``.
    """

    def __init__(self, tape: Tape, p: Recurrent, x: Value, way: Way, *, reverse: bool = False) -> None:
        """Make new parameters; raise WorkloadError for inputs whose steps do not begin at 256 B."""
        memory, skip = tape.memory, way.input == "skip"
        kinds = 2 if p.cell == "lstm" else 1
        self.first = first_states(tape, x, p.batch, p.hidden, kinds) if way.fused else ()
        self.source = x.tensor if tape.amp and x.tensor.item != p.item else None  # whose rows a step converts
        if self.source is not None:
            x = Value(memory.tensor("x", x.tensor.rows, x.tensor.cols, p.item), wanted=False)
        self.tape, self.p, self.x, self.way, self.reverse = tape, p, x.tensor, way, reverse
        if skip and p.into != p.hidden:
            raise WorkloadError(f"input = skip: {p.into} inputs: must be as many as units, {p.hidden}")
        if p.batch * p.into * p.item % ALIGN:
            raise WorkloadError(f"batch = {p.batch}: inputs of a step are no multiple of {ALIGN} B")
        sizes = {
            "w_ih": (p.wide, p.into),
            "w_hh": (p.wide, p.hidden),
            "b_ih": (1, p.wide),
            "b_hh": (1, p.wide),
        }
        self.weights = {
            name: narrow(tape, tape.parameter(name, *size, stored_item(tape, p.item)))
            for name, size in sizes.items()
            if not skip or name.endswith("hh")
        }
        self.y = memory.tensor("y", p.batch * p.steps, p.hidden, p.item)
        states = self.first or tuple(memory.tensor(n, p.batch, p.hidden, p.item) for n in ("h0", "c0"))
        self.h0, self.c0 = states[0], states[-1]
        self.gates, self.dx = x.tensor, None if not x.wanted else memory.tensor("dx", *self._like(x.tensor))
        self.cells: list[Cell] = []
        self.found: dict[str, Tensor] = {}

    @property
    def shared(self) -> tuple[Tensor | None, ...]:
        """What kernels use that may run in another stream than those which make it."""
        return self.y, self.h0, self.c0, self.dx

    @staticmethod
    def _like(tensor: Tensor) -> tuple[int, int, int]:
        return tensor.rows, tensor.cols, tensor.item

    def rows(self, whole: Tensor, number: int) -> Tensor:
        """Return the rows of the input that the pass takes in a step."""
        many, time = self.p.batch, self.p.steps - 1 - number if self.reverse else number
        return Tensor(whole.name, many, whole.cols, whole.item, whole.address + time * many * whole.pitch)

    def captured(self, run: Callable[[], object]) -> list[Kernel]:
        """Return what is launched, which is taken from the tape."""
        first = len(self.tape.kernels)
        run()
        taken = self.tape.kernels[first:]
        del self.tape.kernels[first:]
        return taken

    def product(self, side: str, x: Tensor) -> Tensor:
        """Launch a product with a weight; a bias is added to it where the cell does not add it."""
        p, w = self.p, self.weights[f"w_{side}"].tensor
        bias = () if self.way.fused else (self.weights[f"b_{side}"].tensor,)
        return op.mm(self.tape, p.dtype, (p.wide, x.rows, w.cols), "TN", (w, x, *bias))

    def forward(self) -> Launched:
        """Return the kernels forward."""
        made = Launched([] if self.first else [clear("clear_h", self.h0)])
        if self.p.cell == "lstm" and not self.first:
            made.before.append(clear("clear_c", self.c0))
        if self.way.input == "hoisted":

            def hoisted() -> None:
                self.gates = self.product("ih", self.x)

            made.before += self.captured(hoisted)
        made.steps = [self._forward(number) for number in range(self.p.steps)]
        return made

    def _forward(self, number: int) -> list[Kernel]:
        p, memory, cells = self.p, self.tape.memory, self.cells
        before = self.rows(self.y, number - 1) if number else self.h0
        c = cells[-1].c if number else self.c0
        results = self.rows(self.y, number), memory.tensor("c", p.batch, p.hidden, p.item)

        def run() -> None:
            gates = self.rows(self.gates, number)
            if self.source is not None:
                self.tape.launch([converting(self.rows(self.source, number), gates)])
            if self.way.input == "per-step":
                gates = self.product("ih", gates)
            state, skip = self.product("hh", before), self.way.input == "skip"
            biases = [w.tensor for name, w in self.weights.items() if name.startswith("b_")]
            given = Inputs(gates, state, tuple(biases if self.way.fused else ()), before, c, skip)
            trained, size = self.tape.training, (p.batch, p.hidden)
            cell = Cell.of(p.cell, size, given, results, memory, fused=self.way.fused, trained=trained)
            self.cells.append(cell)
            self.tape.launch(cell.forward())

        return self.captured(run)

    def backward(self, dy: Tensor, into: Tensor | None = None) -> Launched:
        """Return the kernels backward, of gradients ``dy`` of the outputs.

        ``into``: gradients of the inputs of another direction, to which these are added.
        """
        p, made = self.p, Launched()
        dgates = self.tape.memory.tensor("dgates", p.batch * p.steps, p.wide, p.item)
        states: list[Tensor | None] = [None, None]
        for number in reversed(range(p.steps)):
            made.steps.append(self.captured(lambda n=number: self._back(n, dy, dgates, states)))  # type: ignore[misc]
        if self.way.input == "hoisted":
            made.after += self.captured(lambda: self._hoisted_back(dgates))
        dx = self.dx
        if into is not None and dx is not None:
            launched = memory_ops.add(self.tape.memory, into, dx)
            made.after += launched.kernels
            self.dx = launched.outputs[0]
        return made

    def _back(self, number: int, dy: Tensor, dgates: Tensor, states: list[Tensor | None]) -> None:
        """Launch a step backward; ``states``: gradients of the states after it, then before it."""
        p, tape, cell = self.p, self.tape, self.cells[number]
        dh, dc = states
        given, now = self.rows(dy, number), self.rows(dgates, number)
        total = given if dh is None else tape.run(memory_ops.add(tape.memory, given, dh))
        kernels, own, passed = cell.backward(total, dc, now)
        tape.launch(kernels)
        states[:] = [None, passed if p.cell == "lstm" else None]
        if number:  # the first state has no gradient
            w = self.weights["w_hh"].tensor
            dh = op.mm(tape, p.dtype, (p.hidden, p.batch, p.wide), "NN", (w, own))
            states[0] = tape.run(memory_ops.add(tape.memory, passed, dh)) if p.cell == "gru" else dh
        self._collect("w_hh", op.mm(tape, p.dtype, (p.hidden, p.wide, p.batch), "NT", (cell.given.h, own)))
        sums = op.column_sums(tape, own)
        self._collect("b_hh", sums)
        if self.way.input == "per-step":
            self._inputs_back(self.rows(self.x, number), now, number)
            self._collect("b_ih", sums if own is now else op.column_sums(tape, now))
        if self.way.input == "skip" and self.dx is not None:
            many = [Field(now, g * p.hidden) for g in range(p.wide // p.hidden)]
            size, made = (p.batch, p.hidden), [Field(self.rows(self.dx, number))]
            tape.launch([cell_kernel("sum_gates", many, made, size, 0, POINTWISE)])

    def _hoisted_back(self, dgates: Tensor) -> None:
        self._inputs_back(self.x, dgates, None)
        self._collect("b_ih", op.column_sums(self.tape, dgates))

    def _inputs_back(self, x: Tensor, dgates: Tensor, number: int | None) -> None:
        """Launch the gradients of inputs, of a step or (none) of all, and of their weight."""
        p, tape, w = self.p, self.tape, self.weights["w_ih"].tensor
        if self.dx is not None:
            first = len(tape.kernels)
            made = op.mm(tape, p.dtype, (p.into, x.rows, p.wide), "NN", (w, dgates))
            place = self.dx if number is None else self.rows(self.dx, number)
            places = Moves([(made, place)])
            tape.kernels[first:] = [moved(kernel, places) for kernel in tape.kernels[first:]]
        self._collect("w_ih", op.mm(tape, p.dtype, (p.into, p.wide, x.rows), "NT", (x, dgates)))

    def _collect(self, name: str, found: Tensor) -> None:
        """Add to the gradient of a weight."""
        before = self.found.get(name)
        if before is not None:
            found = self.tape.run(memory_ops.add(self.tape.memory, before, found))
        self.found[name] = found
