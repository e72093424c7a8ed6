"""Replay: of many equal periods only some are simulated; the others take the time of their neighbours.

A *period* is a sequence of kernels that the launch order repeats: the same programs on the same grids, with
the same reuse distances of their operands in kernels. The kernels of skipped periods are removed from the
job (:class:`Contraction`). A kernel that would have read their results reads those of the last period before
the gap, at the same distance. So dependences, cache reuse and the window stay the same, and the contracted
job is simulated like any other. ``pysim.engine.extrapolate`` then adds the time of the gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.dependences import dependences
from pysim.program.job import Job, Kernel, Tensor
from pysim.program.periods.likeness import kernel_shapes
from pysim.program.recorded_program import RecordedProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences

MAX_PERIOD = 512  # kernels of a period, at most
MIN_REPEATS = 4  # fewer repeats are all simulated
MAX_GAPS = 8  # gaps of one run of periods, if it is long enough
MIN_GAP = 6  # least periods of a gap, if there are several
WARMUP_KERNELS = (
    24  # kernels until caches are in steady state: GRU layers on a Titan V, whose weights exceed L2
)
GAP_MULTIPLES = (1, 2, 3, 4, 6, 12)  # tried multiples of periods for a gap: buffers may alternate


@dataclass(frozen=True, slots=True)
class PeriodicRun:
    """``repeats`` periods of ``period`` kernels each, from kernel ``first`` on."""

    first: int
    period: int
    repeats: int


@dataclass(frozen=True, slots=True)
class Gap:
    """``skipped`` periods of run ``run`` are not simulated, after its period ``before``."""

    run: int
    before: int
    skipped: int


@dataclass(slots=True)
class Contraction:
    """A job without the kernels of some periods; kernels are numbered in the whole job unless said otherwise.

    ``original``: for each kept kernel, its number in the whole job; ``representative``: for each kernel of
    the whole job, the index in ``job`` of the kernel simulated for it; ``window_slots``: for each kept
    kernel, slots of the window that it takes; ``period_of``: (run, period) of each kernel that is in a run.
    """

    job: Job
    deps: Dependences
    runs: list[PeriodicRun]
    gaps: list[Gap]
    original: NDArray[np.int64]  # of each kernel that is left: its number in the whole job
    representative: NDArray[
        np.int64
    ]  # of each kernel of the whole job: the kernel that is left for it (in ``job``)
    window_slots: NDArray[np.uint32]  # of each kernel that is left: how many of the window it takes
    period_of: dict[int, tuple[int, int]] = field(
        default_factory=dict
    )  # kernel -> (run, period), where in a run

    @property
    def left_out(self) -> int:
        """Number of kernels that are not simulated."""
        return len(self.representative) - len(self.original)


def _recorded(kernel: Kernel) -> bool:
    """Whether a kernel is of a trace, whose addresses are fixed."""
    return isinstance(kernel.program, RecordedProgram) and kernel.program.op_lists is None


def find_periodic_runs(job: Job) -> list[PeriodicRun]:
    """Return the runs of equal periods of a job in launch order, without overlap.

    Among the periods that begin at a kernel, it takes the one that covers the most kernels, then the
    shortest.
    """
    shapes = kernel_shapes(job)
    count = len(shapes)
    # how many kernels from each on are equal to those `period` later, by period
    same: dict[int, NDArray[np.int64]] = {}
    for period in range(1, min(MAX_PERIOD, count // MIN_REPEATS) + 1):
        differ = np.flatnonzero(shapes[:-period] != shapes[period:])
        if len(differ) * 2 > count and period > 1 and len(differ) == count - period:
            continue
        ends = np.append(differ, count - period)
        start = np.arange(count - period)
        same[period] = ends[np.searchsorted(ends, start)] - start
    made: list[PeriodicRun] = []
    at = 0
    while at < count:
        best = PeriodicRun(at, 1, 1)
        for period, length in same.items():
            if at >= len(length):
                continue
            repeats = int(length[at]) // period + 1
            if repeats >= MIN_REPEATS and repeats * period > best.repeats * best.period:
                best = PeriodicRun(at, period, repeats)
        if best.repeats >= MIN_REPEATS:
            made.append(best)
        at += best.repeats * best.period if best.repeats >= MIN_REPEATS else 1
    return made


def plan_gaps(number: int, run: PeriodicRun, factor: int, window: int, seed: int) -> list[Gap]:
    """Return the gaps of run ``number``, in multiples of ``factor`` periods.

    The first two periods and the last one are simulated (or ``factor`` of each), and single periods between
    the gaps, at positions that depend on ``seed``. A longer run keeps more: at its start up to
    ``WARMUP_KERNELS`` kernels, until caches are in steady state; at its end up to ``window`` kernels, where
    the next run may begin.
    """
    repeats = run.repeats
    head = max(2, factor, min(repeats // 2 - 1, -(-WARMUP_KERNELS // run.period)))
    inner = repeats - head - max(factor, min(repeats // 5, -(-window // run.period)))
    count = max(1, min(MAX_GAPS, (inner + 1) // (MIN_GAP + 1)))
    # single periods lie between gaps of about equal length, moved by at most a quarter of it
    rng = np.random.default_rng([seed, repeats, factor])
    room = (inner - (count - 1)) // count
    made: list[Gap] = []
    before, left = head - 1, inner
    for gap_number in range(count):
        more = count - 1 - gap_number
        skip = left if not more else room + int(rng.integers(-(room // 4), room // 4 + 1)) + factor // 2
        skip = max(0, min(skip, left - more)) // factor * factor
        if skip:
            made.append(Gap(number, before, skip))
        before += skip + 1
        left -= skip + 1
    return made


def _with_tensors(kernel: Kernel, change: dict[int, Tensor]) -> Kernel:
    """Return a kernel with tensors (by identity) replaced."""
    if not change:
        return kernel
    args = tuple(change.get(id(t), t) for t in kernel.args)
    accesses = tuple(replace(a, tensor=change.get(id(a.tensor), a.tensor)) for a in kernel.accesses)
    return replace(kernel, args=args, accesses=accesses, with_warps=None)


def _writers(job: Job) -> list[dict[int, int]]:
    """Return, for each kernel, the last earlier writer of each of its arguments, by ``id`` of the tensor."""
    last: dict[tuple[int, int], int] = {}
    made = []
    for index, kernel in enumerate(job.kernels):
        known = {}
        for tensor in kernel.args:
            writer = last.get((tensor.address, tensor.nbytes))
            if writer is not None:
                known[id(tensor)] = writer
        made.append(known)
        for access in kernel.accesses:
            if access.mode != "read":
                last[access.tensor.address, access.tensor.nbytes] = index
    return made


def _named(kernel: Kernel) -> list[Tensor]:
    """Return the arguments of a kernel, then what it touches without an argument of its own."""
    return [*kernel.args, *(access.tensor for access in kernel.accesses)]


def _place(kernel: Kernel, tensor: Tensor) -> int:
    """Return which tensor that a kernel names has the address and size of a tensor."""
    where = (tensor.address, tensor.nbytes)
    return [(t.address, t.nbytes) for t in _named(kernel)].index(where)


class _KeptKernels:
    """Which kernels of a job are kept, and which of them represents each other one."""

    def __init__(self, count: int, runs: Sequence[PeriodicRun], gaps: Sequence[Gap]) -> None:
        self.runs = runs
        self.keep = np.ones(count, bool)
        self.representative = np.arange(count)
        self.window_slots = np.ones(count, np.uint32)
        for gap in gaps:
            run = runs[gap.run]
            first = run.first + (gap.before + 1) * run.period
            size = gap.skipped * run.period
            self.keep[first : first + size] = False
            self.representative[first : first + size] = first - run.period + np.arange(size) % run.period
            # keeps the distance in the window across the gap as in the whole job
            self.window_slots[first + size + run.period - 1] += size
        self.period_of: dict[int, tuple[int, int]] = {}
        self.kept_periods: list[list[int]] = []  # kept periods of each run
        for number, run in enumerate(runs):
            first = run.first
            self.kept_periods.append([q for q in range(run.repeats) if self.keep[first + q * run.period]])
            self.period_of |= {first + i: (number, i // run.period) for i in range(run.period * run.repeats)}
        self.order = [{q: i for i, q in enumerate(periods)} for periods in self.kept_periods]

    def counterpart(self, kernel: int, other: int) -> int:
        """Return the kept kernel that takes the role of ``other`` for the kept kernel ``kernel``.

        Within a run that is the kernel as many *kept* periods back as ``other`` is periods back.
        """
        mine, its = self.period_of.get(kernel), self.period_of.get(other)
        if mine is not None and its is not None and mine[0] == its[0]:
            run = mine[0]
            back = self.order[run][mine[1]] - (mine[1] - its[1])
            if back >= 0:
                return other + (self.kept_periods[run][back] - its[1]) * self.runs[run].period
        return int(self.representative[other])


def _contracted(job: Job, deps: Dependences, runs: list[PeriodicRun], gaps: list[Gap]) -> Contraction | None:
    """Return the job without the gaps; None if a kept kernel would wait for other kernels than before."""
    parts = _KeptKernels(len(job.kernels), runs, gaps)
    writers = _writers(job)
    known: dict[int, Kernel] = {}  # kept kernels with replaced tensors, by number
    for index in np.flatnonzero(parts.keep).tolist():
        kernel = job.kernels[index]
        change: dict[int, Tensor] = {}
        for tensor in kernel.args:
            writer = writers[index].get(id(tensor))
            if writer is None:
                continue
            # the output of a kept kernel may itself have been replaced
            slot = _place(job.kernels[writer], tensor)
            found = _named(known[parts.counterpart(index, writer)])[slot]
            if found.address != tensor.address:
                if (found.rows, found.cols, found.item) != (tensor.rows, tensor.cols, tensor.item):
                    return None
                change[id(tensor)] = found
        known[index] = _with_tensors(kernel, change)
    number = np.flatnonzero(parts.keep)
    place = np.cumsum(parts.keep) - 1
    events = {(int(place[parts.counterpart(b, a)]), int(place[b])) for a, b in job.events if parts.keep[b]}
    made = Job(job.name, [known[n] for n in number.tolist()], sorted(events), job.steps)
    found_deps = dependences(made)
    for index, kernel_number in enumerate(number.tolist()):
        wanted = {int(place[parts.counterpart(kernel_number, p)]) for p in deps.preds[kernel_number]}
        if wanted != set(found_deps.preds[index]):
            return None
    return Contraction(
        made,
        found_deps,
        runs,
        gaps,
        number,
        place[parts.representative],
        parts.window_slots[number],
        parts.period_of,
    )


def _followed_run(
    run: PeriodicRun, earlier: Sequence[PeriodicRun], deps: Dependences
) -> tuple[int, int] | None:
    """Return (earlier run of the same period that this one waits for, distance in kernels); None: none."""
    middle = run.first + run.repeats // 2 * run.period
    for kernel in range(middle, middle + run.period):
        for pred in sorted(deps.preds[kernel], reverse=True):
            for number, other in enumerate(earlier):
                inside = other.first <= pred < other.first + other.period * other.repeats
                if inside and other.period == run.period:
                    return number, kernel - pred
    return None


def _planned(
    job: Job, deps: Dependences, factor: int, window: int, seed: int
) -> tuple[list[PeriodicRun], list[Gap]]:
    """Return the runs and their gaps.

    A run that waits for another one period by period has its gaps at the same periods, so that its kept
    kernels find the kernels they need.
    """
    runs: list[PeriodicRun] = []
    gaps: list[Gap] = []
    for number, found in enumerate(find_periodic_runs(job)):
        run, link = found, _followed_run(found, runs, deps)
        mine = plan_gaps(number, run, factor, window, seed)
        if link is not None:
            other, back = runs[link[0]], link[1]
            turn = (other.first + back - run.first) % run.period
            run = PeriodicRun(run.first + turn, run.period, run.repeats - (turn > 0))
            ahead = (run.first - other.first - back) // run.period
            mine = [Gap(number, g.before - ahead, g.skipped) for g in gaps if g.run == link[0]]
            last = run.repeats - 1
            mine = [g for g in mine if g.before >= 0 and g.before + g.skipped < last]
        runs.append(run)
        gaps += mine
    return runs, gaps


def contract(job: Job, deps: Dependences, window: int, seed: int) -> Contraction | None:
    """Return the contracted job; None if nothing can be skipped.

    ``window``: kernels admitted at once; ``seed``: moves the simulated periods between gaps.
    """
    if any(k.copy is not None or not k.affine or _recorded(k) for k in job.kernels):
        return None
    for factor in GAP_MULTIPLES:
        runs, gaps = _planned(job, deps, factor, window, seed)
        if not gaps:
            return None
        made = _contracted(job, deps, runs, gaps)
        if made is not None:
            return made
    return None
