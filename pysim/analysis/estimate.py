"""Estimates of what a good schedule of a job reaches: list scheduling of the TB graph. They are no bounds.

The GPU is one pool of SMs, and ready TBs of the oldest kernel are dispatched first. A running TB progresses
at the rate that it has alone, or at the rate that its most contended resource allows. Pipes, issue slots,
shared memory and ports of the SMs, the L2 and the DRAM are shared evenly among the TBs that use them
(processor sharing). Where TBs do not spread evenly over SMs, the fullest SM sets the rate.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.kernel_order import reduce_preds
from pysim.machine.config import bus_refresh
from pysim.program.occupancy import occupancy, tb_resources
from pysim.program.regions import SECTOR, csr_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job, Kernel

    from .traffic import DramTraffic

    Floats = NDArray[np.float64]

PIPES = ("fp32", "int", "fp16", "fp64", "sfu", "tensor", "control")
_OF_SMS = len(PIPES) + 2  # first pipes, issue slots and shared memory; then load and store ports, L2, DRAM
_RESOURCES = _OF_SMS + 4
_NEAR = 1e-6  # cycles: events as close as this are one
COARSE = 50_000  # TBs above which whole kernels are scheduled, as list scheduling takes too long
_MANY = 1000  # launches above which those that take the same are of one kind
_ROWS = 64  # variants of a kernel above which those that take the same are of one kind
TICKS_US = 1024 * 1000


@dataclass(frozen=True, slots=True)
class Demand:
    """What a TB of a kernel takes of the machine, one row a variant.

    ``lone_cycles``: (variants,), cycles of a TB that has the machine to itself. ``resource_cycles``:
    (variants, resources), cycles for which it occupies all units of a kind: the pipes, issue slots, shared
    memory, load ports, store ports, L2 and DRAM. ``sm_share``: the part of an SM that a TB occupies (1 /
    occupancy).
    """

    lone_cycles: Floats
    resource_cycles: Floats
    sm_share: float


def dram_rate(values: Mapping[str, int]) -> float:
    """Return the bytes per SM cycle that DRAM delivers, without the time of refreshes."""
    refresh = values["gpu.dram.refresh_time"] / bus_refresh(values.__getitem__)
    return values["gpu.dram.bandwidth"] * values["gpu.clock"] / 1024e3 * max(0.0, 1 - refresh)


def demand_of(
    kernel: Kernel, floor: Floats, work: NDArray[np.void], dram: int, values: Mapping[str, int]
) -> Demand:
    """Return the demand of a kernel's TBs.

    ``floor``: cycles that a TB of each variant takes alone; ``work``: its counters (``gs_work``); ``dram``:
    bytes that all TBs together move from and to DRAM; ``values``: encoded parameters.
    """
    sms = values["gpu.sms"]
    loads, stores = (work[name].astype(float) * SECTOR for name in ("load_sectors", "store_sectors"))
    uses = np.zeros((len(floor), _RESOURCES))
    for at, name in enumerate(PIPES):
        uses[:, at] = work[name] / 64 / 4
    uses[:, len(PIPES)] = work["warp_instructions"] / 4
    uses[:, len(PIPES) + 1] = work["smem"] / 64
    uses[:, _OF_SMS] = loads / values["gpu.noc.reply_bytes"]
    uses[:, _OF_SMS + 1] = stores / values["gpu.noc.write_bytes"]
    alone = np.maximum(floor, uses.max(axis=1))
    uses[:, : _OF_SMS + 2] /= sms
    uses[:, _OF_SMS + 2] = (loads + stores) / (values["gpu.l2.slices"] * values["gpu.l2.slice_bytes"])
    uses[:, _OF_SMS + 3] = dram / kernel.tbs / dram_rate(values)
    return Demand(alone, uses, 1 / occupancy(kernel, values))


class _Running:
    """The running TBs, by kind: TBs of one kind (kernel and variant) progress at one rate.

    ``done``: progress of a kind since it last had no TB, in TBs. A TB ends when ``done`` has grown by 1.
    """

    def __init__(self, alone: Floats, uses: Floats, sms: int, bandwidth: bool) -> None:
        kinds = len(alone)
        self.sms, self.alone = sms, alone.tolist()
        last = _RESOURCES if bandwidth else _OF_SMS
        self.uses = [[(r, float(row[r])) for r in range(last) if row[r] > 0] for row in uses]
        self.rate, self.done = [0.0] * kinds, [0.0] * kinds
        self.queue: list[deque[tuple[float, int]]] = [deque() for _ in range(kinds)]
        self.active: set[int] = set()
        self.count, self.stale = 0, False

    def start(self, kind: int, tb: int) -> None:
        self.queue[kind].append((self.done[kind] + 1.0, tb))
        self.active.add(kind)
        self.count += 1
        self.stale = True

    def _share_out(self) -> None:
        self.stale = False
        uneven = -(-self.count // self.sms) * self.sms / self.count if self.count else 1.0
        wanted = [0.0] * _RESOURCES
        for kind in self.active:
            many = len(self.queue[kind]) / max(self.alone[kind], 1e-9)
            for resource, amount in self.uses[kind]:
                wanted[resource] += many * amount * (uneven if resource < _OF_SMS + 2 else 1.0)
        for kind in self.active:
            most = max((wanted[resource] for resource, _ in self.uses[kind]), default=1.0)
            self.rate[kind] = 1.0 / max(self.alone[kind], 1e-9) / max(1.0, most)

    def next(self) -> float:
        """Return the cycles until the next TB ends, if no TB starts before."""
        if self.stale:
            self._share_out()
        return min(
            ((self.queue[kind][0][0] - self.done[kind]) / self.rate[kind] for kind in self.active),
            default=float("inf"),
        )

    def advance(self, cycles: float) -> list[int]:
        """Advance by ``cycles`` and return the TBs that have ended."""
        ended = []
        for kind in sorted(self.active):
            self.done[kind] += self.rate[kind] * max(0.0, cycles)
            queue, near = self.queue[kind], self.done[kind] + _NEAR * self.rate[kind]
            while queue and queue[0][0] <= near:
                ended.append(queue.popleft()[1])
            if not queue:
                self.active.discard(kind)
                self.done[kind] = 0.0
        self.count -= len(ended)
        self.stale |= bool(ended)
        return ended


def _distinct(demand: Demand, kinds: NDArray[np.int64]) -> tuple[Demand, NDArray[np.int64]]:
    """Return a demand with each of its variants once, and the kinds of TBs in terms of it."""
    if len(demand.lone_cycles) <= _ROWS:
        return demand, kinds
    rows = np.column_stack([demand.lone_cycles, demand.resource_cycles])
    once, place = np.unique(rows, axis=0, return_inverse=True)
    return Demand(once[:, 0], once[:, 1:], demand.sm_share), place.reshape(-1)[kinds]


def _kinds_of(
    demands: Sequence[Demand], kinds: Sequence[NDArray[np.int64]], sms: int, bandwidth: bool
) -> tuple[list[int], _Running]:
    """Return the kind of each TB of the job, and the running TBs, of which there are none yet.

    Launches that take the same of the machine run at the same rate. Where launches are many, TBs of such are
    of one kind, as each step looks at all kinds that run; rounding apart, the schedule is the same.
    """
    merged = [_distinct(demand, of_tbs) for demand, of_tbs in zip(demands, kinds, strict=True)]
    if len(demands) <= _MANY:
        demands, kinds = [demand for demand, _ in merged], [of_tbs for _, of_tbs in merged]
    keys = [id(demand) if len(demands) > _MANY else index for index, demand in enumerate(demands)]
    alike = dict(zip(keys, demands, strict=True))
    sizes = np.array([len(demand.lone_cycles) for demand in alike.values()], np.int64)
    first = dict(zip(alike, csr_offsets(sizes)[:-1].tolist(), strict=True))
    running = _Running(
        np.concatenate([demand.lone_cycles for demand in alike.values()]),
        np.concatenate([demand.resource_cycles for demand in alike.values()]),
        sms,
        bandwidth,
    )
    kind = np.concatenate([k + first[key] for k, key in zip(kinds, keys, strict=True)])
    return kind.tolist(), running


def list_schedule(
    deps: Dependences,
    demands: Sequence[Demand],
    kinds: Sequence[NDArray[np.int64]],
    sms: int,
    hand_over: tuple[float, float],
    arrivals: Sequence[float] | None = None,
    *,
    servers: tuple[float, float] = (0.0, 0.0),
    bandwidth: bool = True,
    ends: list[float] | None = None,
) -> float:
    """Return the cycles that the TB graph takes, oldest kernel first.

    ``demands``: one a kernel. ``kinds``: the variant of each TB of each kernel. ``hand_over``: cycles from
    dispatch to the first issue, and from a TB's end to its release. ``servers``: cycles that the dispatcher
    spends on each start and on each release; it does one after another. ``arrivals``: the cycle in which each
    kernel is admitted (None: all at 0). ``bandwidth``: False lifts the limits of ports, L2 and DRAM.
    ``ends``: gets the cycle in which each kernel's last TB ends.
    """
    offsets, groups = deps.offsets, deps.groups
    total = int(offsets[-1])
    node = np.repeat(np.arange(len(groups)), np.diff(groups.producer_ptr))
    into = node[np.argsort(groups.producers, kind="stable")].tolist()
    into_ptr = csr_offsets(np.bincount(groups.producers, minlength=total)).tolist()
    left = np.diff(groups.producer_ptr).tolist()
    waiters = groups.consumers + np.repeat(offsets[groups.kernel], np.diff(groups.consumer_ptr))
    waits = np.bincount(waiters, minlength=total)
    waiting, waiting_ptr = waiters.tolist(), groups.consumer_ptr.tolist()
    owner = np.repeat(np.arange(len(demands)), np.diff(offsets)).tolist()
    kind, running = _kinds_of(demands, kinds, sms, bandwidth)
    shares = [d.sm_share for d in demands]
    count = waits.tolist()
    timed: list[tuple[float, int, int]] = []  # (cycle, 0 kernel admitted 1 TB begins 2 released, number)
    if arrivals is not None:
        for index, time in enumerate(arrivals):
            lo, hi = int(offsets[index]), int(offsets[index + 1])
            for tb in range(lo, hi):
                count[tb] += 1
            timed.append((time, 0, index))
        heapq.heapify(timed)
    ready = [tb for tb in range(total) if count[tb] == 0]
    free, now, started, released = float(sms), 0.0, 0.0, 0.0  # the last two: when the servers are free

    def less(tbs: Sequence[int]) -> None:
        for tb in tbs:
            count[tb] -= 1
            if count[tb] == 0:
                heapq.heappush(ready, tb)

    while ready or timed or running.active:
        # a small slack: shares are fractions that do not add up exactly
        while ready and shares[owner[ready[0]]] <= free + 1e-6:
            tb = heapq.heappop(ready)
            free -= shares[owner[tb]]
            at = max(now, started)
            started = at + servers[0]
            heapq.heappush(timed, (at + hand_over[0], 1, tb))
        step = min(running.next(), timed[0][0] - now if timed else float("inf"))
        now += max(0.0, step)
        for tb in running.advance(step):
            if ends is not None:
                ends[owner[tb]] = now
            released = max(now + hand_over[1], released) + servers[1]
            heapq.heappush(timed, (released, 2, tb))
        while timed and timed[0][0] <= now + _NEAR:
            _, what, tb = heapq.heappop(timed)
            if what == 0:
                less(range(int(offsets[tb]), int(offsets[tb + 1])))
            elif what == 1:
                running.start(kind[tb], tb)
            else:
                free += shares[owner[tb]]
                for number in into[into_ptr[tb] : into_ptr[tb + 1]]:
                    left[number] -= 1
                    if left[number] == 0:
                        less(waiting[waiting_ptr[number] : waiting_ptr[number + 1]])
    return now


@dataclass(frozen=True)
class Estimator:
    """Estimates the time of a job, whose demands are computed once.

    ``lone_cycles``: for each kernel, the cycles that a TB of each variant takes alone with all loads from L2,
    the same with loads from DRAM, and the share of the latter (``ProgramCost.lone_cycles``). ``work``: the
    work counters of each kernel's variants. ``tb_variants``: the variant of each TB. ``copy_cycles``: cycles
    of copies, which take no SM, by kernel number. ``start_ticks``: ticks before the first issue. ``traffic``:
    what each kernel moves between L2 and DRAM.
    """

    job: Job
    deps: Dependences
    lone_cycles: Sequence[tuple[Floats, Floats, float | None]]
    work: Sequence[NDArray[np.void]]
    tb_variants: Sequence[NDArray[np.int64]]
    copy_cycles: Mapping[int, float]
    start_ticks: float
    traffic: DramTraffic
    values: Mapping[str, int]

    @cached_property
    def demands(self) -> list[Demand]:
        """The demand of each kernel's TBs."""
        reads, writes = self.traffic.reads, self.traffic.writes
        made = []
        known: dict[tuple[object, ...], Demand] = {}
        for index, kernel in enumerate(self.job.kernels):
            if index in self.copy_cycles:
                variants = int(self.tb_variants[index].max(initial=0)) + 1
                alone = np.full(variants, self.copy_cycles[index])
                made.append(Demand(alone, np.zeros((variants, _RESOURCES)), 0.0))
                continue
            moved, work, (near, distant, missed) = (
                reads[index] + writes[index],
                self.work[index],
                self.lone_cycles[index],
            )
            if missed is None:
                count = np.bincount(self.tb_variants[index], minlength=len(work))
                missed = min(
                    1.0, reads[index] / max(1.0, count @ work["load_sectors"].astype(float) * SECTOR)
                )
            # launches of one program that move as much take the same
            key = (id(near), id(distant), id(work), missed, moved, kernel.tbs, tb_resources(kernel))
            if key not in known:
                alone = near + missed * (distant - near)
                known[key] = demand_of(kernel, alone, work, moved, self.values)
            made.append(known[key])
        return made

    @cached_property
    def kernel_cycles(self) -> tuple[float, ...]:
        """The cycles that each kernel takes when it has the machine to itself, one a kernel."""
        sms, made = self.values["gpu.sms"], []
        known: dict[tuple[int, int], float] = {}
        hand_over = self.values["gpu.cp.tb_start_latency"] + self.values["gpu.cp.tb_done_latency"]
        for demand, kernel in zip(self.demands, self.job.kernels, strict=True):
            key = (id(demand), kernel.tbs)
            if key in known:
                made.append(known[key])
                continue
            held = max(1, round(1 / demand.sm_share)) if demand.sm_share else 1
            running = min(kernel.tbs, held * sms)
            level = -(-running // sms) * sms  # the fullest SM sets the pace
            uses = demand.resource_cycles * running
            uses[:, : _OF_SMS + 2] *= level / running
            each = (
                float(np.maximum(demand.lone_cycles, uses.max(axis=1)).max())
                if demand.sm_share
                else demand.lone_cycles[0]
            )
            waves = -(-kernel.tbs // (held * sms))
            known[key] = (each + hand_over / self.values["gpu.clock"]) * waves
            made.append(known[key])
        return tuple(made)

    def estimate_us(
        self, *, launch: bool = False, bandwidth: bool = True, ends: list[float] | None = None
    ) -> float:
        """Return the estimate in microseconds.

        ``launch``: the command processor admits kernels one after another, ``gpu.cp.admit`` each; otherwise
        all are admitted at the start. ``bandwidth``: False lifts the limits of ports, L2 and DRAM. ``ends``:
        gets the cycle in which each kernel ends.
        """
        v, period = self.values, self.values["gpu.clock"]
        demands = self.demands
        hand_over = (v["gpu.cp.tb_start_latency"] / period, v["gpu.cp.tb_done_latency"] / period)
        admit = v["gpu.cp.admit"] / period if launch else 0.0
        if int(self.deps.offsets[-1]) > COARSE:
            cycles = self._coarse(admit, bandwidth, ends)
        else:
            arrivals = [k * admit for k in range(len(demands))] if launch else None
            servers = (v["gpu.cp.tb_start"] / period, v["gpu.cp.tb_release"] / period)
            cycles = list_schedule(
                self.deps, demands, self.tb_variants, v["gpu.sms"], hand_over, arrivals,
                servers=servers, bandwidth=bandwidth, ends=ends,
            )  # fmt: skip
        # start_ticks counts the first start already
        return (self.start_ticks + cycles * period - v["gpu.cp.tb_start_latency"]) / TICKS_US

    def left_out_us(self, ends: Sequence[float]) -> float:
        """Return what periods that a shortened job leaves out add to its estimate, as they add to its time.

        Each takes as long as lies between the ends of the last two that are held (the median of their
        kernels), and as long as it needs the busiest resource. ``ends``: of :meth:`estimate_us`.
        """
        cycles = 0.0
        for run in self.job.shortened.runs if self.job.shortened else ():
            held = range(run.cut - run.period, run.cut)
            apart = float(np.median([ends[kernel + run.period] - ends[kernel] for kernel in held]))
            cycles += run.skipped * max(apart, float(self._used(held).max()))
        return cycles * self.values["gpu.clock"] / TICKS_US

    def _used(self, kernels: Iterable[int]) -> Floats:
        """Return the cycles for which kernels use each resource."""
        used = np.zeros(_RESOURCES)
        known: dict[tuple[int, int], Floats] = {}
        for index in kernels:
            demand, kind = self.demands[index], self.tb_variants[index]
            key = (id(demand), id(kind))
            if key not in known:
                uses = demand.resource_cycles
                known[key] = np.bincount(kind, minlength=len(uses)) @ uses
            used += known[key]
        return used

    def _coarse(self, admit: float, bandwidth: bool, ends: list[float] | None) -> float:
        """Return the cycles of a schedule of whole kernels: the longest path, or the busiest resource."""
        alone = self.kernel_cycles
        ends = [0.0] * len(alone) if ends is None else ends
        for index, preds in enumerate(reduce_preds(self.deps.preds)):
            begin = max([ends[p] for p in preds]) if preds else 0.0
            ends[index] = max(begin, index * admit) + alone[index]
        last = _RESOURCES if bandwidth else _OF_SMS
        return max(max(ends), float(self._used(range(len(alone)))[:last].max()))
