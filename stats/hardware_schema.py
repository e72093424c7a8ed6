"""The tables of `configs/table_size.py`: what a dependence table costs and keeps."""

from __future__ import annotations

from .column import RUN, Column

_NETWORK = Column("network", "S32", "text", "Network of the study.")
_SIZES = (
    Column("window", "<i8", "kernels", "Kernels that are admitted at once."),
    Column("entries", "<i8", "count", "Entries of the dependence table."),
    Column("consumers", "<i8", "count", "Consumer ranges an entry."),
)

TABLE_SIZE = (
    RUN,
    _NETWORK,
    Column("workload", "S64", "text", "Its workload."),
    Column("scheme", "S64", "text", "Scheme with its options."),
    Column(
        "dimension",
        "S16",
        "text",
        "What is swept; scheme: nothing; search: tried on the way to the smallest.",
    ),
    Column("value", "<i8", "as in `dimension`", "Its value as shown: entries, ranges, kernels or SM cycles."),
    *_SIZES,
    Column("update_ns", "<f8", "ns", "The table takes this long for each counter."),
    Column("latency_ns", "<f8", "ns", "From an update to the TB being ready."),
    Column("status", "S16", "text", "ok, or refused."),
    Column("time_us", "<f8", "us", "Simulated time."),
    Column("gain", "<f8", "share", "Share won of the time between `stream` and `tb_ideal`."),
    Column("bits", "<i8", "bits", "What its structures on the chip take."),
    Column("table_entries", "<i8", "count", "Most entries in use at once, of lists, too."),
    Column("table_coarse", "<i8", "count", "Kernels that did not fit and waited for whole kernels."),
    Column("table_shared", "<i8", "count", "Kernels some of whose TBs shared a counter."),
    Column("table_spills", "<i8", "count", "Entries, of lists, too, that were read from memory."),
    Column("spill_bytes", "<i8", "B", "Traffic of it at L2: whole sectors."),
    Column("l2_bytes", "<i8", "B", "Bytes moved from and to L2."),
    Column("dram_bytes", "<i8", "B", "Bytes moved from and to DRAM."),
)

SMALLEST = (
    RUN,
    _NETWORK,
    *_SIZES,
    Column("bits", "<i8", "bits", "What the smallest configuration takes on the chip."),
    Column("gain", "<f8", "share", "What it wins of the time between `stream` and `tb_ideal`."),
    Column("best", "<f8", "share", "The most that any table of the sweeps wins."),
    Column("latency", "<i8", "cycles", "Slowest hand-over that still keeps enough; 0: none of those tried."),
    Column(
        "update", "<i8", "cycles", "Longest time a counter that still keeps enough; 0: none of those tried."
    ),
    Column("default_bits", "<i8", "bits", "What the default configuration takes."),
    Column("default_gain", "<f8", "share", "What it wins."),
    Column("pool_bits", "<i8", "bits", "What `pool` takes."),
    Column("pool_gain", "<f8", "share", "What it wins, with edges between whole kernels."),
)

HARDWARE = (
    RUN,
    _NETWORK,
    Column("scheme", "S64", "text", "Scheme with its options, as configured."),
    Column("structure", "S32", "text", "What is kept."),
    Column("on_chip", "|u1", "flag", "0: it is in memory."),
    Column("count", "<i8", "count", "Its entries."),
    Column("field", "S16", "text", "A field of an entry."),
    Column("bits", "<i4", "bits", "Width of the field."),
    Column("doc", "S96", "text", "What the field says."),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "table_size": TABLE_SIZE,
    "smallest": SMALLEST,
    "hardware": HARDWARE,
}
