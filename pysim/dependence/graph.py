"""The graph of thread blocks (TBs) that a job's dependences make: each edge once, by pairs of kernels.

Group nodes (``groups``) may hold an edge twice and mix producers of several kernels. Here each TB has at most
one set of producers in each earlier kernel, and TBs with equal producers share a set. Edges are counted and
classified by set, so that all-to-all stays linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.regions import csr_offsets, expand_ranges, sorted_unique

from .set_hash import distinct_rows, list_hashes, mix64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .dependences import Dependences

    Ints = NDArray[np.int64]
    Kinds = NDArray[np.uint8]

MAX_EDGES = 1 << 28  # edges that ``csr`` lists, at most


@dataclass(frozen=True, slots=True)
class Graph:
    """Edges between TBs. TBs are numbered through the job: TB t of kernel k is ``offsets[k] + t``.

    Row r: TB ``consumer[r]`` waits for the producers of set ``set_index[r]``, all of one kernel. The rows of
    pair q (kernels ``producer_kernel[q]`` and ``consumer_kernel[q]``) are ``pair_ptr[q]:pair_ptr[q + 1]``,
    sorted by consumer; pairs are sorted by (consumer kernel, producer kernel). The producers of set s are
    ``producers[set_ptr[s]:set_ptr[s + 1]]``, sorted, with the kinds (bits RAW, WAR, WAW) of the edges from
    each. No two rows have consumer and producer in common.
    """

    offsets: Ints
    consumer_kernel: Ints
    producer_kernel: Ints
    pair_ptr: Ints
    consumer: Ints
    set_index: Ints
    set_ptr: Ints
    producers: Ints
    kinds: Kinds

    @property
    def tbs(self) -> int:
        """TBs of the job."""
        return int(self.offsets[-1])

    @property
    def edges(self) -> int:
        """Pairs of TBs with an edge."""
        return int(np.diff(self.set_ptr)[self.set_index].sum())

    def csr(self) -> tuple[Ints, Ints, Kinds]:
        """Return (ptr, producers, kinds): TB t waits for ``producers[ptr[t]:ptr[t + 1]]``, sorted.

        Raises WorkloadError where these are more than ``MAX_EDGES``.
        """
        if self.edges > MAX_EDGES:
            raise WorkloadError(f"{self.edges:,} edges are too many to list: at most {MAX_EDGES:,}")
        # pairs come by producer, so a stable order by consumer leaves producers sorted
        order = np.argsort(self.consumer, kind="stable")
        size = np.diff(self.set_ptr)[self.set_index[order]]
        ptr = np.zeros(self.tbs + 1, np.int64)
        np.add.at(ptr, self.consumer[order] + 1, size)
        chosen = expand_ranges(self.set_ptr[self.set_index[order]], size)
        return np.cumsum(ptr), self.producers[chosen], self.kinds[chosen]

    def depends_on(self, kernel: int, source: int) -> NDArray[np.bool_]:
        """Return, for each TB of ``kernel``, whether it depends on any TB of ``source`` at all."""
        base = self.offsets[source]
        after = np.zeros(self.offsets[kernel + 1] - base, bool)
        after[: self.offsets[source + 1] - base] = True
        first, last = np.searchsorted(self.consumer_kernel, (source + 1, kernel + 1))
        for pair in range(int(first), int(last)):
            if self.producer_kernel[pair] < source:
                continue
            rows = slice(self.pair_ptr[pair], self.pair_ptr[pair + 1])
            sets, of = np.unique(self.set_index[rows], return_inverse=True)
            size = np.diff(self.set_ptr)[sets]
            hit = after[self.producers[expand_ranges(self.set_ptr[sets], size)] - base]
            met = np.logical_or.reduceat(hit, csr_offsets(size)[:-1])
            after[self.consumer[rows] - base] |= met[of.reshape(-1)]
        return after[self.offsets[kernel] - base :]


def build_graph(deps: Dependences) -> Graph:
    """Return the graph of a job's dependences."""
    groups, offsets = deps.groups, np.asarray(deps.offsets, np.int64)
    kernels, tbs = len(offsets) - 1, int(offsets[-1])
    if not len(groups):
        none = np.zeros(0, np.int64)
        zero = np.zeros(1, np.int64)
        return Graph(offsets, none, none, zero, none, none, zero, none, np.zeros(0, np.uint8))
    # a part: the producers of one node that are of one kernel
    node = np.repeat(np.arange(len(groups), dtype=np.int64), np.diff(groups.producer_ptr))
    owner = np.searchsorted(offsets, groups.producers, side="right") - 1
    new = np.ones(len(node), bool)
    new[1:] = (node[1:] != node[:-1]) | (owner[1:] != owner[:-1])
    start = np.flatnonzero(new)
    part_ptr = np.append(start, len(node))
    # parts with the same producers and kinds have one content
    first, content = distinct_rows(list_hashes(groups.producers * 8 + groups.kinds, part_ptr))

    # a row for each consumer of a node and part of it, once for each content
    each = np.bincount(node[start], minlength=len(groups))
    member = np.repeat(np.arange(len(groups), dtype=np.int64), np.diff(groups.consumer_ptr))
    part = expand_ranges(csr_offsets(each)[member], each[member])
    consumer = np.repeat(groups.consumers + offsets[groups.kernel[member]], each[member])
    # by later kernel, earlier kernel, consumer: consumers are numbered by kernel
    later = np.repeat(groups.kernel[member], each[member])
    key = (later * kernels + owner[start][part]) * tbs + consumer
    order = np.lexsort((content[part], key))
    key, said = key[order], content[part][order]
    keep = np.ones(len(key), bool)
    keep[1:] = (key[1:] != key[:-1]) | (said[1:] != said[:-1])
    key, said = key[keep], said[keep]
    new = np.ones(len(key), bool)
    new[1:] = key[1:] != key[:-1]
    row = np.flatnonzero(new)
    row_ptr = np.append(row, len(key))

    set_ptr, producers, kinds, which = _united(groups.producers, groups.kinds, part_ptr, first, said, row_ptr)
    pair, consumer = key[row] // tbs, key[row] % tbs
    new = np.ones(len(pair), bool)
    new[1:] = pair[1:] != pair[:-1]
    begin = np.flatnonzero(new)
    pair = pair[begin]
    pair_ptr = np.append(begin, len(row))
    return Graph(
        offsets, pair // kernels, pair % kernels, pair_ptr, consumer, which, set_ptr, producers, kinds
    )


def _united(
    producers: Ints, kinds: Kinds, part_ptr: Ints, first: Ints, said: Ints, row_ptr: Ints
) -> tuple[Ints, Ints, Kinds, Ints]:
    """Return the distinct unions of contents as (ptr, producers, kinds), and the union of each row.

    Content c is that of part ``first[c]``; row r has the contents ``said[row_ptr[r]:row_ptr[r + 1]]``.
    """
    lead, bundle = distinct_rows(list_hashes(said, row_ptr))
    count = np.diff(row_ptr)[lead]
    contents = first[said[expand_ranges(row_ptr[lead], count)]]
    size = np.diff(part_ptr)[contents]
    chosen = expand_ranges(part_ptr[contents], size)
    of = np.repeat(np.repeat(np.arange(len(lead), dtype=np.int64), count), size)
    most = int(producers.max()) + 1
    packed = sorted_unique((of * most + producers[chosen]) * 8 + kinds[chosen])
    place = packed >> 3
    new = np.ones(len(place), bool)
    new[1:] = place[1:] != place[:-1]
    starts = np.flatnonzero(new)
    kinds = np.bitwise_or.reduceat(packed & 7, starts).astype(np.uint8)
    place = place[starts]
    ptr = csr_offsets(np.bincount(place // most, minlength=len(lead)))
    made = place % most
    # several bundles of contents may come to the same
    kept, same = distinct_rows([w + mix64(np.diff(ptr), 3) for w in list_hashes(made * 8 + kinds, ptr)])
    size = np.diff(ptr)[kept]
    chosen = expand_ranges(ptr[kept], size)
    return csr_offsets(size), made[chosen], kinds[chosen], same[bundle]
