"""Replay of jobs that hold only some of their equal periods (``pysim.program.shortened``).

Nothing is computed for periods that are left out, neither dependences nor bounds, so a network of a hundred
layers takes the time and memory of a few. What the whole job would be follows from the periods that are
there, as in ``extrapolate``. Its bound and estimate are not known.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.shortened import Shortened
from pysim.program.totals import Totals
from pysim.schemes.hooks import core_tables_of, known_edges_of

from .extrapolate import REPLAY_SAMPLES, Replay
from .replay import FIRST_USE, Contraction, Gap, PeriodicRun, kernel_parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.analysis.lower_bound import Bounds
    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.schemes.registry import Choice

    from .lower import Lowered


class Lengthened(Replay):
    """Replay of a shortened job under one scheme; ``held``: the job that is simulated."""

    def __init__(self, choice: Choice, held: Job, deps: Dependences, short: Shortened) -> None:
        _check_periods(held, short)
        made = _contraction(held, deps, short)
        super().__init__(choice, made, whole_of(held, short), deps)
        self.held, self.short = held, short

    @property
    def launches(self) -> Sequence[int]:
        """The number in the whole job of each kernel that dependences name."""
        numbers: list[int] = self.contraction.original.tolist()
        return numbers

    def with_sampling(self, config: Config, estimate_us: float) -> Config:
        """Return the configuration with time series on; the estimate is that of the job that is held."""
        if float(config.number("sim.sample")):
            return config
        return config.replaced({"sim.sample": max(0.001, round(estimate_us / REPLAY_SAMPLES, 3))})

    def kept_bounds(self, known: Bounds) -> Bounds:
        """Return the bounds, which are those of the job that is held."""
        return known

    def whole_bounds(self, known: Bounds) -> Bounds:
        """Return the bounds of the whole job: not known."""
        return replace(known, bound_us=math.nan, estimate_us=math.nan)

    def prepare(self, lowered: Lowered) -> None:
        """Give the job the window of the whole one, and note what each kernel of that waits for."""
        values = lowered.values
        known = known_edges_of(self.scheme, self.held, self.deps, values)
        how = core_tables_of(self.scheme, self.held, known, values)
        self.preds = _whole_preds(how.preds, self.short, len(self.job.kernels))
        lowered.launches["places"] = self.contraction.window_slots
        lowered.order.window = how.order["window"]

    def _reuse_error_ticks(self, values: Mapping[str, int]) -> float:
        """Return 0: periods that are equal have equal distances of reuse, whatever their number."""
        return 0.0

    def within_error(self, config: Config) -> bool:
        """Return True: there is no whole job that could be simulated instead."""
        return True

    def note(self, name: str, config: Config) -> str:
        """Return a note of what was simulated, and of the estimated error."""
        s, limit = self.short, float(config.number("sim.replay_error"))
        much = f", more than sim.replay_error ({limit:.0%}): keep more periods" if self.error > limit else ""
        return (
            f"{name}: {s.kept} of {s.whole} periods simulated, the others replayed: time off by about"
            f" {self.error:.2%}, as measured{much}; no samples, no bound"
        )


def shortened(held: Job, fewer: Job, whole: int) -> Job:
    """Return ``held`` as a network of ``whole`` equal layers, of which it holds ``held.steps``.

    ``fewer``: the same network with one layer less, which shows how many kernels a layer has, and what it
    adds to the totals. Raises WorkloadError for jobs that are not alike, or where the last two layers differ.
    """
    period, kept = len(held.kernels) - len(fewer.kernels), held.steps
    if fewer.steps != kept - 1 or period < 1:
        raise WorkloadError(f"job {held.name}: {kept} and {fewer.steps} layers: must differ by one")
    parts = kernel_parts(held)
    for first in range(len(held.kernels) - kept * period, -1, -1):
        made = Shortened(first, period, kept, whole)
        if all(_alike(parts[at - period], parts[at]) for at in range(made.cut, made.cut + period)):
            return replace(held, steps=whole, totals=_totals(held, fewer, made.skipped), shortened=made)
    raise WorkloadError(f"job {held.name}: its last two layers are not alike: {kept} layers are too few")


def _totals(held: Job, fewer: Job, more: int) -> Totals | None:
    """Return the totals with ``more`` layers like the last one."""
    if held.totals is None or fewer.totals is None:
        return None
    a, b = held.totals, fewer.totals
    return Totals(a.parameters + more * (a.parameters - b.parameters), a.flops + more * (a.flops - b.flops))


def whole_of(held: Job, short: Shortened) -> Job:
    """Return the whole job; kernels that are left out are those of the period before them."""
    kernels, cut = list(held.kernels), short.cut
    left_out = kernels[cut - short.period : cut] * short.skipped
    return replace(held, kernels=(*kernels[:cut], *left_out, *kernels[cut:]), events=(), made_by=None)


def _check_periods(held: Job, short: Shortened) -> None:
    """Raise WorkloadError where the last two periods are not equal, or there are events between streams."""
    end = short.first + short.kept * short.period
    if end > len(held.kernels) or held.events:
        raise WorkloadError(
            f"job {held.name}: {short.kept} periods of {short.period} kernels from {short.first} on, without"
            f" events: it has {len(held.kernels)} kernels and {len(held.events)} events"
        )
    parts = kernel_parts(held)
    for at in range(short.cut, end):
        if not _alike(parts[at - short.period], parts[at]):
            name = held.kernels[at].name
            raise WorkloadError(f"job {held.name}: kernel {at} ({name}) is not that of the period before")


def _alike(before: tuple[tuple[int, ...], ...], now: tuple[tuple[int, ...], ...]) -> bool:
    """Whether a kernel is that of a period before.

    An operand's memory may have had its first use there: an allocator reuses what is free some periods in.
    """
    if len(before) != len(now) or before[0] != now[0]:
        return False
    operands = zip(before[1:], now[1:], strict=True)
    return all(a == b or (a[:-1] == b[:-1] and a[-1] == FIRST_USE) for a, b in operands)


def _contraction(held: Job, deps: Dependences, short: Shortened) -> Contraction:
    """Return how the kernels that are held stand for those of the whole job."""
    count, more = len(held.kernels), short.skipped * short.period
    original = np.array([short.number(kernel) for kernel in range(count)], np.int64)
    representative = np.zeros(count + more, np.int64)
    representative[original] = np.arange(count)
    steps = np.arange(more)
    representative[short.cut + steps] = short.cut - short.period + steps % short.period
    slots = np.ones(count, np.uint32)
    slots[short.cut + short.period - 1] += more
    run = PeriodicRun(short.first, short.period, short.whole)
    inside = range(short.period * short.whole)
    return Contraction(
        held,
        deps,
        [run],
        [Gap(0, short.kept - 2, short.skipped)],
        original,
        representative,
        slots,
        {short.first + i: (0, i // short.period) for i in inside},
    )


def _whole_preds(preds: Sequence[Sequence[int]], short: Shortened, whole: int) -> list[Sequence[int]]:
    """Return what each kernel of the whole job that is held waits for; kernels left out: nothing.

    Within the periods a kernel waits as many kernels back as in the job that is held.
    """
    made: list[Sequence[int]] = [()] * whole
    for kernel, found in enumerate(preds):
        at = short.number(kernel)
        near = short.inside(kernel)
        made[at] = [at - kernel + p if near and short.inside(p) else short.number(p) for p in found]
    return made
