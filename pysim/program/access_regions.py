"""The memory regions that the TBs of a kernel touch of one tensor."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError

from .regions import SECTOR, Regions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .job import Access, Tensor

    Ints = NDArray[np.int64]


_PAIRS = 1 << 22  # overlapping pairs of regions that are kept, which bounds memory


def _sorted_rows(table: Ints) -> Ints:
    """Return the order that sorts the rows of a table of numbers from 0 on; equal rows keep theirs."""
    sizes = [int(most) + 1 for most in table.max(axis=0)] if len(table) else []
    if prod(sizes) >= 1 << 63:
        return np.asarray(np.lexsort(table.T[::-1]))
    packed = np.zeros(len(table), np.int64)
    for column, size in zip(table.T, sizes, strict=False):
        packed = packed * size + column
    return np.argsort(packed, kind="stable")


def _inside(tensor: Tensor, row0: int, row1: int, col0: int, col1: int) -> bool:
    """Whether a region is not empty, and inside its tensor."""
    return 0 <= row0 < row1 <= tensor.rows and 0 <= col0 < col1 <= tensor.cols


def checked_regions(access: Access, tbs: Ints, where: str = "") -> Ints:
    """Return the regions of TBs, int64 (n, 4): row0, row1, col0, col1 in elements.

    Raises WorkloadError where ``Access.regions`` returns something else, or a region outside of its tensor;
    ``where``: what the message begins with, such as the kernel.
    """
    tensor, where = access.tensor, f"{where}: " if where else ""
    try:
        made = np.asarray(access.regions(tbs))
    except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
        raise WorkloadError(f"{where}regions of {tensor.name}: {type(error).__name__}: {error}") from error
    if made.shape != (len(tbs), 4) or made.dtype.kind not in "iu":
        raise WorkloadError(
            f"{where}regions of {tensor.name} returned {made.dtype} {made.shape}: must be int64"
            f" ({len(tbs)}, 4): row0, row1, col0, col1 of each TB"
        )
    made = made.astype(np.int64, copy=False)
    if len(made) == 1 and _inside(tensor, *made[0].tolist()):
        return made  # a job may have a million kernels of one TB
    row0, row1, col0, col1 = made.T
    touched = (row0 < row1) & (col0 < col1)
    wrong = touched & ((row0 < 0) | (col0 < 0) | (row1 > tensor.rows) | (col1 > tensor.cols))
    if wrong.any():
        at = int(np.argmax(wrong))
        first, last, left, right = made[at].tolist()
        raise WorkloadError(
            f"{where}TB {tbs[at]} {access.mode}s rows {first} to {last} and columns {left} to {right} of"
            f" {tensor.name}, which has {tensor.rows} x {tensor.cols}"
        )
    return made


def regions_of(access: Access, tbs: int, granule: int = SECTOR, where: str = "") -> Regions:
    """Return the distinct regions that the ``tbs`` TBs of a kernel touch of a tensor.

    ``granule``: bytes, of which regions are whole multiples; ``where``: as of ``checked_regions``.
    """
    tensor: Tensor = access.tensor
    raw = checked_regions(access, np.arange(tbs, dtype=np.int64), where)
    if tbs == 1 and _inside(tensor, *raw[0].tolist()):
        return _one_region(tensor, granule, *raw[0].tolist())
    return _regions(tensor, raw, granule)


class SharedRegions:
    """Regions of many accesses, of which those that differ only in their address share arrays and ``shape``.

    ``granule``: bytes, of which regions are whole multiples. Addresses differ by whole granules, too.
    """

    def __init__(self, granule: int = SECTOR) -> None:
        self.granule = granule
        self._made: dict[tuple[bytes, int, int, int], Regions] = {}
        self._shapes: dict[tuple[int, bytes, bytes, bytes], int] = {}
        self._pairs: dict[tuple[int, int, int, int], tuple[Ints, Ints]] = {}
        self._room = _PAIRS  # pairs that may still be kept

    def of(self, access: Access, tbs: int, where: str = "") -> Regions:
        """Return the distinct regions of an access; arguments and errors: as of ``regions_of``."""
        tensor: Tensor = access.tensor
        raw = checked_regions(access, np.arange(tbs, dtype=np.int64), where)
        if tbs == 1 and _inside(tensor, *raw[0].tolist()):
            return self.shaped(_one_region(tensor, self.granule, *raw[0].tolist()))
        key = (raw.tobytes(), tensor.pitch, tensor.item, tensor.address % self.granule)
        if key not in self._made:
            self._made[key] = self.shaped(_regions(tensor, raw, self.granule))
        return self._made[key].moved(tensor.address)

    def shaped(self, regions: Regions) -> Regions:
        """Return the regions, with ``shape`` filled in."""
        key = (regions.pitch, regions.byte_rects.tobytes(), regions.tbs.tobytes(), regions.ptr.tobytes())
        regions.shape = self._shapes.setdefault(key, len(self._shapes))
        return regions

    def overlapping_pairs(self, one: Regions, other: Regions) -> tuple[Ints, Ints]:
        """Return ``one.overlapping_pairs(other)``, of regions made here; equal shapes are compared once."""
        key = (one.shape, other.shape, other.address - one.address, one.address % self.granule)
        if key in self._pairs:
            return self._pairs[key]
        made = one.overlapping_pairs(other)
        if len(made[0]) <= self._room:
            self._room -= len(made[0])
            self._pairs[key] = made
        return made


def _regions(tensor: Tensor, raw: Ints, granule: int) -> Regions:
    """Return the distinct regions of a table of ``checked_regions``."""
    table = raw * np.array([1, 1, tensor.item, tensor.item])
    touches = (table[:, 0] < table[:, 1]) & (table[:, 2] < table[:, 3])
    who = np.flatnonzero(touches)
    table = table[who]
    aligned = tensor.address % granule == 0 and tensor.pitch % granule == 0
    if aligned:
        table[:, 2] = table[:, 2] // granule * granule
        table[:, 3] = -(-table[:, 3] // granule) * granule
    order = _sorted_rows(table)
    table = table[order]
    new = np.ones(len(table), bool)
    new[1:] = (table[1:] != table[:-1]).any(axis=1)
    ptr = np.append(np.flatnonzero(new), len(table))
    rows = table[ptr[:-1]]
    lo = (tensor.address + rows[:, 0] * tensor.pitch + rows[:, 2]) // granule
    hi = -(-(tensor.address + (rows[:, 1] - 1) * tensor.pitch + rows[:, 3]) // granule)
    rects = rows // np.array([1, 1, granule, granule]) if aligned else None
    return Regions(tensor.address, tensor.pitch, rows, rects, lo, hi, who[order], ptr, granule)


def _one_region(tensor: Tensor, granule: int, row0: int, row1: int, col0: int, col1: int) -> Regions:
    """Return the region of a kernel of one TB, which is not empty: as ``regions_of``, without its detours."""
    left, right, pitch = col0 * tensor.item, col1 * tensor.item, tensor.pitch
    aligned = tensor.address % granule == 0 and pitch % granule == 0
    rects = None
    if aligned:
        left, right = left // granule, -(-right // granule)
        rects = np.array([[row0, row1, left, right]], np.int64)
        left, right = left * granule, right * granule
    lo = (tensor.address + row0 * pitch + left) // granule
    hi = -(-(tensor.address + (row1 - 1) * pitch + right) // granule)
    rows = np.array([[row0, row1, left, right]], np.int64)
    ends = np.array([lo, hi, 0, 0, 1], np.int64)
    return Regions(
        tensor.address, pitch, rows, rects, ends[:1], ends[1:2], ends[2:3], ends[3:], granule
    )  # fmt: skip
