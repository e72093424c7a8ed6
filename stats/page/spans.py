"""Spans of time: where they overlap, and how much of a time they take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Spans(NamedTuple):
    """Spans from ``begin`` to ``end``, each of a ``group``."""

    group: NDArray[Any]
    begin: NDArray[np.float64]
    end: NDArray[np.float64]

    def merged(self) -> Spans:
        """Return the times in which a group has at least one span, as spans that do not overlap."""
        order = np.lexsort((self.begin, self.group))
        group, begin, end = self.group[order], self.begin[order], self.end[order]
        begins, ends, groups = [np.zeros(0)], [np.zeros(0)], [group[:0]]
        for one in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
            if len(one):
                latest = np.maximum.accumulate(end[one])
                new = np.append(True, begin[one][1:] > latest[:-1])
                begins.append(begin[one][new])
                ends.append(latest[np.append(np.flatnonzero(new)[1:] - 1, -1)])
                groups.append(group[one][new])
        return Spans(np.concatenate(groups), np.concatenate(begins), np.concatenate(ends))

    def total(self, groups: int) -> NDArray[np.float64]:
        """Return the time of the spans of each group, 0 to ``groups`` - 1."""
        return np.bincount(self.group, self.end - self.begin, groups).astype(np.float64)

    def alone(self, groups: int) -> NDArray[np.float64]:
        """Return the time in which each group has a span and no other group has; merged spans only."""
        at = np.concatenate([self.begin, self.end])
        step = np.repeat([1, -1], len(self.begin))
        order = np.argsort(at, kind="stable")
        depth = np.cumsum(step[order])[:-1]
        who = np.cumsum((step * np.tile(self.group.astype(np.int64), 2))[order])[:-1]
        one = depth == 1  # then the sum of the groups in flight is that group
        return np.bincount(who[one], np.diff(at[order])[one], groups).astype(np.float64)


def time_in_bins(
    begin: NDArray[np.float64], end: NDArray[np.float64], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much of each bin all spans from ``begin`` to ``end`` take together, in their unit.

    ``edges``: (bins + 1,), ascending. What lies outside of them does not count.
    """
    begin, end = np.clip(begin, edges[0], edges[-1]), np.clip(end, edges[0], edges[-1])
    begin, end = begin[end > begin], end[end > begin]
    bins = len(edges) - 1
    first = np.searchsorted(edges, begin, "right") - 1
    last = np.searchsorted(edges, end, "left") - 1
    taken = np.bincount(first, np.minimum(end, edges[first + 1]) - begin, bins)
    more = last > first
    taken += np.bincount(last[more], (end - edges[last])[more], bins)
    # bins between the two are taken as a whole
    whole = np.bincount(first[more] + 1, minlength=bins + 1) - np.bincount(last[more], minlength=bins + 1)
    return np.asarray(taken + np.cumsum(whole)[:bins] * np.diff(edges))
