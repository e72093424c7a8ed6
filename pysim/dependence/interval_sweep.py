"""Dependences from recorded addresses: a sweep over all addresses finds the conflicting accesses at each.

Intervals with the same history (the same sets of TBs in the same order) are handled once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.program.regions import (
    csr_offsets,
    empty_index,
    expand_ranges,
    sorted_unique,
    strided_ranges_of_lists,
)

from .equal_nodes import joined_nodes
from .groups import RAW, WAR, WAW, Groups
from .set_hash import distinct_rows, list_hashes, mix64

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pysim.program.footprint import SectorRuns

    Ints = NDArray[np.int64]

_CHUNK = 1 << 22  # rows handled at once, which bounds memory
_MIN_SAVING = 8  # table entries that a separate counter must save to be worth making


@dataclass(frozen=True, slots=True)
class KernelIntervals:
    """What one kernel reads, or what it writes: sets of TBs and the sector intervals of each.

    Interval i is sectors ``lo[i]`` to ``hi[i]`` (excluded) of set ``owner[i]``; set s has the TBs
    ``tbs[ptr[s]:ptr[s + 1]]``.
    """

    kernel: int
    written: bool
    lo: Ints
    hi: Ints
    owner: Ints
    tbs: Ints
    ptr: Ints


def recorded_intervals(kernel: int, touched: SectorRuns) -> list[KernelIntervals]:
    """Return the written and the read intervals of a recorded kernel; TBs that touch the same share a set."""
    made: list[KernelIntervals] = []
    for written in (True, False):
        chosen = touched.written == written
        if not chosen.any():
            continue
        tb, lo, hi = touched.tb[chosen], touched.lo[chosen], touched.hi[chosen]
        order = np.lexsort((tb, hi, lo))
        tb, lo, hi = tb[order], lo[order], hi[order]
        new = np.ones(len(tb), bool)
        new[1:] = (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1])
        starts = np.flatnonzero(new)
        ptr = np.append(starts, len(tb))
        first, owner = distinct_rows(list_hashes(tb, ptr))
        size = np.diff(ptr)[first]
        tbs = tb[expand_ranges(ptr[first], size)]
        made.append(KernelIntervals(kernel, written, lo[starts], hi[starts], owner, tbs, csr_offsets(size)))
    return made


class _Sets:
    """The sets of TBs of all kernels, numbered through."""

    def __init__(self, parts: Sequence[KernelIntervals]) -> None:
        counts = np.array([len(part.ptr) - 1 for part in parts], np.int64)
        bases = csr_offsets(counts)
        self.kernel = np.repeat(np.array([part.kernel for part in parts], np.int64), counts)
        self.written = np.repeat(np.array([part.written for part in parts], bool), counts)
        self.tbs = np.concatenate([part.tbs for part in parts])
        self.size = np.concatenate([np.diff(part.ptr) for part in parts])
        self.first = csr_offsets(self.size)[:-1]
        self.lo = np.concatenate([part.lo for part in parts])
        self.hi = np.concatenate([part.hi for part in parts])
        self.owner = np.concatenate([part.owner + base for part, base in zip(parts, bases, strict=False)])

    def members(self, sets: Ints) -> tuple[Ints, Ints]:
        """Return (index into ``sets``, TB) of all TBs of some sets."""
        size = self.size[sets]
        return np.repeat(np.arange(len(sets), dtype=np.int64), size), self.tbs[
            expand_ranges(self.first[sets], size)
        ]


def _histories(sets: _Sets) -> tuple[Ints, Ints, Ints]:
    """Return one memory segment for each history: (first, end) segment of every interval, overlaps of each.

    A segment lies between two neighbouring interval ends. Only segments that one set writes and another one
    touches are kept.
    """
    runs = len(sets.lo)
    cuts, place = np.unique(np.concatenate((sets.lo, sets.hi)), return_inverse=True)
    begin, end = place.reshape(-1)[:runs], place.reshape(-1)[runs:]

    def total(weights: NDArray[Any]) -> NDArray[Any]:
        steps = np.zeros(len(cuts), weights.dtype)
        np.add.at(steps, begin, weights)
        np.subtract.at(steps, end, weights)
        made: NDArray[Any] = np.cumsum(steps, dtype=weights.dtype)
        return made

    overlap = total(np.ones(runs, np.int64))
    alive = np.flatnonzero((overlap > 1) & (total(sets.written[sets.owner].astype(np.int64)) > 0))
    words = [total(mix64(sets.owner, salt))[alive] for salt in (1, 2)]
    first, _ = distinct_rows(words) if len(alive) else (empty_index(), empty_index())
    chosen = alive[first]
    flags = np.zeros(len(cuts) + 1, np.int64)
    flags[chosen + 1] = 1
    below = np.cumsum(flags)
    return below[begin], below[end], overlap[chosen]


def _blocks(overlap: Ints) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of blocks of segments with at most ``_CHUNK`` rows, or one segment."""
    done = csr_offsets(overlap)
    at = 0
    while at < len(overlap):
        stop = max(at + 1, int(np.searchsorted(done, done[at] + _CHUNK, side="right")) - 1)
        yield at, stop
        at = stop


def _pairs(sets: _Sets) -> Ints:
    """Return ``consumer set * sets + producer set`` of all conflicting sets, sorted."""
    begin, end, overlap = _histories(sets)
    many = len(sets.size)
    found: list[Ints] = []
    for low, high in _blocks(overlap):
        first = np.maximum(begin, low)
        count = np.maximum(np.minimum(end, high) - first, 0)
        where = expand_ranges(first, count)
        who = np.repeat(sets.owner, count)
        # sets are numbered by kernel, what is written before what is read
        order = np.lexsort((who, where))
        found.append(_block_pairs(where[order], who[order], sets, many))
    return sorted_unique(np.concatenate([empty_index(), *found]))


def _block_pairs(where: Ints, who: Ints, sets: _Sets, many: int) -> Ints:
    """Return the pairs of a block; rows come by segment, then kernel, writes before reads."""
    kernel, written = sets.kernel[who], sets.written[who]
    fresh = np.ones(len(where), bool)
    fresh[1:] = where[1:] != where[:-1]
    new = fresh.copy()
    new[1:] |= kernel[1:] != kernel[:-1]
    visit = np.cumsum(new) - 1  # a visit: one kernel at one segment
    row = np.append(np.flatnonzero(new), len(where))
    writes = np.add.reduceat(written.astype(np.int64), row[:-1])
    oldest = np.maximum.accumulate(np.where(fresh[row[:-1]], np.arange(len(writes)), 0))
    last = np.maximum.accumulate(np.where(writes > 0, np.arange(len(writes)), -1))
    last = np.concatenate(([-1], last[:-1]))
    has_writer = last >= oldest  # an earlier kernel writes this segment
    # a write waits for the last writer and all readers since, a read for the last writer
    start = row[:-1][np.where(has_writer, last, oldest)]
    until_read = start + np.where(has_writer, writes[last], 0)
    stop = np.where(written, row[:-1][visit], until_read[visit])
    count = stop - start[visit]
    found: list[Ints] = []
    for low, high in _blocks(count):
        part = slice(low, high)
        consumers = np.repeat(who[part], count[part])
        found.append(sorted_unique(consumers * many + who[expand_ranges(start[visit[part]], count[part])]))
    return sorted_unique(np.concatenate([empty_index(), *found]))


def _ptr(node: Ints, count: int) -> Ints:
    return csr_offsets(np.bincount(node, minlength=count))


class _Nodes:
    """From pairs of sets to group nodes."""

    def __init__(self, sets: _Sets, pairs: Ints, offsets: Ints) -> None:
        self.sets, self.offsets = sets, offsets
        self.most = int(offsets[-1])  # TBs
        many = len(sets.size)
        consumer, producer = pairs // many, pairs % many
        new = np.ones(len(pairs), bool)
        new[1:] = consumer[1:] != consumer[:-1]
        ptr = np.append(np.flatnonzero(new), len(pairs))
        who = consumer[ptr[:-1]]
        # consumers of one kernel that follow the same sets are one bundle
        kind = sets.kernel[who] * 2 + sets.written[who]
        words = [w + mix64(kind, 3 + i) for i, w in enumerate(list_hashes(producer, ptr))]
        first, self.bundle = distinct_rows(words)
        self.who = who
        self.kernel, self.written = sets.kernel[who[first]], sets.written[who[first]]
        size = np.diff(ptr)[first]
        self.bundle_of = np.repeat(np.arange(len(first), dtype=np.int64), size)
        self.producer = producer[expand_ranges(ptr[first], size)]

    def _split_shared_sets(self) -> None:
        """Give a set that many bundles wait for a node of its own, where that takes fewer table entries."""
        sets = self.sets
        key = (self.kernel[self.bundle_of] * 2 + self.written[self.bundle_of]) * len(
            sets.size
        ) + self.producer
        keys, first, inverse, times = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        inverse = inverse.reshape(-1)
        size = sets.size[keys % len(sets.size)]
        maybe = (times - 1) * size >= _MIN_SAVING
        if not maybe.any():
            return
        # what the ranges of all its consumers would take
        order = np.argsort(self.bundle, kind="stable")
        ptr = _ptr(self.bundle, len(self.kernel))
        row = np.flatnonzero(maybe[inverse])
        count = np.diff(ptr)[self.bundle_of[row]]
        members = order[expand_ranges(ptr[self.bundle_of[row]], count)]
        label = np.repeat(inverse[row], count)
        at, tb = sets.members(self.who[members])
        slot, tb = np.divmod(sorted_unique(label[at] * self.most + tb), self.most)
        chosen = sorted_unique(slot)
        _, range_ptr = strided_ranges_of_lists(tb, _ptr(np.searchsorted(chosen, slot), len(chosen)))
        ranges = np.zeros(len(keys), np.int64)
        ranges[chosen] = np.diff(range_ptr)
        own = maybe & (times * size > size + ranges)
        if not own.any():
            return
        bundles = len(self.kernel)
        number = np.cumsum(own) - 1 + bundles
        moved = own[inverse]
        new = np.flatnonzero(own)
        taken = own[label]
        self.who = np.concatenate((self.who, self.who[members[taken]]))
        self.bundle = np.concatenate((self.bundle, number[label[taken]]))
        was = self.bundle_of[first[new]]
        self.kernel = np.concatenate((self.kernel, self.kernel[was]))
        self.written = np.concatenate((self.written, self.written[was]))
        self.bundle_of = np.concatenate((self.bundle_of[~moved], number[new]))
        self.producer = np.concatenate((self.producer[~moved], keys[new] % len(sets.size)))
        # drop bundles without producers
        left = np.zeros(len(self.kernel), bool)
        left[self.bundle_of] = True
        rank = np.cumsum(left) - 1
        keep = left[self.bundle]
        self.who, self.bundle = self.who[keep], rank[self.bundle[keep]]
        self.bundle_of = rank[self.bundle_of]
        self.kernel, self.written = self.kernel[left], self.written[left]

    def groups(self) -> Groups:
        """Return the nodes by kernel."""
        self._split_shared_sets()
        sets, count = self.sets, len(self.kernel)
        at, tb = sets.members(self.producer)
        kind = np.where(
            self.written[self.bundle_of], np.where(sets.written[self.producer], WAW, WAR), RAW
        ).astype(np.int64)
        # a TB may be met in several sets: its kinds add up
        packed = sorted_unique(
            (self.bundle_of[at] * self.most + tb + self.offsets[sets.kernel[self.producer]][at]) * 8
            + kind[at]
        )
        place = packed >> 3
        new = np.ones(len(place), bool)
        new[1:] = place[1:] != place[:-1]
        starts = np.flatnonzero(new)
        kinds = np.bitwise_or.reduceat(packed & 7, starts)
        place = place[starts]
        ptr = _ptr(place // self.most, count)
        producers = place % self.most
        at, tb = sets.members(self.who)
        return joined_nodes(self.kernel, ptr, producers, kinds.astype(np.uint8), self.bundle[at], tb)


def sweep_intervals(parts: Sequence[KernelIntervals], offsets: Ints) -> Groups:
    """Return the group nodes of all intervals, which come by kernel, writes before reads.

    ``offsets``: (kernels + 1), global number of each kernel's TB 0.
    """
    if not parts:
        return Groups.of(())
    sets = _Sets(parts)
    pairs = _pairs(sets)
    return _Nodes(sets, pairs, offsets).groups() if len(pairs) else Groups.of(())
