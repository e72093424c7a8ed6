"""What a good schedule of a job may reach: list schedules of the TB graph. Estimates, not limits.

Ready TBs of the oldest kernel go first to a machine that is one pool of SMs. A running TB makes progress as
fast as it could alone, or as slow as the most wanted thing that it uses lets it: pipes, issue slots, shared
memory and ports of SMs, the L2 and the DRAM are shared out evenly among those that want them (processor
sharing). Where TBs do not spread evenly over SMs, the fullest SM sets the pace.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.dependences import reduced
from pysim.machine.config import bus_refresh
from pysim.program.occupancy import occupancy
from pysim.program.regions import SECTOR, csr_offsets

from .traffic import dram_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.dependence.dependences import Dependences
    from pysim.program.job import Job, Kernel

    Floats = NDArray[np.float64]

PIPES = ("fp32", "int", "fp16", "fp64", "sfu", "tensor", "control")
_OF_SMS = len(PIPES) + 2  # pipes, issue slots and shared memory come first, then ports, L2 and DRAM
_RESOURCES = _OF_SMS + 4
_NEAR = 1e-6  # cycles: events as close as this are one
COARSE = 50_000  # TBs above which an estimate goes by kernel
TICKS_US = 1024 * 1000


@dataclass(frozen=True, slots=True)
class Demand:
    """What a TB of each variant of a kernel takes: a row a variant.

    ``alone``: cycles on a machine of its own; ``uses``: cycles of the whole machine's pipes, issue slots,
    shared memory, load ports, store ports, L2 and DRAM; ``share``: of an SM's room.
    """

    lone_cycles: Floats
    resource_cycles: Floats
    sm_share: float


def dram_rate(values: Mapping[str, int]) -> float:
    """Return the bytes a cycle that DRAM delivers between refreshes."""
    refresh = values["gpu.dram.refresh_time"] / bus_refresh(values.__getitem__)
    return values["gpu.dram.bandwidth"] * values["gpu.clock"] / 1024e3 * max(0.0, 1 - refresh)


def demand_of(
    kernel: Kernel, floor: Floats, work: NDArray[np.void], dram: int, values: Mapping[str, int]
) -> Demand:
    """Return what TBs of a kernel take; ``dram``: bytes that all of them move from and to DRAM."""
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
    """TBs at work: kinds of equal ones, each with its progress so far, in shares of a TB."""

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
        """Return the cycles until the next TB ends, if nothing changes before."""
        if self.stale:
            self._share_out()
        return min(
            ((self.queue[kind][0][0] - self.done[kind]) / self.rate[kind] for kind in self.active),
            default=float("inf"),
        )

    def advance(self, cycles: float) -> list[int]:
        """Go on and return the TBs that have ended."""
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
) -> float:
    """Return the cycles that the TB graph takes, oldest kernel first.

    ``kinds``: the variant of each TB of each kernel; ``hand_over``: cycles from dispatch to the first issue
    and from a TB's end to its release; ``servers``: cycles that the start of a TB takes, and its release, one
    TB after another; ``arrivals``: when each kernel is there (None: all from the
    start); ``bandwidth``: ports, L2 and DRAM are shared, or have no limit.
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
    first = csr_offsets(np.array([len(d.lone_cycles) for d in demands], np.int64))
    kind = np.concatenate([k + f for k, f in zip(kinds, first[:-1].tolist(), strict=True)]).tolist()
    running = _Running(
        np.concatenate([d.lone_cycles for d in demands]),
        np.concatenate([d.resource_cycles for d in demands]),
        sms,
        bandwidth,
    )
    shares = [d.sm_share for d in demands]
    count = waits.tolist()
    timed: list[tuple[float, int, int]] = []  # (time, what, TB): kernel there, TB begins, released
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


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates the time of a job.

    ``slow``: for each kernel, the cycles that a TB of each variant takes alone with all loads from L2, the
    same with loads from DRAM, and the share of the latter (``ProgramCost.slow``). ``work``: the work counters
    of each kernel's variants. ``kinds``: the variant of each TB. ``link``: cycles of copies, which take no
    SM, by kernel number. ``before``: ticks before the first issue.
    """

    job: Job
    deps: Dependences
    lone_cycles: Sequence[tuple[Floats, Floats, float | None]]
    work: Sequence[NDArray[np.void]]
    tb_variants: Sequence[NDArray[np.int64]]
    copy_cycles: Mapping[int, float]
    start_ticks: float
    values: Mapping[str, int]

    def demands(self) -> list[Demand]:
        """Return what the TBs of each kernel take."""
        reads, writes = dram_bytes(self.job, self.values["gpu.l2.size"])
        made = []
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
            alone = near + missed * (distant - near)
            made.append(demand_of(kernel, alone, work, moved, self.values))
        return made

    def kernel_cycles(self, demands: Sequence[Demand] | None = None) -> tuple[float, ...]:
        """Return the cycles that each kernel takes at the least when it has the machine."""
        sms, made = self.values["gpu.sms"], []
        hand_over = self.values["gpu.cp.tb_start_latency"] + self.values["gpu.cp.tb_done_latency"]
        for demand, kernel in zip(demands or self.demands(), self.job.kernels, strict=True):
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
            made.append((each + hand_over / self.values["gpu.clock"]) * waves)
        return tuple(made)

    def estimate_us(self, *, launch: bool = False, bandwidth: bool = True) -> float:
        """Return the estimate in microseconds.

        ``launch``: kernels come to the pool one after another, as the command processor admits them;
        ``bandwidth``: ports, L2 and DRAM are shared, or have no limit.
        """
        v, period = self.values, self.values["gpu.clock"]
        demands = self.demands()
        hand_over = (v["gpu.cp.tb_start_latency"] / period, v["gpu.cp.tb_done_latency"] / period)
        admit = v["gpu.cp.admit"] / period if launch else 0.0
        if int(self.deps.offsets[-1]) > COARSE:
            cycles = self._coarse(demands, admit, bandwidth)
        else:
            arrivals = [k * admit for k in range(len(demands))] if launch else None
            servers = (v["gpu.cp.tb_start"] / period, v["gpu.cp.tb_release"] / period)
            cycles = list_schedule(
                self.deps, demands, self.tb_variants, v["gpu.sms"], hand_over, arrivals,
                servers=servers, bandwidth=bandwidth,
            )  # fmt: skip
        # the first start is in `before` already
        return (self.start_ticks + cycles * period - v["gpu.cp.tb_start_latency"]) / TICKS_US

    def _coarse(self, demands: Sequence[Demand], admit: float, bandwidth: bool) -> float:
        """Return the cycles of a schedule of whole kernels: the longest path, and what all of them use."""
        alone = self.kernel_cycles(demands)
        ends = [0.0] * len(alone)
        for index, preds in enumerate(reduced(self.deps.preds)):
            ends[index] = max([ends[p] for p in preds], default=0.0)
            ends[index] = max(ends[index], index * admit) + alone[index]
        last = _RESOURCES if bandwidth else _OF_SMS
        used = np.zeros(_RESOURCES)
        for demand, kind in zip(demands, self.tb_variants, strict=True):
            used += np.bincount(kind, minlength=len(demand.resource_cycles)) @ demand.resource_cycles
        return max(*ends, float(used[:last].max()))
