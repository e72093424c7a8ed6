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

Launches = tuple[tuple[Kernel, ...], Tensor]


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
    """A call as it was first made: its operands, what it allocated, its kernels and their result."""

    operands: Sequence[Tensor]
    own: list[Tensor]
    kernels: tuple[Kernel, ...]
    result: Tensor


@dataclass(slots=True)
class Repeats:
    """Calls that were made once, of which others are the same on other tensors.

    ``known``: calls that were made; those of others may be shared. ``workspace``: what a call makes is where
    the call before of the same ``name`` made it.
    """

    memory: Memory
    workspace: bool = False
    known: dict[Hashable, Made] = field(default_factory=dict)
    owned: dict[Hashable, list[Tensor]] = field(default_factory=dict)

    def launches(
        self,
        name: str,
        key: Hashable,
        operands: Sequence[Tensor],
        make: Callable[[], Launches],
        into: Tensor | None = None,
    ) -> Launches:
        """Return the kernels of a call, which ``make`` makes, and their result.

        ``key``: equal for calls that differ only in where their tensors are. ``into``: where the result goes,
        if it has that size.
        """
        call = self.known.get(key)
        own = self.owned.get((name, key)) if self.workspace else None
        if call is None:
            mark = len(self.memory.tensors)
            kernels, result = make()
            own = self.memory.tensors[mark:]
            call = self.known[key] = Made(operands, own, kernels, result)
        elif own is None:
            own = [self.memory.tensor(each.name, each.rows, each.cols, each.item) for each in call.own]
        self.owned[name, key] = own
        pairs = [*zip(call.operands, operands, strict=True)]
        for old, new in zip(call.own, own, strict=True):
            goes = (
                into is not None and into.nbytes == call.result.nbytes and old.address == call.result.address
            )
            pairs.append((old, into if goes and into is not None else new))
        place = Moves([pair for pair in pairs if pair[0].address != pair[1].address])
        if not place.pairs:
            return call.kernels, call.result
        return tuple(moved(kernel, place) for kernel in call.kernels), place(call.result)
