"""Kernels of a node before they have a place: equal nodes of other layers take the same ones, elsewhere.

They move as ``library.moved`` moves calls; more is kept of a node than its ``Repeats`` keep of a call:
scratch gets blocks of the allocator anew each time, results the places of storages, failures their reason.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from pysim.errors import WorkloadError
from pysim.program.job import ALIGN, Kernel, Tensor
from pysim.workloads.imported.graph import Argument, Node, Ref
from pysim.workloads.library.moved import Moves, moved

from .aligned import aligned

SCRATCH = 1 << 52  # from here on templates make tensors of their own, which then get a place
# name addresses in their programs, or draw what they read: made anew each time
NOT_SHARED = ("aten._foreach_", "aten._fused_")


@dataclass(frozen=True, slots=True)
class Made:
    """What a rule made of a node.

    ``roots``: the node's storages, in the order in which it names them, where they were then. ``bound``:
    scratch tensors that are results, and where those were. ``scratch``: all tensors of templates; ``given``:
    those that nothing writes before they are read, such as statistics. ``counts``: places of the results that
    count up. ``events``: as those of a job, from the node's first kernel on. ``error``: why there are none.
    """

    kernels: tuple[Kernel, ...] = ()
    roots: tuple[Tensor, ...] = ()
    bound: tuple[tuple[Tensor, Tensor], ...] = ()
    scratch: tuple[Tensor, ...] = ()
    given: frozenset[int] = frozenset()
    flops: int = 0
    counts: tuple[int, ...] = ()
    events: tuple[tuple[int, int], ...] = ()
    error: str = ""


def storages_of(node: Node) -> list[int]:
    """Return the storages of a node in the order in which it names them."""
    return list(dict.fromkeys(ref.storage for ref in (*node.refs(), *node.outputs)))


def key_of(node: Node, sizes: Sequence[int], counting: Sequence[bool]) -> Hashable | None:
    """Return what nodes of the same kernels share, storages by their order; None: a node is not shared.

    ``sizes``: bytes of its storages; ``counting``: which of them count up.
    """
    if node.op.startswith(NOT_SHARED):
        return None
    numbers = {storage: at for at, storage in enumerate(storages_of(node))}

    def plain(value: Argument) -> Hashable:
        if isinstance(value, Ref):
            return replace(value, storage=numbers[value.storage])
        return tuple(map(plain, value)) if isinstance(value, tuple) else (type(value).__name__, value)

    args = tuple((name, plain(value)) for name, value in node.args.items())
    outputs = tuple(map(plain, node.outputs))
    return node.op, node.overload, args, outputs, node.written, tuple(sizes), tuple(counting)


def given_of(kernels: Sequence[Kernel]) -> frozenset[int]:
    """Return the addresses of scratch tensors that are read before any kernel wrote them."""
    given: set[int] = set()
    written: set[int] = set()
    for kernel in kernels:
        own = [access for access in kernel.accesses if access.tensor.address >= SCRATCH]
        given |= {a.tensor.address for a in own if a.mode == "read"} - written
        written |= {a.tensor.address for a in own if a.mode != "read"}
    return frozenset(given - written)


def at_new_places(kernel: Kernel, place: Moves) -> Kernel:
    """Return a kernel with its tensors where ``place`` puts them, arguments from a multiple of 256 B on.

    Raises WorkloadError for scratch that has no place.
    """
    moves = False
    for tensor in (*kernel.args, *(access.tensor for access in kernel.accesses)):
        new = place(tensor)
        if new.address >= SCRATCH:
            raise WorkloadError(f"tensor {tensor.name}: not among the template's own")
        moves = moves or new is not tensor
    made = moved(kernel, place) if moves else kernel
    if any(tensor.address % ALIGN for tensor in made.args):
        made = replace(made, args=tuple(map(aligned, made.args)))
    return made
