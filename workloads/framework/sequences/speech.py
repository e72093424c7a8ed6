"""DeepSpeech2 as the PyTorch networks of its published studies have it: convolutions, GRUs, CTC.

Two convolutions with batch norm and a clamp over a spectrogram; recurrent layers of both directions, whose
outputs are added, each but the first behind batch norm; batch norm, a linear layer, and the CTC loss. Both
directions leave tensors of their own here, so that an addition stands in for the sum over halves of a row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pysim.errors import WorkloadError
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import FLOAT, RECURRENT, cast, scaled, wide
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.framework.vision.layers import batch_norm2d
from pysim.workloads.library.arguments import MOST_STEPS, check_elements, check_sizes
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.images import Images
from pysim.workloads.library.memory.pointwise_costs import ADD, CONVERT
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_parts import Work
from pysim.workloads.library.recurrences.recurrent import GATES, ITEM

from .ctc import ctc_loss
from .layer import Layer, recurrent
from .spectrogram import Filters, by_time, checked_size, clamped, convolved, normalised_rows

FREQUENCIES = 161  # of windows of 20 ms at 16 kHz
FILTERS = (Filters(32, (41, 11), (2, 2), (20, 5)), Filters(32, (21, 11), (2, 1), (10, 5)))
FRAMES = 2  # of a step: the first convolution takes every second one
STEPS_OF_LABEL = 4  # 50 steps and 14 characters a second of LibriSpeech
SUM = stand_in("reduce_kernel over both directions")
NARROWED = stand_in("unrolled_elementwise_kernel of a gradient that is repeated", measured=False)


@dataclass(frozen=True)
class Speech:
    """``layers`` of ``cell`` with ``hidden`` units and ``labels``; ``batch`` utterances of ``steps``.

    A step is two frames of 10 ms. ``kernels``: of recurrent GEMMs by role, as ``Recurrent`` takes them.
    """

    cell: str
    hidden: int
    layers: int
    labels: int
    batch: int
    steps: int
    dtype: str
    streams: int = 2
    kernels: dict[str, Told] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no size, and types and cells that have no recurrent kernels."""
        what = "DeepSpeech2"
        check_sizes(what, hidden=self.hidden, labels=self.labels, batch=self.batch)
        check_sizes(what, most=MOST_STEPS, steps=self.steps)
        check_sizes(what, most=64, layers=self.layers)
        check_elements(what, batch_x_steps_x_hidden=(self.batch, self.steps, self.hidden, 8))
        for name, known in (("dtype", ITEM), ("cell", GATES)):
            if getattr(self, name) not in known:
                raise WorkloadError(f"{what}: {name} = {getattr(self, name)}: must be {', '.join(known)}")


def speech(net: Speech, tape: Tape) -> None:
    """Launch a forward pass to the labels' scores; in training the loss and all gradients, too."""
    x = _layers(net, tape, _convolutions(net, tape))
    weight = tape.parameter("w_labels", net.labels, net.hidden, ITEM[net.dtype])
    scores = op.linear(tape, normalised_rows(tape, x), weight, None, net.dtype)
    if not tape.training:
        tape.run(memory_ops.softmax(tape.memory, wide(tape, scores).tensor))
        return
    loss = scaled(tape, ctc_loss(tape, scores, net.batch, max(1, net.steps // STEPS_OF_LABEL)))
    gradient = tape.run(memory_ops.fill(tape.memory, net.batch, 1, "fp32"))
    tape.backward(loss, gradient)


def _convolutions(net: Speech, tape: Tape) -> Value:
    size, channels = (FREQUENCIES, FRAMES * net.steps), 1
    x = tape.value("spectrogram", net.batch, size[0] * size[1], ITEM[net.dtype], wanted=False)
    for filters in FILTERS:
        out = checked_size(size, filters)
        x = convolved(tape, x, size, channels, filters, net.dtype)
        x = clamped(tape, batch_norm2d(tape, x, Images(net.batch, filters.count, *out)))
        size, channels = out, filters.count
    return by_time(tape, x, net.batch, size[1])


def _layers(net: Speech, tape: Tape, x: Value) -> Value:
    if tape.amp not in ("", RECURRENT):
        x = cast(tape, x, tape.amp, RECURRENT)
    for number in range(net.layers):
        if number:
            x = normalised_rows(tape, x)
        layer = Layer(
            net.cell, net.hidden, net.batch, net.steps, net.dtype,
            both=True, streams=net.streams, kernels=net.kernels,
        )  # fmt: skip
        forth, back = recurrent(tape, x, layer)
        x = _summed(tape, forth, back)
    return x


def _summed(tape: Tape, forth: Value, back: Value) -> Value:
    """Return the sum of both directions; under autocast in fp32, as sums are, whose gradient is converted."""
    if not tape.amp:
        mark = len(tape.kernels)
        x = op.add(tape, forth, back)
        tape.kernels[mark:] = [replace(kernel, library=SUM) for kernel in tape.kernels[mark:]]
        return x
    memory, t = tape.memory, forth.tensor
    made = memory.tensor("sum", t.rows, t.cols, FLOAT)
    work = Work(ADD.fp32, ADD.ints + 2 * CONVERT)
    tape.launch([replace(vectorised("add", [t, back.tensor], [made], work), library=SUM)])

    def backward(given: Gradients) -> Gradients:
        both = [memory.tensor("grad_sum", t.rows, t.cols, t.item) for _ in range(2)]
        kernel = vectorised("cast", [one(given)], both, Work(ints=CONVERT))
        tape.launch([replace(kernel, library=NARROWED)])
        return both

    return tape.record((made,), (forth, back), backward)[0]
