"""Convolutions, batch normalisation and pooling of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from math import prod

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.convolutions.chooser import choose_convolution
from pysim.workloads.library.convolutions.convolution import convolution as library_convolution
from pysim.workloads.library.convolutions.shape import Convolution, convolution_of
from pysim.workloads.library.memory.images import ITEM, Images, Window, batch_norm, max_pool
from pysim.workloads.library.memory.pointwise_costs import ADD
from pysim.workloads.library.memory.pointwise_parts import whole

from .pointwise import element_wise, reach

DTYPES = {"fp16": "fp16", "bf16": "fp16", "fp32": "fp32"}  # cuDNN's kernels of bf16 are those of fp16


def convolution(builder: Builder, node: Node) -> None:
    """``convolution``: cuDNN's kernels, then the sum with the bias."""
    x, w, out = node.ref("input"), node.ref("weight"), node.outputs[0]
    _launch(builder, _problem(builder, node, x, w, "forward"), [x, w], out)
    bias = node.optional("bias")
    if bias is not None:
        shape, strides = _as_channels(out)
        spread = Ref(bias.storage, bias.offset, shape, strides, bias.dtype)
        element_wise(builder, "add_bias", [out, spread], [out], ADD)


def convolution_backward(builder: Builder, node: Node) -> None:
    """``convolution_backward``: gradients of images, filters and bias, as far as they are wanted."""
    x, w, given = node.ref("input"), node.ref("weight"), node.ref("grad_output")
    mask = node.args["output_mask"]
    wanted = mask if isinstance(mask, tuple) else (True, True, False)
    left = iter(node.outputs)
    of_x, of_w, of_b = (next(left, None) if want else None for want in wanted)
    if of_x is not None:
        _launch(builder, _problem(builder, node, x, w, "backward_data"), [given, w], of_x)
    if of_w is not None:
        _launch(builder, _problem(builder, node, x, w, "backward_weights"), [x, given], of_w)
    if of_b is not None:
        raise WorkloadError("convolution_backward: the gradient of a bias: no template")


def _as_channels(out: Ref) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return out.shape, tuple(int(dim == 1) for dim in range(len(out.shape)))


def _problem(builder: Builder, node: Node, x: Ref, w: Ref, direction: str) -> Convolution:
    if node.flag("transposed") or len(x.shape) != 4:
        raise WorkloadError("convolution: transposed, or of other than images: no template")
    last = x.strides[1] == 1 and x.shape[1] > 1
    dtype = DTYPES.get(x.dtype, x.dtype)
    if dtype == "fp32" and "convolution" in builder.graph.tf32:
        dtype = "tf32"

    def pair(name: str) -> tuple[int, int]:
        given = node.ints(name)
        return (given[0], given[-1])

    return convolution_of(
        x.shape[0], x.shape[1], (x.shape[2], x.shape[3]), w.shape[0], (w.shape[2], w.shape[3]),
        stride=pair("stride"), padding=pair("padding"), dilation=pair("dilation"),
        groups=node.ints("groups")[0], direction=direction, dtype=dtype, last=last,
    )  # fmt: skip


def _launch(builder: Builder, problem: Convolution, reads: Sequence[Ref], out: Ref) -> None:
    """Add the kernels of a pass, which read and write the network's tensors.

    Templates have operands of their own, some larger (whole tiles): one that fits is put where the network's
    nearest in size is. Each TB may touch all of the network's tensors either way.
    """
    told, others = choose_convolution(problem)
    kernels = library_convolution(told, others, problem, builder.scratch)
    builder.flops += int(problem.flops)
    result = next(a.tensor for a in kernels[-1].accesses if a.mode != "read" and a.tensor.name != "order")
    tensors = [reach(builder, ref) for ref in reads]
    stands: dict[int, Tensor] = {result.address: reach(builder, out)}
    written: set[int] = set()
    sizes: dict[int, int] = {}
    for kernel in kernels:
        for access in kernel.accesses:
            at = access.tensor.address
            sizes[at] = max(sizes.get(at, 0), access.tensor.nbytes)
            if access.mode == "read" and at not in written and at not in stands:
                stands[at] = min(tensors, key=lambda t: abs(math.log(t.nbytes / access.tensor.nbytes)))
        written |= {a.tensor.address for a in kernel.accesses if a.mode != "read"}
    for tensor in builder.scratch.tensors:
        there = stands.get(tensor.address)
        if there is not None and max(tensor.nbytes, sizes[tensor.address]) <= there.nbytes:
            builder.bind(tensor, there)
    named = max(kernels, key=lambda kernel: (len(kernel.args) > 2, kernel.tbs))
    for kernel in kernels:
        made = replace(kernel, name=f"conv_{kernel.name}", accesses=_touched(kernel, stands))
        builder.launch([made], library=told.name if kernel is named and not kernel.library else "")


def _touched(kernel: Kernel, stands: dict[int, Tensor]) -> tuple[Access, ...]:
    """Return what a kernel touches: of what stands for the network's tensors those, too."""
    own = [whole(stands[a.tensor.address], a.mode) for a in kernel.accesses if a.tensor.address in stands]
    return (*kernel.accesses, *own)


def _images(ref: Ref) -> Images:
    if len(ref.shape) != 4 or not ref.contiguous or ref.dtype != "fp32":
        raise WorkloadError(
            f"images of {ref.shape} {ref.dtype}, strides {ref.strides}: fp32 with channels first"
        )
    return Images(*ref.shape)


def batch_norm_evaluation(builder: Builder, node: Node) -> None:
    """``native_batch_norm`` with known statistics; in training it has no template."""
    if node.flag("training"):
        raise WorkloadError("batch normalisation in training: no template")
    x, out = node.ref("input"), node.outputs[0]
    images = _images(x)
    numbers = [node.optional(name) for name in ("running_mean", "running_var", "weight", "bias")]
    statistics = builder.scratch.tensor("statistics", 4, images.channels, ITEM)
    rows = images.count * images.channels
    a, made = (builder.matrix(ref, rows, images.pixels) for ref in (x, out))
    kernel = batch_norm(a, statistics, made, images)
    known = tuple(whole(builder.flat(ref)) for ref in numbers if ref is not None)
    builder.launch([replace(kernel, accesses=(*kernel.accesses, *known))])


def max_pooling(builder: Builder, node: Node) -> None:
    """``max_pool2d_with_indices``: the largest pixel of each window, and its place."""
    x, (out, places) = node.ref("self"), node.outputs
    images = _images(x)
    side, stride, pad = (
        node.ints(name) or node.ints("kernel_size") for name in ("kernel_size", "stride", "padding")
    )
    if (
        len({*side}) > 1
        or len({*stride}) > 1
        or len({*pad}) > 1
        or node.ints("dilation") not in ((1,), (1, 1))
    ):
        raise WorkloadError("pooling of windows that are no squares, or dilated: no template")
    window = Window(side[0], stride[0], pad[0])
    planes, size = images.count * images.channels, prod(out.shape[2:])
    tensors = (
        builder.matrix(x, planes, images.pixels),
        builder.matrix(out, planes, size),
        builder.matrix(places, planes, size),
    )
    builder.launch([max_pool(*tensors, images, window)])
