"""Every counter of the core, one row each (stdlib only: the build reads this file too)."""

from __future__ import annotations

from typing import NamedTuple


class Counter(NamedTuple):
    """One counter: name, unit and meaning. All are ``uint64_t`` in C and in result files."""

    name: str
    unit: str
    doc: str


# what the warps of a TB did with their resident time: kept a kernel and an SM
STALLS: tuple[Counter, ...] = (
    Counter("issued", "warp-cycle", "Warps held an issue slot; sum over warps."),
    Counter("scoreboard", "warp-cycle", "Warps waited for a fixed-latency result; sum over warps."),
    Counter("pipe", "warp-cycle", "Warps waited for an issue slot, a pipe or the LSU; sum over warps."),
    Counter("memory", "warp-cycle", "Warps waited for loads, stores or request credits; sum over warps."),
    Counter("barrier", "warp-cycle", "Warps waited at a TB barrier; sum over warps."),
    Counter("sync", "warp-cycle", "Warps waited in the program for other TBs: at semaphores, grid barriers, for ends of kernels; sum over warps."),
)

# what an SM without a TB waited for: kept a kernel (the one next in line) and an SM
IDLES: tuple[Counter, ...] = (
    Counter("dependence", "tick", "SM time without a TB while the next TBs wait for others to end."),
    Counter("launch", "tick", "SM time without a TB while the next kernel is on the launch path."),
    Counter("no_tb", "tick", "SM time without a TB while no TB is left to dispatch."),
)

WORK: tuple[Counter, ...] = (
    Counter("fp32", "cycle/64", "Busy time of the fp32 pipes, cycles lost to late operands included; sum over sub-cores."),
    Counter("int", "cycle/64", "Busy time of the integer pipes; sum over sub-cores."),
    Counter("fp16", "cycle/64", "Busy time of the fp16 pipes; sum over sub-cores."),
    Counter("fp64", "cycle/64", "Busy time of the fp64 pipes; sum over sub-cores."),
    Counter("sfu", "cycle/64", "Busy time of the special-function pipes; sum over sub-cores."),
    Counter("tensor", "cycle/64", "Busy time of the tensor pipes; sum over sub-cores."),
    Counter("control", "cycle/64", "Busy time of the control pipes; sum over sub-cores."),
    Counter("smem", "cycle/64", "Busy time of shared memory."),
    Counter("warp_instructions", "count", "Warp instructions issued."),
    Counter("ops", "count", "Program ops executed."),
    Counter("l1_lines", "count", "Lines that loads looked up in L1 or that bypassed it."),
    Counter("l1_hits", "count", "Lines that hit in L1."),
    Counter("l1_merged", "count", "Lines that merged with a miss in flight."),
    Counter("load_sectors", "count", "32 B sectors requested from L2 by loads."),
    Counter("store_sectors", "count", "32 B sectors sent to L2 by stores and reductions."),
    Counter("l2_requests", "count", "Line requests sent to L2."),
)

# how long slots of an SM were taken; with these the time series count residence up to any moment
HELD: tuple[Counter, ...] = (
    Counter("busy", "tick", "Time with at least one TB, from its first issue to its end."),
    Counter("tb_time", "tick", "Time of all resident TBs, added up."),
    Counter("warp_time", "tick", "Time of all taken warp slots, added up; a TB keeps those of all its warps to its end."),
)

SLICE: tuple[Counter, ...] = (
    Counter("requests", "count", "Look-ups of lines: a load that misses here and goes on to the other L2 partition counts in both slices."),
    Counter("sectors_read", "count", "Sectors asked for by loads."),
    Counter("joined", "count", "Sectors of loads that merged with a request of another SM of the GPC."),
    Counter("sectors_written", "count", "Sectors written by stores."),
    Counter("table_read", "count", "Sectors of the scheduler's tables that it read from memory; part of sectors_read."),
    Counter("table_written", "count", "Sectors of the scheduler's tables that it updated or wrote; part of sectors_written."),
    Counter("hits", "count", "Requests that needed no read of DRAM or of the other L2 partition; stores allocate without a read."),
    Counter("pending_hits", "count", "Hits that waited for a fill in flight; part of hits."),
    Counter("busy", "tick", "Time that the slice's data port was held."),
)

CHANNEL: tuple[Counter, ...] = (
    Counter("dram_read_sectors", "count", "Sectors read from the slice's DRAM channel."),
    Counter("dram_write_sectors", "count", "Sectors written back to DRAM."),
    Counter("row_hits", "count", "DRAM accesses to an open row."),
    Counter("row_misses", "count", "DRAM accesses that opened a row."),
    Counter("bus_busy", "tick", "Time that the channel's data bus was held."),
)

BANKS: tuple[Counter, ...] = (
    Counter("accesses", "count", "Reads of the bank; writes drain in batches that name no bank."),
    Counter("activates", "count", "Rows opened."),
)

GROUPS: dict[str, tuple[Counter, ...]] = {
    "stalls": STALLS,
    "idles": IDLES,
    "work": WORK,
    "held": HELD,
    "l2": SLICE + CHANNEL,
    "banks": BANKS,
}
