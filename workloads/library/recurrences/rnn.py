"""A recurrent pass as cuDNN runs it on an H200: one layer, one direction, kernels as a profiler names them.

Forward: one GEMM multiplies the inputs of all steps (``input``). A step is a GEMM of the state (``hidden``)
and a pointwise cell. Large passes transpose both weights first. Backward: a step is the gradient of the cell
and a GEMM (``back``); after all steps come the gradient of the inputs (``input_back``) and of the weights:
of the input (``weights``), of the state but for the first step (``weights_hidden``), of the first step
(``weights_first``), and the sums of the biases. LSTMs of at most 1,024 units in fp16 with batches of
multiples of 16 run all steps in one kernel (``rnn_persistent``).

All tensors are row-major: states [batch, H], gates [batch, G H], weights [G H, H]. Kernels are ordered by
what they read and write, as in a captured CUDA graph: GEMMs of weights run beside each other. ``layer`` has
passes whose operands are those of a network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pysim.errors import WorkloadError
from pysim.program.job import Access, Job, Kernel, Memory, Tensor
from pysim.workloads.library.arguments import MOST_STEPS, check_sizes, check_type
from pysim.workloads.library.gemms.operands import first_element
from pysim.workloads.library.gemms.told import check_told

from .recurrent import GATES, Recurrent
from .rnn_cells import Field, bias_gradient, cell_kernel, clear, transpose
from .rnn_gemms import Gemms
from .rnn_persistent import check_persistent, persistent_back, persistent_lstm

KEPT = {"vanilla": 0, "gru": 4, "lstm": 4}  # values of an element that forward keeps for backward


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pass reads and writes: ``x`` [batch * steps, inputs], and from column ``col`` on of ``y`` too.

    ``reverse``: the last input comes first.
    """

    x: Tensor
    y: Tensor
    col: int = 0
    reverse: bool = False


class Tensors:
    """The memory of a pass. What has a row for each step is one tensor, of which :meth:`step` is a part."""

    def __init__(self, p: Recurrent, memory: Memory, at: Place | None = None) -> None:
        batch, hidden, item = p.batch, p.hidden, p.item
        self.memory, self.p, self.at, self.gemms = memory, p, at, Gemms(p, memory)
        into = {"ih": p.into, "hh": hidden}
        self.w = {side: memory.tensor(f"w_{side}", p.wide, into[side], item) for side in into}
        self.w_turned = {side: memory.tensor(f"wt_{side}", into[side], p.wide, item) for side in into}
        self.bias = memory.tensor("bias", 1, 2 * p.wide, item)
        self.x = at.x if at else memory.tensor("x", batch * p.steps, p.into, item)
        self.h = memory.tensor("h", batch * (p.steps + 1), hidden, item)  # the first state, then all
        self.c = memory.tensor("c", batch * (p.steps + 1), hidden, item)
        self.reserve = memory.tensor("reserve", batch * p.steps, p.wide + hidden, item)
        self.dy = memory.tensor("dy", batch * p.steps, hidden, item)
        self.dh = memory.tensor("dh", batch, hidden, item)
        self.dc = memory.tensor("dc", batch, hidden, item)
        self.dgates = memory.tensor("dgates", batch * p.steps, p.wide, item)
        self.dw = memory.tensor("dw", 1, p.wide * (p.into + hidden), item)
        self.input_gates = memory.tensor("gates", batch * p.steps, p.wide, item)

    def step(self, whole: Tensor, number: int, many: int = 1) -> Tensor:
        """Return the rows of ``many`` steps of a tensor."""
        return rows_of(whole, number, self.p.batch, many)

    def time(self, number: int) -> int:
        """Return which step of the inputs a step takes."""
        return self.p.steps - 1 - number if self.at and self.at.reverse else number


def rows_of(whole: Tensor, number: int, rows: int, many: int = 1) -> Tensor:
    """Return the rows of ``many`` steps from step ``number`` on, ``rows`` each."""
    address = whole.address + number * rows * whole.pitch
    return Tensor(f"{whole.name}[{number}]", many * rows, whole.cols, whole.item, address)


def _weights(t: Tensors, side: str) -> Tensor:
    return (t.w_turned if t.p.turned else t.w)[side]


def _begin(t: Tensors) -> list[Kernel]:
    """Return what runs before the first step: cleared states, transposed weights, the GEMM of all inputs."""
    p = t.p
    made = [clear("clear_h", t.step(t.h, 0))]
    if p.cell == "lstm":
        made.append(clear("clear_c", t.step(t.c, 0)))
    if p.turned:
        made += [transpose(f"transpose_{side}", t.w[side], t.w_turned[side]) for side in t.w]
    kernels, t.input_gates = t.gemms.make("input", _weights(t, "ih"), t.x)
    return [*made, *kernels]


def cell_reads(p: Recurrent, state: Tensor, gates: Tensor, bias: Tensor) -> list[Field]:
    """Return what every cell reads: the GEMM of its state, of its inputs, and both biases."""
    h, many = p.hidden, GATES[p.cell]
    reads = [Field(each, g * h) for each in (state, gates) for g in range(many)]
    return reads + [Field(bias, g * h, shared=True) for g in range(2 * many)]


def kept(p: Recurrent, reserve: Tensor) -> list[Field]:
    """Return what forward keeps of a step for backward."""
    return [Field(reserve, g * p.hidden) for g in range(KEPT[p.cell])]


def _forward(t: Tensors, number: int) -> list[Kernel]:
    """Return the kernels of a step forward."""
    p, now = t.p, t.time(number)
    before, after = t.step(t.h, number), t.step(t.h, number + 1)
    kernels, state = t.gemms.make("hidden", _weights(t, "hh"), before)
    reads = cell_reads(p, state, t.step(t.input_gates, now), t.bias)
    writes = [Field(after)]
    if t.at:
        writes.append(Field(t.step(t.at.y, now), t.at.col))
    if p.cell == "gru":
        reads.append(Field(before))
    if p.cell == "lstm":
        reads.append(Field(t.step(t.c, number)))
        writes.append(Field(t.step(t.c, number + 1)))
    if p.direction != "forward_inference":
        writes += kept(p, t.step(t.reserve, number))
    return [
        *kernels,
        cell_kernel(f"{p.cell}_cell", reads, writes, (p.batch, p.hidden), GATES[p.cell], p.cost),
    ]


def back_cell(
    p: Recurrent,
    given: tuple[Field, Tensor, Tensor],
    reserve: Tensor,
    states: tuple[Tensor, Tensor],
    cells: tuple[Tensor, Tensor],
    dgates: Tensor,
) -> Kernel:
    """Return the gradient of a cell.

    ``given``: gradients of the output, of the state, and what passes by the GEMM; ``states``, ``cells``:
    before and after the step.
    """
    dy, dh, dc = given
    reads = [dy, Field(dh), *kept(p, reserve)]
    writes = [Field(dgates, g * p.hidden) for g in range(GATES[p.cell])]
    if p.cell == "vanilla":
        reads.append(Field(states[1]))
    if p.cell == "gru":
        reads.append(Field(states[0]))
        writes.append(Field(dc))  # the part of dh that passes by the GEMM
    if p.cell == "lstm":
        reads += [Field(dc), Field(cells[0]), Field(cells[1])]
        writes.append(Field(dc))
    return cell_kernel(f"{p.cell}_cell_back", reads, writes, (p.batch, p.hidden), GATES[p.cell], p.cost)


def _backward(t: Tensors, number: int) -> list[Kernel]:
    """Return the kernels of a step backward."""
    states, cells = (tuple(t.step(each, number + at) for at in (0, 1)) for each in (t.h, t.c))
    given, now = (Field(t.step(t.dy, number)), t.dh, t.dc), t.step(t.dgates, number)
    cell = back_cell(t.p, given, t.step(t.reserve, number), states, cells, now)  # type: ignore[arg-type]
    kernels, t.dh = t.gemms.make("back", t.w["hh"], t.step(t.dgates, number))
    return [cell, *kernels]


def _end(t: Tensors) -> list[Kernel]:
    """Return what runs after the last step backward: gradients of inputs, weights and biases."""
    p, gemms = t.p, t.gemms
    made, inputs = gemms.make("input_back", t.w["ih"], t.dgates)
    weights = [clear("clear_dw", t.dw), *gemms.make("weights", t.x, t.dgates)[0]]
    weights += gemms.make("weights_first", t.step(t.h, 0), t.step(t.dgates, 0))[0]
    if p.steps > 1:
        many = p.steps - 1
        weights += gemms.make("weights_hidden", t.step(t.h, 1, many), t.step(t.dgates, 1, many))[0]
    return [
        *made,
        *after_inputs(weights, inputs),
        bias_gradient("bias_gradient", t.dgates, t.bias, GATES[p.cell], p.cost),
    ]


def after_inputs(weights: list[Kernel], inputs: Tensor) -> list[Kernel]:
    """Return GEMMs of weights, which begin when the gradient of the inputs is done: profiles of modules."""
    after = Access(inputs, "read", first_element)
    return [replace(kernel, accesses=(*kernel.accesses, after)) for kernel in weights]


def check_pass(p: Recurrent) -> None:
    """Raise WorkloadError for a pass with a kernel that has no template."""
    if p.persistent:
        check_persistent(p)
    for role, told in p.kernels.items():
        check_told(told, p.problem(role))


def rnn_forward(p: Recurrent, memory: Memory, at: Place, shown: int = 0) -> tuple[list[Kernel], list[Kernel]]:
    """Return what a forward pass launches before its steps, and the kernels of its steps.

    ``shown``: of so many steps at most (0: all). Raises WorkloadError for operands that do not fit, and for
    passes that one kernel runs.
    """
    check_type("rnn", Recurrent, p=p)
    check_type("rnn", Memory, memory=memory)
    check_type("rnn", Place, at=at)
    many = many_steps(p, shown)
    rows, wide = p.batch * p.steps, at.col + p.hidden
    if (at.x.rows, at.x.cols, at.x.item) != (rows, p.into, p.item) or at.y.rows != rows or at.y.cols < wide:
        raise WorkloadError(
            f"rnn: x is {at.x.rows} x {at.x.cols}, y {at.y.rows} x {at.y.cols}: must be {rows} x {p.into},"
            f" {rows} x {wide} at least"
        )
    if p.persistent or p.direction == "forward_backward":
        raise WorkloadError("rnn: given operands: forward, and of one kernel a step alone")
    t = Tensors(p, memory, at)
    before = _begin(t)
    return before, [each for number in range(many) for each in _forward(t, number)]


def many_steps(p: Recurrent, shown: int) -> int:
    """Return how many steps have kernels; refuse too many."""
    check_sizes("rnn", 0, shown=shown)
    many = min(shown, p.steps) if shown else p.steps
    check_sizes("rnn", most=MOST_STEPS, **{"shown" if shown else "steps": many})
    return many


def rnn_parts(p: Recurrent, shown: int = 0) -> dict[str, Job]:
    """Return the pass in parts that run one after another: ``begin``, ``forward``, ``backward``, ``end``.

    ``shown``: only so many steps forward and backward (0: all). A persistent kernel is not cut.
    """
    check_type("rnn", Recurrent, p=p)
    check_sizes("rnn", 0, shown=shown)
    t = Tensors(p, Memory())
    many = p.steps if p.persistent else many_steps(p, shown)
    parts = {"begin": _begin(t)}
    if p.persistent:
        parts["forward"] = persistent_lstm(p, t.w["hh"], t.input_gates, t.memory)[0]
    else:
        parts["forward"] = [each for number in range(many) for each in _forward(t, number)]
    if p.direction == "forward_backward":
        if p.persistent:
            dy = Field(t.dy)
            parts["backward"], t.dgates = persistent_back(p, t.w["hh"], t.input_gates, dy, t.memory)
        else:
            last = p.steps - 1
            parts["backward"] = [each for number in range(many) for each in _backward(t, last - number)]
        parts["end"] = _end(t)
    return {name: Job(f"rnn_{name}", kernels, steps=many) for name, kernels in parts.items()}


def rnn(p: Recurrent) -> Job:
    """Return all launches of a pass."""
    check_type("rnn", Recurrent, p=p)
    kernels = [kernel for part in rnn_parts(p).values() for kernel in part.kernels]
    return Job(f"rnn:{p.cell},hidden={p.hidden},batch={p.batch}", kernels, steps=p.steps)
