"""Normalisation, pooling, concatenation and the loss of convolutional networks, with their gradients.

A tensor of images has a row for each channel of each image; the order of launches is PyTorch's, forward and
backward.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.workloads.framework.operations import one
from pysim.workloads.library.images.losses import nll_backward, nll_forward
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
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_softmax import softmax_backward_rows

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Gradients, Tape, Value

STATISTIC = 4  # bytes of a channel's statistics, fp32 for all types


def batch_norm2d(tape: Tape, x: Value, images: Images) -> Value:
    """Return the images normalised: in training by their own statistics, else by known ones.

    Scale and shift are parameters; running averages are none.
    """
    memory, channels = tape.memory, images.channels
    y = memory.tensor("normalised", x.tensor.rows, x.tensor.cols, x.tensor.item)
    affine = tape.parameter("affine", channels, 2, STATISTIC)
    if not tape.training:
        # its kernel takes the four numbers of a channel as one operand, of which scale and shift are half
        numbers = memory.tensor("numbers", NUMBERS, channels, STATISTIC)
        tape.launch([batch_norm_evaluation(x.tensor, numbers, y, images)])
        return tape.record((y,), (x, affine), lambda _: (None, None))[0]
    running = memory.tensor("running", channels, 2, STATISTIC)
    kept = memory.tensor("kept", channels, KEPT, STATISTIC)
    tape.launch([batch_norm_training(x.tensor, affine.tensor, running, kept, y)])

    def backward(given: Gradients) -> Gradients:
        of_x = memory.tensor("grad_images", x.tensor.rows, x.tensor.cols, x.tensor.item)
        of_affine = memory.tensor("grad_affine", channels, 2, STATISTIC)
        tape.launch([batch_norm_backward(one(given), x.tensor, affine.tensor, kept, of_x, of_affine)])
        return of_x, of_affine

    return tape.record((y,), (x, affine), backward)[0]


def relu(tape: Tape, x: Value) -> Value:
    """Return max(x, 0); its gradient passes where the result is positive (``threshold_backward``)."""
    y = tape.run(memory_ops.relu(tape.memory, x.tensor))

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_relu", y.rows, y.cols, y.item)
        kernel = vectorised("relu_backward", [one(given), y], [of_x], costs.RELU)
        tape.launch([replace(kernel, library="stands in: threshold_backward")])
        return (of_x,)

    return tape.record((y,), (x,), backward)[0]


def tanh(tape: Tape, x: Value) -> Value:
    """Return tanh(x)."""
    y = tape.run(memory_ops.tanh(tape.memory, x.tensor))

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_tanh", y.rows, y.cols, y.item)
        kernel = vectorised("tanh_backward", [one(given), y], [of_x], costs.MUL)
        tape.launch([replace(kernel, library="stands in: tanh_backward")])
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


def _pooled(images: Images, window: Window) -> Images:
    out = replace(images, height=window.out(images.height), width=window.out(images.width))
    if min(out.height, out.width) < 1:
        raise WorkloadError(f"pooling: windows of {window.side} on {images.height} x {images.width}: no result")
    return out


def average(tape: Tape, x: Value, images: Images) -> Value:
    """Return the mean of each channel of each image, [images, channels]; backward: each pixel's share."""
    launched = memory_ops.sum_rows(tape.memory, x.tensor, cold=True)
    sums = tape.run(launched)
    made = Tensor("means", images.count, images.channels, x.tensor.item, sums.address)

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_mean", x.tensor.rows, x.tensor.cols, x.tensor.item)
        gradient = one(given)
        view = Tensor(gradient.name, x.tensor.rows, 1, gradient.item, gradient.address)
        whole = Images(images.count, images.channels, images.height, images.width)
        kernel = average_windows_backward(view, of_x, whole, Window(1, 1))
        tape.launch([replace(kernel, library="stands in: elementwise_kernel (div of an expanded gradient)")])
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


def cross_entropy(tape: Tape, logits: Value) -> Value:
    """Return the mean of -log softmax at the right class of each row, one element."""
    t, memory = logits.tensor, tape.memory
    shares = tape.run(memory_ops.softmax(memory, t))
    classes = memory.tensor("classes", 1, t.rows, INDEX)
    loss = memory.tensor("loss", 1, 1, t.item)
    tape.launch([nll_forward(shares, classes, loss)])

    def backward(given: Gradients) -> Gradients:
        dtype = "fp32" if t.item == STATISTIC else "fp16"
        of_shares = tape.run(memory_ops.fill(memory, t.rows, t.cols, dtype))
        tape.launch([nll_backward(one(given), classes, of_shares)])
        made = memory.tensor("grad_logits", t.rows, t.cols, t.item)
        tape.launch([softmax_backward_rows(of_shares, shares, made, costs.SOFTMAX_BACKWARD)])
        return (made,)

    return tape.record((loss,), (logits,), backward)[0]
