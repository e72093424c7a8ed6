"""Makes kernels of nodes: what rules share. Kernels' tensors are parts of the graph's storages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.workloads.framework.caching import moved
from pysim.workloads.imported.graph import ITEM, Graph, Node, Ref
from pysim.workloads.library.memory.memory_bound import Launched
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.memory.pointwise_parts import whole

from .places import Places

SCRATCH = 1 << 52  # where templates make tensors of their own, which then get a place


@dataclass(slots=True)
class Builder:
    """The kernels of the nodes so far.

    ``scratch``: the memory of templates, whose tensors are results of a node or needed by it alone.
    """

    graph: Graph
    device: str = "h200"
    kernels: list[Kernel] = field(default_factory=list)
    flops: int = 0
    places: Places = field(init=False)
    scratch: Memory = field(default_factory=lambda: Memory(SCRATCH))
    _bound: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    _ascending: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with empty places."""
        self.places = Places(self.graph)

    def node(self, node: Node, rule: Callable[[Builder, Node], None]) -> None:
        """Add the kernels of a node. Where ``rule`` raises WorkloadError nothing is added."""
        self.scratch, self._bound = Memory(SCRATCH), []
        before, flops = len(self.kernels), self.flops
        try:
            rule(self, node)
        except WorkloadError:
            del self.kernels[before:]
            self.flops = flops
            raise
        self.kernels[before:] = self._placed(self.kernels[before:])

    def done(self, number: int, node: Node) -> None:
        """Free what no later node needs."""
        self.places.free(number, node)
        self.places.free_temporary()

    def launch(self, kernels: Iterable[Kernel], *, library: str = "") -> None:
        """Add kernels; ``library``: what a reader must know of them, beside the name that they have."""
        for kernel in kernels:
            named = ", ".join(text for text in (kernel.library, library) if text)
            self.kernels.append(replace(kernel, library=named))

    def bind(self, made: Tensor, target: Tensor) -> None:
        """Put a tensor of a template where ``target`` is; its parts go with it."""
        self._bound.append((made, target))

    def run(self, launched: Launched, *outputs: Ref | None) -> None:
        """Add an operation's kernels, whose results are ``outputs``; None: nobody wants it."""
        for made, ref in zip(launched.outputs, outputs, strict=False):
            if ref is not None:
                self.bind(made, self.places.part(ref, 1, min(made.rows * made.cols, ref.elements)))
        self.launch(launched.kernels)

    def coarse(self, kernels: Iterable[Kernel]) -> list[Kernel]:
        """Return kernels each TB of which may touch all that its kernel touches."""
        return [replace(k, accesses=tuple(whole(a.tensor, a.mode) for a in k.accesses)) for k in kernels]

    def flat(self, ref: Ref) -> Tensor:
        """Return a dense tensor as one row."""
        if not ref.dense:
            raise WorkloadError(f"a tensor of {ref.shape}, strides {ref.strides}: elements are not side by side")
        return self.places.part(ref, 1, ref.elements)

    def matrix(self, ref: Ref, rows: int, cols: int, name: str = "") -> Tensor:
        """Return a contiguous tensor as a matrix."""
        if not ref.contiguous or ref.elements != rows * cols:
            raise WorkloadError(f"a tensor of {ref.shape}, strides {ref.strides}: is no {rows} x {cols} rows")
        return self.places.part(ref, rows, cols, name)

    def temporary(self, like: Ref, dtype: str = "") -> Ref:
        """Return a new contiguous tensor of a shape, which the node alone needs."""
        dtype = dtype or like.dtype
        strides, wide = [], 1
        for size in reversed(like.shape):
            strides.append(wide)
            wide *= size
        number = self.places.temporary(max(1, wide) * ITEM[dtype])
        return Ref(number, 0, like.shape, tuple(reversed(strides)), dtype)

    def indices(self, ref: Ref, below: int) -> NDArray[np.int64]:
        """Return what an index tensor may hold: ascending from an ``arange``, else drawn, the same each time."""
        if ref.storage in self._ascending:
            inner = np.arange(ref.elements, dtype=np.int64) % max(1, ref.shape[-1] if ref.shape else 1)
            return inner % below
        return drawn(ref.elements, below)

    def ascends(self, ref: Ref) -> None:
        """Remember that a tensor counts up."""
        self._ascending.add(ref.storage)

    def counts_up(self, ref: Ref) -> bool:
        """Return whether a tensor counts up."""
        return ref.storage in self._ascending

    def _placed(self, kernels: list[Kernel]) -> list[Kernel]:
        """Return kernels with each scratch tensor where its result is, or in memory of the node's own."""
        moves = [(made.address, made.address + made.nbytes, to.address - made.address) for made, to in self._bound]
        taken = []
        for tensor in self.scratch.tensors:
            if not any(low <= tensor.address < high for low, high, _ in moves):
                block = self.places.allocator.take(tensor.nbytes)
                taken.append((block, tensor.nbytes))
                end = tensor.address + max(1, tensor.nbytes)
                moves.append((tensor.address, end, block.address - tensor.address))
        for block, nbytes in taken:
            self.places.allocator.free(block, nbytes)
        known: dict[Tensor, Tensor] = {}

        def place(tensor: Tensor) -> Tensor:
            if tensor.address < SCRATCH:
                return tensor
            if tensor not in known:
                move = next((move for low, high, move in moves if low <= tensor.address < high), None)
                if move is None:
                    raise WorkloadError(f"tensor {tensor.name}: not among the template's own")
                known[tensor] = replace(tensor, address=tensor.address + move)
            return known[tensor]

        return [moved(k, place) if _uses_scratch(k) else k for k in kernels]


def _uses_scratch(kernel: Kernel) -> bool:
    tensors = (*kernel.args, *(access.tensor for access in kernel.accesses))
    return any(tensor.address >= SCRATCH for tensor in tensors)


def whole_accesses(reads: Iterable[Tensor], writes: Iterable[Tensor]) -> tuple[Access, ...]:
    """Return accesses of which each TB may touch everything."""
    return (*(whole(t) for t in reads), *(whole(t, "write") for t in writes))
