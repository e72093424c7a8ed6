"""How kernels that run at the same time slow each other down.

Dispatch follows the leftover rule of today's GPUs: a kernel's TBs start once those of the kernels before it
have been dispatched, in the slots that are left. A kernel that gets a share of the slots that it wants runs
at that speed. Where the profile has the same kernel both alone and beside others, how much each of the others
slows it down is measured there instead. The rule is first run backwards over the recording, which gives each
kernel its work: its duration alone. A replay in which kernels overlap as they did takes as long as it did.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from pysim.profile.events import Ran

_ALONE, _BESIDE = 0.05, 0.3  # kernels beside one, averaged over its duration: less is alone, more is beside
_FEWEST = 3  # runs of each kind that a measured speed needs
_SLOWEST = 0.02
_CLOSE = 1e-9  # shares that differ by less are equal


@dataclass(slots=True)
class Sharing:
    """The rule for the kernels of a profile, by position.

    ``measured``: by how much each kernel that runs beside it makes it longer, as a share of its time alone;
    None: not known.
    """

    waves: list[float]
    measured: list[float | None]

    def held(self, i: int, done: float) -> float:
        """Return the share of all slots that a kernel wants when a share of it is done."""
        count = math.ceil(self.waves[i])
        if count <= 1:
            return self.waves[i]
        return 1.0 if done < (count - 1) / count - _CLOSE else self.waves[i] - (count - 1)

    def speeds(self, active: Sequence[int], done: Sequence[float]) -> list[float]:
        """Return the speed of each active kernel, in the order in which they started; 1: as alone."""
        if len(active) == 1:
            return [1.0]
        left, made = 1.0, []
        others = sum(self.waves[i] > 0 for i in active) - 1
        for i, part in zip(active, done, strict=True):
            want = self.held(i, part)
            got = min(want, max(left, 0.0))
            left -= got
            slower = self.measured[i]
            if not want:
                made.append(1.0)
            else:
                made.append(max(got / want, _SLOWEST) if slower is None else 1 / (1 + slower * others))
        return made


def _slices(
    order: Sequence[Ran], starts: Sequence[float], waves: Sequence[float]
) -> list[tuple[float, float, list[int]]]:
    """Return (from, to, who ran) for each interval in which nothing starts, ends or begins its last wave.

    Who ran is in the order of starts.
    """
    found = {t for ran, start in zip(order, starts, strict=True) for t in (start, ran.end)}
    for ran, start, number in zip(order, starts, waves, strict=True):
        if number > 1:
            found.add(start + (ran.end - start) * (1 - 1 / math.ceil(number)))
    times = sorted(found)
    rows = sorted(range(len(order)), key=lambda i: starts[i])
    made, active, k = [], list[int](), 0
    for begin, end in pairwise(times):
        while k < len(rows) and starts[rows[k]] <= begin:
            active.append(rows[k])
            k += 1
        active = [i for i in active if order[i].end > begin]
        if active:
            made.append((begin, end, list(active)))
    return made


def alone_starts(order: Sequence[Ran]) -> list[float]:
    """Return when each ran by itself: a programmatic launch counts from its predecessor's end on."""
    last: dict[int, float] = {}
    made = []
    for ran in order:
        begin = ran.start
        if ran.programmatic:
            begin = min(ran.end, max(begin, last.get(ran.stream, begin)))
        made.append(begin)
        last[ran.stream] = max(ran.end, last.get(ran.stream, 0.0))
    return made


def works(order: Sequence[Ran], waves: Sequence[float]) -> tuple[Sharing, list[float]]:
    """Return the rule, and the work of each kernel: us that it takes alone."""
    starts = alone_starts(order)
    slices = _slices(order, starts, waves)
    beside = [0.0] * len(order)
    for begin, end, active in slices:
        number = sum(waves[i] > 0 for i in active)
        for i in active:
            beside[i] += (end - begin) * max(0, number - 1)
    took: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    for i, ran in enumerate(order):
        if waves[i]:
            took[ran.name, ran.tbs].append((ran.end - starts[i], beside[i]))
    slower: dict[tuple[str, int], float] = {}
    for key, rows in took.items():
        lone = [length for length, shared in rows if shared < _ALONE * length]
        slow = [(length, shared) for length, shared in rows if shared > _BESIDE * length]
        if len(lone) >= _FEWEST and len(slow) >= _FEWEST:
            usual = median(lone)
            found = (
                median((length / usual - 1) / (shared / length) for length, shared in slow) if usual else 0.0
            )
            slower[key] = max(0.0, found)
    rule = Sharing(list(waves), [slower.get((ran.name, ran.tbs)) for ran in order])
    work = [0.0] * len(order)
    for begin, end, active in slices:
        if len(active) == 1:
            work[active[0]] += end - begin
            continue
        done = [(begin - starts[i]) / (order[i].end - starts[i]) for i in active]
        for i, pace in zip(active, rule.speeds(active, done), strict=True):
            work[i] += (end - begin) * pace
    return rule, work
