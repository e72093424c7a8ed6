"""What a suite is made of: cases that were measured, and outcomes that were simulated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pysim import Config, Job, simulate
from pysim.errors import ConfigError

from .table import Row

Errors = NDArray[np.float64]
SUBSETS = {
    "all": "every case",
    "quick": "a fixed selection, about three minutes on two cores",
    "sample": "every eighth case, by hash",
}
SAMPLE_ONE_IN = 8


@dataclass(frozen=True, slots=True)
class Case:
    """One measured time.

    ``key`` decides the half (:func:`split_of`), ``kind`` is the class in summaries, ``scheme`` the scheme of
    ``mode``. ``task`` is what the suite's ``run`` takes: cases with equal tasks share a simulation, of
    which ``part`` is theirs. Work is in FLOP, sizes in bytes, of one of ``steps`` equal steps; ``eager_us``
    is the time in a profile of the same network run eagerly. Only baseline models use them.
    """

    case: str
    group: str
    mode: str
    key: str
    kind: str
    scheme: str
    task: tuple[str, ...]
    part: str
    measured_us: float
    measured_cycles: float = math.nan
    flops: float = 0.0
    nbytes: float = 0.0
    steps: int = 1
    eager_us: float = math.nan
    quick: bool = False

    @property
    def split(self) -> str:
        """Return ``fit`` or ``check``."""
        return split_of(self.key)

    def within(self, subset: str) -> bool:
        """Return whether the case is in a subset, one of :data:`SUBSETS`."""
        if subset == "sample":
            return thinned(f"sample of {self.case}", SAMPLE_ONE_IN)
        return subset == "all" or self.quick


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a simulation gave: times (us) and SM cycles by part, and what was simulated.

    ``reason``: why there is no time. ``trace``: traceback of a bug in the simulator; such an outcome is not
    cached.
    """

    times_us: Mapping[str, float] = field(default_factory=dict)
    cycles: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""
    reason: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline model: its time (us) for each case, NaN where it has none."""

    name: str
    times_us: Errors


@dataclass(frozen=True, slots=True)
class Suite:
    """A set of cases.

    ``file`` is the table in ``workloads/measured`` (``--measured`` takes another of the same ``columns``),
    ``cases`` picks and reads the rows of the suite, ``run`` simulates a task and ``baselines`` fits the
    baseline models; the first is shown beside each case. Cases whose mode is ``base`` are what speedups
    (``compare`` "speedup") or savings ("saving") of the other modes of their group refer to. ``note`` says
    what a reader of the errors must know. ``choices``: where kernels may be taken from, if there is a choice;
    the last word of a task is one of them, at first the first (:func:`with_choice`).
    """

    name: str
    doc: str
    gpu: str
    file: str
    columns: tuple[str, ...]
    cases: Callable[[Sequence[Row]], list[Case]]
    run: Callable[..., Outcome]
    baselines: Callable[[Sequence[Case]], list[Baseline]]
    note: str
    base: str = ""
    compare: str = ""
    choices: tuple[str, ...] = ()


def with_choice(suite: Suite, cases: Sequence[Case], choice: str) -> list[Case]:
    """Return the cases with another choice of kernels; refuse one that the suite does not have."""
    if choice not in suite.choices:
        known = f"choices are {', '.join(suite.choices)}" if suite.choices else "it has no choice of kernels"
        raise ConfigError(f"suite {suite.name}: choice {choice}: {known}")
    return [replace(case, task=(*case.task[:-1], choice)) for case in cases]


def _digest(key: str) -> int:
    return int(hashlib.sha256(key.encode()).hexdigest(), 16)


def split_of(key: str) -> str:
    """Return the half of a key: constants may be fitted to ``fit``, never to ``check``."""
    return "check" if _digest(key) & 1 else "fit"


def thinned(key: str, every: int) -> bool:
    """Return whether a key is in a quick subset of one in ``every``, drawn independently of the halves."""
    return (_digest(key) >> 1) % every == 0


def unique(cases: list[Case]) -> list[Case]:
    """Return the cases; refuse a table with duplicates, which messages could not tell apart."""
    seen: set[str] = set()
    for case in cases:
        if case.case in seen:
            raise ConfigError(f"case {case.case} is measured twice in the table")
        seen.add(case.case)
    return cases


def tables_of(config: Config, job: Job, scheme: str, wanted: str = "kernels") -> dict[str, NDArray[np.void]]:
    """Simulate a job under one scheme with one thread; refuse as the simulator does."""
    result = simulate(config, job, scheme, threads=1, tables=wanted, baseline=False)
    if result.interrupted:
        raise KeyboardInterrupt
    tables = result.tables()
    run = tables["runs"][0]
    if run["status"] != b"ok":
        raise ConfigError(run["reason"].decode())
    return tables


def outcome_of(
    tables: Mapping[str, NDArray[np.void]], times_us: Mapping[str, float], detail: str = ""
) -> Outcome:
    """Return an outcome; cycles are at the mean clock of the run."""
    run = tables["runs"][0]
    clock = float(run["cycles"] / run["time_us"])
    return Outcome(times_us, {part: time * clock for part, time in times_us.items()}, detail)
