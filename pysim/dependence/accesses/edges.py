"""The edges of one access: the sets of earlier TBs that its TBs wait for, as group nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.dependence.groups import RAW, WAR, WAW, Groups
from pysim.dependence.set_hash import distinct_rows, list_hashes
from pysim.program.regions import csr_offsets, expand_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pysim.program.access_regions import SharedRegions
    from pysim.program.regions import Regions

    Ints = NDArray[np.int64]
    Kinds = NDArray[np.uint8]

RANK = 32  # a TB number fits below this bit
_CHUNK = 1 << 22  # producers expanded at once, which bounds memory
_WIDE = 64  # TBs of one region from which on it is worth a set of its own
_LISTED = 1 << 18  # producers of the consumers of an access, from which on it is looked at


class Source(NamedTuple):
    """An earlier access: those of its regions that a later one may meet.

    ``rank``: of its kernel among those of all sources; ``alone``: it has no other regions, and one of these.
    """

    mode: str
    regions: Regions
    rank: int
    alone: bool


def edges_of(mode: str, regions: Regions, sources: Sequence[Source], shared: SharedRegions) -> Groups:
    """Return the group nodes of the TBs of one access; nodes may be equal.

    ``sources``: what it may conflict with; ``shared``: made all regions. Producers are numbered
    ``rank << 32 | TB``; the consumers' kernel is 0.
    """
    left: list[Ints] = []
    right: list[Ints] = []
    base = 0
    for source in sources:
        i, j = shared.overlapping_pairs(regions, source.regions)
        left.append(i)
        right.append(j + base)
        base += len(source.regions)
    apart = _wide(sources, left)
    if apart.any() and not apart.all():
        # a set of all TBs of a kernel beside some of another: were they one set, each consumer that has
        # others would list all of them
        return Groups.joined(
            [
                edges_of(
                    mode, regions, [s for s, wide in zip(sources, apart, strict=True) if wide == part], shared
                )
                for part in (False, True)
            ]
        )
    region, met = np.concatenate(left), np.concatenate(right)
    if len(region) == 0:
        return Groups.of(())
    # numbers come in sorted runs, which a stable sort of whole pairs merges faster than lexsort does
    region, met = np.divmod(np.sort(region * base + met, kind="stable"), base)
    starts = np.flatnonzero(np.concatenate(([True], region[1:] != region[:-1])))
    ptr = np.append(starts, len(region))
    # regions that meet the same earlier regions have the same producers: expand each such set once
    first, which = distinct_rows(list_hashes(met, ptr))
    consumers, consumer_ptr = _members(regions, region[starts], which, len(first))
    parts = list(_Held.of(mode, sources).expanded(met, ptr[first], ptr[first + 1]))
    producers, kinds, sizes = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Groups(
        np.zeros(len(first), np.int64), csr_offsets(sizes), producers, kinds, consumer_ptr, consumers
    )


def _kind(before: str, after: str) -> int:
    if after == "read":
        return RAW
    return WAR if before == "read" else WAW


def _wide(sources: Sequence[Source], meets: Sequence[Ints]) -> NDArray[np.bool_]:
    """Return which sources have one region of many TBs, where the sets of all sources would be long."""
    sizes = np.array([len(source.regions.tbs) for source in sources], np.int64)
    one = np.array([source.alone for source in sources], bool)
    listed = int((sizes * np.array([len(met) for met in meets], np.int64))[one].sum())
    return one & (sizes >= _WIDE) if listed > _LISTED else np.zeros(len(sources), bool)


def _members(regions: Regions, numbers: Ints, which: Ints, sets: int) -> tuple[Ints, Ints]:
    """Return (TBs, ptr): the sorted TBs of set s are ``TBs[ptr[s]:ptr[s + 1]]``."""
    counts = regions.ptr[numbers + 1] - regions.ptr[numbers]
    tbs, owner = regions.tbs[expand_ranges(regions.ptr[numbers], counts)], np.repeat(which, counts)
    most = int(tbs.max()) + 1
    rows = np.sort(owner * most + tbs, kind="stable")
    return rows % most, csr_offsets(np.bincount(owner, minlength=sets))


@dataclass(frozen=True, slots=True)
class _Held:
    """TBs of the regions of several sources; regions are numbered through all sources.

    Region r belongs to the TBs ``place[begin[r]:begin[r] + count[r]]``; TB p is ``numbers[p]``, which rise:
    ``kernel rank << 32 | TB``. A TB ordered after them has an edge of ``kind[r]``.
    """

    numbers: Ints
    place: Ints
    begin: Ints
    count: Ints
    kind: Kinds

    @classmethod
    def of(cls, mode: str, sources: Sequence[Source]) -> _Held:
        held = [source.regions for source in sources]
        tbs = np.zeros(max(source.rank for source in sources) + 1, np.int64)
        for source in sources:
            tbs[source.rank] = max(tbs[source.rank], int(source.regions.tbs.max()) + 1)
        before = csr_offsets(tbs)
        rank = np.repeat(np.arange(len(tbs), dtype=np.int64), tbs)
        first = csr_offsets(np.array([len(regions.tbs) for regions in held], np.int64))[:-1].tolist()
        kinds = np.array([_kind(source.mode, mode) for source in sources], np.uint8)
        return cls(
            (rank << RANK) + np.arange(len(rank), dtype=np.int64) - before[rank],
            np.concatenate([source.regions.tbs + before[source.rank] for source in sources]),
            np.concatenate([regions.ptr[:-1] + at for regions, at in zip(held, first, strict=True)]),
            np.concatenate([np.diff(regions.ptr) for regions in held]),
            np.repeat(kinds, [len(regions) for regions in held]),
        )

    def expanded(self, regions: Ints, starts: Ints, ends: Ints) -> Iterator[tuple[Ints, Kinds, Ints]]:
        """Yield (sorted producers, kinds of their edges, producers a set) of sets ``regions[start:end]``."""
        sizes = ends - starts
        picked = regions[expand_ranges(starts, sizes)]
        owner = np.repeat(np.arange(len(starts), dtype=np.int64), sizes)
        done = np.cumsum(np.bincount(owner, weights=self.count[picked])).astype(np.int64)
        at = 0
        while at < len(starts):
            # as many sets as fit, and one at the least
            before = int(done[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(done, before + _CHUNK, side="right")))
            mine = slice(*np.searchsorted(owner, (at, stop)).tolist())
            each = self.count[picked[mine]]
            of = np.repeat(owner[mine] - at, each)
            places = self.place[expand_ranges(self.begin[picked[mine]], each)]
            # set, TB and kind in one number
            rows = (of * len(self.numbers) + places) * 8 + np.repeat(self.kind[picked[mine]], each)
            rows = np.sort(rows, kind="stable")
            pairs = rows >> 3
            new = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1])))
            of, places = np.divmod(pairs[new], len(self.numbers))
            kinds = np.bitwise_or.reduceat((rows & 7).astype(np.uint8), new)
            yield self.numbers[places], kinds, np.bincount(of, minlength=stop - at)
            at = stop
