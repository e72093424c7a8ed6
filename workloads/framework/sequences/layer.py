"""Recurrent layers on a tape as PyTorch calls cuDNN for them, forward and backward.

Rows of a tensor are steps times batch, step after step. Both directions of a layer read the same inputs and
have outputs of their own. What runs before and after the steps is launched in the main stream; the steps of
the second direction run in another one. Before Hopper and for passes that no kernel runs as a whole a step
is a GEMM and a cell, which on Volta stand in for cuDNN's. Under autocast a call is in fp16: it converts its
input and states where they are fp32, and its parameters into one buffer (``autocast``; both biases of a
direction are one tensor here, and one copy).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework.autocast import RECURRENT, first_states, flattened, narrow, stored_item
from pysim.workloads.framework.tape import Gradients, Tape, Value
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.recurrences.layer import Launched, Pass, Weights
from pysim.workloads.library.recurrences.recurrent import ITEM, Recurrent, least_batch
from pysim.workloads.library.recurrences.rnn import rows_of
from pysim.workloads.library.recurrences.rnn_persistent import MOST_BATCH

from .columns import spread
from .unrolled import Unrolled, Way, taken

CELL = stand_in("cuDNN's cell, of an H200")


@dataclass(frozen=True)
class Layer:
    """``cell`` (gru, lstm, vanilla) of ``hidden`` units, ``batch`` sequences of ``steps``.

    ``both``: of both directions, whose steps run in ``streams`` streams (1 or 2). ``kernels``: of GEMMs by
    role, as ``Recurrent`` takes them. ``stepwise``: never one kernel for all steps. ``loop``:
    a loop over cells in eager mode in place of cuDNN. ``asked``: sequences that count, the first of the batch
    (0: all).
    """

    cell: str
    hidden: int
    batch: int
    steps: int
    dtype: str
    both: bool = False
    streams: int = 2
    kernels: Mapping[str, Told] = field(default_factory=dict)
    stepwise: bool = False
    loop: Way | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        """Refuse other numbers of streams; sizes and names are checked by ``Recurrent``."""
        if self.streams not in (1, 2):
            raise WorkloadError(f"recurrent layer: streams = {self.streams}: must be 1 or 2")

    def passed(self, tape: Tape, inputs: int) -> Recurrent:
        """Return the pass of a direction."""
        direction = "forward_backward" if tape.training else "forward_inference"
        stepwise = self.stepwise or self.batch > MOST_BATCH
        dtype = RECURRENT if tape.amp else self.dtype
        return Recurrent(
            self.cell, self.hidden, self.batch, self.steps, dtype, direction,  # type: ignore[arg-type]
            self.kernels, inputs=inputs, device=tape.device, stepwise=stepwise,
        )  # fmt: skip


def recurrent(tape: Tape, x: Value, layer: Layer) -> tuple[Value, ...]:
    """Return the outputs of each direction, [steps * batch, hidden]; the weights are new parameters.

    Where states of a batch would not begin at multiples of 256 B, kernels of cuDNN are those of a larger
    batch, and say so. Raises WorkloadError for inputs that are no rows of ``layer``, and for kernels without
    template.
    """
    if layer.dtype not in ITEM:
        raise WorkloadError(f"recurrent layer: dtype = {layer.dtype}: must be {', '.join(ITEM)}")
    item = ITEM[RECURRENT if tape.amp else layer.dtype]
    least = max(least_batch(features, item) for features in (layer.hidden, x.tensor.cols))
    room = -(-layer.batch // least) * least
    if layer.loop is not None:
        return _looped(tape, x, layer, layer.passed(tape, x.tensor.cols), layer.loop)
    if room == layer.batch:
        return _called(tape, x, layer)
    wide = spread(tape, x, layer.steps, layer.batch, room)
    made = _called(tape, wide, replace(layer, batch=room, asked=layer.batch))
    return tuple(spread(tape, y, layer.steps, room, layer.batch) for y in made)


def _called(tape: Tape, x: Value, layer: Layer) -> tuple[Value, ...]:
    """Return the outputs of each direction, of a batch whose states begin at multiples of 256 B."""
    p = layer.passed(tape, x.tensor.cols)
    many = 2 if layer.both else 1
    weights = [_weights(tape, p) for _ in range(many)]
    firsts = _first_states(tape, x, p, many)
    if tape.amp:
        flat = iter(flattened(tape, [w for own in weights for w in own]))
        weights, x = [tuple(next(flat) for _ in own) for own in weights], narrow(tape, x)
    passes = [
        Pass(
            p,
            tape.memory,
            x.tensor,
            Weights(*(w.tensor for w in own)),
            reverse=bool(number),
            first=first,
            known=tape.gemms,
        )
        for number, (own, first) in enumerate(zip(weights, firsts, strict=True))
    ]
    _launch(tape, [each.forward() for each in passes], layer)
    _work(tape, layer, p, len(passes))

    def backward(given: Gradients) -> Gradients:
        launched: list[Launched] = []
        for each, gradient in zip(passes, given, strict=True):
            if gradient is None:
                raise WorkloadError("recurrent layer: backward: a direction has no gradient")
            into = passes[0].dx if launched else None
            launched.append(each.backward(gradient, into=into))
        _launch(tape, launched, layer)
        _work(tape, layer, p, 2 * len(passes))
        found = [gradient for each in passes if each.gradients for gradient in each.gradients.all]
        return passes[-1].dx if x.wanted else None, *found

    inputs = (x, *(weight for own in weights for weight in own))
    return tape.record([each.y for each in passes], inputs, backward)


def _looped(tape: Tape, x: Value, layer: Layer, p: Recurrent, way: Way) -> tuple[Value, ...]:
    """Return the outputs of each direction, of a loop over steps."""
    x = taken(tape, x, way)
    passes = [Unrolled(tape, p, x, way, reverse=bool(number)) for number in range(2 if layer.both else 1)]
    _launch(tape, [each.forward() for each in passes], layer)

    def backward(given: Gradients) -> Gradients:
        launched: list[Launched] = []
        for each, gradient in zip(passes, given, strict=True):
            if gradient is None:
                raise WorkloadError("recurrent layer: backward: a direction has no gradient")
            launched.append(each.backward(gradient, passes[0].dx if launched else None))
        _launch(tape, launched, layer)
        found = [each.found[name] for each in passes for name in each.weights]
        return passes[-1].dx if x.wanted else None, *found

    inputs = (x, *(weight for each in passes for weight in each.weights.values()))
    return tape.record([each.y for each in passes], inputs, backward)


def _weights(tape: Tape, p: Recurrent) -> tuple[Value, ...]:
    item = stored_item(tape, p.item)
    return (
        tape.parameter("w_ih", p.wide, p.into, item),
        tape.parameter("w_hh", p.wide, p.hidden, item),
        tape.parameter("bias", 1, 2 * p.wide, item),
    )


def _first_states(tape: Tape, x: Value, p: Recurrent, many: int) -> list[tuple[Tensor, ...]]:
    """Return the states that each of ``many`` directions begins with, if the call does not make them."""
    kinds = 2 if p.cell == "lstm" else 1
    made = first_states(tape, x, many * p.batch, p.hidden, kinds)
    return [tuple(rows_of(each, number, p.batch) for each in made) for number in range(many)]


def _work(tape: Tape, layer: Layer, p: Recurrent, times: int) -> None:
    tape.work((layer.asked or p.batch) * p.steps, p.wide, p.into + p.hidden, times)


def _launch(tape: Tape, calls: Sequence[Launched], layer: Layer) -> None:
    """Launch what comes before the steps, the steps of all directions in turn, and what comes after."""
    for call in calls:
        tape.launch(_marked(tape, call.before, layer))
    apart = layer.streams > 1 and len(calls) > 1
    fork, begun, last = len(tape.kernels) - 1, False, 0
    for steps in zip(*(call.steps for call in calls), strict=True):
        for number, kernels in enumerate(steps):
            other = apart and number > 0
            if other and not begun:
                begun = True
                if fork >= 0:
                    tape.events.append((fork, len(tape.kernels)))
            tape.launch(_marked(tape, [replace(k, stream=1) for k in kernels] if other else kernels, layer))
            last = len(tape.kernels) - 1
    if apart:
        tape.events.append((last, len(tape.kernels)))  # the next launch, whatever it is
    for call in calls:
        tape.launch(_marked(tape, [*call.after, *call.weights], layer))


def _marked(tape: Tape, kernels: Sequence[Kernel], layer: Layer) -> list[Kernel]:
    made = list(kernels)
    if tape.device not in HOPPER:
        made = [k if k.library else replace(k, library=CELL) for k in made]
    if layer.asked:
        said = stand_in(f"of {layer.batch} sequences, for {layer.asked}", measured=False)
        made = [replace(k, library=f"{k.library}, {said}" if k.library else said) for k in made]
    return made
