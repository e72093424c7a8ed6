"""Which host call launched what ran on the GPU, and which of it a graph launch did."""

from __future__ import annotations

from collections import Counter

from pysim.profile.events import Call, Recording
from pysim.profile.losses import Losses

_OVERLAP = 0.002  # us: times of profiles are rounded


def join_launches(made: Recording, losses: Losses) -> None:
    """Give each GPU event the time of its launch, and the graph launch that it belongs to.

    All kernels of a graph launch have its correlation id, and no launch of their own. An id of 0 is none.
    """
    calls: dict[int, Call] = {}
    for call in made.calls:
        if call.correlation:
            calls.setdefault(call.correlation, call)
    shared = Counter(ran.correlation for ran in made.ran if ran.correlation)
    missing = zero = 0
    for ran in made.ran:
        found = calls.get(ran.correlation) if ran.correlation else None
        zero += not ran.correlation
        if found is not None:
            ran.launched = found.start
        else:
            missing += bool(ran.correlation)
        if found.kind == "graph" if found is not None else shared[ran.correlation] > 1:
            ran.replay = ran.correlation
    if made.calls:
        losses.add("GPU events of correlation id 0: no launch known", count=zero)
        losses.add("GPU events without a launch in the file", count=missing)


def mark_programmatic(made: Recording) -> int:
    """Mark what starts before its predecessor in the same stream has ended; return how many.

    A stream orders its kernels; that one starts early is programmatic dependent launch.
    """
    last: dict[int, float] = {}
    count = 0
    for ran in made.ran:
        end = last.get(ran.stream)
        if end is not None and ran.start < end - _OVERLAP:
            ran.programmatic = True
            count += 1
        last[ran.stream] = max(ran.end, end or 0.0)
    return count
