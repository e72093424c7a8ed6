"""Whether semaphores of tiles order all TBs that conflict: by the polls and posts of a launch plan alone.

A poll lets a TB go on once a semaphore has been posted as often as it needs. It then knows that all TBs that
post it have posted, if it needs all their posts, and none of them else. What a TB has touched is done when
it posts behind its last access; and so is what it knew itself. Sets of TBs are bits of an integer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.groups import RAW, WAR, WAW
from pysim.errors import WorkloadError
from pysim.program.op_touches import loop_counters, tb_places, tb_rows
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import OP

from .places import LOADS, STORES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Kernel
    from pysim.program.warp_program import Affine, Op
    from pysim.schemes.launch_plan import LaunchPlan

    Ints = NDArray[np.int64]

MOST_TBS = 100_000  # whose sets of TBs fit in memory
STARTED = 3  # the semaphores of a kernel's own: of TBs that have started, and between its TBs
_KINDS = {RAW: "RAW", WAR: "WAR", WAW: "WAW"}


@dataclass(frozen=True, slots=True)
class _Use:
    """A poll or a post of an op: ``semaphores`` of each of ``tbs``, (TBs, semaphores).

    ``done``: of a post, whether the TB has touched memory, and touches none behind it; ``ahead``: of a poll,
    whether it comes before the first store.
    """

    polls: bool
    tbs: Ints
    semaphores: Ints
    done: bool
    ahead: bool


@dataclass(slots=True)
class Uncovered:
    """TBs of a kernel that may run before TBs of an earlier one that they depend on: (TB, TB) pairs."""

    before: int
    after: int
    kind: str
    pairs: list[tuple[int, int]]


@dataclass(slots=True)
class Waits:
    """What the TBs of one kernel wait for by semaphores, and what these leave out.

    ``producers``: kernels whose TBs post what it polls; ``semaphores``: how many it polls; ``most``: TBs that
    post one of them, at most; ``edges``: TB pairs that must be ordered.
    """

    kernel: int
    producers: list[int]
    semaphores: int
    most: int
    edges: int = 0
    uncovered: list[Uncovered] = field(default_factory=list)
    never: list[int] = field(default_factory=list)  # semaphores that get too few posts for a poll to end


def _place(place: Affine, at: Ints, counter: Ints) -> Ints:
    by = at @ np.array([place.bx, place.by, place.bz], np.int64)
    return np.asarray(place.base + by[:, None] + place.step * counter[None, :])


def _indices(op: Op, at: Ints, counter: Ints, bases: Sequence[int]) -> Ints:
    """Return the semaphores that an op names, (TBs, counters x times), as the core numbers them."""
    sem = op.sem
    assert sem is not None
    step = counter + op.count_plus
    row, col = _place(sem.row, at, step), _place(sem.col, at, step)
    across = col % sem.wrap if sem.wrap else col
    first = bases[sem.base] + sem.first + row // sem.rows * sem.stride + across // sem.cols
    return np.asarray(
        (first[:, :, None] + sem.apart * np.arange(sem.times)[None, None, :]).reshape(len(at), -1)
    )


def _uses(kernel: Kernel, bases: Sequence[int]) -> Iterator[_Use]:
    """Yield the polls and posts of a launch; ``bases``: its first semaphores."""
    every = np.arange(kernel.tbs, dtype=np.int64)
    rows, places = tb_rows(kernel, every), tb_places(kernel, every)
    program = kernel.program
    for row in np.unique(rows).tolist():
        if isinstance(program, RecordedProgram):
            if program.op_lists is None:
                return
            ops = program.op_lists(row)[0]  # the first warp posts, and asks for all
        else:
            ops = program.variants[row]
        mine = np.flatnonzero(rows == row)
        touched = [n for n, op in enumerate(ops) if op.kind in (*LOADS, *STORES)]
        stores = [n for n, op in enumerate(ops) if op.kind in STORES]
        for number, op in enumerate(ops):
            if op.kind not in (OP["POLL"], OP["POST"]):
                continue
            counter = loop_counters(ops, number, every=True)[op.level]
            if op.count and op.kind == OP["POLL"]:
                counter = counter[counter + op.count_plus < op.count]
            around = [end for end in range(number, len(ops)) if _loops(ops[end], number)]
            behind = any(number < n for n in touched) or any(
                ops[end].target <= n for end in around for n in touched
            )
            done = bool(stores) and stores[0] < number and not behind
            ahead = number < min(stores, default=len(ops))
            found = _indices(op, places[mine], counter, bases)
            if found.size:
                yield _Use(op.kind == OP["POLL"], mine, found, done, ahead)


def _loops(op: Op, number: int) -> bool:
    return op.kind == OP["LOOP"] and op.target <= number


class SemaphoreCheck:
    """What TBs of a launch plan know of others when they run.

    Raises WorkloadError for more than ``MOST_TBS`` TBs.
    """

    def __init__(self, plan: LaunchPlan, deps: Dependences) -> None:
        self.plan, self.deps = plan, deps
        kernels = plan.job.kernels
        self.first = np.cumsum([0, *(kernel.tbs for kernel in kernels)]).tolist()
        if self.first[-1] > MOST_TBS:
            raise WorkloadError(f"job {plan.job.name}: {self.first[-1]:,} TBs: at most {MOST_TBS:,}")
        self.uses = [
            list(_uses(kernel, plan.semaphore_bases[number])) for number, kernel in enumerate(kernels)
        ]
        self.posts: dict[int, int] = defaultdict(int)  # of each semaphore, all
        self.posters: dict[int, int] = defaultdict(int)  # TBs that post it behind their accesses
        self.others: dict[int, int] = defaultdict(int)  # TBs that post it earlier, such as at their start
        for launch, uses in enumerate(self.uses):
            for use in uses:
                if use.polls:
                    continue
                for tb, mine in zip(use.tbs.tolist(), use.semaphores.tolist(), strict=True):
                    for semaphore in mine:
                        self.posts[semaphore] += 1
                        into = self.posters if use.done else self.others
                        into[semaphore] |= 1 << (self.first[launch] + tb)
        self.known: list[int] = [0] * self.first[-1]  # when a TB runs, before its first store
        self.read: list[int] = [0] * self.first[-1]  # when it has passed all its polls
        self._gathered: dict[int, int] = {}
        self._learn()

    def _complete(self, semaphore: int) -> int:
        """Return the TBs whose accesses are done once a poll of a semaphore has ended."""
        needed = int(self.plan.posts_needed[semaphore])
        if needed < self.posts[semaphore]:
            return 0
        if semaphore not in self._gathered:
            made = self.posters[semaphore]
            for tb in _members(made):
                made |= self.read[tb]
            self._gathered[semaphore] = made
        return self._gathered[semaphore]

    def _learn(self) -> None:
        """Fill what TBs know, launch by launch."""
        started: list[int] = []  # TBs that have surely ended when a launch starts
        ended: list[int] = []  # and when it has ended
        for launch, uses in enumerate(self.uses):
            preds = self.plan.preds[launch]
            early = bool(self.plan.programmatic[launch])
            start = 0
            for before in preds:
                start |= started[before] if early else ended[before]
            lo, hi = self.first[launch], self.first[launch + 1]
            self.known[lo:hi] = self.read[lo:hi] = [start] * (hi - lo)
            for use in uses:
                if not use.polls:
                    continue
                for tb, mine in zip(use.tbs.tolist(), use.semaphores.tolist(), strict=True):
                    learned = 0
                    for semaphore in dict.fromkeys(mine):
                        learned |= self._complete(semaphore)
                    self.read[lo + tb] |= learned
                    if use.ahead:
                        self.known[lo + tb] |= learned
            done = ((1 << hi) - 1) ^ ((1 << lo) - 1)
            for tb in range(lo, hi):
                done |= self.read[tb]
            started.append(start)
            ended.append(start | done)

    def kernels(self) -> list[Waits]:
        """Return what each kernel waits for, and which of its edges the waits do not imply."""
        made: list[Waits] = []
        kernel_of = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        for number, launch in enumerate(self.plan.launch_of_kernel):
            polled = self._polled(launch)
            own = range(self.first[launch], self.first[launch + 1])
            posted = {s: self.posters[s] | self.others[s] for s in polled}
            makers = {
                int(kernel_of[tb]) for bits in posted.values() for tb in _members(bits) if tb not in own
            }
            kernels = [n for n, at in enumerate(self.plan.launch_of_kernel) if at in makers]
            most = max((bits.bit_count() for bits in posted.values()), default=0)
            waits = Waits(number, kernels, len(polled), most)
            gates = [p for p in self.plan.preds[launch] if p not in self.plan.launch_of_kernel]
            asked = dict.fromkeys([*polled, *(s for gate in gates for s in self._polled(gate))])
            waits.never = [s for s in asked if int(self.plan.posts_needed[s]) > self.posts[s]]
            self._cover(waits)
            made.append(waits)
        return made

    def _polled(self, launch: int) -> list[int]:
        """Return the semaphores that a launch polls, sorted."""
        found = (np.unique(use.semaphores) for use in self.uses[launch] if use.polls)
        return sorted({number for part in found for number in part.tolist()})

    def _cover(self, waits: Waits) -> None:
        """Fill the edges of a kernel, and those that are not covered."""
        deps, groups = self.deps, self.deps.groups
        first = int(deps.node_first[waits.kernel])
        found: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        here = self.first[self.plan.launch_of_kernel[waits.kernel]]
        for node in range(first, first + int(deps.node_count[waits.kernel])):
            mine = slice(groups.producer_ptr[node], groups.producer_ptr[node + 1])
            needs = [
                (*deps.kernel_and_tb(int(p)), int(k))
                for p, k in zip(groups.producers[mine], groups.kinds[mine], strict=True)
            ]
            places = [
                (self.first[self.plan.launch_of_kernel[kernel]] + tb, kernel, tb, kinds)
                for kernel, tb, kinds in needs
            ]
            reads = sum(1 << at for at, _, _, kinds in places if kinds & RAW)
            writes = sum(1 << at for at, _, _, kinds in places if kinds & (WAR | WAW))
            who = groups.consumers[groups.consumer_ptr[node] : groups.consumer_ptr[node + 1]].tolist()
            waits.edges += len(who) * len(places)
            for consumer in who:
                left = reads & ~self.read[here + consumer] | writes & ~self.known[here + consumer]
                if not left:
                    continue
                for at, kernel, tb, kinds in places:
                    if left >> at & 1:
                        kind = next(name for bit, name in _KINDS.items() if kinds & bit)
                        found[kernel, kind].append((consumer, tb))
        waits.uncovered = [
            Uncovered(kernel, waits.kernel, kind, pairs) for (kernel, kind), pairs in sorted(found.items())
        ]


def _members(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    at = 0
    while bits:
        step = (bits & -bits).bit_length()
        at += step
        yield at - 1
        bits >>= step
