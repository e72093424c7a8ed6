"""The table of `configs/study_dynamic.py`: what a scheme that decides for itself makes of each workload."""

from __future__ import annotations

from .column import RUN, Column

DYNAMIC = (
    RUN,
    Column("group", "S16", "text", "Set of workloads."),
    Column("case", "S32", "text", "Workload of it."),
    Column("gpu", "S32", "text", "GPU that is simulated."),
    Column("half", "S8", "text", "Half of all cases by hash: tuning or apart."),
    Column("variant", "S64", "text", "What is changed of tb_auto; -: nothing."),
    Column("workload", "S160", "text", "The workload with its keys."),
    Column("scheme", "S64", "text", "Scheme with its options."),
    Column("status", "S16", "text", "As in `runs`."),
    Column("reason", "S160", "text", "As in `runs`."),
    Column("time_us", "<f8", "us", "Simulated time."),
    Column("stream_us", "<f8", "us", "Time in stream order."),
    Column("estimate_us", "<f8", "us", "Estimate of the least time."),
    Column("best_us", "<f8", "us", "Least time under graph, pool, tb_static and tb_static:reduced."),
    Column("share", "<f8", "share", "Of the time from stream order to the estimate, what is saved."),
    Column("over_best", "<f8", "ratio", "`best_us` over `time_us`: above 1 is faster than all four."),
    Column("hint_bytes", "<f8", "B", "Bytes of hints a launch packet, mean; NaN without hints."),
    Column("tb_pairs", "<f8", "share", "Pairs of kernels with edges between TBs, of all with a dependence."),
)

TABLES = {"dynamic": DYNAMIC}
