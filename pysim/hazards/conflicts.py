"""Which kernels an access conflicts with: launches that touch the same sectors are looked at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from .touched import AccessOfOp, Touched, common

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

Met = tuple[int, AccessOfOp, "Ints"]  # a kernel, its access, the sectors that both touch


@dataclass(slots=True)
class _Alike:
    """Accesses that touch the same, and all write or all read.

    ``kernels``: whose they are, by bit; ``by_kernel``: with their numbers, in order.
    """

    touched: Touched
    kernels: int = 0
    by_kernel: dict[int, list[tuple[int, AccessOfOp]]] = field(default_factory=dict)


class Conflicts:
    """What kernels declare (``TouchedByKernels.declared``), by what they touch."""

    def __init__(self, declared: Sequence[Sequence[AccessOfOp]]) -> None:
        found: dict[tuple[int, bool], _Alike] = {}
        for kernel, every in enumerate(declared):
            for number, access in enumerate(every):
                alike = found.setdefault((id(access.touched), access.writes), _Alike(access.touched))
                alike.kernels |= 1 << kernel
                alike.by_kernel.setdefault(kernel, []).append((number, access))
        self._alike = list(found.values())
        self._writes = np.array([writes for _, writes in found], bool)
        ends = [alike.touched.sectors() for alike in self._alike]
        self._lo = np.array([spans[0, 0] for spans in ends], np.int64)
        self._hi = np.array([spans[-1, 1] for spans in ends], np.int64)
        self._near: dict[tuple[int, bool], list[tuple[_Alike, Ints]]] = {}
        self._held: list[Touched] = []  # whose ids are keys

    def _conflicting(self, access: AccessOfOp) -> list[tuple[_Alike, Ints]]:
        """Return the accesses that conflict with one, and the sectors that both touch."""
        key = (id(access.touched), access.writes)
        if key not in self._near:
            self._held.append(access.touched)
            spans = access.touched.sectors()
            near = (self._lo < spans[-1, 1]) & (self._hi > spans[0, 0]) & (self._writes | access.writes)
            some = (self._alike[place] for place in np.flatnonzero(near).tolist())
            shared = ((alike, common(access.touched, alike.touched)) for alike in some)
            self._near[key] = [(alike, sectors) for alike, sectors in shared if len(sectors)]
        return self._near[key]

    def any(self, access: AccessOfOp, kernels: int) -> bool:
        """Whether an access conflicts with one of some kernels, by bit."""
        return any(alike.kernels & kernels for alike, _ in self._conflicting(access))

    def met(self, access: AccessOfOp, kernels: int) -> list[Met]:
        """Return what an access conflicts with, of some kernels; by kernel, then in the order declared."""
        found = []
        for alike, sectors in self._conflicting(access):
            for kernel in _bits(alike.kernels & kernels):
                found += [(kernel, number, other, sectors) for number, other in alike.by_kernel[kernel]]
        found.sort(key=lambda one: one[:2])
        return [(kernel, other, sectors) for kernel, _, other, sectors in found]

    def last(self, access: AccessOfOp, kernels: int) -> Met | None:
        """Return the last of ``met``, if there is one."""
        each = (alike.kernels & kernels for alike, _ in self._conflicting(access))
        highest = max((some.bit_length() for some in each), default=0)
        return self.met(access, 1 << (highest - 1))[-1] if highest else None


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the bits that are set, from the lowest on."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
