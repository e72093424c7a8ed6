"""Recorded footprints: the byte ranges that each thread block of a kernel accessed, without tensors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.errors import WorkloadError

from .regions import SECTOR, merge_sorted, union

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

READ, WRITE, UPDATE = 0, 1, 2
MODES = ("read", "write", "update")
_TOP = 1 << 62  # the largest address, so that differences fit in 64 bits


class ByteRanges(NamedTuple):
    """Byte ranges, one a row: TB number, first byte, end (exclusive), mode (READ, WRITE or UPDATE)."""

    tb: Ints
    start: Ints
    end: Ints
    mode: NDArray[np.uint8]


class SectorRuns(NamedTuple):
    """Runs of sectors, one a row, sorted by (written, TB, lo); runs of one TB and kind are never adjacent.

    ``lo`` and ``hi`` are sector numbers, half open. ``written`` is True for writes and updates.
    """

    tb: Ints
    lo: Ints
    hi: Ints
    written: NDArray[np.bool_]


class Footprint:
    """What every TB of a kernel reads, writes and updates, for a kernel that was recorded.

    ``rows()`` returns :class:`ByteRanges` (or any four arrays of one length in that order): TB number =
    x + grid_x * (y + grid_y * z), start and end in bytes with 0 <= start < end, mode READ, WRITE or UPDATE
    (an atomic). Rows may come in any order, may repeat and overlap, and one TB may read what it writes: the
    union counts, in 32-byte sectors. Rows sorted by (mode, TB, start) are the fastest. ``rows`` is called
    when dependences are searched, and its arrays are not kept, so they may be mapped from a file.

    Updates of one kernel commute. A later kernel that accesses the same sectors waits for all of them.

    >>> Footprint.of([0, 1], [0, 128], [128, 256], [WRITE, WRITE]).written(2).tolist()
    [[0, 256]]
    """

    __slots__ = ("_rows", "_spans")

    def __init__(self, rows: Callable[[], ByteRanges]) -> None:
        self._rows = rows
        self._spans: tuple[Ints, Ints] | None = None

    @classmethod
    def of(cls, tb: object, start: object, end: object, mode: object) -> Footprint:
        """Return the footprint of these columns: one element a byte range."""
        numbers = [np.asarray(column, np.int64) for column in (tb, start, end)]
        made = ByteRanges(numbers[0], numbers[1], numbers[2], np.asarray(mode, np.uint8))
        return cls(partial(_given, made))  # a lambda could not be pickled

    def sector_runs(self, tbs: int, name: str = "?", granule: int = SECTOR) -> SectorRuns:
        """Return the runs of sectors, or of granules of ``granule`` bytes.

        ``tbs``, ``name``: of the kernel. Raises WorkloadError for columns of different lengths, TBs that the
        kernel does not have, empty or negative ranges and unknown modes.
        """
        rows = self._rows()
        tb, start, end = (np.asarray(column, np.int64) for column in rows[:3])
        mode = np.asarray(rows[3], np.uint8)
        _check(tb, start, end, mode, tbs, name)
        key = tb + (mode != READ) * np.int64(tbs)
        lo, hi = start // granule, -(-end // granule)
        if len(key) and not bool(
            ((key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (lo[1:] >= lo[:-1]))).all()
        ):
            order = np.lexsort((lo, key))
            key, lo, hi = key[order], lo[order], hi[order]
        lo, hi, key = merge_sorted(lo, hi, key)
        made = SectorRuns(key % tbs, lo, hi, key >= tbs)
        if self._spans is None and granule == SECTOR:
            runs = np.stack([lo, hi], axis=1)
            self._spans = union(runs[~made.written]) * SECTOR, union(runs[made.written]) * SECTOR
        return made

    def _span(self, which: int, tbs: int, name: str) -> Ints:
        if self._spans is None:
            self.sector_runs(tbs, name)
        assert self._spans is not None
        return self._spans[which]

    def read_ranges(self, tbs: int, name: str = "?") -> Ints:
        """Return the memory that any TB reads, as sorted (n, 2) byte ranges of whole sectors."""
        return self._span(0, tbs, name)

    def written_ranges(self, tbs: int, name: str = "?") -> Ints:
        """Return the memory that any TB writes or updates, as sorted (n, 2) byte ranges of whole sectors."""
        return self._span(1, tbs, name)


def _given(rows: ByteRanges) -> ByteRanges:
    return rows


def _check(tb: Ints, start: Ints, end: Ints, mode: NDArray[np.uint8], tbs: int, name: str) -> None:
    sizes = [x.shape for x in (tb, start, end, mode)]
    if len(set(sizes)) != 1 or tb.ndim != 1:
        raise WorkloadError(f"kernel {name}: footprint: columns of shapes {', '.join(map(str, sizes))}")
    for bad, what in (
        ((tb < 0) | (tb >= tbs), f"TBs are 0 to {tbs - 1}"),
        ((start < 0) | (start >= end) | (end > _TOP), "a range needs 0 <= start < end <= 2^62"),
        (mode > UPDATE, "modes are 0 (read), 1 (write), 2 (update)"),
    ):
        if bad.any():
            at = int(np.argmax(bad))
            row = f"TB {tb[at]}, bytes {start[at]} to {end[at]}, mode {mode[at]}"
            raise WorkloadError(f"kernel {name}: footprint: row {at} ({row}): {what}")
