"""The tables of `configs/characterise_communication.py`: projected layers, and how well that does."""

from __future__ import annotations

from .column import RUN, Column

_SHAPE = (
    Column("hidden", "<i8", "count", "Features."),
    Column("seq", "<i8", "count", "Tokens of a sequence."),
    Column("batch", "<i8", "count", "Sequences."),
    Column("shards", "<i8", "count", "GPUs that share the layer."),
)

COMMUNICATION = (
    RUN,
    *_SHAPE,
    Column("ratio", "<f8", "ratio", "Growth of compute over that of network bandwidth."),
    Column("gemm_us", "<f8", "us", "GEMMs of linear layers, forward and backward."),
    Column("attention_us", "<f8", "us", "Fused attention."),
    Column("norm_us", "<f8", "us", "LayerNorms."),
    Column("pointwise_us", "<f8", "us", "Other kernels: sums, dropout, GELU, biases and their gradients."),
    Column("compute_us", "<f8", "us", "Sum of the four."),
    Column("all_reduce_us", "<f8", "us", "The four all-reduces, projected by bytes."),
    Column("share", "<f8", "share", "All-reduces' share of compute and all-reduces."),
    Column("delay_us", "<f8", "us", "The four all-reduces by bandwidth and latency of the ring."),
    Column("backward_us", "<f8", "us", "Compute of the backward pass."),
    Column("gradients_us", "<f8", "us", "All-reduce of the layer's gradients among data-parallel replicas."),
    Column("overlapped", "<f8", "share", "Part of it that the layer's backward compute can hide."),
)

CHECKS = (
    RUN,
    *_SHAPE,
    Column("kind", "S16", "text", "Kind of kernel, `layer` (all) or `share` (of all-reduces)."),
    Column("unit", "S8", "text", "Unit of `simulated` and `projected`."),
    Column("simulated", "<f8", "as in `unit`", "Value of the simulated layer."),
    Column(
        "projected", "<f8", "as in `unit`", "Value projected from the baseline, which is the first layer."
    ),
    Column("error", "<f8", "ratio", "Projected over simulated, less 1."),
)

TABLES = {"communication": COMMUNICATION, "checks": CHECKS}
