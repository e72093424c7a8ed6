"""Which kernels have surely ended when a kernel starts, has waited, and has ended.

``griddepcontrol.wait`` waits until the kernel before has ended and its stores are visible; not for kernels
before that one. These have ended only if the kernel before waited for them, or if it started after them.
The trigger orders no access: a kernel that starts knows what all TBs before knew when they triggered.
Sets of kernels are bits of an integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """What orders one launch.

    ``early``: it starts when the kernel before has triggered, not when all before have ended. ``waits``: its
    TBs wait somewhere. ``trigger_after_wait``: no TB triggers before it has waited (a TB without a trigger
    triggers at its end).
    """

    early: bool
    waits: bool
    trigger_after_wait: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """Kernels that have surely ended: before a kernel starts, and after its waits; bit k: kernel k."""

    start: int
    waited: int


def ended_before(launches: Sequence[LaunchOrder]) -> list[Ended]:
    """Return what has surely ended at the start of each kernel, and behind its wait."""
    made: list[Ended] = []
    triggered = done = 0  # known once the kernel before has triggered, and once it has ended
    for number, launch in enumerate(launches):
        everything = (1 << number) - 1
        start = triggered if launch.early else everything
        waited = start | (done if launch.early and launch.waits else 0)
        made.append(Ended(start, waited))
        known = waited if launch.waits else start
        triggered = waited if launch.trigger_after_wait and launch.waits else start
        done = known | 1 << number
    return made
