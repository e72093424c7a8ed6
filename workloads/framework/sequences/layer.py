"""Recurrent layers on a tape as PyTorch calls cuDNN for them, forward and backward.

Rows of a tensor are steps times batch, step after step. Both directions of a layer read the same inputs and
have outputs of their own. What runs before and after the steps is launched in the main stream; the steps of
the second direction run in another one. Before Hopper and for passes that no kernel runs as a whole a step
is a GEMM and a cell, which on Volta stand in for cuDNN's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework.tape import Gradients, Tape, Value
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.recurrences.layer import Launched, Pass, Weights
from pysim.workloads.library.recurrences.recurrent import ITEM, Recurrent
from pysim.workloads.library.recurrences.rnn_persistent import MOST_BATCH

from .unrolled import Unrolled, Way

CELL = stand_in("cuDNN's cell, of an H200")


@dataclass(frozen=True)
class Layer:
    """``cell`` (gru, lstm, vanilla) of ``hidden`` units, ``batch`` sequences of ``steps``.

    ``both``: of both directions, whose steps run in ``streams`` streams (1 or 2). ``kernels``: of GEMMs by
    role, as ``Recurrent`` takes them. ``stepwise``: never one kernel for all steps. ``loop``:
    a loop over cells in eager mode in place of cuDNN.
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

    def __post_init__(self) -> None:
        """Refuse other numbers of streams; sizes and names are checked by ``Recurrent``."""
        if self.streams not in (1, 2):
            raise WorkloadError(f"recurrent layer: streams = {self.streams}: must be 1 or 2")

    def passed(self, tape: Tape, inputs: int) -> Recurrent:
        """Return the pass of a direction."""
        direction = "forward_backward" if tape.training else "forward_inference"
        stepwise = self.stepwise or self.batch > MOST_BATCH
        return Recurrent(
            self.cell, self.hidden, self.batch, self.steps, self.dtype, direction,  # type: ignore[arg-type]
            self.kernels, inputs=inputs, device=tape.device, stepwise=stepwise,
        )  # fmt: skip


def recurrent(tape: Tape, x: Value, layer: Layer) -> tuple[Value, ...]:
    """Return the outputs of each direction, [steps * batch, hidden]; the weights are new parameters.

    Raises WorkloadError for inputs that are no rows of ``layer``, and for kernels without template.
    """
    if layer.dtype not in ITEM:
        raise WorkloadError(f"recurrent layer: dtype = {layer.dtype}: must be {', '.join(ITEM)}")
    p = layer.passed(tape, x.tensor.cols)
    if layer.loop is not None:
        return _looped(tape, x, layer, p, layer.loop)
    weights = [_weights(tape, p) for _ in range(2 if layer.both else 1)]
    passes = [
        Pass(
            p,
            tape.memory,
            x.tensor,
            Weights(*(w.tensor for w in own)),
            reverse=bool(number),
            known=tape.gemms,
        )
        for number, own in enumerate(weights)
    ]
    _launch(tape, [each.forward() for each in passes], layer.streams)
    _work(tape, p, len(passes))

    def backward(given: Gradients) -> Gradients:
        launched: list[Launched] = []
        for each, gradient in zip(passes, given, strict=True):
            if gradient is None:
                raise WorkloadError("recurrent layer: backward: a direction has no gradient")
            into = passes[0].dx if launched else None
            launched.append(each.backward(gradient, into=into))
        _launch(tape, launched, layer.streams)
        _work(tape, p, 2 * len(passes))
        found = [gradient for each in passes if each.gradients for gradient in each.gradients.all]
        return passes[-1].dx if x.wanted else None, *found

    inputs = (x, *(weight for own in weights for weight in own))
    return tape.record([each.y for each in passes], inputs, backward)


def _looped(tape: Tape, x: Value, layer: Layer, p: Recurrent, way: Way) -> tuple[Value, ...]:
    """Return the outputs of each direction, of a loop over steps."""
    passes = [Unrolled(tape, p, x, way, reverse=bool(number)) for number in range(2 if layer.both else 1)]
    _launch(tape, [each.forward() for each in passes], layer.streams)

    def backward(given: Gradients) -> Gradients:
        launched: list[Launched] = []
        for each, gradient in zip(passes, given, strict=True):
            if gradient is None:
                raise WorkloadError("recurrent layer: backward: a direction has no gradient")
            launched.append(each.backward(gradient, passes[0].dx if launched else None))
        _launch(tape, launched, layer.streams)
        found = [each.found[name] for each in passes for name in each.weights]
        return passes[-1].dx if x.wanted else None, *found

    inputs = (x, *(weight for each in passes for weight in each.weights.values()))
    return tape.record([each.y for each in passes], inputs, backward)


def _weights(tape: Tape, p: Recurrent) -> tuple[Value, Value, Value]:
    return (
        tape.parameter("w_ih", p.wide, p.into, p.item),
        tape.parameter("w_hh", p.wide, p.hidden, p.item),
        tape.parameter("bias", 1, 2 * p.wide, p.item),
    )


def _work(tape: Tape, p: Recurrent, times: int) -> None:
    tape.work(p.batch * p.steps, p.wide, p.into + p.hidden, times)


def _launch(tape: Tape, calls: Sequence[Launched], streams: int) -> None:
    """Launch what comes before the steps, the steps of all directions in turn, and what comes after."""
    for call in calls:
        tape.launch(_marked(tape, call.before))
    apart = streams > 1 and len(calls) > 1
    fork, begun, last = len(tape.kernels) - 1, False, 0
    for steps in zip(*(call.steps for call in calls), strict=True):
        for number, kernels in enumerate(steps):
            other = apart and number > 0
            if other and not begun:
                begun = True
                if fork >= 0:
                    tape.events.append((fork, len(tape.kernels)))
            tape.launch(_marked(tape, [replace(k, stream=1) for k in kernels] if other else kernels))
            last = len(tape.kernels) - 1
    if apart:
        tape.events.append((last, len(tape.kernels)))  # the next launch, whatever it is
    for call in calls:
        tape.launch(_marked(tape, [*call.after, *call.weights]))


def _marked(tape: Tape, kernels: Sequence[Kernel]) -> list[Kernel]:
    if tape.device in HOPPER:
        return list(kernels)
    return [k if k.library else replace(k, library=CELL) for k in kernels]
