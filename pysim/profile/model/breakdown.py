"""Where the time of a recorded run goes: kernels, gaps, the host; waves and their tails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from pysim.profile.events import KERNEL, Ran

from .card import Card

_FEWEST = 20  # launches from which a usual way to the GPU is known
_USUAL_US = 5.0  # us, else


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Times in us. ``span`` = ``busy`` + ``host`` + ``gaps``; the rest is part of ``busy`` or counts.

    ``busy``: something runs; ``overlap``: two or more run; ``host``: nothing runs because the next launch had
    not reached the GPU; ``gaps``: nothing runs for another reason; ``tails``: slots that stay empty in the
    last waves, as time of the whole GPU; ``part``: the same of kernels of less than a wave; ``single``,
    ``several``: kernels of up to one wave, and of more.
    """

    span: float
    busy: float
    overlap: float
    host: float
    gaps: float
    tails: float
    part: float
    single: int
    several: int


def _way(order: Sequence[Ran]) -> float:
    """Return the least usual time from the launch on the host to the start on the GPU, us."""
    took = [ran.start - ran.launched for ran in order if ran.launched is not None and not ran.replay]
    took = [way for way in took if way > 0]
    return quantiles(took, n=20)[0] if len(took) >= _FEWEST else _USUAL_US


def breakdown(card: Card, order: Sequence[Ran], waves: Sequence[float]) -> Breakdown:
    """Return where the time goes. Without launches a gap beyond two of a stream's counts as the host's."""
    rows = sorted(range(len(order)), key=lambda i: order[i].start)
    way = _way(order)
    known = any(ran.launched is not None for ran in order)
    busy = overlap = host = idle = 0.0
    ended = second = 0.0
    for i in rows:
        ran = order[i]
        gap = ran.start - ended
        if gap > 0:
            if known and ran.launched is not None:
                share = min(gap, max(0.0, ran.launched + way - ended))
            else:
                share = max(0.0, gap - 2 * card.stream_gap)
            host += share
            idle += gap - share
        busy += max(0.0, ran.end - max(ended, ran.start))
        overlap += max(0.0, min(ended, ran.end) - max(ran.start, second))
        second = max(second, min(ended, ran.end))
        ended = max(ended, ran.end)
    tails = part = 0.0
    single = several = 0
    for ran, number in zip(order, waves, strict=True):
        if ran.kind != KERNEL or not number:
            continue
        empty = ran.duration * (1 - number / math.ceil(number))
        if number > 1:
            tails, several = tails + empty, several + 1
        else:
            part, single = part + empty, single + 1
    return Breakdown(ended, busy, overlap, host, idle, tails, part, single, several)
