"""The longest path through the TB graph of a job, and of one that leaves out equal periods.

The ends of the TBs of a period follow from those of the one before by maxima, minima and sums with constants.
So if each TB ends at least ``c`` later than the same one of the period before, all TBs of a later period end
at least ``c`` later again: with all inputs later by ``c``, so are all results. This holds for any choice of
TBs if the others are taken to have no influence. What a period adds at the least is that ``c``. Which memory
an allocator hands on in periods that are left out is not known, so only what is read after it was written
(RAW) counts in jobs that leave out some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.groups import RAW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.groups import Dependences
    from pysim.program.periods.shortened import Periods, Shortened

    Floats = NDArray[np.float64]

NEVER = -np.inf  # the end of a TB that nothing has an influence on


@dataclass(frozen=True)
class Lengths:
    """What TBs of a job take, one array a kernel, in one unit.

    ``durations``: of a TB. ``tails``: for each TB, the part of its duration that follows the ends of its
    producers (None: all of it). ``far``: for each TB, the least time from the earliest possible start of a TB
    of its kernel to its own end. ``gaps``: for each TB, the least time from its end to the start of a TB that
    waits for it. ``raw``: only edges from a write to a read count.
    """

    deps: Dependences
    durations: Sequence[Floats]
    tails: Sequence[Floats] | None = None
    far: Sequence[Floats] | None = None
    gaps: Sequence[Floats] | None = None
    raw: bool = False

    def ends(self) -> Floats:
        """Return the end of the longest path to the end of each TB."""
        # as if no kernel waited; then those that do, in order
        every = np.concatenate([*self.durations, np.zeros(0)])
        end = every if self.tails is None else np.maximum(np.concatenate([*self.tails, np.zeros(0)]), every)
        end = end if self.far is None else np.maximum(end, np.concatenate([*self.far, np.zeros(0)]))
        seen = end if self.gaps is None else end + np.concatenate([*self.gaps, np.zeros(0)])
        for index in np.flatnonzero(self.deps.node_count).tolist():
            tbs = self.tbs(index)
            start = np.maximum(self._start(index, seen), 0.0)
            end[tbs] = np.maximum(self._end(index, start), self.durations[index])
            seen[tbs] = end[tbs] + (self.gaps[index] if self.gaps is not None else 0.0)
        return end

    def tbs(self, kernel: int) -> slice:
        """Return where the TBs of a kernel are among all."""
        return slice(int(self.deps.offsets[kernel]), int(self.deps.offsets[kernel + 1]))

    def follow(self, end: Floats, kernels: Iterable[int]) -> None:
        """Set the ends of some kernels' TBs to those of paths that lead through what has an end before."""
        seen = end if self.gaps is None else end + np.concatenate([*self.gaps, np.zeros(0)])
        for index in kernels:
            if self.deps.node_count[index]:
                tbs = self.tbs(index)
                end[tbs] = self._end(index, self._start(index, seen))
                seen[tbs] = end[tbs] + (self.gaps[index] if self.gaps is not None else 0.0)

    def _start(self, index: int, seen: Floats) -> Floats:
        """Return when what each TB of a kernel waits for has been seen to end."""
        groups, tbs = self.deps.groups, self.tbs(index)
        start = np.full(tbs.stop - tbs.start, NEVER)
        first = int(self.deps.node_first[index])
        last = first + int(self.deps.node_count[index])
        made, used = groups.producer_ptr[first : last + 1], groups.consumer_ptr[first : last + 1]
        each = seen[groups.producers[made[0] : made[-1]]]
        if self.raw:
            each[groups.kinds[made[0] : made[-1]] & RAW == 0] = NEVER
        ready = np.maximum.reduceat(each, made[:-1] - made[0])
        waiters = groups.consumers[used[0] : used[-1]]
        np.maximum.at(start, waiters, np.repeat(ready, np.diff(used)))
        return start

    def _end(self, index: int, start: Floats) -> Floats:
        """Return when the TBs of a kernel end that start then."""
        end = start + (self.durations[index] if self.tails is None else self.tails[index])
        return end if self.far is None else np.maximum(end, start.min() + self.far[index])


def longest(lengths: Lengths, short: Shortened | None = None) -> float:
    """Return the longest path; ``short``: with what the periods add at the least that a job leaves out.

    Periods wait for each other as the last two that are held do. Launches over lists of tensors add nothing.
    """
    end = lengths.ends()
    best = float(end.max()) if len(end) else 0.0
    more, at = 0.0, -1
    for run in short.runs if short is not None else ():
        if not run.same_code:
            continue
        if at >= 0:  # else there are all ends
            lengths.follow(end, range(at, run.cut))
            best = max(best, more + float(end.max()))
        each = _period(lengths, end, run)
        if each is None:
            break
        more += run.skipped * each
        at = run.end
    if at >= 0:
        lengths.follow(end, range(at, len(lengths.durations)))
        best = max(best, more + float(end.max()))
    return best


def _period(lengths: Lengths, end: Floats, run: Periods) -> float | None:
    """Return what a period left out adds at the least; ``end`` gets the ends of the last one alone.

    Those of other TBs become ``NEVER``. The TBs that count have one of the period before among those that
    they wait for. None where there are none.
    """
    before = slice(lengths.tbs(run.cut - run.period).start, lengths.tbs(run.cut).start)
    last = slice(before.stop, int(lengths.deps.offsets[run.end]))
    was = end[before].copy()
    while True:
        end[:] = NEVER
        end[before] = was
        lengths.follow(end, range(run.cut, run.end))
        lost = np.isfinite(was) & ~np.isfinite(end[last])
        if not lost.any():
            break
        was[lost] = NEVER
    counts = np.isfinite(was)
    if not counts.any():
        return None
    now = np.where(counts, end[last], NEVER)
    end[:] = NEVER
    end[last] = now
    return max(0.0, float((now[counts] - was[counts]).min()))
