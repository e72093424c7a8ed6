"""Makes kernels of nodes: what rules share. Kernels' tensors are parts of the graph's storages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.workloads.framework.tape import OTHER
from pysim.workloads.imported.graph import ITEM, Graph, Node, Ref
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.memory.memory_bound import Launched
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.memory.pointwise_parts import whole
from pysim.workloads.library.moved import Moves

from .aligned import shifted
from .made import SCRATCH, Made, at_new_places, given_of, key_of, storages_of
from .places import Places

Rule = Callable[["Builder", Node], None]


@dataclass(slots=True)
class Builder:
    """The kernels of the nodes so far.

    ``scratch``: the memory of templates, whose tensors are results of a node or needed by it alone.
    ``events``: pairs of kernels, the later of which waits in another stream.
    """

    graph: Graph
    device: str = "h200"
    kernels: list[Kernel] = field(default_factory=list)
    flops: int = 0
    events: list[tuple[int, int]] = field(default_factory=list)
    places: Places = field(init=False)
    scratch: Memory = field(default_factory=lambda: Memory(SCRATCH))
    _launched: list[Kernel] = field(default_factory=list)
    _events: list[tuple[int, int]] = field(default_factory=list)
    _bound: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    _ascending: set[int] = field(default_factory=set)
    _made: dict[Hashable, Made] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with empty places."""
        self.places = Places(self.graph)

    def node(self, node: Node, rule: Rule) -> None:
        """Add the kernels of a node. Where ``rule`` raises WorkloadError nothing is added."""
        storages = storages_of(node)
        sizes = [self.graph.storages[number].nbytes for number in storages]
        key = key_of(node, sizes, [number in self._ascending for number in storages])
        made = self._made.get((rule, key)) if key is not None else None
        if made is None:
            made = self._make(node, rule, storages)
            if key is not None:
                self._made[rule, key] = made
        if made.error:
            raise WorkloadError(made.error)
        self._add(node, made, storages)

    def done(self, number: int, node: Node) -> None:
        """Free what no later node needs."""
        self.places.free(number, node)

    def _make(self, node: Node, rule: Rule, storages: list[int]) -> Made:
        """Return what a rule makes of a node."""
        self.scratch, self._bound, self._launched, flops = Memory(SCRATCH), [], [], self.flops
        self._events = []
        roots = tuple(map(self.places.root, storages))
        try:
            rule(self, node)
            kernels = self._shifted()
        except WorkloadError as error:
            return Made(error=str(error))
        finally:
            more, self.flops = self.flops - flops, flops
            self.places.forget_temporary()
        counts = tuple(at for at, ref in enumerate(node.outputs) if self.counts_up(ref))
        scratch, given = tuple(self.scratch.tensors), given_of(self._launched)
        events, bound = tuple(self._events), tuple(self._bound)
        return Made(kernels, roots, bound, scratch, given, more, counts, events)

    def _shifted(self) -> tuple[Kernel, ...]:
        """Return the kernels of the node with code for where their tensors will begin within 256 B."""
        place = Moves([(tensor, replace(tensor, address=target.address)) for tensor, target in self._bound])
        return tuple(shifted(k, [place(tensor).address for tensor in k.args]) for k in self._launched)

    def _add(self, node: Node, made: Made, storages: list[int]) -> None:
        """Add kernels with each tensor where it is now; what the node alone needs is freed after it."""
        pairs = []
        for root, number in zip(made.roots, storages, strict=True):
            pairs.append((root, replace(root, address=self.places.root(number).address)))
        results, bound, taken = Moves(made.bound), [], []
        for tensor in made.scratch:
            if results(tensor) is not tensor:
                bound.append(tensor)
                continue
            if tensor.address in made.given:
                new = self.places.memory.tensor(tensor.name, tensor.rows, tensor.cols, tensor.item)
            else:
                block = self.places.allocator.take(tensor.nbytes)
                taken.append((block, tensor.nbytes))
                new = replace(tensor, address=block.address)
            pairs.append((tensor, new))
        for block, nbytes in taken:
            self.places.allocator.free(block, nbytes)
        now = Moves(pairs)  # results may be in scratch, too
        results = Moves([(t, replace(t, address=now(target).address)) for t, target in made.bound])
        pairs += [(tensor, results(tensor)) for tensor in bound]
        place, first = Moves(pairs), len(self.kernels)
        self.events += [(first + before, first + after) for before, after in made.events]
        self.kernels += [at_new_places(kernel, place) for kernel in made.kernels]
        self.flops += made.flops
        for at in made.counts:
            self.ascends(node.outputs[at])

    def launch(self, kernels: Iterable[Kernel], *, library: str = "") -> None:
        """Add kernels; ``library``: what a reader must know of them, beside the name that they have."""
        for kernel in kernels:
            own = kernel.library or ("" if self.device in HOPPER else OTHER)
            named = ", ".join(text for text in (own, library) if text)
            self._launched.append(replace(kernel, library=named))

    @property
    def launched(self) -> int:
        """Kernels of the node so far."""
        return len(self._launched)

    def wait(self, before: int, after: int) -> None:
        """Let kernel ``after``, of the node or the next, wait for ``before``, which is in another stream."""
        self._events.append((before, after))

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
            raise WorkloadError(
                f"a tensor of {ref.shape}, strides {ref.strides}: elements are not side by side"
            )
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
        number = self.places.temporary(self.scratch.tensor("temporary", 1, max(1, wide) * ITEM[dtype], 1))
        return Ref(number, 0, like.shape, tuple(reversed(strides)), dtype)

    def indices(self, ref: Ref, below: int) -> NDArray[np.int64]:
        """Return what an index tensor may hold: counting up from an ``arange``, else drawn with a seed."""
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


def whole_accesses(reads: Iterable[Tensor], writes: Iterable[Tensor]) -> tuple[Access, ...]:
    """Return accesses of which each TB may touch everything."""
    return (*(whole(t) for t in reads), *(whole(t, "write") for t in writes))
