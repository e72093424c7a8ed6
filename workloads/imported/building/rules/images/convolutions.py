"""Convolutions and their gradients: cuDNN's kernels, PyTorch's own where each channel is one for itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.workloads.framework.vision.tiled import by_tiles
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.rules.pointwise import element_wise, reach
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.convolutions.nearest import nearest_convolution
from pysim.workloads.library.convolutions.shape import Convolution, convolution_of
from pysim.workloads.library.images import windows
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.images import Images, Window
from pysim.workloads.library.memory.pointwise_costs import ADD
from pysim.workloads.library.memory.pointwise_parts import whole

from .parts import channels_last, images_of, laid, planes

DTYPES = {"fp16": "fp16", "bf16": "fp16", "fp32": "fp32"}  # cuDNN's kernels of bf16 are those of fp16
WITH_TF32 = "a100", *HOPPER  # devices whose tensor cores have the type
ORDER = "order"  # a word that orders the kernels of a call
# which operand of a pass are the filters: of two that are read, and the third that is made
FILTERS = {"forward": 1, "backward_data": 1, "backward_weights": 2}


def convolution(builder: Builder, node: Node) -> None:
    """``convolution``: its kernels, then the sum with the bias."""
    call = _Call.of(node, node.outputs[0])
    bias = node.optional("bias")
    call.launch(builder, "forward", (call.x, call.w), call.y, bias)
    if bias is not None and not call.depthwise:
        shape, strides = call.y.shape, tuple(int(dim == 1) for dim in range(len(call.y.shape)))
        spread = Ref(bias.storage, bias.offset, shape, strides, bias.dtype)
        element_wise(builder, "add_bias", [call.y, spread], [call.y], ADD)


def convolution_backward(builder: Builder, node: Node) -> None:
    """``convolution_backward``: gradients of images, filters and bias, as far as they are wanted."""
    call = _Call.of(node, node.ref("grad_output"))
    call = replace(call, y=laid(builder, call.y, last=call.last))
    mask = node.args["output_mask"]
    wanted = mask if isinstance(mask, tuple) else (True, True, False)
    left = iter(node.outputs)
    of_x, of_w, of_b = (next(left, None) if want else None for want in wanted)
    if of_x is not None:
        call.launch(builder, "backward_data", (call.y, call.w), _four(of_x))
    if of_w is not None:
        call.launch(builder, "backward_weights", (call.x, call.y), _four(of_w))
    if of_b is not None:
        _bias_gradient(builder, call, of_b)


def _bias_gradient(builder: Builder, call: _Call, out: Ref) -> None:
    """Add the sum over images and pixels; with channels last it is one of columns."""
    count, channels, height, width = call.y.shape
    if not call.last:
        target = builder.matrix(out, 1, channels)
        builder.launch([windows.bias_gradient(planes(builder, call.y), target, channels)])
        return
    given = builder.places.part(call.y, count * height * width, channels)
    builder.run(memory_ops.sum_columns(builder.scratch, given, cold=True), out)


def _four(ref: Ref) -> Ref:
    """Return images of one dimension, or their filters, as such with one row."""
    if len(ref.shape) != 3:
        return ref
    (count, channels, length), (apart, step, right) = ref.shape, ref.strides
    return replace(ref, shape=(count, channels, 1, length), strides=(apart, step, length * right, right))


@dataclass(frozen=True, slots=True)
class _Call:
    """A convolution of images ``x`` with filters ``w`` to ``y``, or one of its gradients."""

    x: Ref
    w: Ref
    y: Ref
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @classmethod
    def of(cls, node: Node, y: Ref) -> _Call:
        """Raise WorkloadError for convolutions that are transposed, or of volumes."""
        x, w = (_four(node.ref(name)) for name in ("input", "weight"))
        if node.flag("transposed") or len(x.shape) != 4:
            raise WorkloadError("convolution: transposed, or of other than images: no template")
        line = len(node.ref("input").shape) == 3

        def pair(name: str, least: int) -> tuple[int, int]:
            given = node.ints(name)
            return (least if line else given[0], given[-1])

        return cls(
            x, w, _four(y), pair("stride", 1), pair("padding", 0), pair("dilation", 1), node.ints("groups")[0]
        )

    @property
    def last(self) -> bool:
        """Whether channels are last, as strides say it: those of a single pixel may, too."""
        return self.x.strides == channels_last(self.x.shape) and self.x.shape[1] > 1

    @property
    def depthwise(self) -> bool:
        """Whether each channel is convolved with a filter of its own."""
        return self.groups > 1 and self.groups == self.x.shape[1] == self.w.shape[0]

    @property
    def window(self) -> Window:
        """The window; raises WorkloadError for one that is no square, or dilated."""
        pairs = self.w.shape[2:], self.stride, self.padding
        if any(first != second for first, second in pairs) or self.dilation != (1, 1):
            raise WorkloadError("convolution by windows that are no squares, or dilated: no template")
        return Window(self.w.shape[2], self.stride[0], self.padding[0])

    def problem(self, builder: Builder, direction: str) -> Convolution:
        """Return the convolution as the library knows it."""
        dtype = DTYPES.get(self.x.dtype, self.x.dtype)
        if dtype == "fp32" and "convolution" in builder.graph.tf32 and builder.device in WITH_TF32:
            dtype = "tf32"
        (count, channels, *size), (filters, _, *taps) = self.x.shape, self.w.shape
        return convolution_of(
            count, channels, (size[0], size[1]), filters, (taps[0], taps[1]), stride=self.stride,
            padding=self.padding, dilation=self.dilation, groups=self.groups, direction=direction,
            dtype=dtype, last=self.last,
        )  # fmt: skip

    def launch(
        self, builder: Builder, direction: str, reads: tuple[Ref, Ref], made: Ref, bias: Ref | None = None
    ) -> None:
        """Add the kernels of a pass that reads two tensors and makes one; a depthwise one adds ``bias``."""
        if self.depthwise:
            kernel = self._depthwise(builder, direction, reads, made)
            known = () if bias is None else (whole(builder.flat(bias)),)
            builder.launch([replace(kernel, accesses=(*kernel.accesses, *known))])
            taps = math.prod(self.w.shape[2:])
            builder.flops += 2 * self.y.elements * taps
            return
        problem = self.problem(builder, direction)
        builder.flops += int(problem.flops)
        if builder.device in HOPPER:
            try:
                _bind(builder, nearest_convolution(problem, builder.scratch), reads, made)
            except WorkloadError:
                if problem.dtype != "fp32" or self.last:
                    raise
            else:
                return
        builder.launch(self._tiles(builder, direction, reads, made, problem.dtype))

    def _images(self) -> tuple[Images, Images]:
        return images_of(self.x), images_of(self.y)

    def _tiles(
        self, builder: Builder, direction: str, reads: tuple[Ref, Ref], made: Ref, dtype: str
    ) -> list[Kernel]:
        """Return implicit GEMMs of a device whose library was not measured, and where no template fits."""
        images, out = self._images()
        operands = [planes(builder, ref) for ref in (*reads, made)]
        at = FILTERS[direction]
        operands[at] = replace(operands[at], rows=self.w.shape[0], cols=math.prod(self.w.shape[1:]))
        first, second, target = operands
        return by_tiles(builder.device, direction, images, out, self.window, dtype, (first, second, target))

    def _depthwise(self, builder: Builder, direction: str, reads: tuple[Ref, Ref], made: Ref) -> Kernel:
        images, channels = self._images()[0], self.groups
        window = self.window
        first, second, target = (planes(builder, ref) for ref in (*reads, made))
        if direction == "backward_weights":
            return windows.depthwise_filters(first, second, target, channels)
        make = windows.depthwise if direction == "forward" else windows.depthwise_backward
        return make(first, second, target, images, window)


def _bind(builder: Builder, kernels: list[Kernel], reads: Sequence[Ref], out: Ref) -> None:
    """Add the kernels of a pass, which read and write the network's tensors.

    Templates have operands of their own, some larger (whole tiles): one that fits is put where the network's
    nearest in size is. Each TB may touch all of the network's tensors either way.
    """
    result = next(a.tensor for a in kernels[-1].accesses if a.mode != "read" and a.tensor.name != ORDER)
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
    missing = [whole(t) for t in tensors if t not in stands.values()]
    for kernel in kernels:
        builder.launch([
            replace(kernel, name=f"conv_{kernel.name}", accesses=(*_touched(kernel, stands), *missing))
        ])  # fmt: skip
        missing = []


def _touched(kernel: Kernel, stands: dict[int, Tensor]) -> tuple[Access, ...]:
    """Return what a kernel touches: of what stands for the network's tensors those, too."""
    own = [whole(stands[a.tensor.address], a.mode) for a in kernel.accesses if a.tensor.address in stands]
    return (*kernel.accesses, *own)
