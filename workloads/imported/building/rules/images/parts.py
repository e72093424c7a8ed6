"""Images of a graph as the kernels of images take them: a row for each channel of each image."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.rules.pointwise import element_wise
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.memory.images import Images, Window
from pysim.workloads.library.memory.pointwise_parts import Work

DIMS = 4  # of images: count, channels, rows, columns


def images_of(ref: Ref) -> Images:
    """Return what a tensor of images is; raise WorkloadError for other dimensions."""
    if len(ref.shape) != DIMS:
        raise WorkloadError(f"images of {ref.shape}: no template")
    return Images(*ref.shape)


def planes(builder: Builder, ref: Ref) -> Tensor:
    """Return images with channels first, [count * channels, pixels].

    Raises WorkloadError for other layouts, channels last among them.
    """
    if not ref.contiguous:
        raise WorkloadError(f"images of {ref.shape}, strides {ref.strides}: channels must be first")
    return builder.matrix(ref, ref.shape[0] * ref.shape[1], prod(ref.shape[2:]))


def laid(builder: Builder, ref: Ref, *, last: bool = False) -> Ref:
    """Return a tensor with channels first or ``last``; where it is not, a copy that a kernel makes."""
    strides = channels_last(ref.shape) if last else None
    if ref.contiguous if strides is None else _as(ref, strides):
        return ref
    made = builder.temporary(ref)
    made = made if strides is None else replace(made, strides=strides)
    element_wise(builder, "contiguous", [ref], [made], Work())
    return made


def _as(ref: Ref, strides: tuple[int, ...]) -> bool:
    """Return whether a tensor has these strides where it has more than one place."""
    return all(
        size == 1 or own == wanted for size, own, wanted in zip(ref.shape, ref.strides, strides, strict=True)
    )


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of images with channels last."""
    _, channels, height, width = shape
    return channels * height * width, 1, width * channels, channels


def window_of(node: Node, images: Images, made: Images) -> Window:
    """Return the window of a pooling that turns ``images`` into ``made``.

    Raises WorkloadError for windows that are no squares or dilated, and such as reach over an edge further
    than their padding (``ceil_mode``).
    """
    side = node.ints("kernel_size")
    stride, pad = node.ints("stride") or side, node.ints("padding")
    if any(len({*each}) > 1 for each in (side, stride, pad)) or {*node.ints("dilation")} - {1}:
        raise WorkloadError("pooling of windows that are no squares, or dilated: no template")
    window = Window(side[0], stride[0], pad[0])
    if (window.out(images.height), window.out(images.width)) != (made.height, made.width):
        raise WorkloadError("pooling with ceil_mode: no template")
    return window
