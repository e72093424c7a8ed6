"""Sets of half-open ranges, and the memory regions of thread blocks: intersection, union, coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .memory_budget import claim

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

SECTOR = 32
GRANULES = {"sector": SECTOR, "line": 128, "page": 4096}  # bytes
RANGE = np.dtype([("start", "u4"), ("count", "u4"), ("stride", "u4")])
_CHUNK = 1 << 22  # candidate pairs held at once
_PAIR = 32  # bytes of a pair: two indices, and once more where chunks are joined


def empty_index() -> Ints:
    """Return an empty index array."""
    return np.empty(0, np.int64)


def csr_offsets(counts: Ints) -> Ints:
    """Return the offsets of concatenated lists of these lengths, (n + 1,), as row pointers of CSR."""
    made: Ints = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=made[1:])
    return made


def expand_ranges(starts: Ints, counts: Ints) -> Ints:
    """Return starts[i], starts[i] + 1, ... (counts[i] of them) for every i, one after another."""
    total = int(counts.sum())
    if total == 0:
        return empty_index()
    ends = np.cumsum(counts)
    made: Ints = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return made


def sorted_unique(numbers: Ints) -> Ints:
    """Return the distinct numbers, sorted. numpy.unique uses a hash table, which is slower here."""
    made = np.sort(numbers, kind="stable")  # the fastest where numbers come in sorted runs, as they do
    keep = np.ones(len(made), bool)
    np.not_equal(made[1:], made[:-1], out=keep[1:])
    return made[keep]


def overlapping_pairs(alo: Ints, ahi: Ints, blo: Ints, bhi: Ints) -> tuple[Ints, Ints]:
    """Return the indices (i, j) of all pairs of half-open intervals a[i] and b[j] that overlap.

    Raises WorkloadError where they would take more memory than a job may.
    """
    if len(alo) == 0 or len(blo) == 0:
        return empty_index(), empty_index()
    order = np.argsort(blo, kind="stable")
    lo, hi = blo[order], bhi[order]
    # candidates for a[i]: from the first b whose running maximum of ends passes a.lo[i] to the last b that
    # starts before a.hi[i]
    first = np.searchsorted(np.maximum.accumulate(hi), alo, side="right")
    count = np.maximum(np.searchsorted(lo, ahi, side="left") - first, 0)
    lefts: list[Ints] = []
    rights: list[Ints] = []
    done = np.concatenate(([0], np.cumsum(count)))
    at = found = 0
    while at < len(alo):
        stop = max(at + 1, int(np.searchsorted(done, done[at] + _CHUNK, side="right")) - 1)
        left = np.repeat(np.arange(at, stop, dtype=np.int64), count[at:stop])
        right = expand_ranges(first[at:stop], count[at:stop])
        keep = hi[right] > alo[left]
        lefts.append(left[keep])
        rights.append(order[right[keep]])
        found += len(lefts[-1])
        claim(found * _PAIR, f"dependences: over {found:,} pairs of TBs of two kernels")
        at = stop
    return np.concatenate(lefts), np.concatenate(rights)


def merge_sorted(lo: Ints, hi: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """Merge overlapping and adjacent intervals of equal key; the input is sorted by (key, lo)."""
    if len(lo) == 0:
        return lo, hi, key
    change = key[1:] != key[:-1]
    left, right = lo, hi
    if key[-1] > 0 and int(hi.max()) >= (1 << 62) // (int(key[-1]) + 1):
        # the keyed coordinates would overflow 64 bits; ranks keep their order
        _, ranks = np.unique(np.concatenate((lo, hi)), return_inverse=True)
        left, right = ranks[: len(lo)], ranks[len(lo) :]
    # each key gets its own coordinate range, so that one running maximum serves all keys
    width = int(right.max()) + 1
    top = np.maximum.accumulate(right + key * width)
    new = np.ones(len(lo), bool)
    new[1:] = (left + key * width)[1:] > top[:-1]
    new[1:] |= change
    starts = np.flatnonzero(new)
    return lo[starts], np.maximum.reduceat(hi, starts), key[starts]


def union(spans: Ints) -> Ints:
    """Return the union of (n, 2) half-open ranges: sorted, disjoint and not adjacent."""
    order = np.argsort(spans[:, 0], kind="stable")
    lo, hi, _ = merge_sorted(spans[order, 0], spans[order, 1], np.zeros(len(spans), np.int64))
    return np.stack([lo, hi], axis=1)


def covering(spans: Ints, most: int) -> Ints:
    """Return at most ``most`` ranges that cover sorted (n, 2) ranges, by closing the narrowest holes."""
    if len(spans) <= most:
        return spans
    holes = spans[1:, 0] - spans[:-1, 1]
    cuts = np.sort(np.argsort(-holes, kind="stable")[: most - 1])
    return np.stack([spans[np.append(0, cuts + 1), 0], spans[np.append(cuts, len(spans) - 1), 1]], axis=1)


def overlaps(spans: Ints, lo: int, hi: int) -> bool:
    """Whether any of sorted, disjoint (n, 2) ranges overlaps lo to hi (exclusive)."""
    at = int(np.searchsorted(spans[:, 0], hi)) - 1
    return at >= 0 and bool(spans[at, 1] > lo)


def intersection(one: Ints, other: Ints) -> Ints:
    """Return the intersection of two lists of sorted, disjoint (n, 2) ranges, as such a list."""
    i, j = overlapping_pairs(one[:, 0], one[:, 1], other[:, 0], other[:, 1])
    lo, hi = np.maximum(one[i, 0], other[j, 0]), np.minimum(one[i, 1], other[j, 1])
    return np.stack([lo, hi], axis=1)


def difference(spans: Ints, other: Ints) -> Ints:
    """Return ``spans`` without ``other``; all are lists of sorted, disjoint (n, 2) ranges."""
    edges = np.concatenate(([np.iinfo(np.int64).min], other.reshape(-1), [np.iinfo(np.int64).max]))
    return intersection(spans, edges.reshape(-1, 2))


def strided_ranges(tbs: Ints) -> list[tuple[int, int, int]]:
    """Return sorted TB numbers as (start, count, stride) ranges."""
    rows, _ = strided_ranges_of_lists(tbs, np.array([0, len(tbs)][: 1 + bool(len(tbs))], np.int64))
    return [(int(start), int(count), int(stride)) for start, count, stride in rows.tolist()]


def strided_ranges_of_lists(tbs: Ints, ptr: Ints) -> tuple[NDArray[np.void], Ints]:
    """Return the (start, count, stride) ranges of many lists of TB numbers, and their CSR offsets.

    List n is ``tbs[ptr[n]:ptr[n + 1]]``, sorted and not empty. Ranges are taken greedily: each is as long as
    its first step allows.
    """
    end = ptr[1:] - 1
    steps = np.diff(tbs)
    # a range stops at the latest before the step changes, and at the end of its list
    stops = np.zeros(len(tbs), bool)
    stops[1:-1] = steps[1:] != steps[:-1]
    stops[end] = True
    cuts = np.flatnonzero(stops)
    lists: list[Ints] = []
    starts: list[Ints] = []
    lasts: list[Ints] = []
    open_, at = np.arange(len(end), dtype=np.int64), ptr[:-1]
    while len(open_):
        # one range of every unfinished list; most have only one
        last = cuts[np.searchsorted(cuts, np.minimum(at + 1, end[open_]))]
        lists.append(open_)
        starts.append(at)
        lasts.append(last)
        left = last < end[open_]
        open_, at = open_[left], last[left] + 1
    of, start, last = (np.concatenate([empty_index(), *parts]) for parts in (lists, starts, lasts))
    order = np.argsort(of, kind="stable")
    start, last = start[order], last[order]
    made = np.zeros(len(order), RANGE)
    made["start"] = tbs[start]
    made["count"] = last - start + 1
    made["stride"] = 1
    several = np.flatnonzero(last > start)
    made["stride"][several] = steps[start[several]]
    return made, csr_offsets(np.bincount(of, minlength=len(end)))


@dataclass(slots=True)
class Regions:
    """The n distinct regions that one kernel touches of one tensor, and the TBs of each.

    ``address``, ``pitch``: of the tensor, in bytes. ``byte_rects``: (n, 4), row0, row1, byte0, byte1 within a
    row. ``rects``: (n, 4), row0, row1, granule0, granule1, if rows are whole granules, else None. ``lo``,
    ``hi``: (n,), the first granule and the end of the bounding range. ``tbs[ptr[i]:ptr[i + 1]]``: the TBs of
    region i. ``granule``: bytes. ``shape``: equal for sets of regions that differ only in their address.
    """

    address: int
    pitch: int
    byte_rects: Ints
    rects: Ints | None
    lo: Ints
    hi: Ints
    tbs: Ints
    ptr: Ints
    granule: int = SECTOR
    shape: int = 0
    _flat: tuple[Ints, Ints, Ints] | None = None
    _span: tuple[int, int] | None = None
    _at_origin: Regions | None = None  # the same regions where they were computed

    def __len__(self) -> int:
        return len(self.lo)

    def span(self) -> tuple[int, int]:
        """Return the first granule of all regions, and the end of the last one."""
        if self._span is None:
            self._span = int(self.lo.min()), int(self.hi.max())
        return self._span

    def moved(self, address: int) -> Regions:
        """Return the same regions of a tensor that is whole granules away; arrays are shared."""
        if address == self.address:
            return self
        by = (address - self.address) // self.granule
        span = None if self._span is None else (self._span[0] + by, self._span[1] + by)
        return Regions(
            address, self.pitch, self.byte_rects, self.rects, self.lo + by, self.hi + by, self.tbs, self.ptr,
            self.granule, self.shape, _span=span, _at_origin=self._at_origin or self,
        )  # fmt: skip

    def tbs_of(self, region: int) -> Ints:
        """Return the TBs of region ``region``, sorted."""
        return self.tbs[self.ptr[region] : self.ptr[region + 1]]

    def intervals(self) -> tuple[Ints, Ints, Ints]:
        """Return (lo, hi, region) of the granule runs of every region, sorted; runs are never adjacent."""
        if self._flat is None and self._at_origin is not None:
            lo, hi, region = self._at_origin.intervals()
            by = (self.address - self._at_origin.address) // self.granule
            self._flat = lo + by, hi + by, region
        if self._flat is None and len(self) == 1:
            first, last_row, left, right = self.byte_rects[0].tolist()
            if last_row - first == 1 or (left == 0 and right == self.pitch):  # one run, as in small kernels
                self._flat = self.lo, self.hi, np.zeros(1, np.int64)
        if self._flat is None:
            row0, row1, byte0, byte1 = self.byte_rects.T
            whole = (byte0 == 0) & (byte1 == self.pitch)
            rows = np.where(whole, 1, row1 - row0)
            region = np.repeat(np.arange(len(self), dtype=np.int64), rows)
            row = expand_ranges(row0, rows)
            start = self.address + row * self.pitch + byte0[region]
            last = np.where(whole[region], row1[region] - 1, row)
            stop = self.address + last * self.pitch + byte1[region]
            self._flat = merge_sorted(start // self.granule, -(-stop // self.granule), region)
        return self._flat

    def aligned_with(self, other: Regions) -> bool:
        """Whether both have rectangles on the same grid of rows."""
        same = self.rects is not None and other.rects is not None and self.pitch == other.pitch
        return same and (self.address - other.address) % self.pitch == 0

    def rects_in(self, other: Regions) -> Ints:
        """Return ``rects`` with rows counted from the address of ``other``."""
        assert self.rects is not None
        shift = (self.address - other.address) // self.pitch
        made: Ints = self.rects + np.array([shift, shift, 0, 0])
        return made

    def overlapping_pairs(self, other: Regions) -> tuple[Ints, Ints]:
        """Return the indices of all pairs (region of self, region of other) that share a granule."""
        if not self.aligned_with(other):
            alo, ahi, aid = self.intervals()
            blo, bhi, bid = other.intervals()
            i, j = overlapping_pairs(alo, ahi, blo, bhi)
            packed = sorted_unique(aid[i] * max(1, len(other)) + bid[j])
            return packed // max(1, len(other)), packed % max(1, len(other))
        i, j = overlapping_pairs(self.lo, self.hi, other.lo, other.hi)
        assert other.rects is not None
        a, b = self.rects_in(other)[i], other.rects[j]
        keep = (a[:, 0] < b[:, 1]) & (b[:, 0] < a[:, 1]) & (a[:, 2] < b[:, 3]) & (b[:, 2] < a[:, 3])
        return i[keep], j[keep]

    def covered_by(self, other: Regions) -> NDArray[np.bool_]:
        """Return which regions lie wholly in the union of the regions of ``other``."""
        if self.aligned_with(other) and other.disjoint():
            i, j = overlapping_pairs(self.lo, self.hi, other.lo, other.hi)
            mine = self.rects_in(other)
            assert other.rects is not None
            a, b = mine[i], other.rects[j]
            high = np.minimum(a[:, 1], b[:, 1]) - np.maximum(a[:, 0], b[:, 0])
            wide = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 2], b[:, 2])
            shared = np.maximum(high, 0) * np.maximum(wide, 0)
            area = np.bincount(i, weights=shared, minlength=len(self)).astype(np.int64)
            return np.asarray(area == (mine[:, 1] - mine[:, 0]) * (mine[:, 3] - mine[:, 2]))
        lo, hi, _ = other.intervals()
        order = np.argsort(lo, kind="stable")
        lo, hi, _ = merge_sorted(lo[order], hi[order], np.zeros(len(lo), np.int64))
        alo, ahi, aid = self.intervals()
        # merged runs are never adjacent, so a covered run lies within a single one
        at = np.searchsorted(lo, alo, side="right") - 1
        inside = (at >= 0) & (hi[np.maximum(at, 0)] >= ahi)
        bad = np.bincount(aid, weights=~inside, minlength=len(self))
        return np.asarray(bad == 0)

    def disjoint(self) -> bool:
        """Whether no two regions share a granule."""
        i, _ = self.overlapping_pairs(self)
        return len(i) == len(self)

    def chosen(self, which: Ints) -> Regions:
        """Return the regions with these numbers, which rise."""
        count = self.ptr[which + 1] - self.ptr[which]
        return Regions(
            self.address,
            self.pitch,
            self.byte_rects[which],
            None if self.rects is None else self.rects[which],
            self.lo[which],
            self.hi[which],
            self.tbs[expand_ranges(self.ptr[which], count)],
            csr_offsets(count),
            self.granule,
        )
