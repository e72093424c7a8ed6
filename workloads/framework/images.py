"""Operations of convolutional networks on a tape, fp32 with channels first, forward.

A tensor of images has a row for each channel of each image. A convolution's kernels are told or those of its
algorithm; their operands are put where the network's tensors are. Templates of convolutions know how many
bytes each part of an operand has, not which pixel is where, so each of their thread blocks is taken to need
all of its operands: schemes that are finer than kernels win nothing at a convolution here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.workloads.library.convolutions.convolution import convolution
from pysim.workloads.library.convolutions.fft import C2R, R2C
from pysim.workloads.library.convolutions.shape import Convolution
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.images import INDEX, ITEM, Images, Window, batch_norm, max_pool

from .tape import Tape, Value


@dataclass(frozen=True, slots=True)
class Kernels:
    """A convolution's launches as a profiler names them: the main one, and those beside it."""

    main: Told
    others: tuple[Told, ...] = ()


def conv2d(
    tape: Tape, x: Value, images: Images, filters: int, window: Window, kernels: Kernels
) -> tuple[Value, Images]:
    """Return the convolution of images with ``filters`` of a window, and what its results are.

    Raises WorkloadError where gradients are wanted, and for kernels without template.
    """
    _forward_alone(tape, x, "conv2d")
    images.tensor_of(x.tensor, "conv2d")
    out = Images(images.count, filters, window.out(images.height), window.out(images.width))
    size, made_size = (images.height, images.width), (out.height, out.width)
    taps, stride = window.side**2, window.stride**2
    problem = Convolution(
        images.count, images.channels, size, filters, made_size, taps, stride, "forward", "fp32", False
    )
    weight = tape.parameter("filters", filters, images.channels * taps, ITEM).tensor
    made = tape.memory.tensor("convolved", images.count * filters, out.pixels, ITEM)
    launched = convolution(kernels.main, kernels.others, problem, tape.memory)
    read, weights, result = _operands(launched)
    moved = {read: x.tensor, weights: weight, result: made}
    tape.launch(_rebound(launched, {old.address: new.address for old, new in moved.items()}))
    tape.work(images.count * out.pixels, filters, images.channels * taps)
    return tape.record((made,), (x,), lambda _: (None,))[0], out


def _operands(launched: list[Kernel]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the images, the filters and the results of a forward convolution's kernels."""
    first, last = launched[0], launched[-1]
    if first.name == R2C and last.name == C2R:
        read = [kernel.args[0] for kernel in launched if kernel.name == R2C]
        return read[1], read[0], last.args[1]
    if any(kernel.name in (R2C, C2R) for kernel in launched) or len(last.args) < 3:
        raise WorkloadError("conv2d: kernels of this algorithm: its operands are not known")
    return last.args[0], last.args[1], last.args[2]


def _rebound(kernels: list[Kernel], moves: Mapping[int, int]) -> list[Kernel]:
    """Return a convolution's kernels, whose tensors at given addresses are at others."""

    def at(tensor: Tensor) -> Tensor:
        return replace(tensor, address=moves.get(tensor.address, tensor.address))

    return [
        replace(
            kernel,
            name=f"conv_{kernel.name}",
            args=tuple(map(at, kernel.args)),
            accesses=tuple(replace(access, tensor=at(access.tensor)) for access in kernel.accesses),
        )
        for kernel in kernels
    ]


def batch_norm2d(tape: Tape, x: Value, images: Images) -> Value:
    """Return the images normalised by known statistics, as in evaluation."""
    _forward_alone(tape, x, "batch_norm2d")
    statistics = tape.memory.tensor("statistics", 4, images.channels, ITEM)
    made = tape.memory.tensor("normalised", x.tensor.rows, x.tensor.cols, ITEM)
    tape.launch([batch_norm(x.tensor, statistics, made, images)])
    return tape.record((made,), (x,), lambda _: (None,))[0]


def relu(tape: Tape, x: Value) -> Value:
    """Return max(x, 0)."""
    _forward_alone(tape, x, "relu")
    made = tape.run(memory_ops.relu(tape.memory, x.tensor))
    return tape.record((made,), (x,), lambda _: (None,))[0]


def max_pool2d(tape: Tape, x: Value, images: Images, window: Window) -> tuple[Value, Images]:
    """Return the largest pixels of windows, and what they are."""
    _forward_alone(tape, x, "max_pool2d")
    out = Images(images.count, images.channels, window.out(images.height), window.out(images.width))
    made = tape.memory.tensor("pooled", x.tensor.rows, out.pixels, ITEM)
    places = tape.memory.tensor("places", x.tensor.rows, out.pixels, INDEX)
    tape.launch([max_pool(x.tensor, made, places, images, window)])
    return tape.record((made,), (x,), lambda _: (None,))[0], out


def average(tape: Tape, x: Value, images: Images) -> Value:
    """Return the mean of each channel of each image, [images, channels]."""
    _forward_alone(tape, x, "average")
    sums = tape.run(memory_ops.sum_rows(tape.memory, x.tensor, cold=True, sms=tape.sms))
    made = Tensor("means", images.count, images.channels, ITEM, sums.address)
    return tape.record((made,), (x,), lambda _: (None,))[0]


def _forward_alone(tape: Tape, x: Value, name: str) -> None:
    if tape.training and x.wanted:
        raise WorkloadError(f"{name}: no gradient has a template")
