"""Error budget: errors of a suite with all mechanisms of the machine model, and without each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from pysim import Config
from pysim.machine.mechanisms import MECHANISMS, without

from .cases import Case, Outcome
from .parallel import run_task
from .suites import tasks_of

ALL = "none"  # what is off in the first run
TARGETS_US = (12.0,)  # of each class the tasks nearest to these times are taken: short ones
AGAIN = 1  # a task is timed as the best of so many


@dataclass(frozen=True, slots=True)
class Timed(Outcome):
    """An outcome, and the processor time that simulating it took."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One run of the cases: ``off`` names a mechanism, or a part of the machine that is all off."""

    off: str
    part: str
    doc: str
    mechanisms: tuple[str, ...]

    def config(self, config: Config) -> Config:
        """Return the configuration of the run."""
        return config.replaced(without(self.mechanisms)) if self.mechanisms else config


def steps_of(names: Sequence[str], config: Config) -> list[Step]:
    """Return the runs for some mechanisms: with all, without each, and without all of a part.

    What the device does not have cannot be switched off and is left out.
    """
    names = [name for name in names if any(config[path] != value for path, value in without((name,)).items())]
    made = [Step(ALL, "", "all mechanisms on", ())]
    made += [Step(name, MECHANISMS[name].part, MECHANISMS[name].doc, (name,)) for name in names]
    parts = dict.fromkeys(MECHANISMS[name].part for name in names)
    for part in parts:
        those = tuple(name for name in names if MECHANISMS[name].part == part)
        if len(those) > 1:
            made.append(Step(f"all of {part}", part, f"{', '.join(those)}", those))
    return made


def short(cases: Sequence[Case]) -> list[Case]:
    """Return the cases of few tasks: of each class those nearest to some short times, all their parts."""
    chosen: set[tuple[str, ...]] = set()
    for kind in dict.fromkeys(case.kind for case in cases):
        mine = [case for case in cases if case.kind == kind]
        for target in TARGETS_US:
            chosen.add(min(mine, key=lambda case: abs(case.measured_us - target)).task)
    return [case for case in cases if case.task in chosen]


def timed(suite: str, config: Config, job: tuple[Step, tuple[str, ...]]) -> Timed:
    """Simulate a task without some mechanisms; its processor time is the best of a few."""
    step, task = job
    best, outcome = float("inf"), Outcome()
    for _ in range(AGAIN):
        begin = time.process_time()
        outcome = run_task(suite, step.config(config), task)
        best = min(best, time.process_time() - begin)
        if outcome.reason:
            break
    return Timed(**asdict(outcome), seconds=best)


def jobs_of(steps: Sequence[Step], cases: Sequence[Case]) -> list[tuple[Step, tuple[str, ...]]]:
    """Return what is to be simulated, in the order in which it is best begun."""
    return [(step, task) for task in tasks_of(cases) for step in steps]


def errors(cases: Sequence[Case], outcomes: dict[tuple[str, ...], Timed]) -> NDArray[np.float64]:
    """Return the signed errors of the cases; 1 for one that cannot be simulated."""
    return np.array(
        [
            1.0 if outcomes[c.task].reason else outcomes[c.task].times_us.get(c.part, 0.0) / c.measured_us - 1
            for c in cases
        ]
    )
