"""Calls of templates that a network repeats: kernels of the first one, with the tensors of another.

Layers that are alike call the library with the same sizes. Its templates write programs anew each time, and
whatever lowers a program does so once for each; here all calls that are alike share their programs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from pysim.program.job import Kernel, Memory, Tensor
from pysim.workloads.library.moved import Moves, moved

Made = tuple[Sequence[Kernel], tuple[Tensor, ...]]


@dataclass(slots=True)
class _Call:
    """A call as it was first made: its operands, what it allocated, and what it returned."""

    operands: tuple[Tensor, ...]
    allocated: list[Tensor]
    kernels: Sequence[Kernel]
    outputs: tuple[Tensor, ...]


@dataclass(slots=True)
class Repeated:
    """The calls of a network so far, by key."""

    memory: Memory
    calls: dict[Hashable, _Call] = field(default_factory=dict)

    def call(self, key: Hashable, operands: Sequence[Tensor], make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns: kernels, and the tensors that they leave.

        ``key``: all that they depend on beside the shapes of ``operands``, which are the only tensors given.
        """
        shapes = tuple((tensor.rows, tensor.cols, tensor.item) for tensor in operands)
        same = tuple(next(i for i, o in enumerate(operands) if o.address == t.address) for t in operands)
        if any(a.overlaps(b) and a.address != b.address for a in operands for b in operands):
            return make()  # one is a part of another: which of them a kernel names is not known
        whole = (key, shapes, same)
        first = self.calls.get(whole)
        if first is None:
            begin = len(self.memory.tensors)
            kernels, outputs = make()
            self.calls[whole] = _Call(tuple(operands), self.memory.tensors[begin:], kernels, outputs)
            return kernels, outputs
        allocated = [self.memory.tensor(t.name, t.rows, t.cols, t.item) for t in first.allocated]
        places = Moves(
            [
                *zip(first.operands, operands, strict=True),
                *zip(first.allocated, allocated, strict=True),
            ]
        )
        return [moved(kernel, places) for kernel in first.kernels], tuple(map(places, first.outputs))
