"""The tables of a result and their columns, each declared once: name, type, unit and meaning.

Arrays in memory, result files with their units and meanings, and ``pysim tables`` follow from these rows. The
columns of tables of counters come from ``pysim/counters.py``.
"""

from __future__ import annotations

from pysim.counters import BANKS, CHANNEL, HELD, IDLES, SLICE, STALLS, WORK

from .columns import KERNEL, NAME, RUN, STREAM, TBS, Column, counter_columns, layout

RUNS = (
    RUN,
    Column("workload", "S64", "text", "Name of the workload."),
    Column("arguments", "S256", "text", "Its arguments as key=value, defaults too; empty if it has none."),
    Column("scheme", "S64", "text", "Scheme with its options."),
    Column("gpu", "S64", "text", "Name of the GPU."),
    Column(
        "status", "S16", "text", "ok, or why there is no time: refused, unsupported, failed, interrupted."
    ),
    Column("reason", "S160", "text", "Why the status is not ok, or that a trace is of another architecture."),
    Column(
        "window",
        "<f8",
        "kernels",
        "Most kernels that are admitted and unfinished at once; NaN if the scheme has no such limit.",
    ),
    Column("submit", "S16", "text", "How the host enqueues: prefilled or eager."),
    Column("coherence", "S16", "text", "How L1 is kept coherent: `scheme.coherence`, `auto` resolved."),
    Column("time_us", "<f8", "us", "From the first enqueue to the last end."),
    Column("cycles", "<f8", "cycles", "The same in SM clock cycles, of the GPC that counted the most."),
    Column("warp_instructions", "<i8", "count", "Warp instructions issued."),
    Column("tbs", "<i8", "count", "Thread blocks run."),
    Column("speedup", "<f8", "ratio", "Time of `stream` over this time."),
    Column("bound_us", "<f8", "us", "Lower bound of the time for any order under such a scheme."),
    Column(
        "estimate_us",
        "<f8",
        "us",
        "Time of a list schedule of the TBs: an estimate of the reachable time, not a bound.",
    ),
    Column(
        "gap_won",
        "<f8",
        "share",
        "Share of the gap from `stream` to the estimate that the scheme closes; NaN: there is no gap.",
    ),
    Column("alu_utilization", "<f8", "share", "Busy share of the busiest arithmetic pipe."),
    Column("sm_idle", "<f8", "share", "SM time without a TB, as a share."),
    Column("dram_bytes", "<i8", "B", "Bytes moved from and to DRAM."),
    Column("l2_bytes", "<i8", "B", "Bytes moved from and to L2."),
    Column("energy_j", "<f8", "J", "Energy of board and chip; NaN if nobody measured what events take."),
    Column("table_entries", "<i8", "count", "Most entries in use at once, of the table and of its lists."),
    Column("table_bytes", "<i8", "B", "Size of that many entries."),
    Column(
        "table_spills",
        "<i8",
        "count",
        "Entries read or updated in memory: they had no room on the chip, or are fetched (`fetch`).",
    ),
    Column("table_l2_bytes", "<i8", "B", "L2 traffic of tables in memory; part of l2_bytes."),
    Column("table_coarse", "<i8", "count", "Kernels that fell back to waiting for whole kernels."),
    Column("table_shared", "<i8", "count", "Kernels some of whose TBs shared a counter of the table."),
    Column("replayed", "<i8", "kernels", "Launches that were not simulated: they have times of equal ones."),
    Column("replay_error", "<f8", "share", "Error of replay as a share of the time, as measured in the run."),
)

KERNELS = (
    RUN,
    KERNEL,
    STREAM,
    NAME,
    TBS,
    Column("enqueued_us", "<f8", "us", "When the host had enqueued it."),
    Column("admitted_us", "<f8", "us", "When the window admitted it."),
    Column("ready_us", "<f8", "us", "When its first TB could be dispatched."),
    Column("first_dispatch_us", "<f8", "us", "When its first TB was dispatched."),
    Column("last_end_us", "<f8", "us", "When its last TB's last warp ended."),
    Column("complete_us", "<f8", "us", "When its TBs were released and their stores were visible to all."),
    Column("warp_instructions", "<i8", "count", "Warp instructions issued."),
    Column("load_bytes", "<i8", "B", "Bytes requested from L2 by loads."),
    Column("store_bytes", "<i8", "B", "Bytes sent to L2 by stores and reductions."),
    Column("coarse", "|u1", "flag", "1: did not fit the dependence table, waited for whole kernels."),
    Column("sharing", "<i8", "count", "TBs that shared a counter of the dependence table; 0: none was used."),
)

BLOCKS = (
    RUN,
    KERNEL,
    STREAM,
    Column("tb", "<i4", "id", "Thread block, x fastest."),
    Column("sm", "<i4", "id", "SM that it ran on."),
    Column("slot", "<i4", "id", "Its slot on that SM."),
    Column("ready_ns", "<f8", "ns", "When all it depends on had ended."),
    Column("dispatch_ns", "<f8", "ns", "When it was dispatched to a slot."),
    Column("start_ns", "<f8", "ns", "When its warps started."),
    Column("end_ns", "<f8", "ns", "When its last warp ended; its stores may still be in flight."),
    Column("last_kernel", "<i4", "id", "Launch whose TB made it ready; -1: none."),
    Column("last_tb", "<i4", "id", "That TB; -1: none."),
    Column("reason", "S12", "text", "What it waited for last: launch, dependence, slot or dispatch."),
)

_SAMPLE = (
    RUN,
    Column("sample", "<i4", "id", "Number of the sample."),
    Column("start_us", "<f8", "us", "Start of the interval."),
    Column("end_us", "<f8", "us", "End of the interval."),
)
SAMPLES = (
    *_SAMPLE,
    Column("resident_warps", "<f8", "warps", "Mean over the interval, all SMs together."),
    Column("alu_utilization", "<f8", "share", "Busy share of the busiest arithmetic pipe."),
    Column("fp32", "<f8", "share", "Busy share of the fp32 pipes."),
    Column("int", "<f8", "share", "Busy share of the integer pipes."),
    Column("fp16", "<f8", "share", "Busy share of the fp16 pipes."),
    Column("fp64", "<f8", "share", "Busy share of the fp64 pipes."),
    Column("sfu", "<f8", "share", "Busy share of the special-function pipes."),
    Column("tensor", "<f8", "share", "Busy share of the tensor pipes."),
    Column("smem", "<f8", "share", "Busy share of shared memory."),
    Column("l2_requests", "<i8", "count", "Line requests sent to L2."),
)

STALL_SHARES = (
    RUN,
    Column("level", "S8", "text", "What `id` numbers: run, kernel or sm."),
    Column("id", "<i4", "id", "Launch or SM; 0 for a whole run."),
    Column("issued", "<f8", "share", "Share: warps held an issue slot."),
    Column("scoreboard", "<f8", "share", "Share: warps waited for a fixed-latency result."),
    Column("pipe", "<f8", "share", "Share: warps waited for an issue slot, a pipe or the LSU."),
    Column("memory", "<f8", "share", "Share: warps waited for memory."),
    Column("barrier", "<f8", "share", "Share: warps waited at a barrier."),
    Column(
        "dependence",
        "<f8",
        "share",
        "Share: warps waited for other TBs, or no TB on the SM as the next ones wait.",
    ),
    Column("launch", "<f8", "share", "Share: no TB on the SM, the next kernel is on the launch path."),
    Column("no_tb", "<f8", "share", "Share: no TB on the SM and none left."),
)

ENERGY = (
    RUN,
    Column("event", "S16", "text", "What happened: an event of the device's table."),
    Column("count", "<f8", "count", "How often; for `board` and `sm_busy`: for how many seconds."),
    Column("joule", "<f8", "J", "Energy of these."),
    Column("uncertainty_j", "<f8", "J", "Uncertainty of that, by the device's table."),
)

LEARNED = (
    RUN,
    Column("launches", "<i8", "count", "Launches of kernels; copies do not count."),
    Column("served", "<i8", "count", "Launches whose edges came from learned footprints."),
    Column("barriers", "<i8", "count", "Launches that ran after barriers."),
    Column("unlearnable", "<i8", "count", "After barriers: an address is not affine in TB and arguments."),
    Column("changed", "<i8", "count", "After barriers: a known program with another grid or layout."),
    Column("mispredicted", "<i8", "count", "After barriers: other bytes than learned; the model checks."),
    Column("signatures", "<i8", "count", "Signatures learned."),
    Column("ranges", "<i8", "count", "Ranges kept of all signatures."),
    Column("recorded_bytes", "<i8", "B", "Bytes that first launches write through L2, as many by each TB."),
    Column("fetched_bytes", "<i8", "B", "Bytes that served launches read through L2."),
    Column("lookup_us", "<f8", "us", "Time to compare ranges of served launches, without reading them."),
)

BLOOM = (
    RUN,
    Column("launches", "<i8", "count", "Launches of kernels; copies do not count."),
    Column("hinted", "<i8", "count", "Launches with hints."),
    Column("barriers", "<i8", "count", "Launches without hints, which ran after barriers."),
    Column("granules", "<i8", "count", "Granules that all hints name."),
    Column("lookup_us", "<f8", "us", "Time for which launches waited for lookups of their hints."),
    Column(
        "tests",
        "<i8",
        "count",
        "Lookups in signatures of unfinished units that do not have the granule.",
    ),
    Column("false_hits", "<i8", "count", "Tests that the signature answered with yes: false positives."),
    Column("false_rate", "<f8", "share", "False positives over tests."),
    Column(
        "analytic_rate", "<f8", "share", "Expected rate of false positives of signatures as full as these."
    ),
    Column("edges", "<i8", "count", "Edges from unit to unit."),
    Column("false_edges", "<i8", "count", "Edges that only false positives caused."),
    Column("signatures", "<i8", "count", "Most signatures in use at once."),
    Column("memory_bytes", "<i8", "B", "The scheduler's memory: signatures and edges."),
)

CHOSEN = (
    RUN,
    Column("launches", "<i8", "count", "Launches of kernels; copies do not count."),
    Column("hinted", "<i8", "count", "Launches with hints."),
    Column("barriers", "<i8", "count", "Launches without hints, which ran after barriers."),
    Column("hints", "<i8", "count", "Hints of all launches, each a strided range."),
    Column("hint_bytes", "<i8", "B", "Bytes of them in launch packets."),
    Column("hint_us", "<f8", "us", "Time for which launches waited for comparisons and rules."),
    Column(
        "none_pairs", "<i8", "count", "Pairs of kernels with a dependence that need no edge of their own."
    ),
    Column("kernel_pairs", "<i8", "count", "Pairs with an edge between kernels."),
    Column("tb_pairs", "<i8", "count", "Pairs with edges between TBs."),
    Column("peak_rules", "<i8", "count", "Most rules for edges between TBs in a window."),
    Column("peak_tbs", "<i8", "count", "Most TBs with states of their own in a window."),
)

DECISIONS = (
    RUN,
    KERNEL,
    Column("producer_kernel", "<i4", "id", "Launch that it depends on."),
    Column("form", "S8", "text", "Edge between them: tb, kernel, or none of its own."),
    Column("reason", "S16", "text", "Why: covered, few, implied, most, no data, no hints, no room, turns."),
    Column("share", "<f8", "share", "Of the producer's TBs, the most that a TB needs."),
    Column("rules", "<i4", "count", "Pairs of hints that conflict: rules for edges between TBs."),
)

EDGES = (
    RUN,
    KERNEL,
    STREAM,
    Column("tb", "<i4", "id", "Consumer TB; -1: all TBs of the kernel."),
    Column("producer_kernel", "<i4", "id", "Launch that it waits for."),
    Column("producer_tb", "<i4", "id", "TB that it waits for; -1: all TBs of that launch."),
)

NAMES = (
    RUN,
    Column("name", "<i4", "id", "Number used by `kernels`."),
    Column("text", "S160", "text", "Name of the kernel."),
)

# only this table may differ between two equal runs
HOST = (
    RUN,
    Column(
        "setup_seconds",
        "<f8",
        "s",
        "All before the run that no other column counts: interpreter, imports, job, dependences, bounds.",
    ),
    Column("convert_seconds", "<f8", "s", "Converting a trace; 0 where none had to be."),
    Column(
        "load_seconds",
        "<f8",
        "s",
        "Reading a converted trace, lowering it for this GPU, handing it to the core.",
    ),
    Column("simulate_seconds", "<f8", "s", "Simulating."),
    Column("write_seconds", "<f8", "s", "Collecting the tables of the result, pictures, printing."),
    Column("threads", "<i4", "count", "Threads of the core."),
    Column("peak_memory_bytes", "<i8", "B", "Largest resident size of the process."),
    Column("versions", "S160", "text", "Versions of the simulator and of what it uses."),
    Column("machine", "S96", "text", "Processor and operating system."),
)

SM = (
    RUN,
    Column("sm", "<i4", "id", "The SM."),
    Column("busy_us", "<f8", "us", "Time with at least one TB."),
    Column("tbs", "<i8", "count", "Thread blocks run."),
    *counter_columns(STALLS, IDLES, WORK),
)
L2 = (RUN, Column("slice", "<i4", "id", "The L2 slice."), *counter_columns(SLICE, CHANNEL))

# time series (--sample-us): the counters are of the interval
SERIES: dict[str, tuple[Column, ...]] = {
    "sm_series": (*_SAMPLE, Column("sm", "<i4", "id", "The SM."), *counter_columns(HELD, STALLS, WORK)),
    "l2_series": (
        *_SAMPLE,
        Column("slice", "<i4", "id", "The L2 slice."),
        Column("backlog_ns", "<f8", "ns", "At the end of the interval: how long the data port is booked."),
        *counter_columns(SLICE),
    ),
    "dram_series": (
        *_SAMPLE,
        Column("channel", "<i4", "id", "The DRAM channel: that of the slice."),
        Column("queued", "<i8", "count", "At the end of the interval: sectors of reads not yet transferred."),
        *counter_columns(CHANNEL),
    ),
    "bank_series": (
        *_SAMPLE,
        Column("channel", "<i4", "id", "The DRAM channel."),
        Column("bank", "<i4", "id", "The bank of the channel."),
        Column("backlog_ns", "<f8", "ns", "At the end of the interval: time until it may open another row."),
        *counter_columns(BANKS),
    ),
}

# in the order of a result; its hash depends on it
TABLES: dict[str, tuple[Column, ...]] = {
    "runs": RUNS,
    "kernels": KERNELS,
    "tbs": BLOCKS,
    "sm": SM,
    "l2": L2,
    "samples": SAMPLES,
    **SERIES,
    "stalls": STALL_SHARES,
    "energy": ENERGY,
    "learned": LEARNED,
    "bloom": BLOOM,
    "chosen": CHOSEN,
    "decisions": DECISIONS,
    "edges": EDGES,
    "names": NAMES,
    "host": HOST,
}
# a result has these only where the core recorded them; the others may have no rows
RECORDED = ("sm", "l2", *SERIES)
DTYPES = {name: layout(columns) for name, columns in TABLES.items()}
