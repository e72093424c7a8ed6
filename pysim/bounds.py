"""A provable lower bound on the time of a job, and an estimate of what a good schedule reaches."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .dependences import reduced
from .occupancy import occupancy
from .program import Recorded
from .regions import SECTOR, meets, outside, pointers, regions_of, spread, union
from .schemes import written_by_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .dependences import Dependences
    from .job import Job, Kernel
    from .lower import Programs

    Floats = NDArray[np.float64]

PAGE = 1 << 18  # bytes: what recorded memory is told apart by where its reuse is estimated
COARSE = 200_000  # TBs above which the estimate goes by kernel
_PIPES = ("fp32", "int", "fp16", "fp64", "sfu", "tensor", "control")


@dataclass(frozen=True, slots=True)
class Costs:
    """What one TB of each variant of a program costs without contention: cycles, and work counters.

    A recorded program has a variant for each of its rows.
    """

    floor: Floats
    work: NDArray[np.void]


def costs_of(sim: Any, programs: Programs) -> list[Costs]:
    """Ask the core for the floor and the work of every program's variants."""
    from ._ffi import dtype_of, ffi, lib

    made = []
    for number in range(len(programs.programs)):
        work = np.zeros(8, dtype_of("gs_work"))
        view = ffi.cast("gs_work *", work.ctypes.data)
        floor = np.empty(8)
        for variant in range(8):
            floor[variant] = lib.gs_tb_floor(sim, number, variant)
            lib.gs_tb_work(sim, number, variant, view + variant)
        made.append(Costs(floor, work))
    kernel_of = {number: kernel for kernel, number in enumerate(programs.index)}
    for at, (program, tables) in enumerate(programs.recorded):
        rows, kernel = len(tables.entries), kernel_of[len(programs.programs) + at]
        work, floor = np.zeros(rows, dtype_of("gs_work")), np.zeros(rows)
        view = ffi.cast("gs_work *", work.ctypes.data)
        # TBs of a row differ in their addresses alone: one of them stands for all
        used, tbs = ([0], [0]) if program.tb_rows is None else np.unique(program.tb_rows, return_index=True)
        for row, tb in zip(used, tbs, strict=True):
            floor[row] = lib.gs_tb_floor_of(sim, kernel, int(tb))
            lib.gs_tb_work_of(sim, kernel, int(tb), view + int(row))
        made.append(Costs(floor, work))
    return made


def variants(kernel: Kernel) -> NDArray[np.int64]:
    """Return the variant of every TB: the sum of 1 (last x), 2 (last y) and 4 (last z), or its row."""
    if isinstance(kernel.program, Recorded):
        rows = kernel.program.tb_rows
        return np.zeros(kernel.tbs, np.int64) if rows is None else np.asarray(rows, np.int64)
    tb = np.arange(kernel.tbs, dtype=np.int64)
    x, y, z = kernel.grid
    last = [tb % x == x - 1, tb // x % y == y - 1, tb // (x * y) == z - 1]
    return np.asarray(sum(bit.astype(np.int64) << i for i, bit in enumerate(last)))


def critical_path(
    job: Job, deps: Dependences, durations: list[Floats], tails: list[Floats] | None = None
) -> float:
    """Return the longest path through the TB graph, in the unit of ``durations`` (one array a kernel).

    ``tails``: of each TB what comes after the ends that it waits for, if not all of it.
    """
    groups = deps.groups
    end = np.zeros(int(deps.offsets[-1]))
    for index in range(len(job.kernels)):
        lo, hi = int(deps.offsets[index]), int(deps.offsets[index + 1])
        start = np.zeros(hi - lo)
        first = int(deps.node_first[index])
        last = first + int(deps.node_count[index])
        if last > first:
            made, used = groups.producer_ptr[first : last + 1], groups.consumer_ptr[first : last + 1]
            ready = np.maximum.reduceat(end[groups.producers[made[0] : made[-1]]], made[:-1] - made[0])
            waiters = groups.consumers[used[0] : used[-1]]
            np.maximum.at(start, waiters, np.repeat(ready, np.diff(used)))
        rest = durations[index] if tails is None else tails[index]
        end[lo:hi] = np.maximum(start + rest, durations[index])
    return float(end.max()) if len(end) else 0.0


def compulsory_bytes(job: Job) -> int:
    """Return the bytes that must come from DRAM: all that is read of memory that no kernel writes."""
    spans = written_by_job(job)
    done: dict[int, int] = {}
    seen: set[tuple[int, int, tuple[int, int, int]]] = set()
    found: list[NDArray[np.int64]] = []
    for kernel in job.kernels:
        for access in kernel.accesses:
            tensor = access.tensor
            end = tensor.address + tensor.nbytes
            key = (id(tensor), id(access.regions), kernel.grid)
            if access.mode != "read" or key in seen or done.get(id(tensor), 0) * SECTOR >= tensor.nbytes:
                continue
            if meets(spans, tensor.address, end):
                continue
            seen.add(key)
            lo, hi, _ = regions_of(access, kernel.tbs).intervals()
            runs = union(np.stack([lo, hi], axis=1))
            done[id(tensor)] = max(done.get(id(tensor), 0), int((runs[:, 1] - runs[:, 0]).sum()))
            found.append(runs)
    for kernel in job.kernels:
        if kernel.footprint is not None:
            found.append(outside(kernel.footprint.read(kernel.tbs, kernel.name), spans) // SECTOR)
    if not found:
        return 0
    every = union(np.concatenate(found))
    return int((every[:, 1] - every[:, 0]).sum()) * SECTOR


def _pieces(kernel: Kernel) -> list[tuple[int, int, bool]]:
    """Return what a kernel touches as (key, bytes, whether read): tensors, or pages of recorded memory."""
    if kernel.footprint is None:
        return [(id(a.tensor), a.tensor.nbytes, a.mode != "write") for a in kernel.accesses]
    made: list[tuple[int, int, bool]] = []
    for spans, read in (
        (kernel.footprint.read(kernel.tbs, kernel.name), True),
        (kernel.footprint.written(kernel.tbs, kernel.name), False),
    ):
        first = spans[:, 0] // PAGE
        count = (spans[:, 1] - 1) // PAGE - first + 1
        page = spread(first, count)
        lo, hi = (np.repeat(column, count) for column in spans.T)
        part = np.minimum(hi, (page + 1) * PAGE) - np.maximum(lo, page * PAGE)
        pages, inverse = np.unique(page, return_inverse=True)
        sizes = np.bincount(inverse.reshape(-1), weights=part, minlength=len(pages))
        # below zero: no id is there
        made += [(-1 - p, int(size), read) for p, size in zip(pages.tolist(), sizes.tolist(), strict=True)]
    return made


def dram_reads(job: Job, capacity: int) -> list[int]:
    """Estimate what each kernel reads from DRAM, in launch order: L2 keeps the last ``capacity`` bytes.

    A tensor, or a page of recorded memory, is read again from DRAM when more than the L2 holds was touched
    since its last use.
    """
    recent: dict[int, int] = {}  # key -> bytes, least recent first
    out = []
    for kernel in job.kernels:
        missed = 0
        for key, size, read in _pieces(kernel):
            between, found = 0, False
            for other in reversed(recent):
                if other == key or between > capacity:
                    found = other == key
                    break
                between += recent[other]
            if read and not (found and between + size <= capacity):
                missed += size
            recent.pop(key, None)
            recent[key] = size
        out.append(missed)
    return out


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bound and estimate in microseconds; ``alone[k]``: cycles that kernel k takes at the least."""

    bound_us: float
    estimate_us: float
    alone: tuple[float, ...]


def _work_cycles(job: Job, programs: Programs, costs: list[Costs], values: Mapping[str, int]) -> float:
    """Return the cycles that the busiest kind of unit needs for the whole job."""
    total: dict[str, int] = dict.fromkeys((*_PIPES, "smem", "warp_instructions"), 0)
    for index, kernel in enumerate(job.kernels):
        if kernel.copy is not None:
            continue
        cost = costs[programs.index[index]]
        many = np.bincount(variants(kernel), minlength=len(cost.floor))
        for name in total:
            total[name] += int((cost.work[name].astype(np.int64) * many).sum())
    sms = values["gpu.sms"]
    each = [total[name] / 64 / (4 * sms) for name in _PIPES]
    return max(*each, total["smem"] / 64 / sms, total["warp_instructions"] / (4 * sms))


def _duration(kernel: Kernel, cost: Costs, dram: int, values: Mapping[str, int]) -> Floats:
    """Return the cycles of a TB of each variant when the kernel's TBs share the machine."""
    sms = values["gpu.sms"]
    held = min(occupancy(kernel, values), -(-kernel.tbs // sms))
    running = min(kernel.tbs, held * sms)
    pipe = np.max([cost.work[name] / 64 for name in _PIPES], axis=0) / 4
    issue = cost.work["warp_instructions"] / 4
    loads = cost.work["load_sectors"] * SECTOR
    stores = cost.work["store_sectors"] * SECTOR
    chip = values["gpu.l2.slices"] * values["gpu.l2.slice_bytes"]
    shares = (
        cost.floor,
        held * pipe,
        held * issue,
        held * cost.work["smem"] / 64,
        held * loads / values["gpu.noc.reply_bytes"],
        held * stores / values["gpu.noc.write_bytes"],
        running * (loads + stores) / chip,
        # bytes / (MB/s) = us; every running TB has an equal share of the channels
        np.full(
            len(cost.floor),
            running * dram / kernel.tbs / values["gpu.dram.bandwidth"] * 1024e3 / values["gpu.clock"],
        ),
    )
    return np.asarray(np.max(np.array([np.asarray(s, float) for s in shares]), axis=0))


def _list_schedule(
    job: Job, deps: Dependences, durations: list[Floats], shares: list[float], sms: int
) -> float:
    """Run the TB graph, oldest kernel first, on ``sms`` SMs of which a TB of kernel k takes ``shares[k]``."""
    offsets = deps.offsets
    total = int(offsets[-1])
    groups = deps.groups
    node = np.repeat(np.arange(len(groups)), np.diff(groups.producer_ptr))
    into = node[np.argsort(groups.producers, kind="stable")].tolist()
    into_ptr = pointers(np.bincount(groups.producers, minlength=total)).tolist()
    left = np.diff(groups.producer_ptr).tolist()
    waiters = groups.consumers + np.repeat(offsets[groups.kernel], np.diff(groups.consumer_ptr))
    waits = np.bincount(waiters, minlength=total)
    waiting, waiting_ptr = waiters.tolist(), groups.consumer_ptr.tolist()
    owner = np.repeat(np.arange(len(job.kernels)), np.diff(offsets)).tolist()
    length = np.concatenate(durations).tolist()
    count = waits.tolist()
    ready = np.flatnonzero(waits == 0).tolist()
    running: list[tuple[float, int]] = []
    free, now = float(sms), 0.0
    while ready or running:
        # a small slack: shares are fractions that do not add up exactly
        while ready and shares[owner[ready[0]]] <= free + 1e-6:
            tb = heapq.heappop(ready)
            free -= shares[owner[tb]]
            heapq.heappush(running, (now + length[tb], tb))
        now, tb = heapq.heappop(running)
        free += shares[owner[tb]]
        for number in into[into_ptr[tb] : into_ptr[tb + 1]]:
            left[number] -= 1
            if left[number] == 0:
                for waiter in waiting[waiting_ptr[number] : waiting_ptr[number + 1]]:
                    count[waiter] -= 1
                    if count[waiter] == 0:
                        heapq.heappush(ready, waiter)
    return now


def bounds(
    job: Job,
    deps: Dependences,
    programs: Programs,
    costs: list[Costs],
    values: Mapping[str, int],
    behind: list[Floats] | None = None,
) -> Bounds:
    """Return the bound, which no scheme can beat, and the estimate.

    ``behind``: for each kernel what a TB of each variant takes at least behind its prologue, where it may run
    that before others have ended.
    """
    period = values["gpu.clock"]
    ticks_us = 1024 * 1000
    mine = [costs[programs.index[k]] for k in range(len(job.kernels))]
    kinds = [variants(kernel) for kernel in job.kernels]
    floors = [cost.floor[kind] for cost, kind in zip(mine, kinds, strict=True)]
    tails = None
    if behind is not None:
        tails = [floor[kind] for floor, kind in zip(behind, kinds, strict=True)]
    copies = {index: k.copy for index, k in enumerate(job.kernels) if k.copy is not None}
    link = {index: sum(copy.ticks(values)) / period for index, copy in copies.items()}
    for index, cycles in link.items():
        floors[index] = np.array([cycles])
        if tails is not None:
            tails[index] = floors[index]
    # GB/s are given in MB/s: bytes / (MB/s) = us
    memory_us = compulsory_bytes(job) / values["gpu.dram.bandwidth"]
    work = _work_cycles(job, programs, costs, values)
    # copies take the link one after another
    work = max(critical_path(job, deps, floors, tails), work, sum(link.values()))
    body = max(work * period / ticks_us, memory_us)
    # the longest path may be copies alone, which start no TB
    start = 0 if any(link.values()) else values["gpu.cp.tb_start_latency"]
    before = (values["gpu.cp.launch"] + start) / ticks_us
    bound = before + body
    if values["host.submit"] == 1:
        launched = sum(k.copy is None or k.copy.timed for k in job.kernels)
        bound = max(bound, (launched - 1) * values["host.launch"] / ticks_us)

    alone: list[float] = []
    spans: list[Floats] = []
    shares: list[float] = []
    hand_over = (values["gpu.cp.tb_start_latency"] + values["gpu.cp.tb_done_latency"]) / period
    reads = dram_reads(job, values["gpu.l2.size"])
    for kernel, cost, kind, dram in zip(job.kernels, mine, kinds, reads, strict=True):
        each = _duration(kernel, cost, dram, values)[kind] + hand_over
        held = occupancy(kernel, values)
        waves = -(-kernel.tbs // (held * values["gpu.sms"]))
        if kernel.copy is not None:  # it takes no SM
            each, held = np.array([link[len(spans)]]), 0
        spans.append(each)
        shares.append(1 / held if held else 0.0)
        alone.append(float(each.max()) * waves)
    if int(deps.offsets[-1]) <= COARSE:
        cycles = _list_schedule(job, deps, spans, shares, values["gpu.sms"])
    else:
        ends = [0.0] * len(alone)
        busy = 0.0
        for index, preds in enumerate(reduced(deps.preds)):
            ends[index] = max([ends[p] for p in preds], default=0.0) + alone[index]
            busy += float(spans[index].sum()) * shares[index] / values["gpu.sms"]
        cycles = max(*ends, busy)
    streamed_us = sum(reads) / values["gpu.dram.bandwidth"]
    estimate = before + max(cycles * period / ticks_us, memory_us, streamed_us)
    return Bounds(bound, max(bound, estimate), tuple(alone))
