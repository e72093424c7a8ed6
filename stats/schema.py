"""The tables of a result file, each column declared once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import graph_schema, hardware_schema
from .column import KERNEL as _KERNEL
from .column import NAME as _NAME
from .column import RUN as _RUN
from .column import STREAM as _STREAM
from .column import TBS as _TBS
from .column import Column as Column

VERSION = 1
GRAPH = tuple(graph_schema.TABLES)

Table = NDArray[Any]  # a one-dimensional structured array

# the shares of `stalls`: five of resident warps, three of SMs without a TB
WARP_SHARES = ("issued", "scoreboard", "pipe", "memory", "barrier")
IDLE_SHARES = ("dependence", "launch", "no_tb")
SHARES = WARP_SHARES + IDLE_SHARES
LEVELS = ("run", "kernel", "sm")
REASONS = ("launch", "dependence", "slot", "dispatch")

RUNS = (
    _RUN,
    Column("workload", "S64", "", "Name of the workload."),
    Column("scheme", "S64", "", "Scheme with its options."),
    Column("gpu", "S64", "", "Name of the GPU."),
    Column("status", "S16", "", "ok, or why there is no time: refused, unsupported, failed."),
    Column("reason", "S160", "", "One line for a status other than ok."),
    Column("window", "<i8", "kernels", "Kernels admitted and unfinished at once."),
    Column("submit", "S16", "", "How the host enqueues: prefilled or eager."),
    Column("time_us", "<f8", "us", "From the first enqueue to the last end."),
    Column("cycles", "<f8", "cycles", "The same in SM clock cycles, of the GPC that counted the most."),
    Column("warp_instructions", "<i8", "count", "Warp instructions issued."),
    Column("tbs", "<i8", "count", "Thread blocks run."),
    Column("speedup", "<f8", "", "Time of `stream` over this time."),
    Column("bound_us", "<f8", "us", "Lower bound of the time for any scheme."),
    Column(
        "estimate_us",
        "<f8",
        "us",
        "Time of a list schedule of the TBs: an estimate of what is reachable, not a bound.",
    ),
    Column("gap_won", "<f8", "", "Share of the distance from `stream` to the estimate that was won."),
    Column("alu_utilization", "<f8", "", "Busy share of the busiest arithmetic pipe."),
    Column("sm_idle", "<f8", "", "SM time without a TB, as a share."),
    Column("dram_bytes", "<i8", "B", "Bytes moved from and to DRAM."),
    Column("l2_bytes", "<i8", "B", "Bytes moved from and to L2."),
    Column("energy_j", "<f8", "J", "Energy of board and chip; NaN if nobody measured what events take."),
    Column("table_entries", "<i8", "count", "Most entries in use at once: of the table, and of its lists."),
    Column("table_bytes", "<i8", "B", "Size of that many entries."),
    Column(
        "table_spills",
        "<i8",
        "count",
        "Entries read or updated in memory: what had no room, or is brought in with `fetch`.",
    ),
    Column("table_l2_bytes", "<i8", "B", "Traffic of tables in memory at the L2, of l2_bytes."),
    Column("table_coarse", "<i8", "count", "Kernels that fell back to waiting for whole kernels."),
    Column("table_shared", "<i8", "count", "Kernels some of whose TBs shared a counter of the table."),
    Column("replayed", "<i8", "kernels", "Launches that were not simulated but took what equal ones took."),
    Column("replay_error", "<f8", "", "Share of the time by which that may be off, as measured in the run."),
)

KERNELS = (
    _RUN,
    _KERNEL,
    _STREAM,
    _NAME,
    _TBS,
    Column("enqueued_us", "<f8", "us", "When the host had enqueued it."),
    Column("admitted_us", "<f8", "us", "When the window took it in."),
    Column("ready_us", "<f8", "us", "When its first TB could be dispatched."),
    Column("first_dispatch_us", "<f8", "us", "When its first TB was dispatched."),
    Column("last_end_us", "<f8", "us", "When its last TB's last warp ended."),
    Column("complete_us", "<f8", "us", "When its TBs were released and their stores seen by all."),
    Column("warp_instructions", "<i8", "count", "Warp instructions issued."),
    Column("load_bytes", "<i8", "B", "Bytes requested from L2 by loads."),
    Column("store_bytes", "<i8", "B", "Bytes sent to L2 by stores and reductions."),
    Column("coarse", "|u1", "", "1: did not fit the dependence table, waited for whole kernels."),
    Column("sharing", "<i8", "count", "TBs that shared a counter of the dependence table; 0: none was used."),
)

TBS = (
    _RUN,
    _KERNEL,
    _STREAM,
    Column("tb", "<i4", "", "Thread block, x fastest."),
    Column("sm", "<i4", "", "SM that it ran on."),
    Column("slot", "<i4", "", "Its slot on that SM."),
    Column("ready_ns", "<f8", "ns", "When all it depends on had ended."),
    Column("dispatch_ns", "<f8", "ns", "When it was assigned a slot."),
    Column("start_ns", "<f8", "ns", "When its warps started."),
    Column("end_ns", "<f8", "ns", "When its last warp ended; its stores may still be under way."),
    Column("last_kernel", "<i4", "", "Launch whose TB made it ready; -1: none."),
    Column("last_tb", "<i4", "", "That TB; -1: none."),
    Column("reason", "S12", "", "What it waited for last: " + ", ".join(REASONS) + "."),
)

_SAMPLE = (
    _RUN,
    Column("sample", "<i4", "", "Number of the sample."),
    Column("start_us", "<f8", "us", "Start of the interval."),
    Column("end_us", "<f8", "us", "End of the interval."),
)
SAMPLES = (
    *_SAMPLE,
    Column("resident_warps", "<f8", "warps", "Mean over the interval, all SMs together."),
    Column("alu_utilization", "<f8", "", "Busy share of the busiest arithmetic pipe."),
    Column("fp32", "<f8", "", "Busy share of the fp32 pipes."),
    Column("int", "<f8", "", "Busy share of the integer pipes."),
    Column("fp16", "<f8", "", "Busy share of the fp16 pipes."),
    Column("fp64", "<f8", "", "Busy share of the fp64 pipes."),
    Column("sfu", "<f8", "", "Busy share of the special-function pipes."),
    Column("tensor", "<f8", "", "Busy share of the tensor pipes."),
    Column("smem", "<f8", "", "Busy share of shared memory."),
    Column("l2_requests", "<i8", "count", "Line requests sent to L2."),
)

STALLS = (
    _RUN,
    Column("level", "S8", "", "What `id` numbers: " + ", ".join(LEVELS) + "."),
    Column("id", "<i4", "", "Launch or SM; 0 for a whole run."),
    Column("issued", "<f8", "", "Share: warps held an issue slot."),
    Column("scoreboard", "<f8", "", "Share: warps waited for a fixed-latency result."),
    Column("pipe", "<f8", "", "Share: warps waited for an issue slot, a pipe or the load/store unit."),
    Column("memory", "<f8", "", "Share: warps waited for memory."),
    Column("barrier", "<f8", "", "Share: warps waited at a barrier."),
    Column(
        "dependence", "<f8", "", "Share: warps waited for other TBs, or no TB on the SM and the next ones do."
    ),
    Column("launch", "<f8", "", "Share: no TB on the SM, the next kernel is on the launch path."),
    Column("no_tb", "<f8", "", "Share: no TB on the SM and none left."),
)

ENERGY = (
    _RUN,
    Column("event", "S16", "", "What happened: an event of the device's table."),
    Column("count", "<f8", "", "How often; of `board` and `sm_busy` how long, s."),
    Column("joule", "<f8", "J", "What that took."),
    Column("uncertainty_j", "<f8", "J", "How far this may be off, by what the table says of the event."),
)

LEARNED = (
    _RUN,
    Column("launches", "<i8", "count", "Launches of kernels; copies do not count."),
    Column("served", "<i8", "count", "Of them, those whose edges came from learned footprints."),
    Column("barriers", "<i8", "count", "Of them, those that ran after barriers."),
    Column("unlearnable", "<i8", "count", "After barriers: an address is not affine in TB and arguments."),
    Column("changed", "<i8", "count", "After barriers: a known program with another grid or layout."),
    Column("mispredicted", "<i8", "count", "After barriers: other bytes than learned; the model checks."),
    Column("signatures", "<i8", "count", "Signatures learned."),
    Column("ranges", "<i8", "count", "Ranges kept of all signatures."),
    Column("recorded_bytes", "<i8", "B", "Written by first launches, as much by each TB; through L2."),
    Column("fetched_bytes", "<i8", "B", "Read by served launches, through L2."),
    Column(
        "lookup_us", "<f8", "us", "Time in which ranges of served launches were compared; reads not included."
    ),
)

BLOOM = (
    _RUN,
    Column("launches", "<i8", "count", "Launches of kernels; copies do not count."),
    Column("hinted", "<i8", "count", "Of them, those that came with hints."),
    Column("barriers", "<i8", "count", "Of them, those that ran after barriers, for want of a hint."),
    Column("granules", "<i8", "count", "Granules that all hints name."),
    Column("lookup_us", "<f8", "us", "Time that launches waited while their hints were looked up."),
    Column("tests", "<i8", "count", "A granule against the signature of an unfinished unit without it."),
    Column("false_hits", "<i8", "count", "Of them, those that the signature answered with yes."),
    Column("false_rate", "<f8", "", "Their share."),
    Column("analytic_rate", "<f8", "", "The share to be expected of signatures as full as these."),
    Column("edges", "<i8", "count", "Waits of a unit for a unit."),
    Column("false_edges", "<i8", "count", "Of them, those that false answers alone asked for."),
    Column("signatures", "<i8", "count", "Most signatures in use at once."),
    Column("memory_bytes", "<i8", "B", "The scheduler's memory: signatures and dependences."),
)

EDGES = (
    _RUN,
    _KERNEL,
    _STREAM,
    Column("tb", "<i4", "", "Consumer TB; -1: all TBs of the kernel."),
    Column("producer_kernel", "<i4", "", "Launch that it waits for."),
    Column("producer_tb", "<i4", "", "TB that it waits for; -1: all TBs of that launch."),
)

NAMES = (
    _RUN,
    Column("name", "<i4", "", "Number used by `kernels`."),
    Column("text", "S160", "", "Name of the kernel."),
)

VALIDATION = (
    _RUN,
    Column("suite", "S32", "", "Set of measurements."),
    Column("case", "S160", "", "One measurement of it."),
    Column("group", "S128", "", "What the modes of a case share, or the kind of case."),
    Column("mode", "S48", "", "How it was measured, in the words of the table of measurements."),
    Column("kind", "S48", "", "Class of kernel in summaries."),
    Column("scheme", "S48", "", "Scheme of the mode."),
    Column("unit", "S8", "", "Unit of `measured`, `simulated` and `null`."),
    Column("measured", "<f8", "", "Value on the real machine."),
    Column("simulated", "<f8", "", "Simulated value; 0 if it cannot be simulated."),
    Column("error", "<f8", "", "Simulated over measured, less 1; 1 if it cannot be simulated."),
    Column("status", "S16", "", "ok or unsupported."),
    Column("split", "S16", "", "Half of the suite: fit (constants may be fitted to it) or check."),
    Column("null", "<f8", "", "Value of the first baseline model; NaN if it has none."),
    Column("measured_cycles", "<f8", "cycles", "SM cycles of the real machine; NaN if not measured."),
    Column("simulated_cycles", "<f8", "cycles", "SM cycles simulated; 0 if it cannot."),
    Column("detail", "S160", "", "What was simulated (the tile; whether sampled), or why it cannot be."),
)

BUDGET = (
    _RUN,
    Column("suite", "S32", "", "Set of measurements."),
    Column("off", "S32", "", "Mechanism that was switched off, none, or `all of` a part of the machine."),
    Column("part", "S16", "", "Part of the machine that it belongs to."),
    Column("kind", "S48", "", "Class of kernel, or all."),
    Column("cases", "<i8", "count", "Measurements of the class."),
    Column("error", "<f8", "", "Mean absolute error of their times."),
    Column("bias", "<f8", "", "Mean signed error."),
    Column("change", "<f8", "", "Mean change of the simulated time against all mechanisms on."),
    Column("cost", "<f8", "", "Processor time of simulating them over that with all mechanisms on."),
)

UTILIZATION = (
    _RUN,
    Column("network", "S16", "", "Kind of network: cell of a recurrent one, or cnn."),
    Column("label", "S48", "", "hidden_batch_steps_cell, or width_height_channels_batch_filters."),
    Column("kernel", "S32", "", "What is launched."),
    Column("detail", "S96", "", "Tile of a GEMM, and to what it was cut."),
    Column("tbs", "<i8", "count", "Thread blocks of a launch."),
    Column("time_us", "<f8", "us", "From the first TB's dispatch until all of the launch has ended."),
    Column("alu", "<f8", "", "Busy share of the busiest arithmetic pipe in that time."),
    Column("issue", "<f8", "", "Share of issue slots used in that time."),
    Column("level", "<i4", "", "1 to 10: tenths of `alu`, rounded up."),
)

# all that may differ between two runs of the same thing is here and nowhere else
HOST = (
    _RUN,
    Column(
        "setup_seconds",
        "<f8",
        "s",
        "All before the run that is none of the others: interpreter, imports, job, dependences, bounds.",
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
    Column("threads", "<i4", "", "Threads of the core."),
    Column("peak_memory_bytes", "<i8", "B", "Largest resident size of the process."),
    Column("versions", "S160", "", "Versions of the simulator and of what it uses."),
    Column("machine", "S96", "", "Processor and operating system."),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "runs": RUNS,
    "kernels": KERNELS,
    "tbs": TBS,
    "samples": SAMPLES,
    "stalls": STALLS,
    "energy": ENERGY,
    "learned": LEARNED,
    "bloom": BLOOM,
    "edges": EDGES,
    "names": NAMES,
    **graph_schema.TABLES,
    **hardware_schema.TABLES,
    "validation": VALIDATION,
    "budget": BUDGET,
    "utilization": UTILIZATION,
    "host": HOST,
}

# tables whose first columns are given here and whose others are counters, declared where they are counted
OPEN: dict[str, tuple[Column, ...]] = {
    "sm": (
        _RUN,
        Column("sm", "<i4", "", "The SM."),
        Column("busy_us", "<f8", "us", "Time with at least one TB."),
        Column("tbs", "<i8", "count", "Thread blocks run."),
    ),
    "l2": (_RUN, Column("slice", "<i4", "", "The L2 slice.")),
    # time series (--sample-us): the counters are of the interval
    "sm_series": (*_SAMPLE, Column("sm", "<i4", "", "The SM.")),
    "l2_series": (
        *_SAMPLE,
        Column("slice", "<i4", "", "The L2 slice."),
        Column("backlog", "<i8", "tick", "At the end of the interval: how long the data port is booked."),
    ),
    "dram_series": (
        *_SAMPLE,
        Column("channel", "<i4", "", "The DRAM channel: that of the slice."),
        Column("queued", "<i8", "count", "At the end of the interval: sectors of reads not yet transferred."),
    ),
    "bank_series": (
        *_SAMPLE,
        Column("channel", "<i4", "", "The DRAM channel."),
        Column("bank", "<i4", "", "The bank of the channel."),
        Column("backlog", "<i8", "tick", "At the end of the interval: time until it may open another row."),
    ),
}


def dtype(table: str) -> np.dtype[Any]:
    """Type of a row of a declared table."""
    return np.dtype([(column.name, column.dtype) for column in TABLES[table]])


def empty(table: str, rows: int = 0) -> Table:
    """Array of zeros for a declared table."""
    return np.zeros(rows, dtype(table))


def from_columns(table: str, columns: Mapping[str, Any]) -> Table:
    """Array of a declared table from one sequence or scalar a column; all columns must be there."""
    wanted = [column.name for column in TABLES[table]]
    if set(wanted) != set(columns):
        wrong = ", ".join(sorted(set(wanted) ^ set(columns)))
        raise ValueError(f"table {table}: columns missing or unknown: {wrong}")
    values = {name: encode(np.asarray(columns[name])) for name in wanted}
    rows = max((len(value) for value in values.values() if value.ndim), default=1)
    out = empty(table, rows)
    for name in wanted:
        out[name] = clip(values[name], out.dtype[name])
    return out


def encode(values: NDArray[Any]) -> NDArray[Any]:
    """Python strings as fixed-length UTF-8; anything else as it is."""
    if values.dtype.kind == "O":
        values = values.astype(str)
    return np.char.encode(values, "utf-8") if values.dtype.kind == "U" else values


def clip(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Texts longer than `kind` cut between two characters, with a mark; anything else as it is."""
    if kind.kind != "S" or values.dtype.kind != "S" or values.dtype.itemsize <= kind.itemsize:
        return values
    room = kind.itemsize
    cut = [
        text if len(text) <= room else text[: room - 3].decode("utf-8", "ignore").encode() + b"..."
        for text in values.reshape(-1).tolist()
    ]
    return np.array(cut, kind).reshape(values.shape)
