"""What earlier kernels did to a stretch of memory, by address: a new access looks at what it meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pysim.program.job import Mode
    from pysim.program.regions import Regions


@dataclass(slots=True, eq=False)
class AccessRecord:
    """What one kernel did, as far as later kernels must know; it touches nothing outside ``lo`` to ``hi``.

    ``kept``: (regions,), which regions are left; None: all.
    """

    kernel: int
    mode: Mode
    regions: Regions
    lo: int
    hi: int
    kept: NDArray[np.bool_] | None = None

    def alone(self) -> bool:
        """Whether one region is left."""
        return len(self.regions) == 1 or (self.kept is not None and int(self.kept.sum()) == 1)

    def meeting(self, lo: int, hi: int) -> NDArray[np.int64] | None:
        """Return the regions that are left and that may touch something of ``lo`` to ``hi``; None: all."""
        if self.kept is None and lo <= self.lo and self.hi <= hi:
            return None
        which = (self.regions.lo < hi) & (self.regions.hi > lo)
        if self.kept is not None:
            which &= self.kept
        return None if which.all() else np.flatnonzero(which)

    def drop(self, which: NDArray[np.int64]) -> bool:
        """Drop regions; return whether any is left."""
        self.kept = np.ones(len(self.regions), bool) if self.kept is None else self.kept
        self.kept[which] = False
        if not self.kept.any():
            return False
        self.lo, self.hi = int(self.regions.lo[self.kept].min()), int(self.regions.hi[self.kept].max())
        return True


class _Index:
    """Records by address. One of up to 2^n units is in one or two cells of that size."""

    def __init__(self) -> None:
        self.levels: dict[int, dict[int, dict[int, AccessRecord]]] = {}
        self.cells: dict[int, tuple[int, int, int]] = {}

    def add(self, number: int, record: AccessRecord) -> None:
        level = (record.hi - record.lo).bit_length()
        first, last = record.lo >> level, (record.hi - 1) >> level
        self.cells[number] = level, first, last
        cells = self.levels.setdefault(level, {})
        for cell in {first, last}:
            cells.setdefault(cell, {})[number] = record

    def remove(self, number: int) -> None:
        level, first, last = self.cells.pop(number)
        cells = self.levels[level]
        for cell in {first, last}:
            del cells[cell][number]
            if not cells[cell]:
                del cells[cell]

    def near(self, lo: int, hi: int) -> Iterator[dict[int, AccessRecord]]:
        """Yield the cells that a range meets."""
        for level, cells in self.levels.items():
            first, last = lo >> level, (hi - 1) >> level
            if last - first < len(cells):
                for cell in range(first, last + 1):
                    if cell in cells:
                        yield cells[cell]
            else:
                yield from (held for cell, held in cells.items() if first <= cell <= last)


class AccessRecords:
    """The records of a stretch of memory, numbered as they came."""

    def __init__(self) -> None:
        self._reads, self._writes = _Index(), _Index()
        self._next = 0

    def add(self, record: AccessRecord) -> None:
        """Keep a record."""
        (self._reads if record.mode == "read" else self._writes).add(self._next, record)
        self._next += 1

    def remove(self, number: int, record: AccessRecord) -> None:
        """Forget a record."""
        (self._reads if record.mode == "read" else self._writes).remove(number)

    def meeting(self, mode: Mode, lo: int, hi: int) -> list[tuple[int, AccessRecord]]:
        """Return (number, record), oldest first, of those that an access of ``lo`` to ``hi`` may wait for.

        Reads do not wait for reads.
        """
        found: dict[int, AccessRecord] = {}
        for index in (self._writes,) if mode == "read" else (self._writes, self._reads):
            for held in index.near(lo, hi):
                found |= {n: record for n, record in held.items() if record.lo < hi and record.hi > lo}
        return sorted(found.items(), key=lambda item: item[0])
