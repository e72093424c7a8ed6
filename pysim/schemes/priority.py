"""Dispatch priority of kernels, by ``scheme.priority``: which kernel's ready TBs go first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.params import PARAMS

if TYPE_CHECKING:
    from collections.abc import Sequence

PRIORITY = next(p for p in PARAMS["scheme"] if p.name == "priority").choices


def priority_ranks(priority: str, preds: Sequence[Sequence[int]], times: Sequence[float]) -> list[int]:
    """Return a unique rank for each kernel; TBs of the lowest rank are dispatched first.

    ``priority``: a choice of ``scheme.priority``; ``preds``: kernels that each kernel waits for; ``times``:
    time of each kernel on an otherwise empty GPU, in any unit.
    """
    count = len(preds)
    if priority in ("oldest", "round_robin"):
        return list(range(count))
    if priority == "newest":
        return [count - 1 - k for k in range(count)]
    if priority == "consumer":
        return _ranks_of(_depths(preds))
    left = [float(t) for t in times]
    for index in range(count - 1, -1, -1):
        # preds are earlier kernels, so left[index] is final here
        for before in preds[index]:
            left[before] = max(left[before], times[before] + left[index])
    return _ranks_of(left)


def _depths(preds: Sequence[Sequence[int]]) -> list[int]:
    made: list[int] = []
    for sources in preds:
        made.append(max((made[p] + 1 for p in sources), default=0))
    return made


def _ranks_of(values: Sequence[float]) -> list[int]:
    """Return the rank of each kernel: the largest value first, then the oldest kernel."""
    made = [0] * len(values)
    for rank, index in enumerate(sorted(range(len(values)), key=lambda k: (-values[k], k))):
        made[index] = rank
    return made
