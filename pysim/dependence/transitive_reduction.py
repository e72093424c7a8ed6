"""Transitive reduction of the graph of TBs, by one step: edges that two other edges imply are removed.

If C waits for B and B waits for A, C need not wait for A: B is not dispatched before A is complete. This also
holds with coarsened nodes, which only add edges, and for kernels that wait for whole kernels. Nodes with the
same consumers are merged, so the table holds one counter for each such TB. Software does this once, when it
builds the graph.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import csr_offsets, expand_ranges, sorted_unique

from .groups import Dependences, Groups, assemble

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_MAX_EDGES = 1 << 24  # two-step paths of a kernel that are examined; a kernel with more keeps all its edges


def _consumers_joined(groups: Groups) -> Groups:
    """Return the groups, with nodes of the same kernel and the same consumers merged."""
    number: dict[tuple[int, bytes], int] = {}
    cuts = groups.consumer_ptr.tolist()
    whose = np.array(
        [
            number.setdefault((kernel, groups.consumers[a:b].tobytes()), len(number))
            for kernel, (a, b) in zip(groups.kernel.tolist(), pairwise(cuts), strict=True)
        ],
        np.int64,
    )
    if len(number) == len(groups):
        return groups
    first = np.unique(whose, return_index=True)[1]
    owner = np.repeat(whose, np.diff(groups.producer_ptr))
    order = np.lexsort((groups.producers, owner))
    owner, producers = owner[order], groups.producers[order]
    new = np.flatnonzero(
        np.concatenate(([True], (owner[1:] != owner[:-1]) | (producers[1:] != producers[:-1])))
    )
    sizes = np.diff(groups.consumer_ptr)[first]
    return Groups(
        groups.kernel[first],
        csr_offsets(np.bincount(owner[new], minlength=len(number))),
        producers[new],
        np.bitwise_or.reduceat(groups.kinds[order], new),
        csr_offsets(sizes),
        groups.consumers[expand_ranges(groups.consumer_ptr[first], sizes)],
    )


class _Nodes:
    """The nodes that each TB waits for, by global TB number."""

    def __init__(self, groups: Groups, offsets: Ints) -> None:
        self.groups, self.total = groups, int(offsets[-1])
        self.made, self.used = np.diff(groups.producer_ptr), np.diff(groups.consumer_ptr)
        self.who = groups.consumers + np.repeat(offsets[groups.kernel], self.used)
        order = np.argsort(self.who, kind="stable")
        self.node = np.repeat(np.arange(len(groups), dtype=np.int64), self.used)[order]
        self.ptr = csr_offsets(np.bincount(self.who, minlength=self.total))

    def _of(self, tbs: Ints, owner: Ints) -> Ints:
        """Return owner * nodes + node for each node of each TB."""
        counts = self.ptr[tbs + 1] - self.ptr[tbs]
        made: Ints = (
            np.repeat(owner, counts) * len(self.groups) + self.node[expand_ranges(self.ptr[tbs], counts)]
        )
        return made

    def implied(self, first: int, last: int) -> Ints:
        """Return indices into ``producers`` of implied edges of nodes ``first`` to ``last`` (excluded)."""
        groups, nodes = self.groups, np.arange(first, last, dtype=np.int64)
        none = np.zeros(0, np.int64)
        producers = groups.producers[groups.producer_ptr[first] : groups.producer_ptr[last]]
        owner, via = np.divmod(
            sorted_unique(self._of(producers, np.repeat(nodes, self.made[first:last]))), len(groups)
        )
        if self.made[via].sum() > _MAX_EDGES:
            return none
        # node * TBs + TB: what its producers wait for
        over = sorted_unique(
            np.repeat(owner, self.made[via]) * self.total
            + groups.producers[expand_ranges(groups.producer_ptr[via], self.made[via])]
        )
        # nodes that all consumers of a node wait for
        consumers = self.who[groups.consumer_ptr[first] : groups.consumer_ptr[last]]
        pairs, often = np.unique(
            self._of(consumers, np.repeat(nodes, self.used[first:last])), return_counts=True
        )
        owner, beside = np.divmod(pairs, len(groups))
        shared = often == self.used[owner]
        owner, beside = owner[shared], beside[shared]
        if not len(over) or self.made[owner].sum() > _MAX_EDGES:
            return none
        places = expand_ranges(groups.producer_ptr[owner], self.made[owner])
        keys = np.repeat(beside, self.made[owner]) * self.total + groups.producers[places]
        at = np.minimum(np.searchsorted(over, keys), len(over) - 1)
        return sorted_unique(places[over[at] == keys])


def reduce_transitively(deps: Dependences) -> Dependences:
    """Return the dependences without the edges that two others imply; the order of TBs stays the same."""
    groups = _consumers_joined(deps.groups)
    if not len(groups):
        return deps
    nodes = _Nodes(groups, deps.offsets)
    keep = np.ones(len(groups.producers), bool)
    cuts = np.append(np.flatnonzero(np.diff(groups.kernel, prepend=-1)), len(groups)).tolist()
    for first, last in pairwise(cuts):
        keep[nodes.implied(first, last)] = False
    left = np.concatenate(([0], np.cumsum(keep)))[groups.producer_ptr]
    some = np.diff(left) > 0
    made = Groups(
        groups.kernel[some],
        csr_offsets(np.diff(left)[some]),
        groups.producers[keep],
        groups.kinds[keep],
        csr_offsets(nodes.used[some]),
        groups.consumers[np.repeat(some, nodes.used)],
    )
    return assemble(made, deps.offsets, races=deps.races)
