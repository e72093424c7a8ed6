"""Normalisation, activations and pooling of convolutional networks, with their gradients.

A tensor of images has a row for each channel of each image; the order of launches is PyTorch's, forward and
backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework.tape import one
from pysim.workloads.library.images.cat import cat_channels, take_channels
from pysim.workloads.library.images.norms import (
    KEPT,
    NUMBERS,
    batch_norm_backward,
    batch_norm_evaluation,
    batch_norm_training,
)
from pysim.workloads.library.images.windows import (
    average_windows,
    average_windows_backward,
    largest,
    largest_backward,
)
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import pointwise_costs as costs
from pysim.workloads.library.memory.images import INDEX, Images, Window
from pysim.workloads.library.memory.memory_bound import converted
from pysim.workloads.library.memory.pointwise_flat import vectorised

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Gradients, Tape, Value

ADAPTIVE = stand_in("adaptive_average_")
MEANS = stand_in("reduce_kernel<512, 1> (mean)")
STATISTIC = 4  # bytes of a channel's statistics, fp32 for all types


def batch_norm2d(tape: Tape, x: Value, images: Images) -> Value:
    """Return the images normalised: in training by their own statistics, else by known ones.

    Scale and shift are parameters; running averages are none.
    """
    memory, channels = tape.memory, images.channels
    y = memory.tensor("normalised", x.tensor.rows, x.tensor.cols, x.tensor.item)
    scale, shift = (tape.parameter(name, channels, 1, STATISTIC) for name in ("scale", "shift"))
    if not tape.training:
        # its kernel takes the four numbers of a channel, scale and shift among them, as one operand
        numbers = memory.tensor("numbers", NUMBERS, channels, STATISTIC)
        tape.launch([batch_norm_evaluation(x.tensor, numbers, y, images)])
        return tape.record((y,), (x,), lambda _: (None,))[0]
    running, kept = (memory.tensor(name, channels, KEPT, STATISTIC) for name in ("running", "kept"))
    affine = scale.tensor, shift.tensor
    tape.launch([batch_norm_training(x.tensor, affine, (running,), (kept,), y)])

    def backward(given: Gradients) -> Gradients:
        of_x = memory.tensor("grad_images", x.tensor.rows, x.tensor.cols, x.tensor.item)
        made = (
            memory.tensor("grad_scale", channels, 1, STATISTIC),
            memory.tensor("grad_shift", channels, 1, STATISTIC),
        )
        tape.launch([batch_norm_backward(one(given), x.tensor, scale.tensor, (kept,), of_x, made)])
        return of_x, *made

    return tape.record((y,), (x, scale, shift), backward)[0]


def relu(tape: Tape, x: Value) -> Value:
    """Return max(x, 0) in memory of its own; the gradient as of :func:`relu_`."""
    y = tape.run(memory_ops.relu(tape.memory, x.tensor))
    return tape.record((y,), (x,), partial(_relu_backward, tape, y))[0]


def _relu_backward(tape: Tape, y: Tensor, given: Gradients) -> Gradients:
    of_x = tape.memory.tensor("grad_relu", y.rows, y.cols, y.item)
    kernel = vectorised("relu_backward", [one(given), y], [of_x], converted(costs.RELU, y.item, 3))
    tape.launch([replace(kernel, library=stand_in("threshold_backward"))])
    return (of_x,)


def cat(tape: Tape, parts: Sequence[Value], images: Images) -> tuple[Value, Images]:
    """Return the channels of several images of one size, one behind another; ``images``: of any of them.

    Backward: a copy of each part's channels out of the gradient.
    """
    count, tensors = images.count, [part.tensor for part in parts]
    planes = sum(t.rows for t in tensors)
    made = tape.memory.tensor("cat", planes, images.pixels, tensors[0].item)
    tape.launch([cat_channels(tensors, made, count)])

    def backward(given: Gradients) -> Gradients:
        back, first = [], 0
        for t in tensors:
            new = tape.memory.tensor("grad_part", t.rows, t.cols, t.item)
            tape.launch([take_channels(one(given), first, new, count)])
            first += t.rows // count
            back.append(new)
        return back

    return tape.record((made,), parts, backward)[0], replace(images, channels=planes // count)


def relu_(tape: Tape, x: Value) -> Value:
    """Return max(x, 0), in place; its gradient passes where the result is positive."""
    y = x.tensor
    tape.launch([vectorised("relu", [y], [y], converted(costs.RELU, y.item, 2))])
    return tape.record((y,), (x,), partial(_relu_backward, tape, y))[0]


def add_(tape: Tape, x: Value, other: Value) -> Value:
    """Return x + other, in place of ``x``; both get the gradient as it is."""
    y = x.tensor
    tape.launch([vectorised("add", [y, other.tensor], [y], converted(costs.ADD, y.item, 3))])
    return tape.record((y,), (x, other), lambda given: (given[0], given[0]))[0]


def tanh(tape: Tape, x: Value) -> Value:
    """Return tanh(x)."""
    y = tape.run(memory_ops.tanh(tape.memory, x.tensor))

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_tanh", y.rows, y.cols, y.item)
        kernel = vectorised("tanh_backward", [one(given), y], [of_x], costs.MUL)
        tape.launch([replace(kernel, library=stand_in("tanh_backward"))])
        return (of_x,)

    return tape.record((y,), (x,), backward)[0]


def max_pool2d(tape: Tape, x: Value, images: Images, window: Window) -> tuple[Value, Images]:
    """Return the largest pixels of windows, and what they are."""
    out = _pooled(images, window)
    y = tape.memory.tensor("pooled", x.tensor.rows, out.pixels, x.tensor.item)
    places = tape.memory.tensor("places", x.tensor.rows, out.pixels, INDEX)
    tape.launch([largest(x.tensor, y, places, images, window)])

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_pool", x.tensor.rows, x.tensor.cols, x.tensor.item)
        tape.launch([largest_backward(one(given), places, of_x, images, window)])
        return (of_x,)

    return tape.record((y,), (x,), backward)[0], out


def average_pool2d(tape: Tape, x: Value, images: Images, window: Window) -> tuple[Value, Images]:
    """Return the mean of windows, and what they are."""
    out = _pooled(images, window)
    y = tape.memory.tensor("pooled", x.tensor.rows, out.pixels, x.tensor.item)
    tape.launch([average_windows(x.tensor, y, images, window)])

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_pool", x.tensor.rows, x.tensor.cols, x.tensor.item)
        tape.launch([average_windows_backward(one(given), of_x, images, window)])
        return (of_x,)

    return tape.record((y,), (x,), backward)[0], out


def adaptive_average(tape: Tape, x: Value, images: Images, side: int) -> tuple[Value, Images]:
    """Return the images as means of ``side`` x ``side`` parts, which overlap where they do not divide it."""
    out = replace(images, height=side, width=side)
    y = tape.memory.tensor("pooled", x.tensor.rows, out.pixels, x.tensor.item)
    window = Window(max(1, -(-images.height // side)), max(1, images.height // side))
    tape.launch([replace(average_windows(x.tensor, y, images, window), library=f"{ADAPTIVE}pool")])

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_pool", x.tensor.rows, x.tensor.cols, x.tensor.item)
        kernel = average_windows_backward(one(given), of_x, images, window)
        tape.launch([replace(kernel, library=f"{ADAPTIVE}gradinput")])
        return (of_x,)

    return tape.record((y,), (x,), backward)[0], out


def _pooled(images: Images, window: Window) -> Images:
    out = replace(images, height=window.out(images.height), width=window.out(images.width))
    if min(out.height, out.width) < 1:
        raise WorkloadError(
            f"pooling: windows of {window.side} on {images.height} x {images.width}: no result"
        )
    return out


def average(tape: Tape, x: Value, images: Images) -> Value:
    """Return the mean of each channel of each image, [images, channels]; backward: each pixel's share."""
    memory, planes, item = tape.memory, x.tensor.rows, x.tensor.item
    whole = Window(images.height, images.height)
    try:
        sums = tape.run(memory_ops.sum_rows(memory, x.tensor, cold=True))
    except WorkloadError:  # of few pixels the sum has no template
        sums = memory.tensor("means", planes, 1, item)
        tape.launch([replace(average_windows(x.tensor, sums, images, whole), library=MEANS)])
    made = Tensor("means", images.count, images.channels, item, sums.address)

    def backward(given: Gradients) -> Gradients:
        of_x = memory.tensor("grad_mean", planes, x.tensor.cols, item)
        gradient = one(given)
        view = Tensor(gradient.name, planes, 1, item, gradient.address)
        kernel = average_windows_backward(view, of_x, images, whole)
        tape.launch([replace(kernel, library=stand_in("elementwise_kernel (div of an expanded gradient)"))])
        return (of_x,)

    return tape.record((made,), (x,), backward)[0]


def flatten(x: Value, images: Images, tape: Tape) -> Value:
    """Return the pixels of an image as a row: the same memory."""
    t = x.tensor
    made = Tensor("flat", images.count, t.rows * t.cols // images.count, t.item, t.address)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        return (Tensor(gradient.name, t.rows, t.cols, t.item, gradient.address),)

    return tape.record((made,), (x,), backward)[0]
