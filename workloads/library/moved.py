"""Kernels on other tensors: the same code at other addresses."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from pysim.program.job import Kernel, Memory, Tensor

if TYPE_CHECKING:
    from collections.abc import Hashable

Launches = tuple[Sequence[Kernel], tuple[Tensor, ...]]


def moved(kernel: Kernel, place: Callable[[Tensor], Tensor]) -> Kernel:
    """Return a kernel with each of its tensors where ``place`` puts it."""
    warps, stage = kernel.with_warps, kernel.as_stage
    return replace(
        kernel,
        args=tuple(map(place, kernel.args)),
        accesses=tuple(replace(access, tensor=place(access.tensor)) for access in kernel.accesses),
        with_warps=None if warps is None else partial(_with_warps, warps, place),
        as_stage=None if stage is None else partial(_as_stage, stage, place),
    )


def _with_warps(made: Callable[[int], Kernel], place: Callable[[Tensor], Tensor], warps: int) -> Kernel:
    return moved(made(warps), place)


def _as_stage(made: Callable[[], Kernel], place: Callable[[Tensor], Tensor]) -> Kernel:
    return moved(made(), place)


class Moves:
    """Puts tensors, or parts of them, from where some are to where others are.

    ``pairs``: an old one, and a new one. A tensor is one new tensor wherever it is named.
    """

    def __init__(self, pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
        self.exact = dict(reversed(pairs))
        self.pairs = sorted(pairs, key=lambda pair: pair[0].address)
        self.starts = [old.address for old, _ in self.pairs]
        self.made: dict[Tensor, Tensor] = {}

    def __call__(self, tensor: Tensor) -> Tensor:
        """Return the tensor, or one that is at the same place of what took the place of its memory."""
        if tensor in self.exact:
            return self.exact[tensor]
        found = bisect.bisect(self.starts, tensor.address) - 1
        if found < 0:
            return tensor
        old, new = self.pairs[found]
        if tensor.address >= old.address + old.nbytes or old.address == new.address:
            return tensor
        return self.made.setdefault(
            tensor, replace(tensor, address=tensor.address - old.address + new.address)
        )


@dataclass(slots=True)
class Made:
    """A call as it was first made: its operands, what it allocated, its kernels and their results."""

    operands: Sequence[Tensor]
    own: list[Tensor]
    kernels: Sequence[Kernel]
    results: tuple[Tensor, ...]


@dataclass(slots=True)
class Repeats:
    """Calls that were made once, of which others are the same on other tensors: they share their programs.

    ``known``: calls that were made; those of others may be shared. ``workspace``: what a call makes is where
    the call before of the same ``name`` made it.
    """

    memory: Memory
    workspace: bool = False
    known: dict[Hashable, Made] = field(default_factory=dict)
    owned: dict[Hashable, list[Tensor]] = field(default_factory=dict)

    def call(
        self,
        key: Hashable,
        operands: Sequence[Tensor],
        make: Callable[[], Launches],
        *,
        name: str = "",
        into: Tensor | None = None,
    ) -> Launches:
        """Return the kernels of a call, which ``make`` makes, and the tensors that they leave.

        ``key``: all that they depend on beside the shapes of ``operands``, which are the only tensors given.
        ``into``: where the first result goes, if it has that size.
        """
        key = key, *_alike(operands)
        # where one is a part of another it is not known which of them a kernel names
        mixed = any(a.overlaps(b) and a.address != b.address for a in operands for b in operands)
        call = None if mixed else self.known.get(key)
        own = self.owned.get((name, key)) if self.workspace else None
        if call is None:
            mark = len(self.memory.tensors)
            kernels, results = make()
            own = self.memory.tensors[mark:]
            call = Made(operands, own, kernels, results)
            if not mixed:
                self.known[key] = call
        elif own is None:
            own = [self.memory.tensor(each.name, each.rows, each.cols, each.item) for each in call.own]
        self.owned[name, key] = own
        goes = next(
            (t.address for t in call.results[:1] if into is not None and into.nbytes == t.nbytes), None
        )
        pairs = [*zip(call.operands, operands, strict=True)]
        for old, new in zip(call.own, own, strict=True):
            pairs.append((old, into if into is not None and old.address == goes else new))
        place = Moves([pair for pair in pairs if pair[0].address != pair[1].address])
        if not place.pairs:
            return call.kernels, call.results
        return [moved(kernel, place) for kernel in call.kernels], tuple(map(place, call.results))


def _alike(operands: Sequence[Tensor]) -> tuple[Hashable, Hashable]:
    """Return the shapes of operands, and which of them are the same."""
    shapes = tuple((tensor.rows, tensor.cols, tensor.item) for tensor in operands)
    addresses = [tensor.address for tensor in operands]
    return shapes, tuple(map(addresses.index, addresses))
