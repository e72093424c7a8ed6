"""Operations on rows: normalisation, softmax, sums and their like, losses."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.slices import slices
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import row_passes
from pysim.workloads.library.memory.memory_bound import Launched
from pysim.workloads.library.memory.pointwise_costs import ADD
from pysim.workloads.library.memory.pointwise_parts import Work

from .pointwise import COARSE, element_wise, reach, side_by_side

Rule = Callable[[Builder, Node], None]
MOST_WARP = 2048  # columns of a softmax that a warp computes; longer rows take a TB each
AS_SUM, AS_SOFTMAX = stand_in("the kernel of a sum"), stand_in("the kernel of a softmax")


def layer_norm(builder: Builder, node: Node) -> None:
    """``native_layer_norm``: result, mean and 1 / deviation."""
    x = side_by_side(builder, node.ref("input"))
    rows, cols = _normalised(node, x)
    scale, shift = (_vector(builder, node, name, cols, x) for name in ("weight", "bias"))
    launched = memory_ops.layer_norm(builder.scratch, builder.matrix(x, rows, cols), scale, shift)
    builder.run(Launched(launched.kernels, launched.outputs[:1]), node.outputs[0])
    for made, ref in zip(launched.outputs[1:], node.outputs[1:], strict=True):
        builder.bind(made, builder.places.values(ref, made.rows, 4))


def layer_norm_backward(builder: Builder, node: Node) -> None:
    """``native_layer_norm_backward``: gradients of input, scale and shift, as far as they are wanted."""
    x = side_by_side(builder, node.ref("input"))
    rows, cols = _normalised(node, x)
    statistics = [builder.places.values(node.ref(name), rows, 4) for name in ("mean", "rstd")]
    scale = _vector(builder, node, "weight", cols, x)
    given = builder.matrix(side_by_side(builder, node.ref("grad_out")), rows, cols)
    a = builder.matrix(x, rows, cols)
    pair = statistics[0], statistics[1]
    launched = memory_ops.layer_norm_backward(builder.scratch, given, a, scale, pair)
    wanted = node.args["output_mask"]
    left = iter(node.outputs)
    outputs = [next(left, None) if want else None for want in (wanted if isinstance(wanted, tuple) else ())]
    builder.run(launched, *outputs)


def _normalised(node: Node, x: Ref) -> tuple[int, int]:
    cols = prod(node.ints("normalized_shape"))
    return x.elements // cols, cols


def _vector(builder: Builder, node: Node, name: str, cols: int, like: Ref) -> Tensor:
    """Return scale or shift; where the module has none, a tensor of its own stands in."""
    ref = node.optional(name)
    if ref is None:
        return builder.scratch.tensor(name, 1, cols, like.item)
    return builder.matrix(ref, 1, cols, name)


def softmax(builder: Builder, node: Node) -> None:
    """``_softmax`` and its like: rows of up to 2,048 elements by warps, longer ones by TBs."""
    x, out = node.ref("self"), node.outputs[0]
    rows, cols = _rows_of(node, x)
    log = "log" in node.op
    if cols > MOST_WARP or x.dtype != out.dtype:
        kernel = row_passes.log_softmax_rows(builder.matrix(x, rows, cols), builder.matrix(out, rows, cols))
        builder.launch([kernel])
        return
    launched = memory_ops.softmax(builder.scratch, builder.matrix(x, rows, cols))
    builder.bind(launched.outputs[0], builder.matrix(out, rows, cols))
    builder.launch(launched.kernels, library=AS_SOFTMAX if log else "")


def softmax_backward(builder: Builder, node: Node) -> None:
    """``_softmax_backward_data`` and that of a log-softmax, which has no product before it."""
    given, made, out = node.ref("grad_output"), node.ref("output"), node.outputs[0]
    rows, cols = _rows_of(node, made)
    log = "log" in node.op
    gradient, output, target = (builder.matrix(ref, rows, cols) for ref in (given, made, out))
    if cols > MOST_WARP or given.dtype != out.dtype:
        builder.launch([row_passes.log_softmax_backward_rows(gradient, output, target)])
        return
    launched = memory_ops.softmax_backward(builder.scratch, gradient, output)
    kernels = launched.kernels
    if log:  # the kernel of rows takes the gradient as it is
        builder.bind(kernels[0].args[-1], gradient)
        kernels = kernels[1:]
    builder.bind(launched.outputs[0], target)
    builder.launch(kernels, library=AS_SOFTMAX if log else "")


def nll_loss(builder: Builder, node: Node) -> None:
    """``nll_loss_forward``: the mean over rows of the target's element."""
    values, targets = node.ref("self"), node.ref("target")
    rows, cols = targets.elements, values.shape[-1]
    kernel = row_passes.nll_rows(
        builder.matrix(values, rows, cols), builder.flat(targets), builder.flat(node.outputs[0])
    )
    builder.launch([kernel])


def nll_loss_backward(builder: Builder, node: Node) -> None:
    """``nll_loss_backward``: zeros, then an element of each row."""
    targets, out = node.ref("target"), node.outputs[0]
    rows, cols = targets.elements, out.shape[-1]
    element_wise(builder, "fill", [], [out], Work())
    given = builder.flat(node.ref("grad_output"))
    builder.launch(
        [row_passes.nll_backward_rows(given, builder.flat(targets), builder.matrix(out, rows, cols))]
    )


def _rows_of(node: Node, x: Ref) -> tuple[int, int]:
    (dim,) = node.ints("dim")
    if dim % len(x.shape) != len(x.shape) - 1:
        raise WorkloadError(f"{node.op} along dimension {dim} of {x.shape}: the last one alone")
    return x.elements // x.shape[-1], x.shape[-1]


def reduction(*, exact: bool = False) -> Rule:
    """Return the rule of a reduction along some dimensions; ``exact``: the kernel of a sum is its own."""

    def rule(builder: Builder, node: Node) -> None:
        if not node.ref("self").elements:
            return
        try:
            launched = _summed(builder, node)
        except WorkloadError:  # dimensions in between, sizes that are no vectors
            reads, writes = [reach(builder, node.ref("self"))], [reach(builder, ref) for ref in node.outputs]
            name = node.op.partition(".")[2]
            builder.launch([slices(name, reads, writes, ADD.times(8))], library=COARSE)
            return
        made, out = launched.outputs[0], node.outputs[0]
        builder.bind(made, builder.places.values(out, made.rows * made.cols, made.item))
        builder.launch(launched.kernels, library="" if exact else AS_SUM)

    return rule


def _summed(builder: Builder, node: Node) -> Launched:
    """Return the kernels of a sum; raise WorkloadError where there are none for the shape."""
    x = node.ref("self")
    shape = _reduced(node, x)
    if shape is None or x.item not in (1, 2, 4):
        raise WorkloadError(f"{node.op} of {x.shape} {x.dtype}: no template")
    way, rows, cols = shape
    if x.item == 1 and way != "rows":
        raise WorkloadError(f"{node.op} of bytes, {way}: no template")
    a = builder.matrix(x, rows, cols)
    if way == "all":
        return memory_ops.sum_all(builder.scratch, a)
    return (memory_ops.sum_rows if way == "rows" else memory_ops.sum_columns)(builder.scratch, a, cold=True)


def _reduced(node: Node, x: Ref) -> tuple[str, int, int] | None:
    """Return whether rows, columns or all are added, and rows and columns; None: dimensions in between."""
    dims = sorted({dim % len(x.shape) for dim in node.ints("dim")}) if x.shape else []
    many = len(x.shape)
    if not dims or len(dims) == many:
        return "all", 1, x.elements
    if dims == list(range(many - len(dims), many)):
        cols = prod(x.shape[dim] for dim in dims)
        return "rows", x.elements // cols, cols
    if dims == list(range(len(dims))):
        rows = prod(x.shape[dim] for dim in dims)
        return "columns", rows, x.elements // rows
    return None
