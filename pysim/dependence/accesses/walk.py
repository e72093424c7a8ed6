"""Walks the kernels in launch order and finds what the TBs of each wait for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.equal_nodes import joined_nodes
from pysim.dependence.groups import Groups
from pysim.program.access_regions import SharedRegions
from pysim.program.regions import empty_index

from .edges import RANK, Source, edges_of
from .records import AccessRecord, AccessRecords

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job
    from pysim.program.regions import Regions

    Ints = NDArray[np.int64]
    # number of the edges of an access, and the kernels that its ranks stand for
    _Found = tuple[int, list[int]]

_TB = (1 << RANK) - 1


class AccessWalk:
    """The records that later kernels can still conflict with, and edges that are found only once.

    Layers repeat: edges that follow from shapes and relative addresses alone are computed once, those of an
    access and those of all accesses of a kernel.
    """

    def __init__(self, job: Job, offsets: Ints, cluster: dict[int, int], granule: int) -> None:
        """``cluster``: memory range of each tensor to walk, by ``id``; ``granule``: bytes."""
        self.job, self.offsets, self.cluster, self.granule = job, offsets, cluster, granule
        self.regions = SharedRegions(granule)
        self.records: dict[int, AccessRecords] = defaultdict(AccessRecords)
        self.hidden: dict[tuple[int, ...], Ints] = {}
        self.numbers: dict[tuple[object, ...], int] = {}
        self.edges: list[Groups] = []  # of an access, by number
        self.nodes: dict[tuple[tuple[int, ...], ...], Groups] = {}  # of a kernel

    def groups(self) -> Groups:
        """Return the group nodes of all kernels, in kernel order."""
        made: list[Groups] = []
        for index, kernel in enumerate(self.job.kernels):
            name = f"job {self.job.name}: kernel {index} ({kernel.name})"
            mine: list[tuple[AccessRecords, AccessRecord]] = []
            for access in kernel.accesses:
                where = self.cluster.get(id(access.tensor))
                if where is not None:
                    regions = self.regions.of(access, kernel.tbs, name)
                    if len(regions):
                        lo, hi = regions.span()
                        mine.append((self.records[where], AccessRecord(index, access.mode, regions, lo, hi)))
            waits = [self._wait(records, record) for records, record in mine]
            found = [edges for edges in waits if edges is not None]
            if found:
                made.append(self._kernel(index, found))
            for records, record in mine:
                self._remember(records, record)
        return Groups.joined(made)

    def _wait(self, records: AccessRecords, access: AccessRecord) -> _Found | None:
        """Return the edges of one access; None: it meets no earlier one."""
        found = [
            (record, part)
            for _, record in records.meeting(access.mode, access.lo, access.hi)
            if len(part := self._part(record, record.meeting(access.lo, access.hi)))
        ]
        if not found:
            return None
        kernels = sorted({record.kernel for record, _ in found})
        rank_of = {kernel: rank for rank, kernel in enumerate(kernels)}
        sources = [
            Source(record.mode, part, rank_of[record.kernel], record.alone()) for record, part in found
        ]
        here = access.regions.address
        place = tuple((s.mode, s.regions.shape, s.rank, s.alone, s.regions.address - here) for s in sources)
        known = (access.mode, access.regions.shape, here % self.granule, place)
        number = self.numbers.setdefault(known, len(self.edges))
        if number == len(self.edges):
            self.edges.append(edges_of(access.mode, access.regions, sources, self.regions))
        return number, kernels

    def _kernel(self, index: int, found: Sequence[_Found]) -> Groups:
        """Return the group nodes of a kernel from the edges of its accesses."""
        kernels = sorted({kernel for _, some in found for kernel in some})
        rank_of = {kernel: rank for rank, kernel in enumerate(kernels)}
        key = tuple((number, *(rank_of[kernel] for kernel in some)) for number, some in found)
        if key not in self.nodes:
            self.nodes[key] = self._joined([(self.edges[number], ranks) for number, *ranks in key])
        nodes = self.nodes[key]
        bases = self.offsets[kernels]
        return Groups(
            np.full(len(nodes), index, np.int64),
            nodes.producer_ptr,
            bases[nodes.producers >> RANK] + (nodes.producers & _TB),
            nodes.kinds,
            nodes.consumer_ptr,
            nodes.consumers,
        )

    @staticmethod
    def _joined(parts: Sequence[tuple[Groups, Sequence[int]]]) -> Groups:
        """Return edges as the nodes of a kernel; ``parts``: edges of an access, and ranks for its ranks."""
        every = Groups.joined([edges for edges, _ in parts])
        if not len(every):
            return every
        ranks = [np.array(among, np.int64)[edges.producers >> RANK] for edges, among in parts if len(edges)]
        return joined_nodes(
            every.kernel,
            every.producer_ptr,
            np.concatenate(ranks) << RANK | every.producers & _TB,
            every.kinds,
            np.repeat(np.arange(len(every), dtype=np.int64), np.diff(every.consumer_ptr)),
            every.consumers,
        )

    def _remember(self, records: AccessRecords, access: AccessRecord) -> None:
        """Record an access, and drop regions that a write covers: a wait for the writer implies theirs."""
        met = records.meeting(access.mode, access.lo, access.hi) if access.mode != "read" else ()
        for number, record in met:
            if record.kernel < access.kernel:
                which = record.meeting(access.lo, access.hi)
                part = self._part(record, which)
                hidden = self._hidden(part, access) if len(part) else empty_index()
                if len(hidden) and not record.drop(hidden if which is None else which[hidden]):
                    records.remove(number, record)
        records.add(access)

    def _part(self, record: AccessRecord, which: Ints | None) -> Regions:
        """Return some regions of a record; ``which``: as of ``AccessRecord.meeting``."""
        if which is None:
            return record.regions
        made = record.regions.chosen(which)
        return self.regions.shaped(made) if len(made) else made

    def _hidden(self, old: Regions, access: AccessRecord) -> Ints:
        """Return which of some regions an access covers."""
        new = access.regions
        key = (old.shape, new.shape, old.address - new.address, old.address % self.granule)
        if key not in self.hidden:
            near = access.meeting(*old.span())
            new = new if near is None else new.chosen(near)
            self.hidden[key] = np.flatnonzero(old.covered_by(new)) if len(new) else empty_index()
        return self.hidden[key]
