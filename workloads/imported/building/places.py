"""Where the storages of a graph are: addresses as PyTorch's caching allocator gives them out.

A storage is taken when the first operation that touches it runs, and freed after the last one. What has a
kind is never freed: parameters, buffers, inputs, and what a run leaves (results, gradients of parameters).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor
from pysim.workloads.framework.caching import Block, CachingAllocator
from pysim.workloads.imported.graph import Graph, Node, Ref


@dataclass(slots=True)
class Places:
    """The storages that are in memory while the kernels of a graph are made, node by node."""

    graph: Graph
    memory: Memory = field(default_factory=Memory)
    roots: dict[int, Tensor] = field(default_factory=dict)
    allocator: CachingAllocator = field(init=False)
    _last: dict[int, int] = field(default_factory=dict)
    _blocks: dict[int, Block] = field(default_factory=dict)
    _made: int = 0

    def __post_init__(self) -> None:
        """Find the last node of each storage."""
        self.allocator = CachingAllocator(self.memory)
        for number, node in enumerate(self.graph.nodes):
            for storage in _touched(node):
                self._last[storage] = number

    def root(self, storage: int) -> Tensor:
        """Return a storage as a tensor of bytes; take memory for it if it has none."""
        if storage not in self.roots:
            about = self.graph.storages[storage]
            nbytes = max(1, about.nbytes)
            name = about.kind or "tensor"
            if about.kind:
                self.roots[storage] = self.memory.tensor(name, 1, nbytes, 1)
            else:
                block = self._blocks[storage] = self.allocator.take(nbytes)
                self.roots[storage] = Tensor(name, 1, nbytes, 1, block.address)
        return self.roots[storage]

    def temporary(self, root: Tensor) -> int:
        """Give a tensor a number, which no storage of the graph has, until :meth:`forget_temporary`."""
        self._made -= 1
        self.roots[self._made] = root
        return self._made

    def forget_temporary(self) -> None:
        """Forget the tensors of :meth:`temporary`."""
        for number in range(self._made, 0):
            del self.roots[number]
        self._made = 0

    def free(self, number: int, node: Node) -> None:
        """Free the storages that no node after ``node``, the ``number``-th, touches."""
        for storage in sorted(_touched(node)):
            if self._last[storage] == number and storage in self._blocks:
                self.allocator.free(self._blocks.pop(storage), self.roots.pop(storage).nbytes)

    def part(self, ref: Ref, rows: int, cols: int, name: str = "") -> Tensor:
        """Return ``rows`` x ``cols`` elements from the first of ``ref`` on, one behind another."""
        root = self.root(ref.storage)
        made = Tensor(name or root.name, rows, cols, ref.item, root.address + ref.offset * ref.item)
        if made.address + made.nbytes > root.address + root.nbytes:
            raise WorkloadError(
                f"{rows} x {cols} elements of {ref.item} B from {ref.offset} on: not in their storage"
            )
        return made

    def values(self, ref: Ref, count: int, item: int) -> Tensor:
        """Return ``count`` elements of ``item`` B, of which a storage has room for as many or half of them.

        CUDA keeps statistics of 16-bit rows in fp32, where tensors without data have them in 16 bits: what
        does not fit is left out of the tensor.
        """
        root = self.root(ref.storage)
        room = max(1, (root.nbytes - ref.offset * ref.item) // item)
        return Tensor(root.name, min(count, room), 1, item, root.address + ref.offset * ref.item)

    def rows(self, ref: Ref, pitch: int, count: int, name: str = "") -> tuple[Tensor, int]:
        """Return ``count`` whole rows of ``pitch`` elements that hold ``ref``, and its first column."""
        col = ref.offset % pitch
        begin = Ref(ref.storage, ref.offset - col, ref.shape, ref.strides, ref.dtype)
        return self.part(begin, count, pitch, name), col


def _touched(node: Node) -> set[int]:
    return {ref.storage for ref in (*node.refs(), *node.outputs)}
