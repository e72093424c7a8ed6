"""What TBs that wait for tiles know to be done: whether the semaphores of a job leave an edge out.

A TB that has waited for a tile knows that the TB that made it is done, and whatever that one knew when it
posted, behind all that it waited for. So an edge between two kernels that a third seems to imply is implied
only where the tiles are those that matter, and a wait for what is read says nothing yet of who else reads
what is written. Nor does a wait say anything of what a TB has read or written before: only those count that
come before its first load, or before its first store.
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

_BYTES = 1 << 26  # of rows that are looked at together
_MOST = 1 << 28  # bytes of the rows that an edge asks for; beyond, it is taken not to be covered


@dataclass(frozen=True, slots=True)
class _Between:
    """Edges from one kernel to another: those of ``consumers[n]`` are those of node ``of[n]``."""

    producers: Ints
    ptr: Ints
    of: Ints
    consumers: Ints


class Known:
    """Which TBs of earlier kernels each TB of a job knows to be done.

    ``waits``: the kernels whose tiles each kernel waits for, filled in as they are found, kernel by kernel. A
    TB waits for those TBs of them that make what it reads, and for those that have the same number of
    ``alike``: they post the same semaphores (None: each its own). ``ahead``: which of them a kernel has
    waited for before it reads (RAW), or before it writes (WAR or WAW). ``ends``: whether a TB of a kernel has
    done all that it does when it posts.
    """

    def __init__(
        self,
        deps: Dependences,
        waits: Sequence[Mapping[int, object]],
        alike: Callable[[int], Ints | None],
        ahead: Callable[[int, int], Sequence[int]],
        ends: Callable[[int], bool],
    ) -> None:
        self.deps, self.waits, self.alike, self.ahead, self.ends = deps, waits, alike, ahead, ends
        self.found: dict[tuple[int, int], Bits] = {}
        self.waited: dict[tuple[int, int], _Between] = {}

    def forget(self) -> None:
        """Drop what was found; what is asked for again is found again."""
        self.found.clear()
        self.waited.clear()

    def covers(self, before: int, after: int) -> bool:
        """Whether each TB of kernel ``after`` knows those of ``before`` to be done that it comes behind.

        What it reads of a kernel that it waits for itself, it has waited for.
        """
        reads = self._edges(before, after, RAW if before not in self.waits[after] else 0)
        writes = self._edges(before, after, WAR | WAW)
        if not len(reads.of) and not len(writes.of):
            return True
        wide, way = (self._tbs(before) + 7) // 8, self._way(before, after)
        if wide * sum(map(self._tbs, way)) > _MOST:
            return False
        if sum(rows.nbytes for rows in self.found.values()) > _MOST:
            self.forget()
        for kernel in way[:-1]:
            if (before, kernel) not in self.found:
                self.found[before, kernel] = self._behind(before, kernel, self.waits[kernel])
        return self._done(before, reads, after, RAW) and self._done(before, writes, after, WAW)

    def _done(self, before: int, edges: _Between, after: int, kind: int) -> bool:
        """Whether a kernel knows in time that what it has edges to is done."""
        if not len(edges.of):
            return True
        known, need = self._behind(before, after, self.ahead(after, kind)), self._bits(before, edges)
        return all(
            bool(((known[edges.consumers[part]] & need[edges.of[part]]) == need[edges.of[part]]).all())
            for part in _parts(np.arange(len(edges.of) + 1), need.shape[1])
        )

    def _tbs(self, kernel: int) -> int:
        return int(self.deps.offsets[kernel + 1] - self.deps.offsets[kernel])

    def _edges(self, before: int, after: int, kinds: int) -> _Between:
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
        return _Between(
            producers[mine] - low, csr_offsets(counts[some]), number[whose[has]], groups.consumers[used][has]
        )

    def _waits(self, before: int, after: int) -> _Between:
        """Return the edges that waits for the tiles of a kernel stand for."""
        if (before, after) not in self.waited:
            edges, label = self._edges(before, after, RAW), self.alike(before)
            if label is not None:
                order = np.argsort(label, kind="stable")
                each = np.bincount(label)
                nodes = np.repeat(np.arange(len(edges.ptr) - 1), np.diff(edges.ptr))
                node, number = np.divmod(sorted_unique(nodes * len(each) + label[edges.producers]), len(each))
                sizes = np.bincount(node, weights=each[number], minlength=len(edges.ptr) - 1)
                tbs = order[expand_ranges(csr_offsets(each)[number], each[number])]
                edges = _Between(tbs, csr_offsets(sizes.astype(np.int64)), edges.of, edges.consumers)
            self.waited[before, after] = edges
        return self.waited[before, after]

    def _bits(self, kernel: int, edges: _Between) -> Bits:
        """Return a row a node: a bit for each TB of a kernel that is a producer of it."""
        wide = (self._tbs(kernel) + 7) // 8
        rows = np.zeros((len(edges.ptr) - 1, wide), np.uint8)
        nodes = np.repeat(np.arange(len(rows)), np.diff(edges.ptr))
        bits = (128 >> (edges.producers & 7)).astype(np.uint8)
        np.bitwise_or.at(rows.reshape(-1), nodes * wide + (edges.producers >> 3), bits)
        return rows

    def _way(self, before: int, after: int) -> list[int]:
        """Return the kernels behind ``before`` that ``after`` waits for, directly or not, and itself."""
        on_the_way, left = {after}, [after]
        while left:
            for kernel in self.waits[left.pop()]:
                if kernel > before and kernel not in on_the_way:
                    on_the_way.add(kernel)
                    left.append(kernel)
        return sorted(on_the_way)

    def _behind(self, before: int, after: int, waits: Iterable[int]) -> Bits:
        """Return a row a TB of ``after``: a bit for each TB of ``before`` that it knows of by these waits."""
        rows = np.zeros((self._tbs(after), (self._tbs(before) + 7) // 8), np.uint8)
        for over in waits:
            if over < before or not self.ends(over):
                continue
            edges = self._waits(over, after)
            if over == before:
                bits = self._bits(before, edges)
            else:
                bits = _united(self.found[before, over], edges.producers, edges.ptr)
            order = np.argsort(edges.consumers, kind="stable")
            who, first = np.unique(edges.consumers[order], return_index=True)
            rows[who] |= _united(bits, edges.of[order], np.append(first, len(order)))
        return rows


def _parts(ptr: Ints, wide: int) -> Iterator[slice]:
    """Cut places that have ``ptr`` rows of so many bytes into stretches, one place at the least."""
    most, at = max(1, _BYTES // max(1, wide)), 0
    while at < len(ptr) - 1:
        stop = max(at + 1, int(np.searchsorted(ptr, ptr[at] + most, side="right")) - 1)
        yield slice(at, stop)
        at = stop


def _united(rows: Bits, which: Ints, ptr: Ints) -> Bits:
    """Return, for each place, the union of rows ``which[ptr[place]:ptr[place + 1]]``: one at the least."""
    if len(which) == len(ptr) - 1:
        return rows[which]
    made = np.empty((len(ptr) - 1, rows.shape[1]), np.uint8)
    for part in _parts(ptr, rows.shape[1]):
        first, end = ptr[part.start], ptr[part.stop]
        made[part] = np.bitwise_or.reduceat(rows[which[first:end]], ptr[part] - first, axis=0)
    return made
