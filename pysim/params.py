"""Every parameter of the simulator, one row each.

The build renders the C structs from these rows (``build.py``); options, range checks, the reference
page and the attributes of result files come from the same rows. Only the standard library is used
here, because the build reads this file before the core exists.

Units and what the C core receives:

========  ==========================  =====================================
unit      a user writes               the core receives (always ``int64_t``)
========  ==========================  =====================================
count     an integer                  the integer
B         bytes (``96KiB`` works)     bytes
cycle     SM clock cycles             cycles
cycle/64  cycles                      64ths of a cycle
ns, us    nano/microseconds           ticks of 1/1024 ns
MHz       frequency                   the period in ticks of 1/1024 ns
GB/s      10^9 bytes a second         MB/s
share     0 to 1                      65536ths
bool      0 or 1                      0 or 1
choice    one of the listed words     its position in the list
========  ==========================  =====================================
"""

from __future__ import annotations

from typing import NamedTuple

TICKS_PER_NS = 1024


class Param(NamedTuple):
    """One parameter: where it lives, what it means, what it may be."""

    name: str
    default: float | int | str
    unit: str
    lo: float
    hi: float
    doc: str
    choices: tuple[str, ...] = ()


def _choice(name: str, choices: tuple[str, ...], doc: str) -> Param:
    return Param(name, choices[0], "choice", 0, len(choices) - 1, doc, choices)


# Pipes of a sub-core, in the order of the core's arrays.
PIPES: tuple[tuple[str, str], ...] = (
    ("fp32", "FFMA, FADD, FMUL"),
    ("int", "IADD3, IMAD, LOP3, LEA, SHF, MOV"),
    ("fp16", "HFMA2, HADD2"),
    ("fp64", "DFMA, DADD, DMUL"),
    ("sfu", "MUFU: exp2, rcp, rsqrt, tanh"),
    ("tensor", "HMMA steps"),
    ("control", "BRA, BAR and other control flow"),
)


# Orders in which the GPCs of an empty chip are filled; one of another number of GPCs goes by their number.
# `h200`: h200_first.csv, one of several measured rotations; by the half of L2 that they are of it is ++---+-+.
GPC_ORDERS: dict[str, tuple[int, ...]] = {"number": (), "h200": (3, 1, 4, 5, 6, 0, 7, 2)}


def _interval(pipe: str, default: float, doc: str) -> Param:
    text = f"Cycles between two warp instructions on the {pipe} pipe of a sub-core ({doc})."
    return Param(f"{pipe}_interval", default, "cycle/64", 0.25, 1024, text)


def _latency(pipe: str, default: int, doc: str) -> Param:
    text = f"Cycles from an instruction on the {pipe} pipe to one that needs its result ({doc})."
    return Param(f"{pipe}_latency", default, "cycle", 1, 1024, text)


PARAMS: dict[str, tuple[Param, ...]] = {
    "gpu": (
        Param("sms", 80, "count", 1, 1024, "Streaming multiprocessors."),
        Param("gpcs", 1, "count", 1, 64, "Clusters of SMs (GPCs), numbered one after another and as even as whole TPCs allow; TBs are handed out to them in turn."),
        Param("tpc_sms", 1, "count", 1, 4, "SMs of a TPC; each TPC gets a TB before one of its SMs gets a second share."),
        Param("clock", 1455.0, "MHz", 100, 10000, "SM clock."),
        Param("clock_tensor", 1.0, "share", 0.25, 1, "SM clock of a GPC while its tensor cores are busy, as a share of gpu.clock (1: it does not change)."),
        Param("power_limit", 0.0, "W", 0, 10000, "Board power that a job which goes on for long may take (sim.sustained; 0: no limit)."),
        Param("power_slope", 0.0, "share", 0, 4, "Voltage falls with the clock: what an event of an SM or of L2 takes is in proportion to this power of the clock."),
    ),
    "gpu.sm": (
        Param("warps", 64, "count", 4, 64, "Resident warps an SM; a multiple of 4."),
        Param("tbs", 32, "count", 1, 32, "Resident thread blocks an SM."),
        Param("registers", 65536, "count", 1024, 1 << 20, "32-bit registers an SM."),
        Param("register_unit", 256, "count", 32, 4096, "Registers are granted to a warp in such units."),
        Param("smem", 98304, "B", 0, 1 << 20, "Largest shared memory of an SM."),
        Param("smem_unit", 256, "B", 1, 65536, "Shared memory is granted to a TB in such units."),
        Param("parameters", 0, "cycle", 0, 4096, "What a kernel's first TB on an SM waits for each 64 B of the kernel's parameters, of kernels that tell how many they read."),
        Param("refetch", 0, "cycle", 0, 10000, "A kernel that a stream launches beside others: their TBs and its own, of kernels that tell how many parameters they read, wait so long for code and parameters, which the launch has dropped (not in a graph)."),
        Param("own_carveout", 0, "bool", 0, 1, "A busy SM takes a TB only if it is set to at least the carve-out that the TB's kernel chooses; 0: wherever the TB's own shared memory fits."),
        Param("smem_reserved", 0, "B", 0, 65536, "Shared memory that the system keeps of each TB."),
        *(
            _interval(pipe, default, doc)
            for (pipe, doc), default in zip(PIPES, (2.0, 2.0, 2.0, 4.0, 8.0, 2.0, 1.0), strict=True)
        ),
        *(_latency(pipe, default, doc) for (pipe, doc), default in zip(PIPES, (4, 4, 6, 8, 14, 10, 4), strict=True)),
        Param("smem_interval", 1.0, "cycle/64", 0.25, 1024, "Cycles a shared-memory wavefront (128 B) holds the shared memory of the SM."),
        Param("smem_return", 1.0, "cycle/64", 0.25, 1024, "Cycles between two wavefronts of a sub-core whose results come back to it; not below smem_interval."),
        Param("smem_late", 0.0, "cycle/64", 0, 64, "Cycles more that shared memory is held for each issue slot that fp32 arithmetic loses to late operands beside its loads."),
        Param("smem_queue", 64, "count", 1, 4096, "Wavefronts of shared memory that an SM queues: no warp runs further ahead of it. Where warp_order is oldest or greedy_oldest, the oldest of those that wait behind them goes first."),
        Param("copy_gap", 1, "cycle", 1, 64, "Cycles from a copy into shared memory (cp.async) to the next op of its warp."),
        Param("queue", 0, "count", 0, 7, "Copies and loads from shared memory (blocks of nothing else, such as ldmatrix) that a sub-core queues, in the order in which they come, until their registers have been read; 0: as many as come, and copies leave when the unit begins the one before. Where warp_order is oldest or greedy_oldest."),
        Param("queue_read", 32, "count", 4, 384, "Bytes a cycle that a sub-core reads of the registers of what it queues, 384 of a copy and 128 of a block of loads, in whole cycles. A copy leaves its queue when they have been read and the load/store unit has room for it."),
        Param("copy_queue", 4, "count", 1, 32, "Copies that have left their sub-core's queue and that the load/store unit has not begun."),
        Param("copy_hold", 0.25, "cycle/64", 0, 64, "Cycles that each sector which a copy brings holds the array of L1 and shared memory."),
        Param("lsu_queue", 32, "count", 1, 4096, "Lines that the load/store unit queues: no warp runs further ahead of it."),
        Param("lsu_shared", 0, "bool", 0, 1, "Loads from shared memory take a cycle of the load/store unit, each four wavefronts of them."),
        Param("smem_latency", 19, "cycle", 1, 1024, "Load to use of shared memory without conflicts; shuffles take as long."),
        _choice("smem_conflicts", ("words", "first_word"), "Wavefronts of a replayed access to shared memory: as many as some of the 32 banks holds different words of it, a wide one at least one for 8 B a lane; or counting the first word of each lane alone, whatever the width."),
        Param("barrier", 20, "cycle", 1, 256, "From the last arrival at a TB barrier to the next issue."),
        Param("barrier_warp", 0, "cycle", 0, 64, "Cycles that each warp takes to be counted at a barrier, one after another in an SM."),
        Param("barrier_leave", 0, "cycle", 0, 16, "Behind a barrier the warps of a TB go on so many cycles one after another, in an order that is drawn for each TB (a hash of its SM and of how many came there before it) and stays, so that TBs that do the same drift apart; 0: all at once."),
        Param("leave_stores", 1, "bool", 0, 1, "A TB gives up its place when its stores have left the SM (0: when L2 has acknowledged them)."),
        Param("register_ports", 1, "bool", 0, 1, "Model issue slots lost to register-bank conflicts (0: none are lost)."),
        _choice("warp_order", ("greedy", "round_robin", "oldest", "greedy_oldest"), "Which warp of a sub-core issues: the one that did last while it can and then the one that waits longest; all in turn; that of the oldest TB, also where warps wait for pipes or the load/store unit; or the one that did last while its compute blocks need not wait, nor have tensor instructions, and then that of the oldest TB."),
        Param("block_max", 1024, "count", 1, 4096, "Longest compute block in instructions; kernel times stay within 2 % of length 1."),
        Param("block_tensor", 1024, "count", 1, 4096, "Longest compute block in instructions of programs with tensor instructions, if less: those of older warps wait for its end. Recorded programs keep block_max."),
    ),
    "gpu.l1": (
        Param("size", 131072, "B", 8192, 262144, "L1 and shared memory together; L1 has what the carve-out leaves."),
        Param("reserved", 0, "B", 0, 65536, "Of that, what neither L1 nor shared memory has."),
        Param("latency", 28, "cycle", 8, 256, "Load to use on a hit."),
        Param("in_flight", 256, "count", 32, 2016, "Line requests that an SM may have outstanding: of loads to registers, and of what has no limit of its own."),
        Param("copies_in_flight", 0, "count", 0, 2016, "As many of copies into shared memory by themselves (0: they count among those of in_flight). Warps that wait for either go on in order."),
        Param("stores_in_flight", 0, "count", 0, 2016, "As many of stores and reductions by themselves (0: they count among those of in_flight)."),
        Param("hold_late", 0, "bool", 0, 1, "Lines that loads bring to registers hold the array of L1 and shared memory for a cycle each when they come (0: when they are asked for, as copies into shared memory do)."),
        Param("keep_stores", 0, "bool", 0, 1, "L1 keeps the lines of stores, which go through to L2 all the same (0: it keeps those of loads)."),
        Param("join_stores", 0, "bool", 0, 1, "A store to just the sectors of the warp's last store joins it on the way to L2; a third one does not."),
    ),
    "gpu.noc": (
        Param("latency", 60, "cycle", 8, 1024, "One way between SM and L2 slice, unloaded; bounds the quantum."),
        Param("tpc_distance", 0.0, "cycle/64", 0, 64, "Cycles that replies take longer for each row of a GPC's TPCs behind its own, one of each cluster (CPC) a row; latencies of L2 and DRAM are means over all SMs."),
        Param("cluster_distance", 0.0, "cycle/64", 0, 64, "Cycles that they take longer for each cluster of its GPC before its own."),
        Param("reply_bytes", 64, "count", 8, 1024, "Bytes a cycle that the reply port of an SM takes."),
        Param("port_sms", 1, "count", 1, 4, "SMs that share a port to the network, both ways: 1, 2 or 4."),
        Param("read_sector", 0.0, "cycle/64", 0, 64, "Cycles that each sector of a read request holds a port; a line's request holds it for one at least."),
        Param("join_loads", 0, "count", 0, 64, "Loads of the same sectors by SMs of a GPC, or by one, that one request serves: they join the last one for the line in front of the L2 slice until its reply leaves (0 or 1: each asks for itself)."),
        Param("gpc_link", 0, "count", 0, 1 << 12, "Bytes a cycle of L2's replies that a GPC takes from each group of four slices; its clusters of SMs (each third TPC) share them evenly (0: no limit)."),
        Param("write_bytes", 32, "count", 8, 1024, "Bytes of store data a cycle that the request port of an SM sends."),
        Param("write_partial", 0, "cycle", 0, 64, "Cycles more that a line of a store holds it where bytes of the line's sectors are left out."),
    ),
    "gpu.l2": (
        Param("size", 4718592, "B", 65536, 1 << 30, "Capacity of the L2."),
        Param("slices", 48, "count", 1, 256, "L2 slices; each has a DRAM channel of its own."),
        Param("hash_slices", 0, "count", 0, 512, "Slices that the address hash picks from; those beyond gpu.l2.slices wrap to the first ones, which take more then (0: as many as there are)."),
        Param("latency", 193, "cycle", 32, 4096, "Load to use on an L2 hit, unloaded."),
        Param("fill", 32, "B", 32, 64, "What DRAM delivers for a missing sector: 32, the sector, or 64, the aligned pair."),
        Param("slice_bytes", 32, "count", 8, 1024, "Bytes a cycle that a slice delivers."),
        Param("enter", 0.0, "cycle/64", 0, 64, "Cycles that each load takes to enter a slice, whether it joins another or not; where loads join (gpu.noc.join_loads). One of more than 64 B that joins none takes gpu.l2.request besides."),
        Param("request", 0.0, "cycle/64", 0, 64, "Cycles that a slice takes to look up a load which joins none, apart from what it sends of others meanwhile."),
        Param("open_lines", 0, "bool", 0, 1, "L2 keeps two lines a set with sectors that stores have written in part; when a third comes, it reads the rest of the one written least lately from DRAM, as it does when such a line is pushed out or loaded (0: such sectors count as whole); not with lru replacement."),
        Param("update", 0.0, "cycle/64", 0, 64, "Cycles that each sector of a reduction holds a slice, if longer than other sectors do."),
        Param("hash", 1, "bool", 0, 1, "Turn slices and sets by a hash of the address, so that strides spread (0: slice and set are the line's number, or with gpu.l2.chunked its quad's, lowest digits first, and strides camp on a few)."),
        Param("chunked", 0, "bool", 0, 1, "Lines lie in slices as on an H200: of each 1 KiB lines 0, 1, 4 and 5 in one and 2, 3, 6 and 7 in one, which ones the remainder of a folded address by the slices (of a half) says; not with gpu.l2.hash_slices (0: lines in a row lie in slices in a row)."),
        Param("single", 0, "count", 0, 256, "With gpu.l2.chunked: slices of a half, or of all if there is one partition, that have a unit of the hash to themselves, at most all; the others are two a unit, one of an odd number by itself."),
        Param("partitions", 1, "count", 1, 2, "Halves of L2: with 2, SMs of one half keep copies of lines whose home lies in the other; not with lru replacement."),
        Param("fabric_latency", 100, "cycle", 8, 4096, "Two partitions: one way between them."),
        Param(
            "twin_latency", 0, "cycle", 0, 8192,
            "Two partitions: what a load whose line lies in the other one alone takes beyond a hit"
            " (0: both ways and a tag).",
        ),
        Param("far_latency", 0, "cycle", 0, 1024, "Two partitions: what a hit takes beyond one of a line whose home is the reader's half; gpu.l2.latency is the mean of both."),
        Param("fabric_bandwidth", 0.0, "GB/s", 0, 100000, "Two partitions: what can cross between them, both ways together; a store's line is 44 B and 29 B a sector, byte mask and address included (0: no limit)."),
        _choice("replacement", ("random", "lru", "clock"), "Victim among the 16 ways of a set: random among those not referenced of late, least recently used, or the next one in turn that was not referenced since its last turn."),
        Param("referenced", 1, "count", 0, 32, "Random replacement: of 32 new lines, how many count as referenced at once; few, and scans do not push out what is in use."),
    ),
    "gpu.dram": (
        Param("bandwidth", 652.8, "GB/s", 1, 100000, "Peak bandwidth of all channels."),
        Param("latency", 375, "cycle", 64, 8192, "Load to use on an L2 miss with the row closed, unloaded, in SM cycles."),
        Param("banks", 16, "count", 1, 32, "Banks a channel; a power of two."),
        Param("bank_hash", 1, "bool", 0, 1, "The bank is the row's lowest bits xor higher ones (0: the lowest bits alone, so rows a power of two apart share one)."),
        Param("row_bytes", 1024, "B", 128, 65536, "Bytes of a row that lie in one channel; a power of two."),
        Param("row_open", 28.0, "ns", 1, 1000, "Precharge and activate (tRP + tRCD)."),
        Param("row_cycle", 47.0, "ns", 1, 1000, "Least time between two activates of a bank (tRC)."),
        Param("row_gap", 0.0, "ns", 0, 1000, "Least time between two activates of a channel (tRRD, or a quarter of tFAW)."),
        Param("refresh_period", 3900.0, "ns", 100, 1e6, "Refresh interval (tREFI) of a channel, or of each bank where banks take turns."),
        Param("refresh_time", 260.0, "ns", 0, 10000, "A channel's bus is busy this long with each refresh (tRFC); where banks take turns, with each bank's."),
        Param("bank_refresh_time", 0.0, "ns", 0, 10000, "Banks take turns: each is away this long with its refresh (tRFCpb) and its row closed, others go on (0: a channel's banks are refreshed together)."),
        Param("turnaround", 8.0, "ns", 0, 1000, "Bus time lost to a batch of writes, both ways together."),
        Param("read_turnaround", 0.0, "ns", 0, 1000, "Bus time lost on top of it by a batch of writes that comes after reads."),
        Param("write_queue", 0, "count", 0, 4096, "Sectors of writes that a channel may be behind; beyond that a line that pushes out a written one waits (0: no limit)."),
        Param("write_batch", 32, "count", 1, 256, "Sectors that a channel collects before it drains them as one batch."),
    ),
    "gpu.cp": (
        Param("launch", 1500.0, "ns", 0, 1e6, "From the first enqueue to the first dispatch on an idle GPU."),
        Param("stream_gap", 1000.0, "ns", 0, 1e6, "Stream order: from a kernel's last release to the next kernel's dispatch."),
        Param("graph_gap", 500.0, "ns", 0, 1e6, "Graph edge: from a kernel's last release to the next kernel's dispatch."),
        Param("graph_prepare", 0.0, "ns", 0, 1e6, "Graph edge: a kernel's dispatch comes at least this long after that of the one before it."),
        Param("admit", 680.0, "ns", 0, 1e6, "Pool and table schemes admit kernels this far apart."),
        Param("tb_release", 0.603, "ns", 0, 1e4, "One chip-wide server takes this long for each TB that ends."),
        Param("tb_start", 0.09, "ns", 0, 1e4, "One chip-wide server takes this long for each TB that starts."),
        Param("cluster_start", 0.0, "ns", 0, 1e4, "TBs that go to SMs of one cluster (CPC, three a GPC) start this long one behind the other."),
        Param("tpc_start", 0.0, "ns", 0, 1e3, "The first TB of an idle SM starts this long for each warp behind the first one of another SM of its TPC, where both get theirs at one time."),
        Param("tpc_warps", 5, "count", 1, 64, "Warps of that TB that are waited for."),
        Param("even_tbs", 0, "bool", 0, 1, "No SM takes more than ceil(TBs / SMs) TBs of a kernel."),
        Param("beside", 0.0, "ns", 0, 1e6, "Added to the gap before a kernel that starts beside running kernels of another stream."),
        _choice("place", ("load", "room"), "A TB goes to the SM with the fewest warps, ties in turn; or to the one with room for most more TBs of its kernel, ties to the first, and on an empty chip as an H200 places them: GPC by GPC, what is less than a round shared evenly among GPCs."),
        _choice("gpc_order", tuple(GPC_ORDERS), "The order in which an empty chip's GPCs are filled (gpu.cp.place = room): by their number, or as measured on an H200, if there are 8 GPCs."),
        Param("together", 0, "count", 0, 1024, "SMs of one GPC that take their even share of a cooperative kernel's TBs before others take one, and on an empty chip the first of any (gpu.cp.place = room)."),
        Param("early_gap", 340.0, "ns", 0, 1e6, "Programmatic dependent launch: from the last trigger to the dependent kernel's dispatch."),
        Param("early_graph_gap", 235.0, "ns", 0, 1e6, "The same inside a graph."),
        Param("early_depth", 8, "count", 1, 1024, "Kernels of a stream's programmatic launches that may be in flight at once."),
        Param("early_graph_depth", 128, "count", 1, 1024, "The same inside a graph."),
        Param("early_reuse", 1600.0, "ns", 0, 1e6, "From a kernel's last release until another may be in flight in its place."),
        Param("depend", 195.0, "ns", 20, 1e6, "From a kernel's last release to the return of the waits for its end."),
        Param("tb_flush", 0, "cycle", 0, 10000, "From L2's acknowledgement of a TB's last store, and of the flush behind it (gpu.cp.end_flush), until all of the GPU sees it and the TB counts as complete."),
        Param("end_flush", 0, "bool", 0, 1, "1: a TB that has stored sends a flush when it ends, which goes through L2 and back, however long ago the stores were acknowledged; not where gpu.cp.tb_flush is 0."),
        Param("tb_done_latency", 70.0, "ns", 20, 1e5, "From a TB's end on its SM to the release server, and from its completion to the scheduler."),
        Param("tb_start_latency", 100.0, "ns", 20, 1e5, "From dispatch to the first issue of a TB."),
    ),
    "gpu.sync": (
        Param("fence", 304, "cycle", 0, 10000, "A device-wide fence, beyond the acknowledgement of the stores before it."),
        Param("fence_system", 2870, "cycle", 0, 100000, "A fence of the whole system, beyond the acknowledgement of the stores before it; no less than gpu.sync.fence."),
        Param("latency", 313, "cycle", 0, 10000, "Round trip of an atomic or an acquiring load within a partition of L2, no less than that of a load."),
        Param("acquire", 180, "cycle", 0, 10000, "From a poll's reply to the next op of its warp, or its next poll."),
        Param("posted", 0, "cycle", 0, 10000, "A post is acknowledged so much later than a store that arrives when it does; its TB is not complete before."),
        Param("atomic", 0.796, "ns", 0, 1000, "L2 takes this long for each atomic or poll of a line of semaphores."),
    ),
    "host": (
        _choice("submit", ("prefilled", "eager"), "prefilled: all is enqueued before the GPU starts; eager: each launch costs host.launch."),
        Param("launch", 2400.0, "ns", 0, 1e7, "Host time of one launch."),
        Param("graph_node", 2100.0, "ns", 0, 1e7, "A graph is made anew: host time for each kernel in it, to add, instantiate and upload (measured: h200_graphs.csv, CUDA 13.0: 1.8 us on one host, 2.7 on another)."),
        Param("graph_edge", 1000.0, "ns", 0, 1e7, "The same for each edge of it (measured: h200_graphs.csv: 0.9 and 1.5 us)."),
        Param("roundtrip", 7300.0, "ns", 0, 1e7, "Launch and synchronise: what scheme host pays between kernels."),
        Param("copy_bandwidth", 12.0, "GB/s", 0.125, 100000, "Bytes from the host that come over the link, where copies take time (PCIe 3.0 x16 from pinned memory: users report 11 to 12.5 of the 15.75 that the standard signals; not measured)."),
        Param("copy_latency", 7300.0, "ns", 0, 1e7, "Before a copy's first byte, where copies take time (a synchronous copy is waited for as a launch is: host.roundtrip's value)."),
    ),
    "scheme": (
        Param("window", 64, "count", 1, 1 << 20, "Kernels that table schemes admit at once."),
        _choice("priority", ("oldest", "newest", "critical", "round_robin", "consumer"), "Among ready TBs: oldest kernel first, newest first, longest remaining path first, kernels in turn, or the kernel with most kernels one behind the other before it first."),
        _choice("placement", ("first_free", "balanced", "affinity"), "Table schemes: a TB goes where a slot is free; or no SM takes more than an even share of a kernel while an older one has not ended; or to the SM of its last producer where there is room."),
        Param("affinity", 32, "count", 1, 1 << 16, "Placement affinity: ready TBs of a kernel that are looked at for one whose last producer ran where a slot has come free."),
        Param("reserve", 0.0, "share", 0, 1, "Table schemes: share of all warps that stays free for the oldest kernel with TBs left, so that newer ones cannot starve it."),
        _choice("coherence", ("auto", "kernel", "bypass", "tb"), "How data that another kernel wrote gets past L1: invalidate L1 at kernel start, read it past L1, or invalidate L1 at TB start. auto: kernel behind barriers, bypass else."),
        _choice("carveout", ("auto", "kernel", "job"), "Shared-memory carve-out chosen a kernel or once for the job. auto: kernel behind barriers and, with gpu.sm.own_carveout, where kernels wait inside; job else."),
        Param("bypass", 4, "count", 0, 64, "Table schemes look past this many ready kernels whose TBs fit nowhere (barrier schemes: none)."),
        Param("prologue", 0, "bool", 0, 1, "Schemes with edges of TBs: a TB may be dispatched to a slot that no ready one wants, runs what depends on no other kernel, and waits inside for its counter."),
        Param("build", 0, "bool", 0, 1, "graph: the graph depends on the input, so the host makes it (host.graph_node, host.graph_edge) before its launch."),
        Param("hypothetical", 0, "bool", 0, 1, "Schemes run on GPUs whose hardware lacks what they need, too."),
        Param("bypass_age", 1024, "count", 1, 1 << 30, "A kernel passed over this often is passed over no more until it fits."),
    ),
    "scheme.table": (
        Param("entries", 16384, "count", 1, 1 << 30, "Entries of the dependence table; a kernel that does not fit takes one and waits for whole kernels, and while none is free it is not admitted."),
        Param("consumers", 4, "count", 1, 1 << 16, "Consumer ranges that one entry holds."),
        Param("entry_bytes", 16, "B", 1, 1024, "Bytes an entry."),
        Param("group", 1, "bool", 0, 1, "TBs in a row may share a counter where edges of single TBs take too many updates or entries; 0: whole kernels are the only way out."),
        Param("fetch", 0, "bool", 0, 1, "What a kernel waits for stays in memory until a TB of a kernel that it waits for is dispatched, and is brought in then, in the form for which there is room; not with scheme.prologue (0: it comes with the kernel's admission)."),
        Param("fetch_lists", 0, "bool", 0, 1, "Lists of the counters that each TB's end is for lie in memory: those of resident TBs are brought in when they are dispatched, while there is room on the chip, others read when the TB ends. Counters of a whole kernel, or of TBs in a row, need no list; tb_learned, which works its lists out, pays for none (0: all lists are on the chip and cost nothing)."),
        Param("lists", 512, "count", 1, 1 << 24, "With scheme.table.fetch_lists: entries on the chip for lists of resident TBs (our choice)."),
        Param("references", 4, "count", 1, 1 << 16, "Counters that such an entry names, in 2 B each, used again as kernels leave the window (our choice)."),
        Param("reduce", 0, "bool", 0, 1, "tb_static: the graph that is given is without edges that two others imply (where C waits for B and B for A, C need not wait for A), and nodes of the same TBs are one. It costs the table nothing."),
        Param("share", 0.25, "share", 0, 1, "A kernel whose TBs can share counters takes at most this share of the entries that are free; with fewer entries, more TBs share one (our choice)."),
        Param("shortest", 1000.0, "ns", 0, 1e6, "A kernel's edges are kept TB by TB where the updates that all its producers' TBs on the chip ask for take no longer than this: what a TB is taken to last at least (assumed: a launch and a load from DRAM)."),
        Param("update", 0.5, "ns", 0, 1e5, "The table takes this long for each counter it updates (two banks that update one a nanosecond each)."),
        Param("latency", 20.0, "ns", 0, 1e5, "From an update that frees a TB to the TB being ready."),
    ),
    "scheme.learned": (
        Param("ranges", 4, "count", 1, 1 << 16, "tb_learned: ranges kept for each TB and argument, of reads and of writes; where a TB touches more, neighbours share one that holds all between them, too: edges are added, none lost (our choice)."),
        Param("strided", 1, "bool", 0, 1, "tb_learned: a range may be a run of bytes repeated at one distance, so that a tile of a matrix is one (0: runs of bytes alone)."),
        Param("entry_bytes", 16, "B", 1, 1024, "tb_learned: bytes of a range that is kept: offset, length, distance and count (our choice)."),
        Param("lookup", 1.0, "ns", 0, 1e5, "tb_learned: each range of a launch takes this long to compare with those in the pool, before its kernel is admitted (assumed: one a nanosecond)."),
    ),
    "scheme.acs": (
        Param("window", 32, "count", 2, 256, "Kernels in the window whose addresses are compared (Durvasula et al. 2024: 32, ids of 8 bits)."),
        Param("list", 64, "count", 1, 1 << 20, "acs_hw: from the oldest unfinished kernel to the newest in the window there are at most this many, those that the host remembers (the paper's M, which it does not state: assumed)."),
        Param("threads", 8, "count", 1, 1024, "acs_sw: threads of the host, each with a stream and a kernel in flight (the paper says configurable: assumed, CUDA's default number of connections)."),
        Param("insert", 80.0, "ns", 0, 1e6, "acs_sw: the host puts a kernel into the window (with scheme.acs.check: through the paper's 410 and 700 ns for 6 and 10 segments and a window of 16, 510 and 1640 ns for one of 32)."),
        Param("check", 0.48, "ns", 0, 1e4, "acs_sw: the host compares two segments, of the new kernel and of one in the window."),
    ),
    "scheme.blockmaestro": (
        Param("kernels", 2, "count", 2, 4, "Kernels that are launched and have not ended, running ones included (Abdolrashidi et al. 2021: two to four, told apart by two bits)."),
        _choice("priority", ("producer", "consumer"), "producer: no TB of a kernel is dispatched before all of older ones are; consumer: newer kernels first."),
        Param("entries", 896, "count", 1, 1 << 24, "Entries of the buffer of children and of that of counters, each (28 SMs of 32 TBs there)."),
        Param("children", 4, "count", 1, 1024, "Children that an entry lists."),
        Param("parents", 63, "count", 1, 1 << 24, "Parents that a TB may have: a counter of 6 bits; beyond, its kernel waits for the one before as a whole."),
        _choice("addresses", ("affine", "exact"), "affine: of a kernel with addresses that were read from data (recorded ones) nothing is known: it waits for the kernel before, and those behind it for it, as a whole; exact: its edges are known as those of the others."),
    ),
    "scheme.wireframe": (
        Param("nodes", 192, "count", 1, 1 << 24, "TBs that the buffer of the graph holds, from before their dispatch to their end (2 KB for both buffers is what is reported of Wireframe; how they divide is assumed)."),
        Param("pending", 64, "count", 0, 1 << 24, "Entries for TBs that are counted down before they are in that buffer."),
        Param("node_bytes", 8, "B", 1, 1024, "Bytes an entry of either (assumed)."),
    ),
    "scheme.bloom": (
        Param("bits", 2048, "count", 8, 1 << 16, "tb_bloom: bits of a signature; each unit has two, of what it reads and of what it writes (our choice)."),
        Param("hashes", 4, "count", 1, 16, "tb_bloom: hash functions of a signature (our choice)."),
        Param("granule", 256, "B", 32, 1 << 30, "tb_bloom: memory is entered and looked up in such pieces (our choice)."),
        _choice("per", ("tb", "group", "kernel"), "tb_bloom: what has a signature of its own (a unit): a TB, scheme.bloom.group TBs one after another, or a kernel. A kernel that would take more than half of all signatures has larger groups."),
        Param("group", 8, "count", 1, 1 << 20, "tb_bloom: TBs of a group."),
        Param("signatures", 4096, "count", 128, 1 << 14, "tb_bloom: units that the scheduler's memory has room for, rounded up to 64; a kernel that finds too few is not admitted (our choice)."),
        _choice("clear", ("kernel", "epoch"), "tb_bloom: signatures are cleared when the last TB of their kernel has ended; or halves of the memory in turn, each when its last TB has ended."),
        Param("insert", 0.25, "ns", 0, 1e5, "tb_bloom: time for each granule of a hint that is entered; one hint is entered for all its units at once (assumed: four banks that take one a nanosecond each)."),
        Param("lookup", 0.25, "ns", 0, 1e5, "tb_bloom: time for each granule of a hint that is looked up, in all signatures at once (assumed: four banks that take one a nanosecond each)."),
        Param("latency", 100.0, "ns", 0, 1e6, "tb_bloom: from a kernel's first look-up to its first answer (assumed)."),
        Param("constants", 0, "bool", 0, 1, "tb_bloom: hints name memory that the job never writes, too."),
        Param("widen", 100, "count", 100, 100000, "tb_bloom: length of each hinted range in percent of what is touched; the rest lies on both sides."),
        Param("missing", 0.0, "share", 0, 1, "tb_bloom: share of launches without a hint, picked by sim.seed; they run behind barriers."),
        _choice("signature", ("bloom", "exact"), "tb_bloom: bloom, or signatures of the same cost without false answers."),
    ),
    "scheme.queues": (
        _choice("map", ("graph", "stream"), "queues: the graph of kernels laid into queues, a kernel behind one that it needs or else into the next queue in turn; or a queue for each stream of the job, in order, with barrier packets for its events."),
        Param("count", 10, "count", 1, 4096, "queues: queues that a graph is laid into."),
        Param("hardware", 10, "count", 1, 4096, "queues: queues that hardware looks at (gem5: 10)."),
        Param("ring", 1024, "count", 2, 1 << 20, "queues: packets that a queue holds; the host waits for room, in launch order (our choice; a power of two on real ones)."),
        Param("packet", 680.0, "ns", 0, 1e6, "queues: the command processor takes this long for each packet of a queue, kernel or barrier (gpu.cp.admit of an H200 as a stand-in; gem5: 4400, measured on a Kaveri)."),
        Param("quantum", 100.0, "us", 0.5, 1e6, "queues: while there are more queues than hardware looks at, at such times one gets the place of one that has no kernel under way (gem5, after Puthoor et al. 2018: 100)."),
        Param("aware", 0, "bool", 0, 1, "queues: one that can go on gets the place of one that cannot at once (what Puthoor et al. propose, in its simplest form)."),
    ),
    "scheme.sync": (
        _choice("policy", ("tile", "row", "strided", "conv"), "Semaphores: one a tile of what a kernel makes, one a row of tiles, one for tiles that are read together although they lie apart, or one for the tiles that a convolution reads."),
        _choice("launch", ("streams", "pdl", "graph"), "How kernels that wait inside the program overlap: two streams with gate kernels, programmatic dependent launch, or that inside a graph."),
        _choice("trigger", ("start", "late"), "Programmatic launch: a TB triggers at its start, or after its main loop."),
        _choice("gate", ("all", "first", "none"), "Two streams: the gate before a kernel waits until all TBs of the kernel before have started, until the first has, or there is none."),
        Param("order", 0, "bool", 0, 1, "Each TB asks a counter and a table which tile is its own before it begins (the order is that of the grid)."),
        _choice("wait", ("late", "early"), "A TB waits just before it loads what other kernels make, or before its first load of anything."),
        _choice("poll", ("run", "each"), "A poll shows which semaphores behind its own are complete, and they are not polled again, or each is polled where it is first needed."),
        _choice("fence", ("gpu", "system"), "What a TB fences before it posts: the device, or the whole system."),
        Param("spread", 0, "bool", 0, 1, "Pad shared memory so that no SM holds more than an even share of a kernel's TBs."),
        Param("code", 0, "bool", 0, 1, "Stream order, and yet each TB polls and posts: the cost of the synchronisation code."),
        _choice("fused", ("grid", "tile"), "One persistent kernel: a grid barrier between stages, or semaphores of tiles."),
    ),
    "sim": (
        Param("quantum", 0, "cycle", 0, 100000, "Parts run this long alone; 0: the smallest latency between parts. Results do not depend on it."),
        Param("oracle", 0, "bool", 0, 1, "Check every access against the exact footprints; stop at the first broken dependence."),
        Param("sustained", 0, "bool", 0, 1, "The job is one of many like it, sim.pause between two: SM clocks are what gpu.power_limit leaves (pysim/results/power.py). A job that would take more is simulated again, up to three times."),
        Param("pause", 0.0, "us", 0, 1e6, "Between two runs of a sustained job the board does nothing for so long."),
        Param("clock_share", 1.0, "share", 0.25, 1, "What a power limit leaves of the clocks of all SMs, those with busy tensor cores included; network, L2 and DRAM keep theirs. Chosen by the run where sim.sustained is set."),
        Param("sample", 0.0, "us", 0, 1e6, "Time series for each SM, L2 slice, DRAM channel and bank: length of an interval, at least 0.001 (0: none). Doubled as often as needed to stay within a million rows a run."),
        Param("seed", 1, "count", 0, (1 << 31) - 1, "Seed of everything random (L2 victims, when banks are refreshed, periods that replay simulates)."),
        _choice("replay", ("off", "period"), "period: of a run of equal periods of kernels some are simulated, and the others take what their neighbours took; the error that adds is reported."),
        Param("replay_error", 0.01, "share", 0, 1, "Where replay may add more than this share to the time, as measured in the run, the whole job is simulated instead."),
    ),
}

# Groups that are parts of another one, where a machine is composed of objects: gpu.l1 is gpu.sm.l1, too.
INSIDE = {"gpu.l1": "gpu.sm"}

_MULTIPLIERS = {
    "count": 1,
    "B": 1,
    "cycle": 1,
    "bool": 1,
    "ns": TICKS_PER_NS,
    "us": TICKS_PER_NS * 1000,
    "cycle/64": 64,
    "GB/s": 1000,
    "W": 1000,
    "share": 65536,
}


def encode(row: Param, value: float | int | str) -> int:
    """Return the integer that the C core receives for ``value`` (see the table above)."""
    if row.unit == "choice":
        return row.choices.index(str(value))
    if row.unit == "MHz":
        return round(1000 * TICKS_PER_NS / float(value))
    return round(float(value) * _MULTIPLIERS[row.unit])
