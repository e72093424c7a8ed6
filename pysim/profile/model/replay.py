"""Replay of a profile's kernels: each starts when those that it waits for have ended, and shares the GPU."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from .sharing import Sharing

_CLOSE = 1e-7  # us: times that differ by less are equal


@dataclass(slots=True)
class Plan:
    """What is replayed: of each kernel the work (us), whom it waits for, the gap, the earliest start.

    ``rule`` None: kernels do not slow each other down.
    """

    work: Sequence[float]
    before: Sequence[set[int]]
    gaps: Sequence[float]
    earliest: Sequence[float]
    rule: Sharing | None


class _Run:
    def __init__(self, plan: Plan) -> None:
        self.plan, count = plan, len(plan.work)
        self.after: list[list[int]] = [[] for _ in range(count)]
        self.missing = [0] * count
        for i, before in enumerate(plan.before):
            self.missing[i] = len(before)
            for k in before:
                self.after[k].append(i)
        self.ready = [(plan.earliest[i], i) for i in range(count) if not self.missing[i]]
        heapq.heapify(self.ready)
        self.active: list[int] = []
        self.done = [0.0] * count
        self.now = 0.0

    def finish(self, i: int) -> None:
        plan = self.plan
        for k in self.after[i]:
            self.missing[k] -= 1
            if not self.missing[k]:
                heapq.heappush(self.ready, (max(self.now + plan.gaps[k], plan.earliest[k]), k))

    def step(self) -> int:
        """Go on to the next start, end, or change of what a kernel holds; return how many ended."""
        ready, work, rule = self.ready, self.plan.work, self.plan.rule
        if not self.active:
            self.now = max(self.now, ready[0][0])
        while ready and ready[0][0] <= self.now + _CLOSE:
            self.active.append(heapq.heappop(ready)[1])
        active, done = self.active, self.done
        if rule is None or len(active) == 1:
            paces = [1.0] * len(active)
        else:
            paces = rule.speeds(active, [done[i] / work[i] if work[i] else 1.0 for i in active])
        length = ready[0][0] - self.now if ready else math.inf
        for i, pace in zip(active, paces, strict=True):
            length = min(length, (work[i] - done[i]) / pace)
            if rule is not None and len(active) > 1 and rule.waves[i] > 1:
                count = math.ceil(rule.waves[i])
                left = work[i] * (count - 1) / count - done[i]
                if left > _CLOSE:
                    length = min(length, left / pace)
        self.now += max(length, 0.0)
        ended: list[int] = []
        kept: list[int] = []
        for i, pace in zip(active, paces, strict=True):
            done[i] += length * pace
            (ended if done[i] >= work[i] - _CLOSE else kept).append(i)
        self.active = kept
        for i in ended:
            self.finish(i)
        return len(ended)


def _alone(plan: Plan) -> bool:
    """Return whether no kernel slows another: without a rule, or because they run one after another."""
    return plan.rule is None or all(i - 1 in before for i, before in enumerate(plan.before) if i)


def _forward(plan: Plan) -> float:
    """Return when the last kernel ends if each takes its work and waits for earlier ones alone."""
    ends: list[float] = []
    for work, before, gap, earliest in zip(plan.work, plan.before, plan.gaps, plan.earliest, strict=True):
        ended = max([ends[k] for k in before], default=-math.inf)
        ends.append(max(ended + gap, earliest) + work)
    return max(ends, default=0.0)


def replayed(plan: Plan) -> float:
    """Return when the last kernel ends, us from the start. ``before`` names earlier kernels only."""
    if _alone(plan):
        return _forward(plan)
    run = _Run(plan)
    left = len(plan.work)
    while left:
        left -= run.step()
    return run.now
