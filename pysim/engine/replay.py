"""Replay: of a run of equal periods only some are simulated, and the others take what their neighbours took.

A *period* is a sequence of kernels that the launch order repeats: the same programs on the same grids, whose
operands were last used as many kernels ago. Kernels of the periods that are left out are taken out of the
job; what would have read their results reads those of the last period before the gap, which are as old to it.
So dependences, reuse in the caches and the window are as they would be, and the job that is left is simulated
as any other: :class:`Contraction`. ``pysim.engine.extrapolate`` then puts the time of the gaps back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.dependences import dependences
from pysim.program.job import Job, Kernel, Tensor
from pysim.program.recorded_program import RecordedProgram

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences

LONGEST = 512  # kernels of a period
FEWEST = 4  # repeats below which nothing is left out
ISLANDS = 8  # gaps a run of periods is cut into, if it is long enough
APART = 6  # repeats a gap at least, if there are several
SETTLE = 24  # kernels until caches are as they stay: of GRU layers on a Titan V, whose weights do not fit L2
FACTORS = (1, 2, 3, 4, 6, 12)  # periods that a gap may have to be a multiple of: buffers that take turns


@dataclass(frozen=True, slots=True)
class Run:
    """``repeats`` periods of ``period`` kernels each, from kernel ``first`` on."""

    first: int
    period: int
    repeats: int


@dataclass(frozen=True, slots=True)
class Gap:
    """``skipped`` periods of a run are left out behind its period ``before``."""

    run: int
    before: int
    skipped: int


@dataclass(slots=True)
class Contraction:
    """A job without the kernels of some periods. Numbers are launches of the whole job where not said."""

    job: Job
    deps: Dependences
    runs: list[Run]
    gaps: list[Gap]
    number: NDArray[np.int64]  # of each kernel that is left: its number in the whole job
    stands: NDArray[np.int64]  # of each kernel of the whole job: the kernel that is left for it (in ``job``)
    places: NDArray[np.uint32]  # of each kernel that is left: how many of the window it takes
    at: dict[int, tuple[int, int]] = field(default_factory=dict)  # kernel -> (run, period), where in a run

    @property
    def left_out(self) -> int:
        """Kernels that are not simulated."""
        return len(self.stands) - len(self.number)


def _shapes(job: Job) -> NDArray[np.int64]:
    """Return a number for each kernel; equal for kernels that do the same at the same distance of reuse."""
    known: dict[tuple[object, ...], int] = {}
    last: dict[tuple[int, int], int] = {}
    made = np.empty(len(job.kernels), np.int64)
    for index, kernel in enumerate(job.kernels):
        parts: list[object] = [id(kernel.program), kernel.grid, kernel.stream]
        for tensor in kernel.args:
            key = (tensor.address, tensor.nbytes)
            parts.append((tensor.rows, tensor.cols, tensor.item, index - last.get(key, -1 << 40)))
        # a first use has no distance: it counts as one kind, however far the job has come
        parts = [p if not isinstance(p, tuple) or p[-1] < 1 << 40 else (*p[:-1], 0) for p in parts]
        for tensor in kernel.args:
            last[tensor.address, tensor.nbytes] = index
        made[index] = known.setdefault(tuple(parts), len(known))
    return made


def runs_of(job: Job) -> list[Run]:
    """Return the runs of equal periods of a job, in launch order; they do not overlap.

    Of the periods that begin at a kernel, the one that covers the most kernels is taken, of equal ones the
    shortest.
    """
    shapes = _shapes(job)
    count = len(shapes)
    # how many kernels from each on are equal to those `period` later, by period
    same: dict[int, NDArray[np.int64]] = {}
    for period in range(1, min(LONGEST, count // FEWEST) + 1):
        differ = np.flatnonzero(shapes[:-period] != shapes[period:])
        if len(differ) * 2 > count and period > 1 and len(differ) == count - period:
            continue
        ends = np.append(differ, count - period)
        start = np.arange(count - period)
        same[period] = ends[np.searchsorted(ends, start)] - start
    made: list[Run] = []
    at = 0
    while at < count:
        best = Run(at, 1, 1)
        for period, length in same.items():
            if at >= len(length):
                continue
            repeats = int(length[at]) // period + 1
            if repeats >= FEWEST and repeats * period > best.repeats * best.period:
                best = Run(at, period, repeats)
        if best.repeats >= FEWEST:
            made.append(best)
        at += best.repeats * best.period if best.repeats >= FEWEST else 1
    return made


def gaps_of(number: int, run: Run, factor: int, window: int, seed: int) -> list[Gap]:
    """Return what to leave out of a run, in multiples of ``factor`` periods.

    The first two periods and the last one stay, or ``factor`` of each, and single ones between the gaps, at
    places that ``seed`` moves. In a longer run more stay: of the first half up to ``SETTLE`` kernels, until
    caches hold what they will, of the last up to the ``window`` (kernels), where the next run may begin.
    """
    repeats = run.repeats
    head = max(2, factor, min(repeats // 2 - 1, -(-SETTLE // run.period)))
    inner = repeats - head - max(factor, min(repeats // 5, -(-window // run.period)))
    count = max(1, min(ISLANDS, (inner + 1) // (APART + 1)))
    # islands lie between gaps of about equal length, moved by at most a quarter of it
    rng = np.random.default_rng([seed, repeats, factor])
    room = (inner - (count - 1)) // count
    made: list[Gap] = []
    before, left = head - 1, inner
    for island in range(count):
        more = count - 1 - island
        skip = left if not more else room + int(rng.integers(-(room // 4), room // 4 + 1)) + factor // 2
        skip = max(0, min(skip, left - more)) // factor * factor
        if skip:
            made.append(Gap(number, before, skip))
        before += skip + 1
        left -= skip + 1
    return made


def _rebound(kernel: Kernel, change: dict[int, Tensor]) -> Kernel:
    """Return a kernel with tensors (by identity) replaced."""
    if not change:
        return kernel
    args = tuple(change.get(id(t), t) for t in kernel.args)
    accesses = tuple(replace(a, tensor=change.get(id(a.tensor), a.tensor)) for a in kernel.accesses)
    return replace(kernel, args=args, accesses=accesses, with_warps=None)


def _writers(job: Job) -> list[dict[int, int]]:
    """Return, for each kernel, the latest kernel before it that wrote exactly each tensor it touches."""
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


def _slot(kernel: Kernel, tensor: Tensor) -> int:
    """Return which argument of a kernel lies where a tensor does."""
    where = (tensor.address, tensor.nbytes)
    return [(t.address, t.nbytes) for t in kernel.args].index(where)


class _Parts:
    """Which kernels of a job are left, and which of them plays the part of another one."""

    def __init__(self, count: int, runs: Sequence[Run], gaps: Sequence[Gap]) -> None:
        self.runs = runs
        self.keep = np.ones(count, bool)
        self.stands = np.arange(count)
        self.places = np.ones(count, np.uint32)
        for gap in gaps:
            run = runs[gap.run]
            first = run.first + (gap.before + 1) * run.period
            size = gap.skipped * run.period
            self.keep[first : first + size] = False
            self.stands[first : first + size] = first - run.period + np.arange(size) % run.period
            # what comes behind the period after the gap is as far away as in the whole job
            self.places[first + size + run.period - 1] += size
        self.at: dict[int, tuple[int, int]] = {}
        self.left: list[list[int]] = []  # periods of each run that are left
        for number, run in enumerate(runs):
            first = run.first
            self.left.append([q for q in range(run.repeats) if self.keep[first + q * run.period]])
            self.at |= {first + i: (number, i // run.period) for i in range(run.period * run.repeats)}
        self.order = [{q: i for i, q in enumerate(periods)} for periods in self.left]

    def instead(self, kernel: int, other: int) -> int:
        """Return the kernel that is to ``kernel``, which is left, what ``other`` is to it in the whole job.

        In one run that is the one as many periods back among those that are left.
        """
        mine, its = self.at.get(kernel), self.at.get(other)
        if mine is not None and its is not None and mine[0] == its[0]:
            run = mine[0]
            back = self.order[run][mine[1]] - (mine[1] - its[1])
            if back >= 0:
                return other + (self.left[run][back] - its[1]) * self.runs[run].period
        return int(self.stands[other])


def _contracted(job: Job, deps: Dependences, runs: list[Run], gaps: list[Gap]) -> Contraction | None:
    """Take the gaps out of a job; None where what is left would wait for other kernels than in the job."""
    parts = _Parts(len(job.kernels), runs, gaps)
    writers = _writers(job)
    known: dict[int, Kernel] = {}  # kernels that are left, as they are now, by number
    for index in np.flatnonzero(parts.keep).tolist():
        kernel = job.kernels[index]
        change: dict[int, Tensor] = {}
        for tensor in kernel.args:
            writer = writers[index].get(id(tensor))
            if writer is None:
                continue
            # what a kernel that is left wrote may itself have been given another place
            slot = _slot(job.kernels[writer], tensor)
            found = known[parts.instead(index, writer)].args[slot]
            if found.address != tensor.address:
                if (found.rows, found.cols, found.item) != (tensor.rows, tensor.cols, tensor.item):
                    return None
                change[id(tensor)] = found
        known[index] = _rebound(kernel, change)
    number = np.flatnonzero(parts.keep)
    place = np.cumsum(parts.keep) - 1
    events = {(int(place[parts.instead(b, a)]), int(place[b])) for a, b in job.events if parts.keep[b]}
    made = Job(job.name, [known[n] for n in number.tolist()], sorted(events), job.steps)
    found_deps = dependences(made)
    for index, kernel_number in enumerate(number.tolist()):
        wanted = {int(place[parts.instead(kernel_number, p)]) for p in deps.preds[kernel_number]}
        if wanted != set(found_deps.preds[index]):
            return None
    return Contraction(
        made, found_deps, runs, gaps, number, place[parts.stands], parts.places[number], parts.at
    )


def _link(run: Run, earlier: Sequence[Run], deps: Dependences) -> tuple[int, int] | None:
    """Return an earlier run of the same period that this one waits for, and how far back its kernels lie."""
    middle = run.first + run.repeats // 2 * run.period
    for kernel in range(middle, middle + run.period):
        for pred in sorted(deps.preds[kernel], reverse=True):
            for number, other in enumerate(earlier):
                inside = other.first <= pred < other.first + other.period * other.repeats
                if inside and other.period == run.period:
                    return number, kernel - pred
    return None


def _planned(job: Job, deps: Dependences, factor: int, window: int, seed: int) -> tuple[list[Run], list[Gap]]:
    """Return the runs and their gaps. A run that follows another one step by step has its gaps where that
    one has them, so that what is left of the one still finds what it needs of the other.
    """
    runs: list[Run] = []
    gaps: list[Gap] = []
    for number, found in enumerate(runs_of(job)):
        run, link = found, _link(found, runs, deps)
        mine = gaps_of(number, run, factor, window, seed)
        if link is not None:
            other, back = runs[link[0]], link[1]
            turn = (other.first + back - run.first) % run.period
            run = Run(run.first + turn, run.period, run.repeats - (turn > 0))
            ahead = (run.first - other.first - back) // run.period
            mine = [Gap(number, g.before - ahead, g.skipped) for g in gaps if g.run == link[0]]
            last = run.repeats - 1
            mine = [g for g in mine if g.before >= 0 and g.before + g.skipped < last]
        runs.append(run)
        gaps += mine
    return runs, gaps


def contract(job: Job, deps: Dependences, window: int, seed: int) -> Contraction | None:
    """Return the job without what need not be simulated; None where nothing can be left out.

    ``seed`` moves the periods that are simulated among those that could be left out; ``window``: kernels
    that are admitted at once.
    """
    if any(k.copy is not None or isinstance(k.program, RecordedProgram) for k in job.kernels):
        return None
    for factor in FACTORS:
        runs, gaps = _planned(job, deps, factor, window, seed)
        if not gaps:
            return None
        made = _contracted(job, deps, runs, gaps)
        if made is not None:
            return made
    return None
