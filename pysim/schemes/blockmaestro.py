"""Edges between adjacent kernels alone, as BlockMaestro keeps them (Abdolrashidi et al., ISCA 2021).

Kernels end in the order of their launches, so of all that lies further back than the kernel before, only the
newest need be waited for, as a whole. Between two neighbours edges are kept TB by TB, but where all of one
need all of the other, or a TB needs more parents than a counter counts: then the kernel waits for the one
before as a whole, too. So it does where one of the two is unknown: nobody could say before its launch what it
touches. Whatever comes later may need something of an unknown kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.groups import Dependences, Group, assemble

if TYPE_CHECKING:
    from collections.abc import Sequence

PARENTS = 63  # a counter of 6 bits


@dataclass(frozen=True, slots=True)
class Adjacent:
    """``preds``: whole kernels, the first ``whole`` of them waited for in any case; one entry a kernel."""

    deps: Dependences
    preds: list[tuple[int, ...]]
    whole: list[int]


def adjacent(deps: Dependences, most: int = PARENTS, unknown: Sequence[bool] | None = None) -> Adjacent:
    """Return the edges of a job as neighbours know them.

    ``most``: parents of a TB; ``unknown``: one entry a kernel, or None if all are known.
    """
    count = len(deps.offsets) - 1
    blind = [False] * count if unknown is None else unknown
    lost = -1  # the newest unknown kernel behind the one before
    kept: list[Group] = []
    preds: list[tuple[int, ...]] = []
    whole: list[int] = []
    for kernel in range(count):
        start, stop = (int(deps.offsets[k]) for k in (max(kernel - 1, 0), kernel))
        first = int(deps.node_first[kernel])
        near: list[Group] = []
        if kernel > 1 and blind[kernel - 2]:
            lost = kernel - 2
        older = lost
        for group in deps.groups[first : first + int(deps.node_count[kernel])]:
            mine = group.producers >= start
            if not mine.all():
                last = group.producers[~mine].max()
                older = max(older, int(np.searchsorted(deps.offsets, last, side="right")) - 1)
            if mine.any():
                near.append(Group(kernel, group.producers[mine], group.kinds[mine], group.consumers))
        tbs = int(deps.offsets[kernel + 1]) - stop
        barrier = kernel > 0 and (blind[kernel - 1] or blind[kernel])
        if barrier or _dense(near, stop - start, tbs, most):
            preds.append((kernel - 1,))
            whole.append(1)
            continue
        kept += near
        before = (older,) if older >= 0 else ()
        preds.append((*before, kernel - 1) if near else before)
        whole.append(len(before))
    return Adjacent(assemble(kept, deps.offsets, None, deps.races), preds, whole)


def _dense(near: list[Group], producers: int, consumers: int, most: int) -> bool:
    """Whether two neighbours are kept as a barrier: all to all, or too many parents."""
    if any(len(g.producers) == producers and len(g.consumers) == consumers for g in near):
        # one TB after one is an edge, not a barrier
        return max(producers, consumers) > 1
    parents = np.zeros(consumers, np.int64)
    for group in near:
        parents[group.consumers] += len(group.producers)
    return bool((parents > most).any())
