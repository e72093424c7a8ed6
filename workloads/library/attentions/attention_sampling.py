"""Sampled attention: the time of a large call from smaller ones.

Planes (batch and head) are equal, so past the first waves each adds as much time; without a causal mask, so
does each tile of the length that thread blocks go through. The time of a large call is extrapolated linearly
in both from two or four smaller ones, whose last wave is as full as that of the large one where possible.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pysim.workloads.library.hopper import SMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from .attention_problem import Attention

TILE = 128  # rows of a TB
STEPS = {"flash": 16000, "cudnn": 4000}  # tiles of 128 x 128 that are simulated several times, at most
ONCE = 2.0  # times as many that are simulated once
TBS = {"flash": 8192, "cudnn": 400}  # tiles of 128 rows, which cost time to set up in persistent kernels
WAVES = (2, 4)  # of the smaller calls in planes, at most; with half as many causal calls are 30 to 44 % off
LENGTH = 8  # tiles of the shorter of two lengths


@dataclass(frozen=True, slots=True)
class Sample:
    """Smaller calls ``of`` a problem: at two numbers of planes, and at two lengths, or at one of either.

    ``small``: the call is short enough to be simulated several times, to have warm caches.
    """

    of: Attention
    planes: tuple[int, ...]
    lengths: tuple[int, ...]
    backward: bool
    small: bool = False

    @property
    def whole(self) -> bool:
        """Whether the call is simulated as it is."""
        return len(self.planes) == len(self.lengths) == 1

    def time(self, simulate: Callable[[Attention], float]) -> float:
        """Return the time of the call; ``simulate`` gives that of a problem."""
        by_length = []
        for length in self.lengths:
            times = []
            for planes in self.planes:
                smaller = replace(self.of, batch=1, heads=planes, kv_heads=planes)
                smaller = replace(smaller, q=length) if self.backward else replace(smaller, k=length)
                times.append(simulate(self.of if self.whole else smaller))
            by_length.append(_line(self.planes, times, self.of.planes))
        return _line(self.lengths, by_length, self.of.q if self.backward else self.of.k)


def _line(at: tuple[int, ...], times: list[float], wanted: int) -> float:
    if len(at) == 1:
        return times[0]
    return times[1] + (wanted - at[1]) * (times[1] - times[0]) / (at[1] - at[0])


def sampled(problem: Attention, backend: str, *, backward: bool) -> Sample:
    """Return how a call is simulated."""
    p = problem
    length, across = (p.q, p.k // TILE) if backward else (p.k, p.q // TILE)
    steps = across * length // TILE // (2 if p.causal else 1)
    steps *= 3 if backward else 1  # GEMMs of five, and several kernels
    share = max(p.planes * steps / STEPS[backend], p.planes * across / TBS[backend])
    if share <= ONCE or p.heads != p.kv_heads or across == 0:
        return Sample(p, (p.planes,), (length,), backward, small=share <= 1)
    wave = SMS * (2 if backend == "flash" and not backward else 1)
    lengths: tuple[int, ...] = (length,)
    if not p.causal and length > 4 * LENGTH * TILE:
        lengths = LENGTH * TILE, 2 * LENGTH * TILE
    counts = _planes(p.planes, across, wave)
    return Sample(p, counts, lengths, backward)


def _planes(planes: int, across: int, wave: int) -> tuple[int, ...]:
    """Return one or two numbers of planes that leave a wave as full as ``planes`` do, of about ``WAVES``."""
    few, many = (max(1, -(-count * wave // across)) for count in WAVES)
    many = max(many, few + 1)
    if planes <= many:
        return (planes,)

    def last(count: int) -> int:
        """Return the thread blocks of the last wave."""
        return (count * across - 1) % wave + 1

    def off(count: int) -> int:
        return abs(last(count) - last(planes))

    second = min(range(many, few, -1), key=off)
    first = min(range(min(few, second - 1), max(1, few // 2) - 1, -1), key=off)
    return first, second
