"""What earlier kernels did to a stretch of memory, by address: a new access looks at what it meets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pysim.program.job import Mode
    from pysim.program.regions import Regions


@dataclass(slots=True, eq=False)
class AccessRecord:
    """What one kernel did, as far as later kernels must know; it touches nothing outside ``lo`` to ``hi``."""

    kernel: int
    mode: Mode
    regions: Regions
    lo: int
    hi: int


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
