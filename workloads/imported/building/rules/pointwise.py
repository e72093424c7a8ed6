"""Element-wise operations: vectorised where all operands lie alike, else by strides (TensorIterator)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.row_aligned import row_aligned
from pysim.workloads.imported.building.slices import slices
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.memory.memory_bound import TWO_INPUTS
from pysim.workloads.library.memory.pointwise_costs import CAST, CONVERT
from pysim.workloads.library.memory.pointwise_flat import strided_each, unrolled_cast, vectorised
from pysim.workloads.library.memory.pointwise_parts import Work
from pysim.workloads.library.memory.strided import View, strided

Rule = Callable[[Builder, Node], None]
WHOLE = 1024  # elements of a TB of a vectorised kernel
COARSE = stand_in("whole-kernel dependences")


def pointwise(name: str, work: Work, *, reads_self: bool = True) -> Rule:
    """Return the rule of an operation; ``reads_self``: what it changes in place is read, too."""

    def rule(builder: Builder, node: Node) -> None:
        inputs = list(node.refs(written=False))
        changed = list(node.refs(written=True))
        if changed and reads_self:
            inputs = [*changed, *inputs]
        outputs = list(node.outputs) if node.outputs else changed
        element_wise(builder, name, inputs, outputs, work)

    return rule


def element_wise(
    builder: Builder, name: str, inputs: Sequence[Ref], outputs: Sequence[Ref], work: Work
) -> None:
    """Add the kernel of an operation on elements, whose results have one shape."""
    if not outputs[0].elements:
        return
    made = kernel_of(builder, name, inputs, outputs, work)
    exact = made is not None
    if made is None:
        made = slices(
            name, [reach(builder, ref) for ref in inputs], [reach(builder, ref) for ref in outputs], work
        )
    builder.launch([made], library="" if exact else COARSE)


def kernel_of(
    builder: Builder, name: str, inputs: Sequence[Ref], outputs: Sequence[Ref], work: Work
) -> Kernel | None:
    """Return the kernel if a template knows which TB takes what."""
    out = outputs[0]
    operands = [*inputs, *outputs]
    alike = all(ref.shape == out.shape and _order(ref) == _order(out) and ref.dense for ref in operands)
    if alike:
        reads, writes = ([builder.flat(ref) for ref in group] for group in (inputs, outputs))
        if min(ref.item for ref in operands) == 1 and out.elements % WHOLE:
            return None  # a TB that is not full takes single bytes, which the simulator does not
        cast = name == "copy" and len(inputs) == 1 and inputs[0].dtype != out.dtype
        if cast and inputs[0].item == 2 <= out.item:
            return unrolled_cast(name, reads[0], writes[0], CAST)
        registers = TWO_INPUTS.get(out.item, 32) if len(inputs) > 1 else 32
        return vectorised(name, reads, writes, converted(work, operands), registers)
    if len(outputs) > 1:
        return None
    sizes, views = _views(builder, operands)
    try:
        return strided(name, sizes, views[:-1], views[-1], work, strided_each(out.item), full=True)
    except WorkloadError:
        pass
    try:
        return row_aligned(name, sizes, views[:-1], views[-1], work)
    except WorkloadError:
        return None


def converted(work: Work, operands: Sequence[Ref]) -> Work:
    """Add the conversions of an element of each operand of 2 B."""
    halves = sum(ref.dtype in ("fp16", "bf16") for ref in operands)
    return replace(work, ints=work.ints + CONVERT * halves)


def reach(builder: Builder, ref: Ref) -> Tensor:
    """Return all elements of a storage between the first and the last of a tensor."""
    return builder.places.part(ref, 1, max(1, ref.span))


def _order(ref: Ref) -> tuple[int, ...]:
    """Return the strides of dimensions that have more than one place."""
    return tuple(stride for stride, size in zip(ref.strides, ref.shape, strict=True) if size > 1)


def _views(builder: Builder, operands: Sequence[Ref]) -> tuple[list[int], list[View]]:
    """Return the sizes of an operation, innermost first in its result, and each operand as it sees it."""
    out = operands[-1]
    order = sorted(range(len(out.shape)), key=lambda d: (out.strides[d], -d))
    order = [d for d in order if out.shape[d] > 1] or order[:1]
    sizes = [out.shape[d] for d in order] or [1]
    views = []
    for ref in operands:
        missing = len(out.shape) - len(ref.shape)
        strides = []
        for d in order:
            at = d - missing
            strides.append(0 if at < 0 or ref.shape[at] == 1 else ref.strides[at])
        views.append(_view(builder, ref, sizes, tuple(strides) or (0,)))
    return sizes, views


def _view(builder: Builder, ref: Ref, sizes: Sequence[int], strides: tuple[int, ...]) -> View:
    """Return a view; rows of its tensor are as long as the distance at which neighbours end."""
    steps = sorted((stride, size) for stride, size in zip(strides, sizes, strict=True) if stride and size > 1)
    wide, pitch = 1, 0
    for stride, size in steps:
        if stride != wide:
            pitch = stride
            break
        wide *= size
    if pitch:
        col = ref.offset % pitch
        try:
            tensor, col = builder.places.rows(ref, pitch, -(-(col + ref.span) // pitch))
            return View(tensor, strides, col)
        except WorkloadError:
            pass  # the last row is not whole
    return View(builder.places.part(ref, 1, max(1, ref.span)), strides)


def side_by_side(builder: Builder, ref: Ref) -> Ref:
    """Return a tensor, or a copy that is contiguous, for a kernel of PyTorch that takes no strides."""
    if ref.contiguous:
        return ref
    made = builder.temporary(ref)
    element_wise(builder, "copy", [ref], [made], Work())
    return made
