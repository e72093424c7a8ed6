"""Whether the waits for tiles imply all edges of a job.

When a TB has waited for a tile, the TB that made the tile is complete, and so is every TB that this one had
waited for before it posted. An edge over a third kernel is therefore implied only if the TBs on the way
match, not by the order of kernels alone. A wait for data that is read does not order the consumer after
other readers of memory that it overwrites. A wait covers only accesses after it: for RAW edges those waits
count that come before the first load, for WAR and WAW edges those before the first store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import csr_offsets, expand_ranges, sorted_unique

from .groups import RAW, WAR, WAW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from .groups import Dependences

    Ints = NDArray[np.int64]
    Bits = NDArray[np.uint8]

_CHUNK_BYTES = 1 << 26  # bytes of rows handled at once
_MAX_BYTES = 1 << 28  # bytes of rows for one edge; a larger edge counts as not covered


@dataclass(frozen=True, slots=True)
class _PairEdges:
    """Edges from one kernel to another: consumer TB ``consumers[n]`` has the producers of node ``of[n]``.

    The producers of node m are the TBs ``producers[ptr[m]:ptr[m + 1]]``.
    """

    producers: Ints
    ptr: Ints
    of: Ints
    consumers: Ints


class SyncCoverage:
    """Which TBs of earlier kernels are known to be complete when a TB runs.

    ``waits``: the kernels whose tiles each kernel waits for; the caller fills it kernel by kernel.
    ``same_semaphores(kernel)``: a label for each TB, equal for TBs that post the same semaphore (None: each
    posts its own); a wait for one of them is a wait for all. ``waited_before(kernel, kind)``: the kernels
    waited for before the first load (RAW) or before the first store (WAR, WAW). ``posts_last(kernel)``:
    whether its TBs post after all their accesses.
    """

    def __init__(
        self,
        deps: Dependences,
        waits: Sequence[Mapping[int, object]],
        same_semaphores: Callable[[int], Ints | None],
        waited_before: Callable[[int, int], Sequence[int]],
        posts_last: Callable[[int], bool],
    ) -> None:
        self.deps, self.waits, self.same_semaphores, self.waited_before, self.posts_last = (
            deps,
            waits,
            same_semaphores,
            waited_before,
            posts_last,
        )
        self.complete: dict[tuple[int, int], Bits] = {}
        self.waited: dict[tuple[int, int], _PairEdges] = {}

    def clear(self) -> None:
        """Empty the caches."""
        self.complete.clear()
        self.waited.clear()

    def covers(self, before: int, after: int) -> bool:
        """Whether the waits of kernel ``after`` imply all its edges from kernel ``before``.

        RAW edges from a kernel that it waits for directly are implied by that wait.
        """
        reads = self._edges(before, after, RAW if before not in self.waits[after] else 0)
        writes = self._edges(before, after, WAR | WAW)
        if not len(reads.of) and not len(writes.of):
            return True
        wide, between = (self._tbs(before) + 7) // 8, self._kernels_between(before, after)
        if wide * sum(map(self._tbs, between)) > _MAX_BYTES:
            return False
        if sum(rows.nbytes for rows in self.complete.values()) > _MAX_BYTES:
            self.clear()
        for kernel in between[:-1]:
            if (before, kernel) not in self.complete:
                self.complete[before, kernel] = self._known_complete(before, kernel, self.waits[kernel])
        return self._covers_kind(before, reads, after, RAW) and self._covers_kind(before, writes, after, WAW)

    def _covers_kind(self, before: int, edges: _PairEdges, after: int, kind: int) -> bool:
        """Whether waits that come before its accesses of a kind imply these edges of a kernel."""
        if not len(edges.of):
            return True
        known, need = (
            self._known_complete(before, after, self.waited_before(after, kind)),
            self._bits(before, edges),
        )
        return all(
            bool(((known[edges.consumers[part]] & need[edges.of[part]]) == need[edges.of[part]]).all())
            for part in _row_chunks(np.arange(len(edges.of) + 1), need.shape[1])
        )

    def _tbs(self, kernel: int) -> int:
        return int(self.deps.offsets[kernel + 1] - self.deps.offsets[kernel])

    def _edges(self, before: int, after: int, kinds: int) -> _PairEdges:
        """Return the edges of some kinds from one kernel to another."""
        groups, deps = self.deps.groups, self.deps
        low, high = deps.offsets[before : before + 2]
        first = int(deps.node_first[after])
        last = first + int(deps.node_count[after])
        made = slice(groups.producer_ptr[first], groups.producer_ptr[last])
        used = slice(groups.consumer_ptr[first], groups.consumer_ptr[last])
        producers, sizes = groups.producers[made], np.diff(groups.producer_ptr[first : last + 1])
        mine = (producers >= low) & (producers < high) & (groups.kinds[made] & kinds != 0)
        counts = np.bincount(np.repeat(np.arange(last - first), sizes)[mine], minlength=last - first)
        some = counts > 0
        whose = np.repeat(np.arange(last - first), np.diff(groups.consumer_ptr[first : last + 1]))
        has = some[whose]
        number = np.cumsum(some) - 1
        return _PairEdges(
            producers[mine] - low, csr_offsets(counts[some]), number[whose[has]], groups.consumers[used][has]
        )

    def _waited_tiles(self, before: int, after: int) -> _PairEdges:
        """Return the producers that each TB of ``after`` waits for by the semaphores of kernel ``before``."""
        if (before, after) not in self.waited:
            edges, label = self._edges(before, after, RAW), self.same_semaphores(before)
            if label is not None:
                order = np.argsort(label, kind="stable")
                each = np.bincount(label)
                nodes = np.repeat(np.arange(len(edges.ptr) - 1), np.diff(edges.ptr))
                node, number = np.divmod(sorted_unique(nodes * len(each) + label[edges.producers]), len(each))
                sizes = np.bincount(node, weights=each[number], minlength=len(edges.ptr) - 1)
                tbs = order[expand_ranges(csr_offsets(each)[number], each[number])]
                edges = _PairEdges(tbs, csr_offsets(sizes.astype(np.int64)), edges.of, edges.consumers)
            self.waited[before, after] = edges
        return self.waited[before, after]

    def _bits(self, kernel: int, edges: _PairEdges) -> Bits:
        """Return one row a node, (nodes, TBs / 8): a bit for each TB of the kernel that is its producer."""
        wide = (self._tbs(kernel) + 7) // 8
        rows = np.zeros((len(edges.ptr) - 1, wide), np.uint8)
        nodes = np.repeat(np.arange(len(rows)), np.diff(edges.ptr))
        bits = (128 >> (edges.producers & 7)).astype(np.uint8)
        np.bitwise_or.at(rows.reshape(-1), nodes * wide + (edges.producers >> 3), bits)
        return rows

    def _kernels_between(self, before: int, after: int) -> list[int]:
        """Return ``after`` and the kernels between the two that it waits for, directly or transitively."""
        on_the_way, left = {after}, [after]
        while left:
            for kernel in self.waits[left.pop()]:
                if kernel > before and kernel not in on_the_way:
                    on_the_way.add(kernel)
                    left.append(kernel)
        return sorted(on_the_way)

    def _known_complete(self, before: int, after: int, waits: Iterable[int]) -> Bits:
        """Return one row a TB of ``after``: a bit for each TB of ``before`` that the waits imply."""
        rows = np.zeros((self._tbs(after), (self._tbs(before) + 7) // 8), np.uint8)
        for over in waits:
            if over < before or not self.posts_last(over):
                continue
            edges = self._waited_tiles(over, after)
            if over == before:
                bits = self._bits(before, edges)
            else:
                bits = _or_rows(self.complete[before, over], edges.producers, edges.ptr)
            order = np.argsort(edges.consumers, kind="stable")
            who, first = np.unique(edges.consumers[order], return_index=True)
            rows[who] |= _or_rows(bits, edges.of[order], np.append(first, len(order)))
        return rows


def _row_chunks(ptr: Ints, wide: int) -> Iterator[slice]:
    """Yield slices of lists with at most ``_CHUNK_BYTES`` of rows, or one list; a row has ``wide`` bytes."""
    most, at = max(1, _CHUNK_BYTES // max(1, wide)), 0
    while at < len(ptr) - 1:
        stop = max(at + 1, int(np.searchsorted(ptr, ptr[at] + most, side="right")) - 1)
        yield slice(at, stop)
        at = stop


def _or_rows(rows: Bits, which: Ints, ptr: Ints) -> Bits:
    """Return the bitwise OR of rows ``which[ptr[i]:ptr[i + 1]]`` for each i; no list may be empty."""
    if len(which) == len(ptr) - 1:
        return rows[which]
    made = np.empty((len(ptr) - 1, rows.shape[1]), np.uint8)
    for part in _row_chunks(ptr, rows.shape[1]):
        first, end = ptr[part.start], ptr[part.stop]
        made[part] = np.bitwise_or.reduceat(rows[which[first:end]], ptr[part] - first, axis=0)
    return made
