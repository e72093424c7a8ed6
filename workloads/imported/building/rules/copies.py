"""Operations that move data: fills, concatenations, rows of tables, dropout."""

from __future__ import annotations

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Kernel
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.slices import slices
from pysim.workloads.imported.graph import Node, Ref
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.broadcast import masked_scale
from pysim.workloads.library.memory.cat_copy import Columns, cat, cat_columns
from pysim.workloads.library.memory.embedding_backward import MOST, SIDE, embedding_backward
from pysim.workloads.library.memory.embedding_sorted import embedding_backward_sorted
from pysim.workloads.library.memory.pointwise_costs import MUL
from pysim.workloads.library.memory.pointwise_gather import gather
from pysim.workloads.library.memory.pointwise_parts import Work

from .pointwise import COARSE, WHOLE, element_wise, reach, side_by_side

CAT_ELEMENT = Work(ints=62, control=2)  # places of an element in source and target, as cat_copy has them
ELEMENTS = stand_in("the kernel of rows that are no vectors", measured=False)
MEMORY_ORDER = stand_in("rows in the order of memory")


def fill(builder: Builder, node: Node) -> None:
    """``zeros`` and its like: a kernel that reads nothing."""
    element_wise(builder, "fill", [], list(node.outputs) or list(node.refs(written=True)), Work())


def arange(builder: Builder, node: Node) -> None:
    """``arange``: numbers that count up, which an embedding may take as its rows."""
    builder.ascends(node.outputs[0])
    fill(builder, node)


def copied(builder: Builder, node: Node) -> None:
    """``clone``, ``copy_`` and ``_to_copy``: what changes type or layout, or takes new memory."""
    source = next(node.refs(written=False), None)
    target = next(iter(node.outputs), None) or next(node.refs(written=True))
    if source is not None and builder.counts_up(source):
        builder.ascends(target)
    element_wise(builder, "copy", [source] if source is not None else [], [target], Work())


def concatenation(builder: Builder, node: Node) -> None:
    """``cat``: one kernel for all tensors."""
    sources = [ref for ref in node.refs_in("tensors") if ref.elements]
    out = node.outputs[0]
    dim = node.ints("dim")[0] % len(out.shape) if node.ints("dim") else 0
    if not sources:
        return
    if len(sources) == 1 and sources[0].shape == out.shape:
        element_wise(builder, "cat", sources, [out], CAT_ELEMENT)
        return
    try:
        kernel, library = _concatenation(builder, sources, out, dim)
    except WorkloadError:
        reads = [reach(builder, ref) for ref in sources]
        kernel, library = slices("cat", reads, [reach(builder, out)], CAT_ELEMENT), COARSE
    builder.launch([kernel], library=library)


def _concatenation(builder: Builder, sources: list[Ref], out: Ref, dim: int) -> tuple[Kernel, str]:
    sizes = {ref.elements for ref in sources}
    if len(sizes) > 1 or any(ref.dtype != out.dtype for ref in sources):
        raise WorkloadError("cat: tensors of one size and type are known alone")
    outer = int(np.prod(out.shape[:dim], dtype=np.int64))
    if outer == 1:
        return cat([builder.flat(ref) for ref in sources], builder.flat(out)), ""
    cols = sources[0].elements // outer
    columns = [_columns(builder, ref, outer, cols) for ref in sources]
    kernel = cat_columns(columns, cols, builder.matrix(out, outer, cols * len(sources)))
    return kernel, "" if all(ref.contiguous for ref in sources) else MEMORY_ORDER


def _columns(builder: Builder, ref: Ref, rows: int, cols: int) -> Columns:
    """Return rows of ``cols`` neighbours, or such columns of wider rows that fill a block of memory."""
    if ref.contiguous:
        return Columns(builder.matrix(ref, rows, cols))
    steps = sorted((stride, size) for stride, size in zip(ref.strides, ref.shape, strict=True) if size > 1)
    if steps[0] != (1, cols):
        raise WorkloadError("cat: rows of several parts")
    pitch = wide = steps[1][0]
    for stride, size in steps[1:]:
        if stride != wide:
            raise WorkloadError("cat: rows that are apart")
        wide *= size
    tensor, col = builder.places.rows(ref, pitch, rows)
    return Columns(tensor, col)


def embedding(builder: Builder, node: Node) -> None:
    """``embedding``: rows of a table; which ones is drawn, unless indices count up."""
    table, index, out = node.ref("weight"), node.ref("indices"), node.outputs[0]
    rows, cols = table.shape
    taken = builder.indices(index, rows)
    index = side_by_side(builder, index)  # reshaped, which copies repeated indices
    try:
        kernel = gather(
            builder.matrix(table, rows, cols),
            builder.flat(index),
            builder.matrix(out, index.elements, cols),
            taken,
        )
    except WorkloadError:  # rows that are no whole vectors: another kernel, an element a thread
        reads = [reach(builder, table), reach(builder, index)]
        kernel = slices("gather", reads, [reach(builder, out)], CAT_ELEMENT)
        builder.launch([kernel], library=f"{ELEMENTS}, {COARSE}")
        return
    builder.launch([kernel])


def embedding_gradient(builder: Builder, node: Node) -> None:
    """``embedding_dense_backward``: zeros, to which rows are added."""
    given, index, out = node.ref("grad_output"), node.ref("indices"), node.outputs[0]
    rows, cols = out.shape
    taken = builder.indices(index, rows)
    element_wise(builder, "fill", [], [out], Work())
    given, index = side_by_side(builder, given), side_by_side(builder, index)
    gradient, table = builder.matrix(given, index.elements, cols), builder.matrix(out, rows, cols)
    if len(taken) > MOST or len(taken) % SIDE:
        builder.launch(embedding_backward_sorted(gradient, table, taken, builder.scratch))
    else:
        builder.launch([embedding_backward(gradient, builder.flat(index), table, taken)])


def dropout(builder: Builder, node: Node) -> None:
    """``native_dropout``: the result, and a mask of a byte an element."""
    x, (out, mask) = node.ref("input"), node.outputs
    launched = memory_ops.dropout(builder.scratch, builder.flat(x))
    for made, ref in zip(launched.outputs, (out, mask), strict=True):
        builder.bind(made, builder.flat(ref))
    builder.launch(launched.kernels)


def dropout_gradient(builder: Builder, node: Node) -> None:
    """``native_dropout_backward``: the gradient where the mask lets it through."""
    given, mask, out = node.ref("grad_output"), node.ref("mask"), node.outputs[0]
    if out.elements % WHOLE:  # a TB that is not full takes single bytes of the mask
        element_wise(builder, "masked_scale", [given, mask], [out], MUL)
        return
    builder.launch([masked_scale(builder.flat(given), builder.flat(mask), builder.flat(out))])


def part_gradient(builder: Builder, node: Node) -> None:
    """``select_backward`` and ``slice_backward``: zeros, then the gradient copied into its part."""
    given, out = node.ref("grad_output"), node.outputs[0]
    element_wise(builder, "fill", [], [out], Work())
    (dim,) = node.ints("dim")
    dim %= len(out.shape)
    if "index" in node.args:
        at, shape, strides = node.ints("index")[0] % out.shape[dim], list(out.shape), list(out.strides)
        del shape[dim], strides[dim]
    else:
        at, shape, strides = (
            node.ints("start")[0] % max(1, out.shape[dim]),
            list(given.shape),
            list(out.strides),
        )
        strides[dim] *= node.ints("step")[0]
    first = out.offset + at * out.strides[dim]
    part = Ref(out.storage, first, tuple(shape), tuple(strides), out.dtype)
    element_wise(builder, "copy", [given], [part], Work())
