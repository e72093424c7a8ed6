"""Kernels for what has no template of its own: so many bytes, read and written."""

from __future__ import annotations

from collections.abc import Iterable

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.imported.building.builder import Builder
from pysim.workloads.imported.building.slices import slices
from pysim.workloads.imported.graph import Node
from pysim.workloads.library.memory.pointwise_parts import Work

from .attention_products import by_products
from .pointwise import reach

STANDS_IN = stand_in("so many bytes")
PLACES = Work(ints=40, control=4)  # addresses from indices, by reason
WORK = Work(fp32=8, ints=8)


def moving(builder: Builder, node: Node) -> None:
    """Add a kernel that reads and writes the bytes of an operation whose places data decides."""
    _bytes(builder, node, PLACES, STANDS_IN)


def approximate(builder: Builder, node: Node) -> None:
    """Add kernels for an operator without a template: attention by products, else so many bytes."""
    if "scaled_dot_product" in node.op:
        try:
            by_products(builder, node, f"approximate: {node.op}")
        except WorkloadError:
            pass
        else:
            return
    _bytes(builder, node, WORK, f"approximate: {node.op}")


def _bytes(builder: Builder, node: Node, work: Work, library: str) -> None:
    reads = [reach(builder, ref) for ref in node.refs() if ref.elements]
    changed = [ref for ref in node.refs(written=True) if ref.elements]
    writes = [reach(builder, ref) for ref in (*node.outputs, *changed) if ref.elements]
    if reads or writes:
        name = node.op.partition(".")[2].strip("_")
        builder.launch([slices(name, reads, _once(writes), work)], library=library)


def _once(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Return tensors without those that are the same memory."""
    return list({(tensor.address, tensor.nbytes): tensor for tensor in tensors}.values())
