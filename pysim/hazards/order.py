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


class OrderWalk:
    """Goes through launches in order; ``triggered``: what has surely ended once the last has triggered."""

    def __init__(self) -> None:
        self.number = self.triggered = 0
        self._done = 0  # known once the last kernel has ended

    def add(self, launch: LaunchOrder) -> Ended:
        """Return what has surely ended at the start of the next kernel, and behind its wait."""
        everything = (1 << self.number) - 1
        start = self.triggered if launch.early else everything
        waited = start | (self._done if launch.early and launch.waits else 0)
        known = waited if launch.waits else start
        self.triggered = waited if launch.trigger_after_wait and launch.waits else start
        self._done = known | 1 << self.number
        self.number += 1
        return Ended(start, waited)


def ended_before(launches: Sequence[LaunchOrder]) -> list[Ended]:
    """Return what has surely ended at the start of each kernel, and behind its wait."""
    walk = OrderWalk()
    return [walk.add(launch) for launch in launches]
