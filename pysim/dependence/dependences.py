"""Exact dependences between the thread blocks of a job, from footprints, at 32-byte sectors or coarser.

Edges run between kernels in launch order (RAW, WAR, WAW), never inside a kernel. They come as *group
nodes*: a counter of producer TBs that releases ranges of consumer TBs, so all-to-all stays linear.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import DependenceError
from pysim.program.access_regions import regions_of
from pysim.program.regions import SECTOR, Regions, csr_offsets, expand_ranges, union

from .access_records import AccessRecord, AccessRecords
from .groups import RAW, WAR, WAW, Dependences, Group, Groups, assemble, reduce_preds, without_edges
from .interval_sweep import KernelIntervals, recorded_intervals, sweep_intervals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Access, Job, Mode

    Ints = NDArray[np.int64]
    # kernel ranks and numbers of producer TBs, kinds of edges, consumer TBs
    _Wait = tuple[Ints, Ints, NDArray[np.uint8], Ints]

__all__ = ["Dependences", "Group", "dependences", "reduce_preds", "without_edges"]

_RANK = 32  # a TB number fits below this bit
_CHUNK = 1 << 22  # producers expanded at once, which bounds memory
_WIDE = 64  # TBs of one region from which on it is worth a set of its own
_LISTED = 1 << 18  # producers of the consumers of an access, from which on it is looked at


def _clusters(job: Job, recorded: Ints, granule: int) -> tuple[dict[int, int], set[int]]:
    """Return (memory range of each tensor to walk, tensors to sweep); tensors are given by ``id``.

    Tensors that overlap in granules share a range. Ranges that one kernel alone touches, or that none
    writes, carry no edge and are left out. ``recorded``: sorted byte ranges (n, 2) that footprints touch; a
    range that meets one of them is swept, any other is walked.
    """
    tensors = {id(a.tensor): a.tensor for k in job.kernels for a in k.accesses}
    found: dict[int, int] = {}
    ends: list[int] = []
    starts: list[int] = []
    for key, tensor in sorted(tensors.items(), key=lambda item: item[1].address):
        # compared in granules: two tensors in one granule conflict
        if not ends or tensor.address // granule >= ends[-1]:
            starts.append(tensor.address // granule)
            ends.append(0)
        ends[-1] = max(ends[-1], -(-(tensor.address + tensor.nbytes) // granule))
        found[key] = len(ends) - 1
    first: dict[int, int] = {}
    shared: set[int] = set()
    written: set[int] = set()
    for index, kernel in enumerate(job.kernels):
        for access in kernel.accesses:
            where = found[id(access.tensor)]
            if first.setdefault(where, index) != index:
                shared.add(where)
            if access.mode != "read":
                written.add(where)
    met = np.searchsorted(recorded[:, 0], np.array(ends, np.int64) * granule) - 1
    known = (
        {
            where
            for where, at in enumerate(met.tolist())
            if recorded[at, 1] > starts[where] * granule and at >= 0
        }
        if len(recorded)
        else set()
    )
    alive = (shared & written) - known
    walked = {key: where for key, where in found.items() if where in alive}
    return walked, {key for key, where in found.items() if where in known}


def _kind(before: str, after: str) -> int:
    if after == "read":
        return RAW
    return WAR if before == "read" else WAW


@dataclass(frozen=True, slots=True)
class _Held:
    """TBs of the regions of several records; regions are numbered through all records.

    Region r belongs to the TBs ``numbers[begin[r]:begin[r] + count[r]]``, each ``kernel rank << 32 | TB``. A
    TB ordered after them has an edge of ``kind[r]``.
    """

    numbers: Ints
    begin: Ints
    count: Ints
    kind: NDArray[np.uint8]

    @classmethod
    def of(cls, mode: str, records: Sequence[AccessRecord], ranks: Sequence[int]) -> _Held:
        held = [record.regions for record in records]
        tbs = [regions.tbs + (rank << _RANK) for regions, rank in zip(held, ranks, strict=True)]
        first = csr_offsets(np.array([len(part) for part in tbs], np.int64))[:-1].tolist()
        kinds = np.array([_kind(record.mode, mode) for record in records], np.uint8)
        return cls(
            np.concatenate(tbs),
            np.concatenate([regions.ptr[:-1] + at for regions, at in zip(held, first, strict=True)]),
            np.concatenate([np.diff(regions.ptr) for regions in held]),
            np.repeat(kinds, [len(regions) for regions in held]),
        )

    def expanded(self, regions: Ints, starts: Ints, ends: Ints) -> Iterator[tuple[Ints, NDArray[np.uint8]]]:
        """Yield the sorted producers of each set ``regions[start:end]``, and the kinds of their edges."""
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
            numbers = self.numbers[expand_ranges(self.begin[picked[mine]], each)]
            of = np.repeat(owner[mine], each)
            order = np.lexsort((numbers, of))
            numbers, of = numbers[order], of[order]
            new = np.flatnonzero(
                np.concatenate(([True], (numbers[1:] != numbers[:-1]) | (of[1:] != of[:-1])))
            )
            kinds = np.bitwise_or.reduceat(np.repeat(self.kind[picked[mine]], each)[order], new)
            numbers = numbers[new]
            cuts = np.searchsorted(of[new], np.arange(at, stop + 1)).tolist()
            for begin, end in pairwise(cuts):
                yield numbers[begin:end], kinds[begin:end]
            at = stop


class _Builder:
    """Walks the kernels in launch order and keeps the records that later kernels can still conflict with."""

    def __init__(self, job: Job, offsets: Ints, cluster: dict[int, int], granule: int) -> None:
        self.job = job
        self.granule = granule
        self.offsets = offsets
        self.cluster = cluster
        self.records: dict[int, AccessRecords] = defaultdict(AccessRecords)
        self.groups: list[Group] = []
        # layers repeat: edges that follow from shapes and relative addresses alone are computed once
        self.shapes: dict[tuple[int, bytes, bytes, bytes], int] = {}
        self.hidden: dict[tuple[int, ...], NDArray[np.bool_]] = {}
        self.waits: dict[tuple[Any, ...], list[_Wait]] = {}

    def _shaped(self, regions: Regions) -> Regions:
        key = (regions.pitch, regions.byte_rects.tobytes(), regions.tbs.tobytes(), regions.ptr.tobytes())
        regions.shape = self.shapes.setdefault(key, len(self.shapes))
        return regions

    def run(self) -> list[Group]:
        """Return the group nodes of all kernels, in kernel order."""
        for index, kernel in enumerate(self.job.kernels):
            name = f"job {self.job.name}: kernel {index} ({kernel.name})"
            mine: list[tuple[int, Access, Regions]] = []
            for access in kernel.accesses:
                where = self.cluster.get(id(access.tensor))
                if where is not None:
                    regions = self._shaped(regions_of(access, kernel.tbs, self.granule, name))
                    if len(regions):
                        mine.append((where, access, regions))
            found: dict[tuple[bytes, bytes], list[Ints]] = {}
            keep: dict[tuple[bytes, bytes], tuple[Ints, NDArray[np.uint8]]] = {}
            for where, access, regions in mine:
                self._wait(access.mode, regions, self.records[where], found, keep)
            nodes: dict[tuple[bytes, bytes], Group] = {}
            for key, consumers in found.items():
                producers, kinds = keep[key]
                who = consumers[0] if len(consumers) == 1 else np.unique(np.concatenate(consumers))
                same = (key[0], who.tobytes())
                if same in nodes:
                    kinds = kinds | nodes[same].kinds
                nodes[same] = Group(index, producers, kinds, who)
            self.groups.extend(nodes.values())
            for where, access, regions in mine:
                self._remember(index, where, access.mode, regions)
        return self.groups

    def _wait(
        self,
        mode: Mode,
        regions: Regions,
        records: AccessRecords,
        found: dict[tuple[bytes, bytes], list[Ints]],
        keep: dict[tuple[bytes, bytes], tuple[Ints, NDArray[np.uint8]]],
    ) -> None:
        """Add the producers that the TBs of one access wait for to ``found`` and ``keep``."""
        lo, hi = int(regions.lo.min()), int(regions.hi.max())
        sources = [record for _, record in records.meeting(mode, lo, hi)]
        if not sources:
            return
        kernels = sorted({record.kernel for record in sources})
        rank_of = {kernel: rank for rank, kernel in enumerate(kernels)}
        ranks = [rank_of[record.kernel] for record in sources]
        here = regions.address
        place = tuple(
            (record.mode, record.regions.shape, rank, record.regions.address - here)
            for record, rank in zip(sources, ranks, strict=True)
        )
        known = (mode, regions.shape, here % self.granule, place)
        if known not in self.waits:
            self.waits[known] = self._templates(mode, regions, sources, ranks)
        bases = self.offsets[kernels]
        for rank, tbs, kinds, consumers in self.waits[known]:
            producers = bases[rank] + tbs
            key = (producers.tobytes(), kinds.tobytes())
            keep[key] = (producers, kinds)
            found.setdefault(key, []).append(consumers)

    def _templates(
        self, mode: str, regions: Regions, sources: Sequence[AccessRecord], ranks: Sequence[int]
    ) -> list[_Wait]:
        """Return the edges of one access; kernels are given by their rank among the sources."""
        left: list[Ints] = []
        right: list[Ints] = []
        base = 0
        for record in sources:
            i, j = regions.overlapping_pairs(record.regions)
            left.append(i)
            right.append(j + base)
            base += len(record.regions)
        apart = self._wide(sources, left)
        if apart.any() and not apart.all():
            # a set of all TBs of a kernel beside some of another: were they one set, each consumer that has
            # others would list all of them
            return [
                wait
                for part in (False, True)
                for wait in self._templates(
                    mode, regions,
                    [record for record, wide in zip(sources, apart, strict=True) if wide == part],
                    [rank for rank, wide in zip(ranks, apart, strict=True) if wide == part],
                )
            ]  # fmt: skip
        region, source = np.concatenate(left), np.concatenate(right)
        if len(region) == 0:
            return []
        order = np.lexsort((source, region))
        region, source = region[order], source[order]
        starts = np.flatnonzero(np.concatenate(([True], region[1:] != region[:-1])))
        ends = np.append(starts[1:], len(region))
        # regions that meet the same earlier regions have the same producers: expand each such set once
        sets: dict[bytes, int] = {}
        cut = zip(starts.tolist(), ends.tolist(), strict=True)
        which = np.array([sets.setdefault(source[i:j].tobytes(), len(sets)) for i, j in cut], np.int64)
        consumers, used = self._members(regions, region[starts], which, len(sets))
        first = np.unique(which, return_index=True)[1]
        made: list[_Wait] = []
        held = _Held.of(mode, sources, ranks)
        for n, (numbered, kinds) in enumerate(held.expanded(source, starts[first], ends[first])):
            tbs = numbered & ((1 << _RANK) - 1)
            made.append((numbered >> _RANK, tbs, kinds, consumers[used[n] : used[n + 1]]))
        return made

    @staticmethod
    def _wide(sources: Sequence[AccessRecord], meets: Sequence[Ints]) -> NDArray[np.bool_]:
        """Return which records have one region of many TBs, where the sets of all records would be long."""
        sizes = np.array([len(record.regions.tbs) for record in sources], np.int64)
        one = np.array([len(record.regions) == 1 for record in sources], bool)
        listed = int((sizes * np.array([len(met) for met in meets], np.int64))[one].sum())
        return one & (sizes >= _WIDE) if listed > _LISTED else np.zeros(len(sources), bool)

    @staticmethod
    def _members(regions: Regions, numbers: Ints, which: Ints, sets: int) -> tuple[Ints, Ints]:
        """Return (TBs, ptr): the sorted TBs of set s are ``TBs[ptr[s]:ptr[s + 1]]``."""
        counts = regions.ptr[numbers + 1] - regions.ptr[numbers]
        tbs, owner = regions.tbs[expand_ranges(regions.ptr[numbers], counts)], np.repeat(which, counts)
        return tbs[np.lexsort((tbs, owner))], csr_offsets(np.bincount(owner, minlength=sets))

    def _hidden_by(self, old: Regions, new: Regions) -> NDArray[np.bool_]:
        key = (old.shape, new.shape, old.address - new.address, old.address % self.granule)
        if key not in self.hidden:
            self.hidden[key] = old.covered_by(new)
        return self.hidden[key]

    def _remember(self, index: int, where: int, mode: Mode, regions: Regions) -> None:
        """Record an access, and drop regions that a write covers: a wait for the writer implies theirs."""
        records = self.records[where]
        lo, hi = int(regions.lo.min()), int(regions.hi.max())
        for number, record in records.meeting(mode, lo, hi) if mode != "read" else ():
            if record.kernel < index:
                hidden = self._hidden_by(record.regions, regions)
                if hidden.all():
                    records.remove(number, record)
                elif hidden.any():
                    record.regions = self._shaped(record.regions.excluding(hidden))
                    record.lo, record.hi = int(record.regions.lo.min()), int(record.regions.hi.max())
        records.add(AccessRecord(index, mode, regions, lo, hi))


def _ordered_before(job: Job) -> list[list[int]]:
    """Return, for each kernel, the kernels that its stream and events order directly before it.

    Raises DependenceError for an event to a kernel that there is not, or backwards.
    """
    count = len(job.kernels)
    into: dict[int, list[int]] = {}
    for before, after in job.events:
        if not (0 <= before < count and 0 <= after < count):
            raise DependenceError(f"job {job.name}: event {before} -> {after}: kernels are 0 to {count - 1}")
        if before >= after:
            raise DependenceError(
                f"job {job.name}: event {before} -> {after} points backwards in launch order: a cycle"
            )
        into.setdefault(after, []).append(before)
    last: dict[int, int] = {}
    made: list[list[int]] = []
    for index, kernel in enumerate(job.kernels):
        made.append([*into.get(index, ()), *([last[kernel.stream]] if kernel.stream in last else [])])
        last[kernel.stream] = index
    return made


def _access_intervals(job: Job, tensors: set[int], granule: int) -> list[KernelIntervals]:
    """Return the intervals of all accesses to the tensors with these ids."""
    made: list[KernelIntervals] = []
    for index, kernel in enumerate(job.kernels):
        for access in kernel.accesses:
            if id(access.tensor) in tensors:
                regions = regions_of(access, kernel.tbs, granule, f"kernel {index} ({kernel.name})")
                if len(regions):
                    lo, hi, owner = regions.intervals()
                    written = access.mode != "read"
                    made.append(KernelIntervals(index, written, lo, hi, owner, regions.tbs, regions.ptr))
    return made


def dependences(job: Job, granule: int = SECTOR) -> Dependences:
    """Return the exact edges of a job.

    Two accesses conflict if they touch the same granule of ``granule`` bytes (a multiple of 32 B) and one of
    them writes. Memory that only accesses describe is walked kernel by kernel; memory that a recorded
    footprint touches is swept by address. Raises DependenceError for events that make no order.
    """
    before = _ordered_before(job)
    offsets = csr_offsets(np.array([kernel.tbs for kernel in job.kernels], np.int64))
    parts: list[KernelIntervals] = []
    for index, kernel in enumerate(job.kernels):
        if kernel.footprint is not None:
            parts += recorded_intervals(index, kernel.footprint.sector_runs(kernel.tbs, kernel.name, granule))
    spans = [
        span
        for kernel in job.kernels
        if kernel.footprint is not None
        for span in (kernel.footprint.read_ranges(kernel.tbs), kernel.footprint.written_ranges(kernel.tbs))
    ]
    recorded = np.concatenate([np.empty((0, 2), np.int64), *spans])
    recorded = np.stack([recorded[:, 0] // granule, -(-recorded[:, 1] // granule)], axis=1) * granule
    walked, swept = _clusters(job, union(recorded), granule)
    parts = sorted(
        parts + _access_intervals(job, swept, granule), key=lambda part: (part.kernel, not part.written)
    )
    groups = Groups.of(_Builder(job, offsets, walked, granule).run())
    return assemble(groups.merged(sweep_intervals(parts, offsets)), offsets, before)
