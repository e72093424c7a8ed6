"""Batch normalisation and pooling of images with channels first, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.rules.copies import fill
from pysim.workloads.imported.building.rules.pointwise import element_wise
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.images import norms, windows
from pysim.workloads.library.memory.images import INDEX, ITEM, Images, Window
from pysim.workloads.library.memory.pointwise_parts import Work, whole

from .parts import images_of, laid, planes, window_of

ADAPTIVE, ADAPTIVE_BACK = stand_in("adaptive_average_pool"), stand_in("atomic_adaptive_average_gradinput")


def batch_norm(builder: Builder, node: Node) -> None:
    """``native_batch_norm``: by the images' own statistics in training, else by known ones."""
    x, out = node.ref("input"), node.outputs[0]
    if len(x.shape) <= 2:
        raise WorkloadError(f"batch normalisation of {x.shape}: images and sequences alone: no template")
    if not node.flag("training"):
        _known(builder, node, x, out)
        return
    channels = x.shape[1]
    affine = _numbers(builder, node, "weight", channels), _numbers(builder, node, "bias", channels)
    running = [node.optional(name) for name in ("running_mean", "running_var")]
    kernel = norms.batch_norm_training(
        planes(builder, x), affine, _columns(builder, running, channels),
        _columns(builder, node.outputs[1:], channels), planes(builder, out),
    )  # fmt: skip
    builder.launch([kernel])


def _known(builder: Builder, node: Node, x: Ref, out: Ref) -> None:
    """Add the kernel of evaluation, whose template has the four numbers of all channels in one tensor."""
    images = Images(x.shape[0], x.shape[1], 1, prod(x.shape[2:]))
    statistics = builder.scratch.tensor("statistics", norms.NUMBERS, images.channels, ITEM)
    kernel = norms.batch_norm_evaluation(planes(builder, x), statistics, planes(builder, out), images)
    numbers = [node.optional(name) for name in ("running_mean", "running_var", "weight", "bias")]
    known = tuple(whole(builder.flat(ref)) for ref in numbers if ref is not None)
    builder.launch([replace(kernel, accesses=(*kernel.accesses, *known))])


def batch_norm_gradient(builder: Builder, node: Node) -> None:
    """``native_batch_norm_backward`` in training: gradients of images, scale and shift in one kernel."""
    x, given = node.ref("input"), laid(builder, node.ref("grad_out"))
    if not node.flag("train"):
        raise WorkloadError("batch normalisation by known statistics: its gradient has no template")
    channels, mask = x.shape[1], node.args["output_mask"]
    left = iter(node.outputs)
    wanted = mask if isinstance(mask, tuple) else (True,) * 3
    of_x, of_scale, of_shift = (next(left, None) if want else None for want in wanted)
    kept = [node.optional(name) for name in ("save_mean", "save_invstd")]
    target = planes(builder, builder.temporary(x) if of_x is None else of_x)
    affine = [
        builder.scratch.tensor("unwanted", channels, 1, ITEM) if ref is None else _column(builder, ref)
        for ref in (of_scale, of_shift)
    ]
    kernel = norms.batch_norm_backward(
        planes(builder, given), planes(builder, x), _numbers(builder, node, "weight", channels),
        _columns(builder, kept, channels), target, (affine[0], affine[1]),
    )  # fmt: skip
    builder.launch([kernel])


def _numbers(builder: Builder, node: Node, name: str, channels: int) -> Tensor:
    """Return scale or shift; where the module has none, a tensor of its own stands in."""
    ref = node.optional(name)
    return builder.scratch.tensor(name, channels, 1, ITEM) if ref is None else _column(builder, ref)


def _column(builder: Builder, ref: Ref) -> Tensor:
    return builder.matrix(ref, ref.elements, 1)


def _columns(builder: Builder, refs: Sequence[Ref | None], channels: int) -> list[Tensor]:
    """Return statistics of channels, those that there are."""
    return [_column(builder, ref) for ref in refs if ref is not None and ref.elements == channels]


def max_pooling(builder: Builder, node: Node) -> None:
    """``max_pool2d_with_indices``: the largest pixel of each window, and its place."""
    x, (out, places) = node.ref("self"), node.outputs
    images = images_of(x)
    window = window_of(node, images, images_of(out))
    builder.launch([
        windows.largest(planes(builder, x), planes(builder, out), planes(builder, places), images, window)
    ])  # fmt: skip


def max_pooling_gradient(builder: Builder, node: Node) -> None:
    """``max_pool2d_with_indices_backward``: zeros, then a pixel's gradients."""
    given, places, out = laid(builder, node.ref("grad_output")), node.ref("indices"), node.outputs[0]
    images = images_of(out)
    window = window_of(node, images, images_of(given))
    fill(builder, node)
    rows, cols = places.shape[0] * places.shape[1], prod(places.shape[2:])
    index = builder.places.part(places, rows, cols)
    if index.item != INDEX:
        raise WorkloadError(f"pooling: places in {places.dtype}: must be of {INDEX} B")
    kernel = windows.largest_backward(planes(builder, given), index, planes(builder, out), images, window)
    builder.launch([kernel])


def average_pooling(builder: Builder, node: Node) -> None:
    """``avg_pool2d``: the mean of each window."""
    x, out = node.ref("self"), node.outputs[0]
    images = images_of(x)
    window = window_of(node, images, images_of(out))
    builder.launch([windows.average_windows(planes(builder, x), planes(builder, out), images, window)])


def average_pooling_gradient(builder: Builder, node: Node) -> None:
    """``avg_pool2d_backward``: each pixel's share."""
    given, out = laid(builder, node.ref("grad_output")), node.outputs[0]
    images = images_of(out)
    window = window_of(node, images, images_of(given))
    kernel = windows.average_windows_backward(planes(builder, given), planes(builder, out), images, window)
    builder.launch([kernel])


def adaptive_pooling(builder: Builder, node: Node) -> None:
    """``_adaptive_avg_pool2d``: means of parts, which overlap where they do not divide an image."""
    x, out = node.ref("self"), node.outputs[0]
    images = images_of(x)
    window = _parts(images, images_of(out))
    kernel = windows.average_windows(planes(builder, x), planes(builder, out), images, window)
    builder.launch([replace(kernel, library=ADAPTIVE)])


def adaptive_pooling_gradient(builder: Builder, node: Node) -> None:
    """``_adaptive_avg_pool2d_backward``: zeros, then each pixel's share."""
    given, out = laid(builder, node.ref("grad_output")), node.outputs[0]
    images = images_of(out)
    window = _parts(images, images_of(given))
    element_wise(builder, "fill", [], [out], Work())
    kernel = windows.average_windows_backward(planes(builder, given), planes(builder, out), images, window)
    builder.launch([replace(kernel, library=ADAPTIVE_BACK)])


def _parts(images: Images, made: Images) -> Window:
    """Return the window that a part of an image is about; raise WorkloadError where parts are no squares."""
    if images.height != images.width or made.height != made.width:
        raise WorkloadError("adaptive pooling of images that are no squares: no template")
    return Window(max(1, -(-images.height // made.height)), max(1, images.height // made.height))
