"""Convolutions on a tape with their gradients: kernels follow from sizes, type and device.

A tensor of images has a row for each channel of each image. On an H200 and an H100 kernels are those that
cuDNN's heuristics choose (``library.choose_convolution``): PyTorch asks them, as ``benchmark`` is off. Where
a pixel's bytes are is not known of these, so each of their thread blocks is taken to need all operands
(``convolution._coarse``): schemes that are finer than kernels win nothing at such a convolution. On GPUs of
Volta, on Ampere in fp32, and for the few sizes that no template fits, tiled kernels stand in (``tiled``),
whose thread blocks need rows of pixels. bf16 was not measured: kernels of fp16 stand in. Backward PyTorch
launches the gradient of the images, then that of the filters, then that of the bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework.autocast import narrow, stored_item
from pysim.workloads.framework.tape import one
from pysim.workloads.library.choices.by_cost import has_bf16
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.convolutions.nearest import implicit_convolution, nearest_convolution
from pysim.workloads.library.convolutions.shape import Convolution
from pysim.workloads.library.images.windows import (
    add_bias,
    bias_gradient,
    depthwise,
    depthwise_backward,
    depthwise_filters,
)
from pysim.workloads.library.memory.images import Images, Window
from pysim.workloads.library.memory.pointwise_parts import flat, item_of, whole

from .tiled import by_tiles

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory
    from pysim.workloads.framework.tape import Gradients, Tape, Value
    from pysim.workloads.library.moved import Launches

ON_AMPERE, FOR_AMPERE = ", as measured on an H200", ", for Ampere"
BRAIN = stand_in("of fp16, for bf16", measured=False)
ORDER = "order"  # a word that orders the kernels of a call


def conv2d(
    tape: Tape,
    x: Value,
    images: Images,
    filters: int,
    window: Window,
    dtype: str,
    *,
    bias: bool = False,
    groups: int = 1,
) -> tuple[Value, Images]:
    """Return the convolution of images with ``filters`` of a window, and what its results are.

    ``groups``: 1, or as many as there are channels and filters (depthwise). Raises WorkloadError for other
    groups, for images that the window is larger than, and for what has no kernel.
    """
    x, dtype = narrow(tape, x), tape.amp or dtype
    _check(x, images, window, dtype)
    out = Images(images.count, filters, window.out(images.height), window.out(images.width))
    if groups == 1:
        return _dense(tape, x, images, out, window, dtype, bias=bias), out
    if groups == images.channels == filters and not bias:
        return _depthwise(tape, x, images, out, window), out
    raise WorkloadError(
        f"convolution: {groups} groups of {images.channels} channels and {filters} filters: must be 1, or as"
        " many as channels and filters, and then without a bias"
    )


def _check(x: Value, images: Images, window: Window, dtype: str) -> None:
    t = x.tensor
    if (t.rows, t.cols, t.item) != (images.count * images.channels, images.pixels, item_of(dtype)):
        raise WorkloadError(f"convolution: {t.rows} x {t.cols} of {t.item} B are not {images} of {dtype}")
    if min(window.out(images.height), window.out(images.width)) < 1:
        raise WorkloadError(
            f"convolution: windows of {window.side} x {window.side} on images of {images.height} x"
            f" {images.width}: no result"
        )


def _problem(images: Images, out: Images, window: Window, direction: str, dtype: str) -> Convolution:
    return Convolution(
        images.count, images.channels, (images.height, images.width), out.channels, (out.height, out.width),
        window.side**2, window.stride**2, direction, dtype, False,  # type: ignore[arg-type]
    )  # fmt: skip


def _dense(
    tape: Tape, x: Value, images: Images, out: Images, window: Window, dtype: str, *, bias: bool
) -> Value:
    item, taps = x.tensor.item, window.side**2
    weight = narrow(
        tape, tape.parameter("filters", out.channels, images.channels * taps, stored_item(tape, item))
    )

    known = "fp16" if dtype == "bf16" else dtype

    def launch(direction: str, name: str, shape: tuple[int, int], *read: Tensor) -> Tensor:
        problem = _problem(images, out, window, direction, known)

        def make() -> Launches:
            kernels = _chosen(tape, problem)
            if kernels:
                made = room(tape, name, shape, item, kernels)
                kernels = placed(kernels, read, made, tape.memory)
            else:
                made = tape.memory.tensor(name, *shape, item)
                kernels = by_tiles(tape.device, direction, images, out, window, known, (*read, made))
            return kernels if known == dtype else list(map(of_brain, kernels)), (made,)

        tape.work(out.count * out.pixels, out.channels, images.channels * taps)
        return tape.call(("convolution", problem, window, tape.device, dtype), read, make)[0]

    shape = out.count * out.channels, out.pixels
    made = launch("forward", "convolved", shape, x.tensor, weight.tensor)
    biases = (narrow(tape, tape.parameter("bias", 1, out.channels, stored_item(tape, item))),) if bias else ()
    tape.launch(add_bias(made, each.tensor, out.channels) for each in biases)  # in place

    def backward(given: Gradients) -> Gradients:
        gradient, of_x = one(given), None
        if x.wanted:
            like = x.tensor.rows, x.tensor.cols
            of_x = launch("backward_data", "grad_images", like, gradient, weight.tensor)
        like = weight.tensor.rows, weight.tensor.cols
        of_weight = launch("backward_weights", "grad_filters", like, x.tensor, gradient)
        sums = [tape.memory.tensor("grad_bias", 1, out.channels, item) for _ in biases]
        tape.launch(bias_gradient(gradient, each, out.channels) for each in sums)
        return of_x, of_weight, *sums

    return tape.record((made,), (x, weight, *biases), backward)[0]


def of_brain(kernel: Kernel) -> Kernel:
    """Return a kernel of fp16 that stands in for one of bf16."""
    return replace(kernel, library=f"{kernel.library}, {BRAIN}" if kernel.library else BRAIN)


def _chosen(tape: Tape, problem: Convolution) -> list[Kernel]:
    """Return the library's kernels, or none before Hopper and for fp32 where no template fits.

    On Ampere fp16 has the implicit GEMMs for Ampere that cuDNN takes on an H200, as it has on Hopper where
    none of its own fits.
    """
    if tape.device not in HOPPER:
        half = problem.dtype == "fp16" and has_bf16(tape.device)
        return implicit_convolution(problem, tape.memory, ON_AMPERE) if half else []
    try:
        return nearest_convolution(problem, tape.memory)
    except WorkloadError:
        made = implicit_convolution(problem, tape.memory, FOR_AMPERE) if problem.dtype == "fp16" else []
        if not made and problem.dtype != "fp32":
            raise
        return made


def room(tape: Tape, name: str, shape: tuple[int, int], item: int, kernels: Sequence[Kernel]) -> Tensor:
    """Return a new tensor with as much memory behind it as the kernels that make it write: whole tiles."""
    address = _result(kernels).address
    most = max(a.tensor.nbytes for k in kernels for a in k.accesses if a.tensor.address == address)
    root = tape.memory.tensor(name, 1, max(shape[0] * shape[1], -(-most // item)), item)
    return Tensor(name, *shape, item, root.address)


def _result(kernels: Sequence[Kernel]) -> Tensor:
    """Return what the last kernel writes."""
    return next(a.tensor for a in kernels[-1].accesses if a.mode != "read" and a.tensor.name != ORDER)


def biased(tape: Tape, y: Value, out: Images) -> Value:
    """Return ``y`` plus a number of each channel, added in place."""
    bias = narrow(tape, tape.parameter("bias", 1, out.channels, stored_item(tape, y.tensor.item)))
    tape.launch([add_bias(y.tensor, bias.tensor, out.channels)])

    def backward(given: Gradients) -> Gradients:
        made = tape.memory.tensor("grad_bias", 1, out.channels, y.tensor.item)
        tape.launch([bias_gradient(one(given), made, out.channels)])
        return one(given), made

    return tape.record((y.tensor,), (y, bias), backward)[0]


def _depthwise(tape: Tape, x: Value, images: Images, out: Images, window: Window) -> Value:
    """Return each channel convolved for itself, by PyTorch's own kernels: bound by bandwidth."""
    item, channels = x.tensor.item, images.channels
    weight = narrow(tape, tape.parameter("filters", channels, window.side**2, stored_item(tape, item)))
    made = tape.memory.tensor("convolved", out.count * channels, out.pixels, item)
    tape.launch([depthwise(x.tensor, weight.tensor, made, images, window)])
    tape.work(out.count * out.pixels, channels, window.side**2)

    def backward(given: Gradients) -> Gradients:
        gradient, like, of_x = one(given), tape.memory.tensor, None
        if x.wanted:
            of_x = like("grad_images", x.tensor.rows, x.tensor.cols, item)
            tape.launch([depthwise_backward(gradient, weight.tensor, of_x, images, window)])
            tape.work(out.count * out.pixels, channels, window.side**2)
        of_weight = like("grad_filters", channels, window.side**2, item)
        tape.launch([depthwise_filters(x.tensor, gradient, of_weight, channels)])
        tape.work(out.count * out.pixels, channels, window.side**2)
        return of_x, of_weight

    return tape.record((made,), (x, weight), backward)[0]


def placed(kernels: Sequence[Kernel], read: Sequence[Tensor], result: Tensor, memory: Memory) -> list[Kernel]:
    """Return a convolution's kernels with their operands where the network's tensors are.

    Templates of convolutions allocate operands themselves, some larger than they are (whole tiles). What they
    read before they write it stands for that of ``read`` whose size it is nearest to, what the last kernel
    writes for ``result``, behind which there is room. An operand that fits is moved there; one that does not
    stays where it is. Either way the kernel is declared to touch all of the network's tensor.
    """
    own = _result(kernels).address
    stands = {own: result}
    written: set[int] = set()
    for kernel in kernels:
        for access in kernel.accesses:
            at = access.tensor.address
            if access.mode == "read" and at not in written and at not in stands:
                stands[at] = min(read, key=lambda t: abs(math.log(t.nbytes / access.tensor.nbytes)))
        written |= {access.tensor.address for access in kernel.accesses if access.mode != "read"}
    places = _Places(stands, own, _larger(kernels, stands, memory))
    made = [places.moved(kernel) for kernel in kernels]
    missing = [whole(flat(t)) for t in read if not any(t is there for there in stands.values())]
    return [replace(made[0], accesses=(*made[0].accesses, *missing)), *made[1:]]


def _larger(kernels: Sequence[Kernel], stands: Mapping[int, Tensor], memory: Memory) -> dict[int, int]:
    """Return new addresses for operands within a call that are larger than what was allocated for them."""
    most: dict[int, int] = {}
    for kernel in kernels:
        for tensor in (*kernel.args, *(access.tensor for access in kernel.accesses)):
            if tensor.address not in stands or tensor.nbytes > stands[tensor.address].nbytes:
                most[tensor.address] = max(tensor.nbytes, most.get(tensor.address, 0))
    held = {tensor.address: tensor.nbytes for tensor in memory.tensors if tensor.address in most}
    short = [address for address, size in most.items() if size > held[address]]
    return {address: memory.tensor("operand", 1, most[address], 1).address for address in short}


@dataclass(frozen=True, slots=True)
class _Places:
    """Which tensor of the network stands for what a template has at an address; ``own``: of its result.

    ``apart``: addresses of memory of its own that had no room for all that the template has there.
    """

    stands: Mapping[int, Tensor]
    own: int
    apart: Mapping[int, int]
    made: dict[Tensor, Tensor] = field(default_factory=dict)

    def fits(self, tensor: Tensor) -> bool:
        """Whether a template's tensor can be where that of the network is."""
        return tensor.address == self.own or tensor.nbytes <= self.stands[tensor.address].nbytes

    def at(self, tensor: Tensor) -> Tensor:
        """Return a template's tensor at its new place, one new tensor wherever kernels name it."""
        if tensor not in self.made:
            self.made[tensor] = self._at(tensor)
        return self.made[tensor]

    def _at(self, tensor: Tensor) -> Tensor:
        new = self.stands.get(tensor.address)
        if new is not None and self.fits(tensor):
            return replace(tensor, address=new.address)
        return replace(tensor, address=self.apart.get(tensor.address, tensor.address))

    @staticmethod
    def boxed(kernel: Kernel) -> bool:
        """Whether a kernel copies boxes of a tensor of the template's shape, which it must declare, too."""
        return "hopper" in kernel.name

    def moved(self, kernel: Kernel) -> Kernel:
        """Return a kernel of the template with its tensors at their new places."""
        accesses = []
        for access in kernel.accesses:
            new = self.stands.get(access.tensor.address)
            if new is not None:
                accesses.append(whole(flat(new), access.mode))
            if new is None or access.tensor.nbytes > new.nbytes or self.boxed(kernel):
                accesses.append(replace(access, tensor=self.at(access.tensor)))
        args = tuple(map(self.at, kernel.args))
        return replace(kernel, name=f"conv_{kernel.name}", args=args, accesses=tuple(accesses))
