"""Convolutions over spectrograms on a tape, and what follows them in DeepSpeech2.

A tensor has a row for each channel of each utterance: frequencies times frames. On Hopper kernels are those
of cuDNN (``vision.convolve``); before it cuDNN's algorithm of an unfolded matrix and a GEMM stands in, as
filters are not square. Each thread block is taken to need all of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import narrow, stored_item
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.framework.vision.convolve import biased, of_brain, placed, room
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.convolutions.nearest import nearest_convolution
from pysim.workloads.library.convolutions.shape import Convolution, convolution_of
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory.images import Images
from pysim.workloads.library.memory.memory_bound import converted
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_parts import Work, whole
from pysim.workloads.library.moved import Launches

UNFOLD = stand_in("im2col of cuDNN's GEMM algorithm")
CLAMP, CLAMP_BACK = Work(fp32=2), Work(fp32=3)
TURN = stand_in("direct_copy_kernel of a transposed view")
NORM = stand_in("batch_norm of rows: ")
NORMALISE, NORM_BACK = Work(fp32=4, ints=2), Work(fp32=8, ints=4)


@dataclass(frozen=True, slots=True)
class Filters:
    """``count`` filters of ``taps`` (frequencies, frames), moved by ``stride``, with ``padding``."""

    count: int
    taps: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]

    def out(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return places along frequencies and frames."""
        high, wide = (
            (size[axis] + 2 * self.padding[axis] - self.taps[axis]) // self.stride[axis] + 1
            for axis in (0, 1)
        )
        return high, wide


def convolved(
    tape: Tape,
    x: Value,
    size: tuple[int, int],
    channels: int,
    filters: Filters,
    dtype: str,
    *,
    bias: bool = True,
) -> Value:
    """Return ``filters`` over ``x``, [images * channels, rows * columns]; ``bias``: plus a number of each."""
    x, dtype = narrow(tape, x), tape.amp or dtype
    item, k = x.tensor.item, channels * filters.taps[0] * filters.taps[1]
    weight = narrow(tape, tape.parameter("filters", filters.count, k, stored_item(tape, item)))
    known = "fp16" if dtype == "bf16" else dtype
    utterances, out = x.tensor.rows // channels, filters.out(size)
    pixels = out[0] * out[1]

    def launch(direction: str, shape: tuple[int, int], *read: Tensor) -> Tensor:
        conv = convolution_of(
            utterances, channels, size, filters.count, filters.taps, stride=filters.stride,
            padding=filters.padding, direction=direction, dtype=known, last=False,
        )  # fmt: skip
        tape.work(utterances * pixels, filters.count, k)
        if tape.device not in HOPPER:
            return _unfolded(tape, conv, read, shape)

        def make() -> Launches:
            kernels = nearest_convolution(conv, tape.memory)
            made = room(tape, direction, shape, item, kernels)
            kernels = placed(kernels, read, made, tape.memory)
            return kernels if known == dtype else list(map(of_brain, kernels)), (made,)

        return tape.call(("convolution", conv, dtype), read, make)[0]

    made = launch("forward", (utterances * filters.count, pixels), x.tensor, weight.tensor)

    def backward(given: Gradients) -> Gradients:
        gradient, of_x = one(given), None
        if x.wanted:
            of_x = launch("backward_data", (x.tensor.rows, x.tensor.cols), gradient, weight.tensor)
        of_weight = launch("backward_weights", (filters.count, k), x.tensor, gradient)
        return of_x, of_weight

    y = tape.record((made,), (x, weight), backward)[0]
    return biased(tape, y, Images(utterances, filters.count, *out)) if bias else y


def _unfolded(tape: Tape, conv: Convolution, read: Sequence[Tensor], shape: tuple[int, int]) -> Tensor:
    """Launch a convolution as a GEMM over an unfolded matrix of [channels * taps, pixels]."""
    memory, item = tape.memory, conv.item
    k, pixels = conv.channels * conv.taps, conv.pixels
    first, second = read
    made = memory.tensor("convolved", *shape, item)

    def product(m: int, n: int, deep: int, trans: str, a: Tensor, b: Tensor, target: Tensor) -> None:
        kernels, c = gemm(
            m, n, deep, memory=memory, trans_a=trans[0], trans_b=trans[1], dtype=conv.dtype,
            operands=(a, b), device=tape.device,
        )  # fmt: skip
        tape.launch(replace(kernel, library=UNFOLD.replace("im2col", "GEMM")) for kernel in kernels)
        tape.launch([_flat_copy("fold", c, target, UNFOLD)])

    def unfold(images: Tensor) -> Tensor:
        wide = memory.tensor("unfolded", k, pixels, item)
        tape.launch([_filled("unfold", images, wide)])
        return wide

    def rows(tensor: Tensor) -> Tensor:
        return Tensor(tensor.name, conv.filters, pixels, item, tensor.address)

    if conv.direction == "forward":
        product(pixels, conv.filters, k, "NN", unfold(first), second, made)
    elif conv.direction == "backward_weights":
        product(k, conv.filters, pixels, "TN", unfold(first), rows(second), made)
    else:
        product(pixels, k, conv.filters, "NT", rows(first), second, made)
    return made


def _filled(name: str, source: Tensor, target: Tensor) -> Kernel:
    """Return the kernel that writes ``target`` from any elements of ``source``."""
    kernel = vectorised(name, [], [target], Work(ints=14, control=1))
    return replace(kernel, accesses=(*kernel.accesses, whole(source)), library=UNFOLD)


def _flat_copy(name: str, source: Tensor, target: Tensor, library: str) -> Kernel:
    """Return the kernel that writes ``target`` and needs all of ``source``, whose layout is another one."""
    small = min((source, target), key=lambda t: t.nbytes)
    view = Tensor(source.name, small.rows, small.cols, source.item, source.address)
    into = Tensor(target.name, small.rows, small.cols, target.item, target.address)
    kernel = vectorised(name, [view], [into], Work(ints=14, control=1))
    accesses = [access for access in kernel.accesses if access.mode != "read"]
    if target is not small:
        accesses = [whole(target, "write")]
    return replace(kernel, accesses=(whole(source), *accesses), library=library)


def clamped(tape: Tape, x: Value) -> Value:
    """Return min(max(x, 0), 20), in place (``Hardtanh``)."""
    y = x.tensor
    kernel = vectorised("hardtanh", [y], [y], converted(CLAMP, y.item, 2))
    tape.launch([replace(kernel, library=stand_in("clamp_scalar_kernel_impl"))])

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_clamp", y.rows, y.cols, y.item)
        back = vectorised("hardtanh_backward", [one(given), y], [of_x], converted(CLAMP_BACK, y.item, 3))
        tape.launch([replace(back, library=stand_in("hardtanh_backward_kernel"))])
        return (of_x,)

    return tape.record((y,), (x,), backward)[0]


def by_time(tape: Tape, x: Value, utterances: int, steps: int) -> Value:
    """Return [steps * utterances, channels * frequencies] of [utterances * channels, frequencies * steps]."""
    t = x.tensor
    cols = t.rows * t.cols // (utterances * steps)
    made = tape.memory.tensor("by_time", steps * utterances, cols, t.item)
    tape.launch([_flat_copy("transpose", t, made, TURN)])

    def backward(given: Gradients) -> Gradients:
        of_x = tape.memory.tensor("grad_by_time", t.rows, t.cols, t.item)
        tape.launch([_flat_copy("transpose", one(given), of_x, TURN)])
        return (of_x,)

    return tape.record((made,), (x,), backward)[0]


def normalised_rows(tape: Tape, x: Value) -> Value:
    """Return each column normalised over all rows: in training by its own mean and deviation.

    Two kernels each way: sums of columns, then a pass over all elements.
    """
    memory, t = tape.memory, x.tensor
    scale, shift = (tape.parameter(name, 1, t.cols, t.item) for name in ("scale", "shift"))
    affine = [whole(scale.tensor), whole(shift.tensor)]
    if tape.training:
        affine.append(whole(_sums(tape, t, "collect_statistics")))
    made = memory.tensor("normalised", t.rows, t.cols, t.item)
    _pass(tape, "batch_norm_rows", [t], made, NORMALISE, affine)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        sums = _sums(tape, gradient, "backward_reduce", t)
        of_x = memory.tensor("grad_normalised", t.rows, t.cols, t.item)
        _pass(tape, "batch_norm_rows_backward", [gradient, t], of_x, NORM_BACK, [whole(sums)])
        return of_x, sums, sums

    return tape.record((made,), (x, scale, shift), backward)[0]


def _sums(tape: Tape, tensor: Tensor, what: str, also: Tensor | None = None) -> Tensor:
    mark = len(tape.kernels)
    sums = op.column_sums(tape, tensor)
    extra = () if also is None else (whole(also),)
    tape.kernels[mark:] = [
        replace(kernel, library=NORM + what, accesses=(*kernel.accesses, *extra))
        for kernel in tape.kernels[mark:]
    ]
    return sums


def _pass(
    tape: Tape, name: str, sources: list[Tensor], target: Tensor, work: Work, extra: list[Access]
) -> None:
    kernel = vectorised(name, sources, [target], work)
    tape.launch([replace(kernel, accesses=(*kernel.accesses, *extra), library=NORM + "transform")])


def checked_size(size: tuple[int, int], filters: Filters) -> tuple[int, int]:
    """Return the size after filters; raise WorkloadError where none is left."""
    out = filters.out(size)
    if min(out) < 1:
        raise WorkloadError(f"spectrogram of {size[0]} x {size[1]}: shorter than filters of {filters.taps}")
    return out
