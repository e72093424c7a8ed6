"""Every parameter of the simulator, one row each.

The build renders the C structs from these rows (``build.py``); options, range checks, the reference
page and the attributes of result files come from the same rows. A device that does not state a ``gpu.*``
row has its default: a new mechanism is off by default. Only the standard library is used here, because the
build reads this file before the core exists.

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


# Orders in which the GPCs of an empty chip are filled; a chip with another number of GPCs fills them by number.
# `h200`: h200_first.csv, one of several measured rotations; the GPCs' L2 partitions in this order are ++---+-+.
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
        Param("gpcs", 1, "count", 1, 64, "Clusters of SMs (GPCs), numbered in order and as even as whole TPCs allow; TBs are dispatched to them in turn."),
        Param("tpc_sms", 1, "count", 1, 4, "SMs of a TPC; each TPC gets a TB before one of its SMs gets a second one."),
        Param("clock", 1455.0, "MHz", 100, 10000, "SM clock."),
        Param("clock_tensor", 1.0, "share", 0.25, 1, "SM clock of a GPC while its tensor cores are busy, as a share of gpu.clock (1: it does not change)."),
        Param("power_limit", 0.0, "W", 0, 10000, "Board power that a sustained job may take (sim.sustained; 0: no limit)."),
        Param("power_slope", 0.0, "share", 0, 4, "Exponent: the energy of an event of an SM or of L2 is in proportion to this power of the clock, because the voltage falls with it."),
    ),
    "gpu.sm": (
        Param("warps", 64, "count", 4, 64, "Resident warps an SM; a multiple of 4."),
        Param("tbs", 32, "count", 1, 32, "Resident thread blocks an SM."),
        Param("registers", 65536, "count", 1024, 1 << 20, "32-bit registers an SM."),
        Param("register_unit", 256, "count", 32, 4096, "Registers are allocated to a warp in units of this size."),
        Param("smem", 98304, "B", 0, 1 << 20, "Largest shared memory of an SM."),
        Param("smem_unit", 256, "B", 1, 65536, "Shared memory is allocated to a TB in units of this size."),
        Param("parameters", 0, "cycle", 0, 4096, "Delay of a kernel's first TB on an SM for each 64 B of the kernel's parameters; kernels that do not state how many they read have none."),
        Param("refetch", 0, "cycle", 0, 10000, "A kernel that a stream launches beside running ones drops cached code and parameters: its TBs and theirs stall this long, if their kernels state how many parameters they read (not in a graph)."),
        Param("own_carveout", 0, "bool", 0, 1, "A busy SM takes a TB only if it is set to at least the carve-out that the TB's kernel chooses (0: wherever the TB's own shared memory fits)."),
        Param("smem_reserved", 0, "B", 0, 65536, "Shared memory of each TB that the system reserves."),
        *(
            _interval(pipe, default, doc)
            for (pipe, doc), default in zip(PIPES, (2.0, 2.0, 2.0, 4.0, 8.0, 2.0, 1.0), strict=True)
        ),
        *(_latency(pipe, default, doc) for (pipe, doc), default in zip(PIPES, (4, 4, 6, 8, 14, 10, 4), strict=True)),
        Param("smem_interval", 1.0, "cycle/64", 0.25, 1024, "Cycles for which a shared-memory wavefront (128 B) holds the shared memory of the SM."),
        Param("smem_return", 1.0, "cycle/64", 0.25, 1024, "Cycles between two wavefronts whose results return to a sub-core; not below smem_interval."),
        Param("smem_late", 0.0, "cycle/64", 0, 64, "Extra cycles for which loads hold shared memory, for each issue slot that fp32 arithmetic beside them loses to late operands."),
        Param("smem_queue", 64, "count", 1, 4096, "Wavefronts of shared memory that an SM queues; a warp stalls when the queue is full. With warp_order oldest or greedy_oldest, the oldest stalled warp goes first."),
        Param("copy_gap", 1, "cycle", 1, 64, "Cycles from an async copy (cp.async) to the next op of its warp."),
        Param("queue", 0, "count", 0, 7, "Async copies and shared-memory loads (blocks of nothing else, such as ldmatrix) that a sub-core queues, in order, until their registers have been read (0: no limit, and an async copy leaves when the LSU begins the one before it). Needs warp_order oldest or greedy_oldest."),
        Param("queue_read", 32, "count", 4, 384, "Register bytes a cycle that a sub-core reads for its queue: 384 for an async copy and 128 for a block of loads, in whole cycles. An async copy leaves the queue when its registers have been read and the LSU has room for it."),
        Param("copy_queue", 4, "count", 1, 32, "Async copies that have left their sub-core's queue and that the LSU has not begun."),
        Param("copy_hold", 0.25, "cycle/64", 0, 64, "Cycles for which each sector that an async copy delivers holds the array of L1 and shared memory."),
        Param("lsu_queue", 32, "count", 1, 4096, "Lines that the LSU queues; a warp stalls when the queue is full."),
        Param("lsu_shared", 0, "bool", 0, 1, "A load from shared memory takes a cycle of the LSU for each four wavefronts (0: none)."),
        Param("smem_latency", 19, "cycle", 1, 1024, "Load to use of shared memory without conflicts; shuffles take as long."),
        _choice("smem_conflicts", ("words", "first_word"), "How wavefronts of a shared-memory access in a trace are counted. words: as many as the most different words in one of the 32 banks, at least one for each 8 B a lane; first_word: the same for the first word of each lane alone, whatever the width."),
        Param("barrier", 20, "cycle", 1, 256, "From the last arrival at a TB barrier to the next issue."),
        Param("barrier_warp", 0, "cycle", 0, 64, "Cycles to count each warp that arrives at a barrier, one after another in an SM."),
        Param("barrier_leave", 0, "cycle", 0, 16, "After a barrier the warps of a TB resume this many cycles apart, in an order that is fixed for each TB (a hash of its SM and of its arrival number there), so that equal TBs drift apart (0: all at once)."),
        Param("leave_stores", 1, "bool", 0, 1, "A TB frees its slot when its stores have left the SM (0: when L2 has acknowledged them)."),
        Param("register_ports", 1, "bool", 0, 1, "Model issue slots lost to register-bank conflicts (0: none are lost)."),
        _choice("warp_order", ("greedy", "round_robin", "oldest", "greedy_oldest"), "Which warp of a sub-core issues. greedy: the last one while it can, then the one that has waited longest; round_robin: all in turn; oldest: that of the oldest TB, also among warps that wait for pipes or the LSU; greedy_oldest: the last one while its compute blocks need not wait and have no tensor instructions, then that of the oldest TB."),
        Param("block_max", 1024, "count", 1, 4096, "Longest compute block in instructions; kernel times stay within 2 % of length 1."),
        Param("block_tensor", 1024, "count", 1, 4096, "Longest compute block in instructions of programs with tensor instructions, if less than block_max; older warps wait for the end of a block. Programs from traces keep block_max."),
    ),
    "gpu.bulk": (
        Param("test", 0, "cycle", 0, 1024, "From the end of a ring barrier's phase, or from the test of one that has ended, until the warp goes on. 0: the GPU has no ring barriers, bulk copies and clusters (it needs compute capability 9.0)."),
        Param("arrive", 0, "cycle", 0, 1024, "From a warp's arrival at a ring barrier until it counts."),
        Param("latency", 0, "cycle", 0, 1024, "From a bulk copy's issue until its first request leaves the SM."),
        Param("line", 1.0, "cycle/64", 0.25, 64, "Cycles that the unit for bulk copies takes for each line that it loads."),
        Param("descriptor", 0, "cycle", 0, 4096, "To fetch the descriptor of a tensor: the first bulk copy of a kernel's tensor on an SM starts so much later."),
        Param("store_bytes", 32, "count", 1, 1024, "Bytes of shared memory a cycle that a bulk store reads."),
        Param("taken", 0, "cycle", 0, 4096, "From a bulk store's last byte that is read until its warp knows it."),
        Param("fill_delay", 0.0, "cycle/64", 0, 64, "Cycles that each line that arrives in shared memory delays asynchronous multiplies, which read their operands there."),
        Param("cluster_latency", 64, "cycle", 16, 1024, "What an arrival at a barrier of another TB of the cluster takes longer than at an own one; bounds the quantum of jobs with clusters."),
        Param("cluster_rest", 0, "count", 0, 64, "SMs of the last GPC that take clusters of more than two TBs, a multiple of 8 (0: all)."),
    ),
    "gpu.l1": (
        Param("size", 131072, "B", 8192, 262144, "L1 and shared memory together; L1 gets what the carve-out leaves."),
        Param("reserved", 0, "B", 0, 65536, "Part of size that neither L1 nor shared memory gets."),
        Param("latency", 28, "cycle", 8, 256, "Load to use on a hit."),
        Param("in_flight", 256, "count", 32, 2016, "Outstanding line requests of an SM: of loads to registers, and of other accesses without a limit of their own."),
        Param("copies_in_flight", 0, "count", 0, 2016, "Outstanding line requests of async copies (0: they count in in_flight). Stalled warps of either kind proceed in order."),
        Param("stores_in_flight", 0, "count", 0, 2016, "Outstanding line requests of stores and reductions (0: they count in in_flight)."),
        Param("hold_late", 0, "bool", 0, 1, "Lines that loads fetch into registers hold the array of L1 and shared memory for a cycle each when they arrive (0: when they are requested, as for async copies)."),
        Param("keep_stores", 0, "bool", 0, 1, "L1 allocates the lines of stores, which still go through to L2 (0: only those of loads)."),
        Param("join_stores", 0, "bool", 0, 1, "A store to exactly the sectors of the warp's last store merges with it on the way to L2; a third one does not."),
    ),
    "gpu.noc": (
        Param("latency", 60, "cycle", 8, 1024, "One way between SM and L2 slice, unloaded; bounds the quantum."),
        Param("tpc_distance", 0.0, "cycle/64", 0, 64, "Extra reply cycles for each row of TPCs in the GPC after the SM's own; a row has one TPC of each cluster (CPC). Latencies of L2 and DRAM are means over all SMs."),
        Param("cluster_distance", 0.0, "cycle/64", 0, 64, "Extra reply cycles for each cluster (CPC) of the GPC before the SM's own."),
        Param("reply_bytes", 64, "count", 8, 1024, "Bytes a cycle that the reply port of an SM receives."),
        Param("port_sms", 1, "count", 1, 4, "SMs that share a port to the network, both ways: 1, 2 or 4."),
        Param("read_sector", 0.0, "cycle/64", 0, 64, "Cycles for which each sector of a read request holds a port; a line's request holds it for one at least."),
        Param("join_loads", 0, "count", 0, 64, "Loads of the same sectors, by SMs of one GPC or by one SM, that share a request: they merge with the last request for the line at the L2 slice until its reply leaves (0 or 1: none merge)."),
        Param("gpc_link", 0, "count", 0, 1 << 12, "Bytes a cycle of L2 replies that a GPC receives from each group of four slices; its clusters (CPCs: each third TPC) share them evenly (0: no limit)."),
        Param("write_bytes", 32, "count", 8, 1024, "Bytes of store data a cycle that the request port of an SM sends."),
        Param("write_partial", 0, "cycle", 0, 64, "Extra cycles for which a store's line holds the port where the store does not write all bytes of its sectors."),
    ),
    "gpu.l2": (
        Param("size", 4718592, "B", 65536, 1 << 30, "Capacity of the L2."),
        Param("slices", 48, "count", 1, 256, "L2 slices; each has its own DRAM channel."),
        Param("hash_slices", 0, "count", 0, 512, "Slices that the address hash picks from; those beyond gpu.l2.slices wrap to the first ones, which then get more lines (0: as many as there are)."),
        Param("latency", 193, "cycle", 32, 4096, "Load to use on an L2 hit, unloaded."),
        Param("fill", 32, "B", 32, 64, "Bytes that DRAM delivers for a missing sector: 32, the sector, or 64, the aligned pair."),
        Param("slice_bytes", 32, "count", 8, 1024, "Bytes a cycle that a slice delivers."),
        Param("enter", 0.0, "cycle/64", 0, 64, "Cycles that each load takes to enter a slice, merged or not; only with gpu.noc.join_loads. A load of more than 64 B that merges with none also takes gpu.l2.request."),
        Param("request", 0.0, "cycle/64", 0, 64, "Cycles that a slice takes to look up a load that merges with none, while it sends other replies."),
        Param("open_lines", 0, "bool", 0, 1, "L2 keeps two lines a set with partially written sectors. When a third comes, L2 reads the rest of the least recently written one from DRAM, as it does when such a line is evicted or loaded (0: partially written sectors count as whole); not with lru replacement."),
        Param("update", 0.0, "cycle/64", 0, 64, "Cycles for which each sector of a reduction holds a slice, if longer than other sectors do."),
        Param("hash", 1, "bool", 0, 1, "Slices and sets are chosen by a hash of the address, so that strides spread (0: by the line's number, or with gpu.l2.chunked by its quad's, lowest digits first, and strides camp on a few slices)."),
        Param("chunked", 0, "bool", 0, 1, "Lines map to slices as on an H200: of each 1 KiB, lines 0, 1, 4 and 5 map to one slice and 2, 3, 6 and 7 to one; the slice is the remainder of a folded address by the number of slices (of a partition); not with gpu.l2.hash_slices (0: consecutive lines map to consecutive slices)."),
        Param("single", 0, "count", 0, 256, "With gpu.l2.chunked: slices of a partition that are a unit of the hash by themselves, at most all; the others are two a unit, and one left over by itself."),
        Param("partitions", 1, "count", 1, 2, "L2 partitions: with 2, SMs of one partition keep copies of lines whose home is the other; not with lru replacement."),
        Param("fabric_latency", 100, "cycle", 8, 4096, "Two partitions: one way between them."),
        Param("twin_latency", 0, "cycle", 0, 8192, "Two partitions: extra latency of a load whose line is cached in the other one alone, beyond a hit (0: both ways and a tag)."),
        Param("far_latency", 0, "cycle", 0, 1024, "Two partitions: extra latency of a hit whose home is the other partition, over one whose home is the reader's; gpu.l2.latency is the mean of both."),
        Param("fabric_bandwidth", 0.0, "GB/s", 0, 100000, "Two partitions: bandwidth between them, both ways together; a store's line is 44 B and 29 B a sector, byte mask and address included (0: no limit)."),
        _choice("replacement", ("random", "lru", "clock"), "Victim among the 16 ways of a set. random: among those not recently referenced; lru: the least recently used; clock: the next in turn that was not referenced since the clock last passed it."),
        Param("referenced", 1, "count", 0, 32, "Random replacement: of 32 new lines, how many count as referenced at once; with few, scans do not evict lines in use."),
    ),
    "gpu.dram": (
        Param("bandwidth", 652.8, "GB/s", 1, 100000, "Peak bandwidth of all channels."),
        Param("latency", 375, "cycle", 64, 8192, "Load to use on an L2 miss with the row closed, unloaded, in SM cycles."),
        Param("banks", 16, "count", 1, 32, "Banks a channel; a power of two."),
        Param("bank_hash", 1, "bool", 0, 1, "The bank is the row's lowest bits xor higher ones (0: the lowest bits alone, so rows a power of two apart share one)."),
        Param("row_bytes", 1024, "B", 128, 65536, "Bytes of a row in one channel; a power of two."),
        Param("row_open", 28.0, "ns", 1, 1000, "Precharge and activate (tRP + tRCD)."),
        Param("row_cycle", 47.0, "ns", 1, 1000, "Least time between two activates of a bank (tRC)."),
        Param("row_gap", 0.0, "ns", 0, 1000, "Least time between two activates of a channel (tRRD, or a quarter of tFAW)."),
        Param("refresh_period", 3900.0, "ns", 100, 1e6, "Refresh interval (tREFI) of a channel, or of each bank where banks are refreshed in turn."),
        Param("refresh_time", 260.0, "ns", 0, 10000, "Each refresh holds a channel's bus this long (tRFC); where banks are refreshed in turn, each bank's."),
        Param("bank_refresh_time", 0.0, "ns", 0, 10000, "Banks are refreshed in turn: each is unavailable this long (tRFCpb) and its row is closed, while others go on (0: a channel's banks are refreshed together)."),
        Param("turnaround", 8.0, "ns", 0, 1000, "Bus time lost to a batch of writes, both ways together."),
        Param("read_turnaround", 0.0, "ns", 0, 1000, "Further bus time lost to a batch of writes that follows reads."),
        Param("write_queue", 0, "count", 0, 4096, "Sectors of writes that a channel may have queued; beyond that an eviction of a written line waits (0: no limit)."),
        Param("write_batch", 32, "count", 1, 256, "Sectors that a channel collects before it drains them as one batch."),
    ),
    "gpu.cp": (
        Param("launch", 1500.0, "ns", 0, 1e6, "From the first enqueue to the first dispatch on an idle GPU."),
        Param("stream_gap", 1000.0, "ns", 0, 1e6, "Stream order: from a kernel's last release to the next kernel's dispatch."),
        Param("graph_gap", 500.0, "ns", 0, 1e6, "Graph edge: from a kernel's last release to the next kernel's dispatch."),
        Param("graph_prepare", 0.0, "ns", 0, 1e6, "Graph edge: least time from a kernel's dispatch to that of the next one."),
        Param("admit", 680.0, "ns", 0, 1e6, "Pool and table schemes admit kernels this far apart."),
        Param("tb_release", 0.603, "ns", 0, 1e4, "Time of one chip-wide server for each TB that ends."),
        Param("tb_start", 0.09, "ns", 0, 1e4, "Time of one chip-wide server for each TB that starts."),
        Param("cluster_start", 0.0, "ns", 0, 1e4, "Time between two TB starts on SMs of one cluster (CPC, three a GPC)."),
        Param("tpc_start", 0.0, "ns", 0, 1e3, "Where two SMs of a TPC get their first TBs at the same time, the second one's starts this long later for each warp of the first one's."),
        Param("tpc_warps", 5, "count", 1, 64, "Most warps of the first TB that gpu.cp.tpc_start counts."),
        Param("even_tbs", 0, "bool", 0, 1, "No SM takes more than ceil(TBs / SMs) TBs of a kernel."),
        Param("beside", 0.0, "ns", 0, 1e6, "Added to the gap before a kernel that starts beside running kernels of another stream."),
        _choice("place", ("load", "room"), "SM of a TB. load: the one with the fewest warps, ties in turn; room: the one with room for most further TBs of its kernel, ties to the first, and on an empty chip as on an H200: GPC by GPC, where less than a full round is left shared evenly among GPCs."),
        _choice("gpc_order", tuple(GPC_ORDERS), "Order in which an empty chip's GPCs are filled (gpu.cp.place = room): by number, or as measured on an H200, if there are 8 GPCs."),
        Param("together", 0, "count", 0, 1024, "SMs of one GPC that get their even share of a cooperative kernel's TBs before others get one, and on an empty chip the first TBs of any kernel (gpu.cp.place = room)."),
        Param("early_gap", 340.0, "ns", 0, 1e6, "Programmatic dependent launch: from the last trigger to the dependent kernel's dispatch."),
        Param("early_graph_gap", 235.0, "ns", 0, 1e6, "As gpu.cp.early_gap, inside a graph."),
        Param("early_depth", 8, "count", 1, 1024, "Kernels of a stream's programmatic launches in flight at once."),
        Param("early_graph_depth", 128, "count", 1, 1024, "As gpu.cp.early_depth, inside a graph."),
        Param("early_reuse", 1600.0, "ns", 0, 1e6, "From a kernel's last release until another may be in flight in its slot."),
        Param("depend", 195.0, "ns", 20, 1e6, "From a kernel's last release until waits for its end return."),
        Param("tb_flush", 0, "cycle", 0, 10000, "From L2's acknowledgement of a TB's last store, and of the flush after it (gpu.cp.end_flush), until the store is visible to the whole GPU and the TB counts as complete."),
        Param("end_flush", 0, "bool", 0, 1, "A TB that has stored sends a flush through L2 and back when it ends, however long ago its stores were acknowledged (0: none); not where gpu.cp.tb_flush is 0."),
        Param("tb_done_latency", 70.0, "ns", 20, 1e5, "From a TB's end on its SM to the release server, and from its completion to the scheduler."),
        Param("tb_start_latency", 100.0, "ns", 20, 1e5, "From dispatch to the first issue of a TB."),
    ),
    "gpu.sync": (
        Param("fence", 304, "cycle", 0, 10000, "A device-wide fence, beyond the acknowledgement of the stores before it."),
        Param("fence_system", 2870, "cycle", 0, 100000, "A system-wide fence, beyond the acknowledgement of the stores before it; no less than gpu.sync.fence."),
        Param("latency", 313, "cycle", 0, 10000, "Round trip of an atomic or an acquiring load within a partition of L2, no less than that of a load."),
        Param("acquire", 180, "cycle", 0, 10000, "From a poll's reply to the next op of its warp, or its next poll."),
        Param("posted", 0, "cycle", 0, 10000, "Extra latency of the acknowledgement of a post over that of a store that arrives with it; the TB of the post is not complete before."),
        Param("atomic", 0.796, "ns", 0, 1000, "Time of L2 for each atomic or poll of a line of semaphores."),
    ),
    "host": (
        _choice("submit", ("prefilled", "eager"), "prefilled: everything is enqueued before the GPU starts; eager: each launch costs host.launch."),
        Param("launch", 2400.0, "ns", 0, 1e7, "Host time of one launch."),
        Param("graph_node", 2100.0, "ns", 0, 1e7, "Host time for each kernel of a graph that is made anew: to add, instantiate and upload it (measured: h200_graphs.csv, CUDA 13.0: 1.8 us on one host, 2.7 on another)."),
        Param("graph_edge", 1000.0, "ns", 0, 1e7, "Host time for each edge of such a graph (measured: h200_graphs.csv: 0.9 and 1.5 us)."),
        Param("roundtrip", 7300.0, "ns", 0, 1e7, "Launch and synchronise: the cost of scheme host between kernels."),
        Param("copy_bandwidth", 12.0, "GB/s", 0.125, 100000, "Bandwidth of the link for bytes from the host, where copies take time (PCIe 3.0 x16 from pinned memory: users report 11 to 12.5 of the 15.75 that the standard signals; not measured)."),
        Param("copy_latency", 7300.0, "ns", 0, 1e7, "Time before a copy's first byte, where copies take time (a synchronous copy is waited for as a launch is: host.roundtrip's value)."),
    ),
    "scheme": (
        Param("window", 64, "count", 1, 1 << 20, "Kernels that table schemes admit at once."),
        _choice("priority", ("oldest", "newest", "critical", "round_robin", "consumer"), "Which ready TB goes first. oldest: of the oldest kernel; newest: of the newest; critical: of the longest remaining path; round_robin: kernels in turn; consumer: of the kernel with the longest chain of kernels before it."),
        _choice("placement", ("first_free", "balanced", "affinity", "ahead"), "SM of a TB under table schemes. first_free: any with a free slot; balanced: as before, but no SM takes more than an even share of a kernel while an older one has not ended; affinity: that of its last producer, if it has room; ahead: as balanced, but only for the oldest kernel with TBs left, where its TBs start ahead of their gate (scheme.prologue)."),
        Param("affinity", 32, "count", 1, 1 << 16, "Placement affinity: ready TBs of a kernel that are searched for one whose last producer ran on the SM with a free slot."),
        Param("reserve", 0.0, "share", 0, 1, "Table schemes: share of all warps that stays free for the oldest kernel with TBs left, so that newer ones cannot starve it."),
        _choice("coherence", ("auto", "kernel", "bypass", "tb", "argument"), "How L1 is kept from serving old data of another kernel. kernel: invalidate L1 at kernel start; bypass: read such data past L1; tb: invalidate L1 at TB start; argument: L1 marks lines of arguments whose memory is overwritten, and a TB start invalidates the marked lines where they may be older than the TB's producers. auto: argument for pool, tb_*, blockmaestro and wireframe; bypass where TBs wait inside programs; else kernel."),
        _choice("carveout", ("auto", "kernel", "job"), "Shared-memory carve-out chosen for each kernel or once for the job. auto: kernel for barrier schemes and, with gpu.sm.own_carveout, where kernels wait inside; else job."),
        Param("bypass", 4, "count", 0, 64, "Table schemes skip at most this many ready kernels whose TBs fit nowhere (barrier schemes: none)."),
        Param("prologue", 0, "bool", 0, 1, "Schemes with edges between TBs: a TB may be dispatched to a slot that no ready one takes, runs its part that depends on no other kernel, and then waits inside for its counter."),
        Param("build", 0, "bool", 0, 1, "graph: the graph depends on the input, so the host makes it (host.graph_node, host.graph_edge) before its launch."),
        Param("hypothetical", 0, "bool", 0, 1, "Schemes also run on GPUs whose hardware lacks what they need."),
        Param("bypass_age", 1024, "count", 1, 1 << 30, "A kernel that was skipped this often is not skipped again until it fits."),
    ),
    "scheme.table": (
        Param("entries", 16384, "count", 1, 1 << 30, "Entries of the dependence table. A kernel that does not fit takes one entry and waits for whole kernels; while none is free it is not admitted."),
        Param("consumers", 4, "count", 1, 1 << 16, "Consumer ranges that one entry holds."),
        Param("entry_bytes", 16, "B", 1, 1024, "Bytes of an entry."),
        Param("group", 1, "bool", 0, 1, "Consecutive TBs may share a counter where edges of single TBs need too many updates or entries (0: such kernels wait for whole kernels)."),
        Param("fetch", 0, "bool", 0, 1, "A kernel's dependences stay in memory until a TB of a producer kernel is dispatched, and are fetched then, in the form for which there is room; not with scheme.prologue (0: they come with the kernel's admission)."),
        Param("fetch_lists", 0, "bool", 0, 1, "The lists of counters that each TB's end decrements are stored in memory: those of resident TBs are fetched at dispatch while there is room on the chip, others are read when the TB ends. Counters of a whole kernel, or of consecutive TBs, need no list; tb_learned computes its lists and pays for none (0: all lists are on the chip at no cost)."),
        Param("lists", 512, "count", 1, 1 << 24, "With scheme.table.fetch_lists: entries on the chip for lists of resident TBs (our choice)."),
        Param("references", 4, "count", 1, 1 << 16, "Counters that such an entry names, 2 B each; numbers are reused as kernels leave the window (our choice)."),
        Param("reduce", 0, "bool", 0, 1, "tb_static: the graph is given after transitive reduction (where C waits for B and B for A, C need not wait for A), and nodes of the same TBs are merged. It costs the table nothing."),
        Param("share", 0.25, "share", 0, 1, "A kernel whose TBs can share counters takes at most this share of the free entries; with fewer entries, more TBs share one (our choice)."),
        Param("shortest", 1000.0, "ns", 0, 1e6, "A kernel's edges are kept TB by TB where the updates for all resident TBs of its producers take no longer than this: the least duration assumed of a TB (a launch and a load from DRAM)."),
        Param("update", 0.5, "ns", 0, 1e5, "Time of the table for each counter that it updates (two banks that update one a nanosecond each)."),
        Param("latency", 20.0, "ns", 0, 1e5, "From an update that frees a TB until the TB is ready."),
    ),
    "scheme.learned": (
        Param("ranges", 4, "count", 1, 1 << 16, "tb_learned: ranges kept for each TB and argument, for reads and for writes. Where a TB touches more, neighbouring ranges merge with what lies between them: edges are added, none lost (our choice)."),
        Param("strided", 1, "bool", 0, 1, "tb_learned: a range may be a run of bytes repeated at one distance, so that a tile of a matrix is one (0: contiguous bytes only)."),
        Param("entry_bytes", 16, "B", 1, 1024, "tb_learned: bytes of a kept range: offset, length, distance and count (our choice)."),
        Param("lookup", 1.0, "ns", 0, 1e5, "tb_learned: time to compare each range of a launch with those in the pool, before its kernel is admitted (assumed: one a nanosecond)."),
    ),
    "scheme.acs": (
        Param("window", 32, "count", 2, 256, "Kernels in the window whose addresses are compared (Durvasula et al. 2024: 32, ids of 8 bits)."),
        Param("list", 64, "count", 1, 1 << 20, "acs_hw: most kernels from the oldest unfinished one to the newest in the window, those that the host remembers (the paper's M, which it does not state: assumed)."),
        Param("threads", 8, "count", 1, 1024, "acs_sw: threads of the host, each with a stream and a kernel in flight (the paper calls it configurable; assumed: CUDA's default number of connections)."),
        Param("insert", 80.0, "ns", 0, 1e6, "acs_sw: host time to put a kernel into the window (with scheme.acs.check: fitted to the paper's 410 and 700 ns for 6 and 10 segments and a window of 16, 510 and 1640 ns for one of 32)."),
        Param("check", 0.48, "ns", 0, 1e4, "acs_sw: host time to compare a segment of the new kernel with one of a kernel in the window."),
    ),
    "scheme.blockmaestro": (
        Param("kernels", 2, "count", 2, 4, "Kernels that are launched and have not ended, running ones included (Abdolrashidi et al. 2021: two to four, told apart by two bits)."),
        _choice("priority", ("producer", "consumer"), "producer: no TB of a kernel is dispatched before all TBs of older kernels; consumer: newer kernels first."),
        Param("entries", 896, "count", 1, 1 << 24, "Entries of each of the two buffers, of children and of counters (28 SMs of 32 TBs there)."),
        Param("children", 4, "count", 1, 1024, "Children that an entry lists."),
        Param("parents", 63, "count", 1, 1 << 24, "Most parents of a TB (a counter of 6 bits); with more, its kernel waits for the one before as a whole."),
        _choice("addresses", ("affine", "exact"), "affine: nothing is known of a kernel with recorded addresses or addresses read from data: it waits for the kernel before as a whole, and later ones wait for it as a whole; exact: its edges are known like those of others."),
    ),
    "scheme.wireframe": (
        Param("nodes", 192, "count", 1, 1 << 24, "TBs that the graph buffer holds, from before their dispatch to their end (2 KB for both buffers is reported of Wireframe; how they divide is assumed)."),
        Param("pending", 64, "count", 0, 1 << 24, "Entries for TBs whose counters are decremented before they are in that buffer."),
        Param("node_bytes", 8, "B", 1, 1024, "Bytes of an entry of either buffer (assumed)."),
    ),
    "scheme.bloom": (
        Param("bits", 1792, "count", 8, 1 << 16, "tb_bloom: bits of a signature; each unit has two, for reads and for writes (our choice: 32 KB in all)."),
        Param("hashes", 6, "count", 1, 16, "tb_bloom: hash functions of a signature (our choice)."),
        Param("granule", 32, "B", 32, 1 << 30, "tb_bloom: memory is inserted and looked up in granules of this size, and of larger ones (our choice: a sector)."),
        Param("levels", 12, "count", 1, 12, "tb_bloom: sizes of granules, each four times the one before; a range is made up of the largest that fit (1: of scheme.bloom.granule alone)."),
        Param("fill", 0.7, "share", 0, 16, "tb_bloom: hash values that a signature takes at most, as a share of its bits (0.7: half of the bits are set); where a launch would enter more, gaps between its ranges are filled, the smallest first (with one size of granule: no limit; our choice)."),
        _choice("per", ("kernel", "part", "tb", "group"), "tb_bloom: the unit that has its own signatures: a kernel, a TB or a group of scheme.bloom.group consecutive TBs. A kernel that would take more than half of all signatures has larger groups. part: a kernel, or one of scheme.bloom.parts parts of its TBs where no part reads, or writes, more than half of what the kernel does."),
        Param("parts", 4, "count", 1, 1 << 14, "tb_bloom: parts into which scheme.bloom.per = part cuts a kernel (our choice)."),
        Param("group", 8, "count", 1, 1 << 20, "tb_bloom: TBs of a group."),
        Param("signatures", 64, "count", 64, 1 << 14, "tb_bloom: units for which the scheduler's memory has room, rounded up to 64; a kernel that finds too few is not admitted (our choice)."),
        _choice("clear", ("kernel", "epoch"), "tb_bloom: when signatures are cleared. kernel: when the last TB of their kernel has ended; epoch: half of the memory at a time, when the last TB of that half has ended."),
        Param("insert", 0.25, "ns", 0, 1e5, "tb_bloom: time for each entry of a signature that is made; a hint enters the signatures of all its units at once (assumed: four banks that take one a nanosecond each)."),
        Param("lookup", 0.25, "ns", 0, 1e5, "tb_bloom: time for each entry that is looked up, in all signatures at once (assumed: four banks that take one a nanosecond each). What lies within gpu.cp.admit, in which the next launch is read, delays nothing."),
        Param("latency", 100.0, "ns", 0, 1e6, "tb_bloom: from the first kernel's first lookup to its first answer; later lookups are pipelined (assumed)."),
        Param("constants", 0, "bool", 0, 1, "tb_bloom: hints also name memory that the job never writes."),
        Param("widen", 100, "count", 100, 100000, "tb_bloom: length of each hinted range in percent of the bytes touched; the rest is split between both sides."),
        Param("missing", 0.0, "share", 0, 1, "tb_bloom: share of launches without a hint, chosen by sim.seed; they run after barriers."),
        _choice("signature", ("bloom", "exact"), "tb_bloom: Bloom signatures, or exact ones of the same cost without false positives."),
    ),
    "scheme.auto": (
        Param("share", 0.25, "share", 0, 1, "tb_auto: TBs of a kernel wait for TBs of another only if each needs less than this share of them; else for the whole kernel (set on 22 cases: RNNs, Transformers, stencils, wavefronts, a CNN; two GPUs)."),
        Param("waiting", 0.5, "share", 0, 1, "tb_auto: the same if less than this share of a kernel's TBs wait for any TB of the other (set as scheme.auto.share)."),
        Param("reduce", 1, "bool", 0, 1, "tb_auto: edges that others imply are left out."),
        Param("hints", 128, "count", 1, 1 << 16, "tb_auto: words of hints a launch may have: one for each strided range, and one or two more for rows and further loops; of a launch with more, operands are stated as a whole, or joined (our choice)."),
        Param("store", 448, "count", 1, 1 << 22, "tb_auto: words of hints for which the scheduler has room; a kernel that finds too few is not admitted (our choice)."),
        Param("counters", 2560, "count", 1, 1 << 24, "tb_auto: counters for which the scheduler has room (our choice)."),
        Param("rules", 1152, "count", 1, 1 << 20, "tb_auto: rules for which the scheduler has room: two hints that conflict, from which it computes which TBs wait for one that ends; a kernel that finds too few waits for whole kernels (our choice)."),
        Param("tbs", 16384, "count", 1, 1 << 24, "tb_auto: TBs of kernels that wait by TB, or are waited for by TB, of which the scheduler keeps the state (our choice)."),
        Param("ahead", 4, "count", 0, 1 << 20, "tb_auto: kernels after the oldest unfinished one that are admitted whatever form of their edges there is room for; later ones when there are counters for their exact edges (0: all are admitted at once; our choice)."),
        Param("compare", 0.0625, "ns", 0, 1e5, "tb_auto: time for each comparison of a hint of a new launch with one of an unfinished launch (assumed: sixteen comparators of one a nanosecond each)."),
        Param("rule", 1.0, "ns", 0, 1e5, "tb_auto: time to set up a rule and its counters (assumed: a pipelined division a nanosecond)."),
        Param("evaluate", 0.125, "ns", 0, 1e5, "tb_auto: time to compute by a rule what the end of a TB counts down (assumed: eight units of a multiplication a nanosecond each)."),
        Param("latency", 100.0, "ns", 0, 1e6, "tb_auto: from a launch's first comparison to its first answer (assumed)."),
        Param("widen", 100, "count", 100, 100000, "tb_auto: length of each hinted range in percent of the bytes touched; the rest is split between both sides."),
        Param("missing", 0.0, "share", 0, 1, "tb_auto: share of launches without a hint, chosen by sim.seed; they run after barriers."),
    ),
    "scheme.queues": (
        _choice("map", ("graph", "stream"), "queues: how kernels map to queues. graph: a kernel goes into the queue of one that it depends on, else into the next queue in turn; stream: a queue for each stream of the job, in order, with barrier packets for its events."),
        Param("count", 10, "count", 1, 4096, "queues: queues that a graph is mapped to."),
        Param("hardware", 10, "count", 1, 4096, "queues: queues that hardware processes at once (gem5: 10)."),
        Param("ring", 1024, "count", 2, 1 << 20, "queues: packets that a queue holds; the host waits for room, in launch order (our choice; a power of two on real ones)."),
        Param("packet", 680.0, "ns", 0, 1e6, "queues: time of the command processor for each packet of a queue, kernel or barrier (gpu.cp.admit of an H200 as a stand-in; gem5: 4400, measured on a Kaveri)."),
        Param("quantum", 100.0, "us", 0.5, 1e6, "queues: with more queues than hardware processes at once, the period at which a waiting queue replaces one that has no kernel in flight (gem5, after Puthoor et al. 2018: 100)."),
        Param("aware", 0, "bool", 0, 1, "queues: a queue that can proceed replaces one that cannot at once (the simplest form of what Puthoor et al. propose)."),
    ),
    "scheme.sync": (
        _choice("policy", ("tile", "row", "strided", "conv"), "Semaphores of a kernel's output. tile: one a tile; row: one a row of tiles; strided: one for tiles that are read together although they are apart; conv: one for the tiles that a convolution reads."),
        _choice("launch", ("streams", "pdl", "graph"), "How kernels that wait inside the program overlap. streams: two streams with gate kernels; pdl: programmatic dependent launch; graph: that inside a graph."),
        _choice("trigger", ("start", "late"), "Programmatic launch: a TB triggers at its start, or late, after its main loop."),
        _choice("gate", ("all", "first", "none"), "Two streams: the gate before a kernel waits until all TBs of the kernel before have started, until the first has, or there is no gate (none)."),
        Param("order", 0, "bool", 0, 1, "Each TB reads its tile from a counter and a table before it begins (the order is that of the grid)."),
        _choice("wait", ("late", "early"), "late: a TB waits just before it loads the output of other kernels; early: before its first load of anything."),
        _choice("poll", ("run", "each"), "run: a poll also returns which of the following semaphores are complete, and those are not polled; each: each is polled where it is first needed."),
        _choice("fence", ("gpu", "system"), "Scope of the fence of a TB before it posts: the device, or the whole system."),
        Param("spread", 0, "bool", 0, 1, "Pad shared memory so that no SM holds more than an even share of a kernel's TBs."),
        Param("code", 0, "bool", 0, 1, "Stream order in which each TB still polls and posts: the cost of the synchronisation code."),
        _choice("fused", ("grid", "tile"), "One persistent kernel: a grid barrier between stages, or semaphores of tiles."),
    ),
    "sim": (
        Param("quantum", 0, "cycle", 0, 100000, "Parts run this long alone (0: the smallest latency between parts). Results do not depend on it."),
        Param("oracle", 0, "bool", 0, 1, "Check every access against the exact footprints; stop at the first broken dependence."),
        Param("sustained", 0, "bool", 0, 1, "The job repeats with sim.pause between two runs: SM clocks are what gpu.power_limit leaves (pysim/results/power.py). A job above the limit is simulated again, up to three times."),
        Param("pause", 0.0, "us", 0, 1e6, "Idle time of the board between two runs of a sustained job."),
        Param("clock_share", 1.0, "share", 0.25, 1, "Share of the clocks of all SMs that a power limit leaves, those with busy tensor cores included; network, L2 and DRAM keep theirs. The run chooses it where sim.sustained is set."),
        Param("sample", 0.0, "us", 0, 1e6, "Interval of the time series of each SM, L2 slice, DRAM channel and bank, at least 0.001 (0: none). It is doubled as often as needed for at most a million rows a run."),
        Param("seed", 1, "count", 0, (1 << 31) - 1, "Seed of everything random (L2 victims, when banks are refreshed, periods that replay simulates)."),
        _choice("replay", ("off", "period"), "period: where a job repeats equal periods of kernels, some are simulated, and the others take the times of their neighbours; the error that this adds is reported."),
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
