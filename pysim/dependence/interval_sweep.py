"""Dependences in memory that was recorded: a sweep over all addresses that finds who follows whom at each.

Stretches with the same history (the same sets of TBs in the same order) are looked at once.
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

from .groups import RAW, WAR, WAW, Groups
from .set_hash import alike, mixed, sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pysim.program.footprint import SectorRuns

    Ints = NDArray[np.int64]

_CHUNK = 1 << 22  # rows held at once
_FEW = 8  # entries below which a counter of its own saves nothing worth having


@dataclass(frozen=True, slots=True)
class Part:
    """What one kernel reads, or what it writes: sets of TBs and the runs of sectors of each.

    Run i is ``lo[i]`` to ``hi[i]`` of set ``owner[i]``; set s has the TBs ``tbs[ptr[s]:ptr[s + 1]]``.
    """

    kernel: int
    written: bool
    lo: Ints
    hi: Ints
    owner: Ints
    tbs: Ints
    ptr: Ints


def parts_of(kernel: int, touched: SectorRuns) -> list[Part]:
    """Return the parts of a recorded kernel: runs that the same TBs touch belong to one set."""
    made: list[Part] = []
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
        first, owner = alike(sums(tb, ptr))
        size = np.diff(ptr)[first]
        tbs = tb[expand_ranges(ptr[first], size)]
        made.append(Part(kernel, written, lo[starts], hi[starts], owner, tbs, csr_offsets(size)))
    return made


class _Sets:
    """The sets of all parts, numbered through."""

    def __init__(self, parts: Sequence[Part]) -> None:
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
        """Return the TBs of some sets, and which of them each belongs to."""
        size = self.size[sets]
        return np.repeat(np.arange(len(sets), dtype=np.int64), size), self.tbs[
            expand_ranges(self.first[sets], size)
        ]


def _histories(sets: _Sets) -> tuple[Ints, Ints, Ints]:
    """Take one stretch of memory of each history; return the first and last + 1 of every run, and who meets.

    That is how many runs meet at each stretch. Only stretches that somebody writes and somebody else touches
    are counted.
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

    meet = total(np.ones(runs, np.int64))
    alive = np.flatnonzero((meet > 1) & (total(sets.written[sets.owner].astype(np.int64)) > 0))
    words = [total(mixed(sets.owner, salt))[alive] for salt in (1, 2)]
    first, _ = alike(words) if len(alive) else (empty_index(), empty_index())
    chosen = alive[first]
    flags = np.zeros(len(cuts) + 1, np.int64)
    flags[chosen + 1] = 1
    below = np.cumsum(flags)
    return below[begin], below[end], meet[chosen]


def _blocks(meet: Ints) -> Iterator[tuple[int, int]]:
    """Cut the stretches into blocks that few enough rows meet in."""
    done = csr_offsets(meet)
    at = 0
    while at < len(meet):
        stop = max(at + 1, int(np.searchsorted(done, done[at] + _CHUNK, side="right")) - 1)
        yield at, stop
        at = stop


def _pairs(sets: _Sets) -> Ints:
    """Return consumer set * number of sets + producer set of all that follow each other, sorted."""
    begin, end, meet = _histories(sets)
    many = len(sets.size)
    found: list[Ints] = []
    for low, high in _blocks(meet):
        first = np.maximum(begin, low)
        count = np.maximum(np.minimum(end, high) - first, 0)
        where = expand_ranges(first, count)
        who = np.repeat(sets.owner, count)
        # sets are numbered by kernel, what is written before what is read
        order = np.lexsort((who, where))
        found.append(_block_pairs(where[order], who[order], sets, many))
    return sorted_unique(np.concatenate([empty_index(), *found]))


def _block_pairs(where: Ints, who: Ints, sets: _Sets, many: int) -> Ints:
    """Return the pairs of some stretches; rows come by stretch, kernel and written before read."""
    kernel, written = sets.kernel[who], sets.written[who]
    fresh = np.ones(len(where), bool)
    fresh[1:] = where[1:] != where[:-1]
    new = fresh.copy()
    new[1:] |= kernel[1:] != kernel[:-1]
    visit = np.cumsum(new) - 1  # a visit: one kernel at one stretch
    row = np.append(np.flatnonzero(new), len(where))
    writes = np.add.reduceat(written.astype(np.int64), row[:-1])
    oldest = np.maximum.accumulate(np.where(fresh[row[:-1]], np.arange(len(writes)), 0))
    last = np.maximum.accumulate(np.where(writes > 0, np.arange(len(writes)), -1))
    last = np.concatenate(([-1], last[:-1]))
    behind = last >= oldest  # somebody wrote here before
    # a writer waits for the last writer and all since, a reader for the last writer
    start = row[:-1][np.where(behind, last, oldest)]
    until_read = start + np.where(behind, writes[last], 0)
    stop = np.where(written, row[:-1][visit], until_read[visit])
    count = stop - start[visit]
    found: list[Ints] = []
    for low, high in _blocks(count):
        part = slice(low, high)
        consumers = np.repeat(who[part], count[part])
        found.append(sorted_unique(consumers * many + who[expand_ranges(start[visit[part]], count[part])]))
    return sorted_unique(np.concatenate([empty_index(), *found]))


def _distinct(node: Ints, tb: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the rows (node, TB) sorted, each once."""
    packed = sorted_unique(node * most + tb)
    return packed // most, packed % most


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
        words = [w + mixed(kind, 3 + i) for i, w in enumerate(sums(producer, ptr))]
        first, self.bundle = alike(words)
        self.who = who
        self.kernel, self.written = sets.kernel[who[first]], sets.written[who[first]]
        size = np.diff(ptr)[first]
        self.of = np.repeat(np.arange(len(first), dtype=np.int64), size)
        self.producer = producer[expand_ranges(ptr[first], size)]

    def _shared(self) -> None:
        """Give a set that many bundles wait for a counter of its own, where that makes for fewer entries."""
        sets = self.sets
        key = (self.kernel[self.of] * 2 + self.written[self.of]) * len(sets.size) + self.producer
        keys, first, inverse, times = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        inverse = inverse.reshape(-1)
        size = sets.size[keys % len(sets.size)]
        maybe = (times - 1) * size >= _FEW
        if not maybe.any():
            return
        # what the ranges of all its consumers would take
        order = np.argsort(self.bundle, kind="stable")
        ptr = _ptr(self.bundle, len(self.kernel))
        row = np.flatnonzero(maybe[inverse])
        count = np.diff(ptr)[self.of[row]]
        members = order[expand_ranges(ptr[self.of[row]], count)]
        label = np.repeat(inverse[row], count)
        at, tb = sets.members(self.who[members])
        slot, tb = _distinct(label[at], tb, self.most)
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
        was = self.of[first[new]]
        self.kernel = np.concatenate((self.kernel, self.kernel[was]))
        self.written = np.concatenate((self.written, self.written[was]))
        self.of = np.concatenate((self.of[~moved], number[new]))
        self.producer = np.concatenate((self.producer[~moved], keys[new] % len(sets.size)))
        # bundles that have nothing left to wait for
        left = np.zeros(len(self.kernel), bool)
        left[self.of] = True
        rank = np.cumsum(left) - 1
        keep = left[self.bundle]
        self.who, self.bundle = self.who[keep], rank[self.bundle[keep]]
        self.of = rank[self.of]
        self.kernel, self.written = self.kernel[left], self.written[left]

    def groups(self) -> Groups:
        """Return the nodes by kernel."""
        self._shared()
        sets, count = self.sets, len(self.kernel)
        at, tb = sets.members(self.producer)
        kind = np.where(self.written[self.of], np.where(sets.written[self.producer], WAW, WAR), RAW).astype(
            np.int64
        )
        # a TB may be met in several sets: its kinds add up
        packed = sorted_unique(
            (self.of[at] * self.most + tb + self.offsets[sets.kernel[self.producer]][at]) * 8 + kind[at]
        )
        place = packed >> 3
        new = np.ones(len(place), bool)
        new[1:] = place[1:] != place[:-1]
        starts = np.flatnonzero(new)
        kinds = np.bitwise_or.reduceat(packed & 7, starts)
        place = place[starts]
        ptr = _ptr(place // self.most, count)
        producers = place % self.most
        # equal producers and kinds: one node for all their consumers
        words = [w + mixed(self.kernel, 3 + i) for i, w in enumerate(sums(producers * 8 + kinds, ptr))]
        first, node = alike(words)
        at, tb = sets.members(self.who)
        consumer_node, consumers = _distinct(node[self.bundle][at], tb, self.most)
        consumer_ptr = _ptr(consumer_node, len(first))
        size = np.diff(ptr)[first]
        chosen = expand_ranges(ptr[first], size)
        producers, kinds, producer_ptr = producers[chosen], kinds[chosen], csr_offsets(size)
        # equal producers and consumers: one node of all their kinds
        words = [
            a + mixed(b, 5 + i) + mixed(self.kernel[first], 7 + i)
            for i, (a, b) in enumerate(
                zip(sums(producers, producer_ptr), sums(consumers, consumer_ptr), strict=True)
            )
        ]
        kept, same = alike(words)
        order = np.argsort(self.kernel[first][kept], kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        same, kept = rank[same], kept[order]
        made_ptr = csr_offsets(np.diff(producer_ptr)[kept])
        merged = np.zeros(int(made_ptr[-1]), np.uint8)
        target = expand_ranges(made_ptr[same], np.diff(producer_ptr))
        np.bitwise_or.at(merged, target, kinds.astype(np.uint8))
        used = np.diff(consumer_ptr)[kept]
        return Groups(
            self.kernel[first][kept],
            made_ptr,
            producers[expand_ranges(producer_ptr[kept], np.diff(made_ptr))],
            merged,
            csr_offsets(used),
            consumers[expand_ranges(consumer_ptr[kept], used)],
        )


def sweep(parts: Sequence[Part], offsets: Ints) -> Groups:
    """Return the group nodes of all parts, which come by kernel, what is written before what is read."""
    if not parts:
        return Groups.of(())
    sets = _Sets(parts)
    pairs = _pairs(sets)
    return _Nodes(sets, pairs, offsets).groups() if len(pairs) else Groups.of(())
