"""The tables of `configs/seqpoint.py`: what an epoch takes, and what a few of its iterations say of it."""

from __future__ import annotations

from .column import RUN, Column

_NETWORK = Column("network", "S32", "text", "Network that is trained.")
_MACHINE = Column("machine", "S16", "text", "base, or the change of the hardware.")
_SCHEME = Column("scheme", "S64", "text", "Scheme with its options.")

PROJECTIONS = (
    RUN,
    _NETWORK,
    _MACHINE,
    _SCHEME,
    Column("actual_us", "<f8", "us", "Time of all iterations, each distinct length simulated."),
    Column("projected_us", "<f8", "us", "The same from SeqPoints and their weights."),
    Column("error", "<f8", "ratio", "Projected over actual time, less 1."),
    Column("speedup", "<f8", "ratio", "Time of the log, which is the first row, over `actual_us`."),
    Column("projected_speedup", "<f8", "ratio", "The same of projected times."),
    Column("speedup_error", "<f8", "ratio", "Projected over actual speedup, less 1."),
)

SEQPOINTS = (
    RUN,
    _NETWORK,
    Column("length", "<i8", "count", "Length of the SeqPoint's iteration in steps, padded."),
    Column("weight", "<i8", "count", "Iterations that it stands for."),
    Column("first", "<i8", "count", "Shortest of them."),
    Column("last", "<i8", "count", "Longest of them."),
)

ITERATIONS = (
    RUN,
    _NETWORK,
    _MACHINE,
    _SCHEME,
    Column("length", "<i8", "count", "Padded length of an iteration in steps."),
    Column("count", "<i8", "count", "Iterations of the epoch that are so long."),
    Column("time_us", "<f8", "us", "Simulated time of one."),
)

TABLES = {"projections": PROJECTIONS, "seqpoints": SEQPOINTS, "iterations": ITERATIONS}
