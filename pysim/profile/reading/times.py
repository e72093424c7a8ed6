"""Times of a recording: their unit, their order, and their origin."""

from __future__ import annotations

from statistics import median

from pysim.errors import InputError
from pysim.profile.events import COPY, MEMSET, Call, Ran, Recording
from pysim.profile.losses import Losses

# us. A launch takes the host some microseconds; the median of one that takes longer than this is ns.
_LONGEST_LAUNCH = 700.0
_SHORTEST_KERNEL = 400.0  # us; no profile has only longer ones and launches too
_FAR = 3.6e9  # us: an hour before all else is no time of this run
_NANO = "times are in ns, not us"


def _in_ns(made: Recording) -> bool:
    """Return whether times are ns: by the bandwidth of copies, else by launches, else by short kernels."""
    for ran in made.ran:
        if ran.kind in (COPY, MEMSET) and ran.size >= 1 << 20 and ran.duration:
            # B a us: 1 MB/s to 100 TB/s
            rate = ran.size / ran.duration
            if rate < 1e3 and rate * 1e3 < 1e8:
                return True
    launches = [call.duration for call in made.calls if call.kind == "launch" and call.duration]
    if len(launches) >= 3:
        return median(launches) > _LONGEST_LAUNCH
    took = [ran.duration for ran in made.ran if ran.duration]
    return len(took) >= 3 and min(took) > _SHORTEST_KERNEL and all(t == int(t) for t in took)


def settle_times(made: Recording, losses: Losses, unit: str | None = None) -> None:
    """Make times us from the first GPU event, in order. ``unit``: ``us`` or ``ns``, None: by the file.

    Raises InputError if no GPU event is left.
    """
    rows: list[Ran | Call] = [*made.ran, *made.calls]
    if unit == "ns" or (unit is None and _in_ns(made)):
        for row in rows:
            row.start /= 1e3
            row.duration /= 1e3
        losses.add(_NANO, "by the option" if unit else "by how long copies, launches or kernels take")
    middle = median(ran.start for ran in made.ran)
    near = [ran for ran in made.ran if abs(ran.start - middle) < _FAR and ran.duration < _FAR]
    losses.add("GPU events an hour long, or from all others, left out", count=len(made.ran) - len(near))
    made.ran = near
    if not near:
        raise InputError(f"{made.source}: GPU events have no times in common")
    origin = min(ran.start for ran in near)
    for row in rows:
        row.start -= origin
    made.ran.sort(key=lambda ran: ran.start)
    made.calls.sort(key=lambda call: call.start)
