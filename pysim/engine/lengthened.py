"""Replay of jobs that hold only some of their equal periods (``pysim.program.periods``).

Nothing is computed for periods that are left out, not even dependences, so a network of a hundred layers
takes the time and memory of a few. What the whole job would be follows from the periods that are there, its
time as in ``extrapolate``, its bound and estimate as in ``analysis.lower_bound``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.periods.shorten import check_alike
from pysim.schemes.hooks import core_tables_of, known_edges_of

from .extrapolate import REPLAY_SAMPLES, Replay
from .replay import Contraction, Gap, PeriodicRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.analysis.lower_bound import Bounds
    from pysim.dependence.dependences import Dependences
    from pysim.machine.config import Config
    from pysim.program.job import Job
    from pysim.program.periods.shortened import Shortened
    from pysim.schemes.registry import Choice

    from .lower import Lowered


class Lengthened(Replay):
    """Replay of a shortened job under one scheme; ``held``: the job that is simulated."""

    def __init__(self, choice: Choice, held: Job, deps: Dependences, short: Shortened) -> None:
        check_alike(held, short)
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
        """Return the bounds of the whole job."""
        return known.of_whole()

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
        limit = float(config.number("sim.replay_error"))
        kept = " and ".join(f"{run.kept} of {run.whole}" for run in self.short.runs)
        much = f", more than sim.replay_error ({limit:.0%}): keep more periods" if self.error > limit else ""
        return (
            f"{name}: {kept} periods simulated, the others replayed: time off by about {self.error:.2%}, as"
            f" measured{much}; no samples"
        )


def whole_of(held: Job, short: Shortened) -> Job:
    """Return the whole job; kernels that are left out are those of the period before them."""
    return replace(held, kernels=tuple(short.whole(held.kernels)), events=(), made_by=None)


def _contraction(held: Job, deps: Dependences, short: Shortened) -> Contraction:
    """Return how the kernels that are held stand for those of the whole job."""
    count = len(held.kernels)
    original = np.array([short.number(kernel) for kernel in range(count)], np.int64)
    representative = np.zeros(count + short.left_out, np.int64)
    representative[original] = np.arange(count)
    slots = np.ones(count, np.uint32)
    runs, gaps = [], []
    period_of: dict[int, tuple[int, int]] = {}
    for number, run in enumerate(short.runs):
        first = short.number(run.first)
        cut = first + run.cut - run.first
        steps = np.arange(run.left_out)
        representative[cut + steps] = run.cut - run.period + steps % run.period
        slots[run.cut + run.period - 1] += run.left_out
        runs.append(PeriodicRun(first, run.period, run.whole))
        gaps.append(Gap(number, run.kept - 2, run.skipped))
        period_of |= {first + i: (number, i // run.period) for i in range(run.period * run.whole)}
    return Contraction(held, deps, runs, gaps, original, representative, slots, period_of)


def _whole_preds(preds: Sequence[Sequence[int]], short: Shortened, whole: int) -> list[Sequence[int]]:
    """Return what each kernel of the whole job that is held waits for; kernels left out: nothing.

    Within a run of periods a kernel waits as many kernels back as in the job that is held.
    """
    made: list[Sequence[int]] = [()] * whole
    for kernel, found in enumerate(preds):
        at, run = short.number(kernel), short.run_of(kernel)
        made[at] = [at - kernel + p if run is not None and run.holds(p) else short.number(p) for p in found]
    return made
