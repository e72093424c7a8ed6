"""A provable lower bound on the time of a job, and an estimate of what a good schedule reaches."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.params import PARAMS
from pysim.program.periods.shorten import check_alike
from pysim.program.regions import SECTOR
from pysim.schemes.hooks import coherence_of

from .estimate import PIPES, Estimator
from .longest_path import Lengths, longest
from .tb_cost import lone_kernels, shared_variants
from .traffic import DramTraffic, compulsory_bytes, written_bytes
from .writeback_bound import written_back_before_reads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job
    from pysim.program.ops import LoweredPrograms
    from pysim.program.periods.shortened import Shortened
    from pysim.schemes.registry import Choice

    from .program_cost import LoadFacts, ProgramCost

    Floats = NDArray[np.float64]

TICKS_US = 1024 * 1000
AFFINITY = next(p for p in PARAMS["scheme"] if p.name == "placement").choices.index("affinity")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bound and estimate of a job's time, in microseconds.

    ``kernel_cycles[k]``: estimated cycles of kernel k with the machine to itself. ``whole``: bound and
    estimate of all periods of a shortened job, whose others are those of what it holds.
    """

    bound_us: float
    estimate_us: float
    kernel_cycles: tuple[float, ...]
    whole: tuple[float, float] | None = None

    def of_whole(self) -> Bounds:
        """Return the bounds of all periods."""
        return (
            self if self.whole is None else replace(self, bound_us=self.whole[0], estimate_us=self.whole[1])
        )


class Guess(NamedTuple):
    """An estimate before it is raised to the bound: as in :class:`Bounds`; ``whole_us``: of all periods."""

    estimate_us: float
    kernel_cycles: tuple[float, ...]
    whole_us: float


@dataclass(frozen=True, slots=True)
class SchemeTraits:
    """What a bound must know of a scheme.

    ``waits_inside``: TBs wait inside their programs, so the code before a wait may overlap with the
    producers. ``fused``: kernels are fused into one, whose code may differ. ``host_launches``: the host
    launches each kernel. ``placement_known``: the first TB on an empty GPU goes to the first SM.
    ``keeps_l1``: L1 may serve what its own SM has written (``scheme.coherence`` = argument).
    """

    waits_inside: bool = False
    fused: bool = False
    host_launches: bool = True
    placement_known: bool = False
    keeps_l1: bool = False


def scheme_traits(choice: Choice, values: Mapping[str, int]) -> SchemeTraits:
    """Return the traits of a scheme; ``values``: encoded parameters."""
    scheme = choice.scheme
    launches = scheme.host_launches and not values["scheme.build"]
    # all SMs are equally free, so the first one is chosen, unless affinity sends the TB to its producer's SM
    placed = bool(values["gpu.cp.place"]) and values["scheme.placement"] != AFFINITY
    keeps = coherence_of(scheme, values) == "argument"
    return SchemeTraits(scheme.waits_inside, scheme.fuses, launches, placed, keeps)


class _Job:
    """A job for bounds and estimates: the floors, variants and copies of its kernels."""

    def __init__(
        self,
        job: Job,
        deps: Dependences,
        programs: LoweredPrograms,
        costs: list[ProgramCost],
        values: Mapping[str, int],
    ) -> None:
        self.job, self.deps, self.values = job, deps, values
        self.often, self.left_out, self.lengthens = [1] * len(job.kernels), 0, False
        self.costs = [costs[programs.index[k]] for k in range(len(job.kernels))]
        self.kinds = shared_variants(job)
        self.period = values["gpu.clock"]
        copies = {index: k.copy for index, k in enumerate(job.kernels) if k.copy is not None}
        self.link = {index: sum(copy.link_ticks(values)) / self.period for index, copy in copies.items()}
        self.floors = self._by_tb([cost.floor for cost in self.costs])
        for index, cycles in self.link.items():
            self.floors[index] = np.array([cycles])

    def lengthened(self, short: Shortened) -> _Job:
        """Return this job with what surely adds up over the periods that it leaves out.

        They run the programs of the period before the cut, so each pipe, port and L2 slice has that work once
        more a period, and the host launches as many kernels; launches over lists of tensors, which have only
        grids in common, add nothing. What is read there first and never written has memory of its own in each
        period: an operand that was read before would have its last use at some distance. What is written back
        is that of the periods that are held, which the whole job writes, too.
        """
        made = copy(self)
        made.often, made.lengthens = list(self.often), True
        for run in short.runs:
            if not run.same_code:
                continue
            for kernel in range(run.cut - run.period, run.cut):
                made.often[kernel] += run.skipped
            alone = [compulsory_bytes(self.job, range(end - run.period, end)) for end in (run.cut, run.end)]
            made.left_out += run.skipped * (self.held - max(alone))
        return made

    @cached_property
    def held(self) -> int:
        """The bytes that every schedule of the kernels that are held loads from DRAM."""
        return compulsory_bytes(self.job)

    @property
    def compulsory(self) -> int:
        """The bytes that every schedule loads from DRAM."""
        return self.held + self.left_out

    def _by_tb(self, by_variant: Sequence[Floats]) -> list[Floats]:
        """Return for each kernel the values of its TBs, from those of its variants; shared where equal."""
        known: dict[tuple[int, int], Floats] = {}
        made: list[Floats] = []
        for values, kind in zip(by_variant, self.kinds, strict=True):
            key = (id(values), id(kind))
            if key not in known:
                known[key] = values[kind]
            made.append(known[key])
        return made

    def before(self) -> float:
        """Return the ticks before the first TB's first issue."""
        # the longest path may be copies alone, which start no TB
        start = 0 if any(self.link.values()) else self.values["gpu.cp.tb_start_latency"]
        return float(self.values["gpu.cp.launch"] + start)

    def gaps(self, waiting: bool) -> list[Floats]:
        """Return, for each TB, the least cycles from its end to the start of a TB that waits for it.

        The waiting TB is dispatched by the scheduler after the release. With ``waiting``, TBs may instead
        wait on their SM: for the scheduler's signal, or for a semaphore (fence, post and a successful poll).
        The floor of a TB ends when all of the GPU sees its stores.
        """
        v, period = self.values, self.period
        least = (v["gpu.cp.tb_done_latency"] + v["gpu.cp.tb_start_latency"]) / period
        if waiting:
            seen = max(0, v["gpu.sync.fence"] - v["gpu.cp.tb_flush"])
            post = seen + v["gpu.sync.latency"] + v["gpu.sync.acquire"]
            least = min(least, (v["gpu.cp.tb_done_latency"] + v["gpu.cp.depend"]) / period, post)
        known: dict[tuple[bool, int], Floats] = {}
        made: list[Floats] = []
        for kernel in self.job.kernels:
            key = (kernel.copy is not None, kernel.tbs)
            if key not in known:
                known[key] = np.full(kernel.tbs, 0.0 if kernel.copy is not None else least)
            made.append(known[key])
        return made

    def work(self) -> float:
        """Return the cycles for which the busiest pipe, issue slot, shared memory or store port is needed.

        Some SM runs at least an even share of the TBs, rounded up, and at least the TBs with the least work.
        An EXIT takes no issue slot. A TB may end while a pipe still executes its last instruction, and while
        its shared-memory accesses are queued; that time is subtracted.
        """
        v = self.values
        sms, words = v["gpu.sms"], 32 * 64 // v["gpu.noc.write_bytes"]
        joined = 2 if v["gpu.l1.join_stores"] else 1  # two stores to the same sectors may leave as one
        # its counter, the units of it a cycle, and the cycles that may remain when the last TB has ended
        each: dict[str, tuple[str, float, float]] = {}
        for name in PIPES:
            each[name] = (name, 64 * 4, max(0, v[f"gpu.sm.{name}_interval"] - 64) / 64)
        each |= {"issue": ("warp_instructions", 4, 0), "smem": ("smem", 64, v["gpu.sm.smem_queue"])}
        each |= {"ports": ("store_sectors", 64 * joined / words, 0)}
        on_sms = [k for k, kernel in enumerate(self.job.kernels) if kernel.copy is None]
        if not on_sms:
            return 0.0
        # kernels with the same costs, variants and warps count together
        alike: dict[tuple[int, int, int], list[int]] = {}
        for k in on_sms:
            key = (id(self.costs[k]), id(self.kinds[k]), self.job.kernels[k].program.warps)
            alike.setdefault(key, []).append(k)
        kinds = [same[0] for same in alike.values()]
        often = [sum(self.often[k] for k in same) for same in alike.values()]
        fullest = -(-sum(self.job.kernels[k].tbs * self.often[k] for k in on_sms) // sms)
        most = 0.0
        for column, unit, left in each.values():
            amounts = [self.costs[k].work[column].astype(np.int64) for k in kinds]
            if column == "warp_instructions":
                warps = [self.job.kernels[k].program.warps for k in kinds]
                amounts = [np.maximum(a - w, 0) for a, w in zip(amounts, warps, strict=True)]
            many = [
                np.bincount(self.kinds[k], minlength=len(a)) * times
                for k, a, times in zip(kinds, amounts, often, strict=True)
            ]
            amount, count = np.concatenate(amounts), np.concatenate(many)
            order = np.argsort(amount, kind="stable")
            taken = np.clip(fullest - (np.cumsum(count[order]) - count[order]), 0, count[order])
            least = max(float((amount * count).sum()) / sms, float((amount[order] * taken).sum()))
            most = max(most, least / unit - left)
        return most

    def dram(self, merged: bool) -> float:
        """Return the ticks for which the busiest DRAM channel works before the job can end."""
        v = self.values
        slices = v["gpu.l2.slices"]
        slot = max(1, round(32 * TICKS_US * slices / v["gpu.dram.bandwidth"]))
        reads = self.compulsory / SECTOR
        least = self._bus(reads / slices, slot)
        moved = None if self.lengthens else written_back_before_reads(self.job, self.costs, v)
        if moved is not None and not merged:
            read, back = moved
            turned = back + back / (v["gpu.dram.write_batch"] + 3) * (v["gpu.dram.turnaround"] // slot)
            least = max(least, *(self._bus(slots, slot) for slots in (read + turned).tolist()))
        if not v["gpu.dram.write_queue"] or any(copy == 0 for copy in self.link.values()):
            return least
        # written sectors that L2 does not hold at the end are written back, or are in the channels' queues
        written = written_bytes(self.job) / SECTOR - v["gpu.l2.size"] / SECTOR
        batch = v["gpu.dram.write_batch"]
        held_up = max(0.0, written - slices * batch)
        turns = held_up / (batch + 3) * (v["gpu.dram.turnaround"] // slot)
        whole = self._bus((reads + held_up + turns) / slices, slot)
        return max(least, whole - (v["gpu.dram.write_queue"] + batch + 3) * slot)

    def _bus(self, slots: float, slot: int) -> float:
        """Return the ticks that a DRAM bus needs for that many slots, with its refreshes."""
        v = self.values
        period, busy = v["gpu.dram.refresh_period"], v["gpu.dram.refresh_time"]
        least = max(0.0, slots - 1) * slot
        if not 0 < busy < period:
            return least
        if v["gpu.dram.bank_refresh_time"]:  # whole slots, as the core takes them
            each, asked = period // v["gpu.dram.banks"], busy
            busy = max((asked + slot // 2) // slot, 1) * slot
            period = busy * each // asked
        done = -1
        ticks = least
        while (whole := max(0, int((ticks - busy - slot) // period))) > done:
            done = whole
            ticks = least + whole * -(-busy // slot) * slot
        return ticks

    def slices(self) -> float:
        """Return the ticks that the busiest L2 slice needs for stores and for sectors that come from DRAM."""
        v = self.values
        sector = 32 * self.period // v["gpu.l2.slice_bytes"]
        stored = 0.0
        known: dict[tuple[int, int], float] = {}
        for k, kernel in enumerate(self.job.kernels):
            if kernel.copy is None:
                key = (id(self.costs[k]), id(self.kinds[k]))
                if key not in known:
                    amount = self.costs[k].work["store_sectors"].astype(np.int64)
                    known[key] = float((amount * np.bincount(self.kinds[k], minlength=len(amount))).sum())
                stored += known[key] * self.often[k]
        stored /= 2 if v["gpu.l1.join_stores"] else 1
        if v["gpu.noc.join_loads"] > 1:
            return stored * sector / v["gpu.l2.slices"]
        return (stored + self.compulsory / SECTOR) * sector / v["gpu.l2.slices"]

    def paths(
        self, family: SchemeTraits, loads: Sequence[LoadFacts], behind: list[Floats] | None
    ) -> tuple[float, float]:
        """Return the cycles of the longest path, and of that of all periods of a shortened job.

        ``loads`` and ``behind``: see :func:`bounds`.
        """
        floors, tails, late = self.floors, None, None
        if family.fused and any(k.as_stage is not None for k in self.job.kernels):
            floors = [np.zeros(len(f)) for f in floors]
        if family.waits_inside or family.fused:
            tails = [np.ones(len(f)) for f in floors]
        elif behind is not None:
            tails = self._by_tb(behind)
        else:
            each = zip(self.costs, loads, strict=True)
            late = self._by_tb([cost.floor_by_facts[known] for cost, known in each])
            lone = lone_kernels(self.deps) if family.placement_known else set()
            for cost in {id(cost): cost for cost in self.costs}.values():  # one may be of many kernels
                for index, (anywhere, first) in cost.lone_tb_floor.items():
                    late[index] = np.maximum(late[index], first if index in lone else anywhere)
            for index, kernel in enumerate(self.job.kernels):
                # the first TB on an SM waits for them, and no TB of the kernel begins before
                if kernel.parameter_lines:
                    late[index] = late[index] + kernel.parameter_lines * self.values["gpu.sm.parameters"]
        for index in self.link:
            for made in (tails, late):
                if made is not None:
                    made[index] = floors[index]
        lengths = Lengths(self.deps, floors, tails, late, self.gaps(tails is not None))
        held = longest(lengths)
        short = self.job.shortened
        return held, longest(replace(lengths, raw=True), short) if short else held

    def bound_us(self, family: SchemeTraits, path: float) -> float:
        """Return the bound, which no scheme of the family can beat; ``path``: of :meth:`paths`."""
        v, period = self.values, self.period
        same = not (family.fused and any(k.as_stage is not None for k in self.job.kernels))
        cycles = [path, sum(self.link.values())]  # copies take the link one by one
        ticks = [self.dram(family.fused)]
        if same:
            cycles.append(self.work())
            ticks.append(self.slices())
        # the scheduler must learn that the last TB has ended
        after = 0 if self.link else v["gpu.cp.tb_done_latency"]
        bound = (self.before() + max(*(c * period for c in cycles), *ticks) + after) / TICKS_US
        if v["host.submit"] == 1 and family.host_launches:
            each = zip(self.job.kernels, self.often, strict=True)
            launched = sum(often for k, often in each if k.copy is None or k.copy.timed)
            bound = max(bound, (launched - 1) * v["host.launch"] / TICKS_US)
        return bound


def bounds(
    job: Job,
    deps: Dependences,
    programs: LoweredPrograms,
    costs: list[ProgramCost],
    values: Mapping[str, int],
    family: SchemeTraits,
    loads: Sequence[LoadFacts],
    behind: list[Floats] | None,
    guess: Guess,
) -> Bounds:
    """Return the bound, which no scheme of the family can beat, and the estimate.

    ``costs``: one a program. ``loads``: what is known of each kernel's loads (:func:`load_facts`).
    ``behind``: for each kernel, the least cycles of a TB of each variant after its prologue, where the
    prologue may run before the producers end. ``guess``: :func:`raw_estimate`.
    """
    if job.shortened is not None:
        check_alike(job, job.shortened)
    held = _Job(job, deps, programs, costs, values)
    path, longer = held.paths(family, loads, behind)
    bound, whole = held.bound_us(family, path), None
    if job.shortened is not None:
        all_ = held.lengthened(job.shortened).bound_us(family, longer)
        whole = all_, max(all_, guess.whole_us)
    return Bounds(bound, max(bound, guess.estimate_us), guess.kernel_cycles, whole)


def raw_estimate(
    job: Job,
    deps: Dependences,
    programs: LoweredPrograms,
    costs: list[ProgramCost],
    values: Mapping[str, int],
    traffic: DramTraffic,
) -> Guess:
    """Return the time of a job in us, whatever the bound is, and the cycles of each kernel."""
    made = estimator(job, deps, programs, costs, values, traffic)
    ends = [0.0] * len(job.kernels)
    held = made.estimate_us(ends=ends)
    return Guess(held, made.kernel_cycles, held + made.left_out_us(ends))


def estimator(
    job: Job,
    deps: Dependences,
    programs: LoweredPrograms,
    costs: list[ProgramCost],
    values: Mapping[str, int],
    traffic: DramTraffic,
) -> Estimator:
    """Return what estimates the time of a job; ``traffic``: between its L2 and DRAM."""
    made = _Job(job, deps, programs, costs, values)
    work = [cost.work for cost in made.costs]
    slow = [cost.lone_cycles.get(k, (cost.floor, cost.floor, 0.0)) for k, cost in enumerate(made.costs)]
    return Estimator(job, deps, slow, work, made.kinds, made.link, made.before(), traffic, values)
