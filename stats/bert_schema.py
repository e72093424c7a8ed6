"""The table of `configs/characterise_bert.py`: where the time of a training step of BERT goes."""

from __future__ import annotations

from .column import RUN, Column

BREAKDOWN = (
    RUN,
    Column("batch", "<i8", "count", "Sequences."),
    Column("seq", "<i8", "count", "Tokens of a sequence."),
    Column("dtype", "S16", "text", "Types, as the workload's key `dtype` says them."),
    Column("kind", "S16", "text", "Class of kernel, by the operation that launched it."),
    Column("kernels", "<i8", "count", "Its launches, those of layers that are not simulated included."),
    Column("time_us", "<f8", "us", "Their time, each from the end of the launch before."),
    Column("share", "<f8", "share", "Part of the step's time."),
    Column("flops", "<i8", "count", "FLOPs of its products, two for a multiplication with its addition."),
    Column("l2_bytes", "<i8", "B", "What its loads ask from L2 and its stores send there."),
    Column("flops_per_byte", "<f8", "ratio", "Quotient of the two; 0 without bytes."),
)

TABLES = {"bert_breakdown": BREAKDOWN}
