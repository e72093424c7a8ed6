"""Softmax and LayerNorm, a row a TB."""

# fmt: off
from __future__ import annotations

from . import Block

SOFTMAX: dict[str, Block] = {
    "head": (
        (28, 0, {"alu": 2, "hfma2": 1, "adu": 2, "cbu": 1, "none": 2, "s2r": 1}),
    ),
    "pre": (
        (6, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 1}),
    ),
    "rem_set": (
        (39, 0, {"imad": 3, "alu": 5, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem": (
        (3, 0, {"imad": 1, "alu": 1}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (1, 0, {"alu": 1, "none": 1}),
    ),
    "after": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main": (
        (40, 0, {"imad": 3, "alu": 8, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16": (
        (0, 0, {"alu": 2}),
    ),
    "by16": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (6, 0, {"imad": 1, "alu": 3}),
        "wait0", (7, 0, {"alu": 4}), "wait1", (9, 0, {"alu": 4}), "wait2", (9, 0, {"alu": 4}), "wait3",
        (10, 0, {"alu": 4, "none": 1}),
    ),
    "mid": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1, "alu": 3}), "wait0", (3, 0, {"alu": 3}), "wait1",
        (1, 0, {"alu": 3}), "wait2", (5, 0, {"alu": 2}), "wait3", (5, 0, {"alu": 2}),
    ),
    "last": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (0, 0, {"alu": 1}), "wait1",
        (3, 0, {"alu": 1}), "wait2", (3, 0, {"alu": 1}), "wait3", (3, 0, {"alu": 1}),
    ),
    "join": (
        (0, 0, {"cbu": 1}),
    ),
    "max": (
        (0, 1, {"adu": 1, "smem": 1}), "bar",
        (127, 5, {"alu": 8, "uni": 1, "cbu": 1, "none": 1, "smem": 5}), "bar",
        (36, 4, {"alu": 7, "hfma2": 1, "none": 1, "smem": 2}),
    ),
    "pre_sum": (
        (7, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 1}),
    ),
    "rem_set_sum": (
        (30, 0, {"imad": 3, "alu": 7, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem_sum": (
        (3, 0, {"imad": 1}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (31, 0, {"ffma": 5, "alu": 1, "xu": 1, "none": 1}),
    ),
    "after_sum": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main_sum": (
        (32, 0, {"imad": 3, "alu": 8, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16_sum": (
        (0, 0, {"alu": 2}),
    ),
    "by16_sum": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (0, 0, {"imad": 1}), "wait0",
        (4, 0, {"ffma": 8, "alu": 2}), "wait1", (0, 0, {"ffma": 10, "alu": 2, "xu": 1}), "wait2",
        (5, 0, {"ffma": 10, "alu": 1, "xu": 2}), "wait3",
        (38, 0, {"ffma": 52, "alu": 14, "xu": 13, "none": 1}),
    ),
    "mid_sum": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8_sum": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1}), "wait0", (3, 0, {"ffma": 3}), "wait1",
        (2, 0, {"ffma": 4, "alu": 2}), "wait2", (0, 0, {"ffma": 6, "alu": 2}), "wait3",
        (23, 0, {"ffma": 27, "alu": 7, "xu": 8}),
    ),
    "last_sum": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4_sum": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (3, 0, {"ffma": 2}), "wait1",
        (0, 0, {"ffma": 1}), "wait2", (2, 0, {"ffma": 2, "alu": 1}), "wait3",
        (34, 0, {"ffma": 15, "alu": 3, "xu": 4}),
    ),
    "join_sum": (
        (0, 0, {"cbu": 1}),
    ),
    "sum": (
        (0, 1, {"alu": 1, "smem": 1}), "bar", (127, 5, {"ffma": 5, "alu": 1, "smem": 5}), "bar",
        (76, 4, {"ffma": 11, "alu": 3, "xu": 1, "cbu": 1, "none": 1, "smem": 2}),
    ),
    "sum_exit": (
        (0, 1, {"alu": 1, "smem": 1}), "bar", (127, 5, {"ffma": 5, "alu": 1, "smem": 5}), "bar",
        (76, 4, {"ffma": 11, "alu": 3, "xu": 1, "none": 1, "smem": 2}), "exit",
    ),
    "pre_out": (
        (15, 0, {"alu": 5, "cbu": 1, "none": 2}),
    ),
    "rem_set_out": (
        (41, 0, {"imad": 3, "alu": 8, "adu": 1, "uni": 1, "none": 2, "s2r": 1}),
    ),
    "rem_out": (
        (3, 0, {"alu": 2}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (30, 0, {"ffma": 5, "imad": 2, "alu": 3, "xu": 1}), "st out 0", (0, 0, {"none": 1}),
    ),
    "after_out": (
        (0, 0, {"cbu": 2}),
    ),
    "after_out_exit": (
        (0, 0, {"cbu": 1}), "exit",
    ),
    "main_out": (
        (40, 0, {"imad": 2, "alu": 2, "adu": 3, "uni": 6}),
    ),
    "by4_out": (
        (6, 0, {"imad": 1, "alu": 1}), "ld0 in 0", "wait0", (32, 0, {"ffma": 5, "alu": 3, "xu": 1}),
        "st out 0", "ld0 in 1024", "wait0", (34, 0, {"ffma": 5, "alu": 1, "xu": 1}), "st out 1024",
        "ld0 in 2048", "wait0", (34, 0, {"ffma": 5, "alu": 1, "xu": 1}), "st out 2048", "ld0 in 3072",
        (2, 0, {"alu": 3}), "wait0", (33, 0, {"ffma": 5, "alu": 2, "xu": 1}), "st out 3072",
        (0, 0, {"none": 1}),
    ),
}
LAYERNORM: dict[str, Block] = {
    "head": (
        (28, 0, {"alu": 2, "hfma2": 1, "adu": 2, "cbu": 1, "none": 2, "s2r": 1}),
    ),
    "pre": (
        (7, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 1}),
    ),
    "rem_set": (
        (38, 0, {"imad": 3, "alu": 5, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem": (
        (4, 0, {"imad": 1, "alu": 1}), "ld0 in 0", (0, 0, {"imad": 1, "alu": 4}), "wait0",
        (0, 0, {"ffma": 1, "none": 1}),
    ),
    "after": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main": (
        (40, 0, {"imad": 3, "alu": 7, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16": (
        (0, 0, {"alu": 2}),
    ),
    "by16": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (6, 0, {"imad": 1, "alu": 3}),
        "wait0", (9, 0, {"ffma": 4}), "wait1", (12, 0, {"ffma": 4}), "wait2", (12, 0, {"ffma": 4}), "wait3",
        (12, 0, {"ffma": 4, "none": 1}),
    ),
    "mid": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1, "alu": 1}), "wait0", (3, 0, {"ffma": 2, "alu": 1}),
        "wait1", (3, 0, {"ffma": 2, "alu": 3}), "wait2", (5, 0, {"ffma": 2}), "wait3", (6, 0, {"ffma": 2}),
    ),
    "last": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (0, 0, {"ffma": 1}), "wait1",
        (3, 0, {"ffma": 1}), "wait2", (3, 0, {"ffma": 1}), "wait3", (3, 0, {"ffma": 1}),
    ),
    "join": (
        (0, 0, {"cbu": 1}),
    ),
    "mean": (
        (0, 1, {"adu": 1, "smem": 1}), "bar",
        (126, 5, {"ffma": 5, "alu": 4, "uni": 1, "none": 1, "smem": 5}), "bar",
        (54, 4, {"ffma": 13, "xu": 2, "hfma2": 1, "cbu": 1, "none": 2, "smem": 2}),
    ),
    "pre_var": (
        (32, 0, {"alu": 7, "adu": 1, "cbu": 1, "none": 1, "s2r": 1}),
    ),
    "rem_set_var": (
        (31, 0, {"imad": 3, "alu": 5, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem_var": (
        (3, 0, {"imad": 1, "alu": 1}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (3, 0, {"ffma": 2, "none": 1}),
    ),
    "after_var": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main_var": (
        (33, 0, {"imad": 3, "alu": 7, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16_var": (
        (0, 0, {"alu": 2}),
    ),
    "by16_var": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (2, 0, {"alu": 2}), "wait0",
        (7, 0, {"ffma": 7}), "wait1", (13, 0, {"ffma": 9}), "wait2", (12, 0, {"ffma": 8}), "wait3",
        (9, 0, {"ffma": 8, "imad": 1, "alu": 2, "none": 1}),
    ),
    "mid_var": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8_var": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1, "alu": 1}), "wait0", (6, 0, {"ffma": 4}), "wait1",
        (6, 0, {"ffma": 4}), "wait2", (3, 0, {"ffma": 3}), "wait3", (5, 0, {"ffma": 5, "alu": 3}),
    ),
    "last_var": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4_var": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (3, 0, {"ffma": 2}), "wait1",
        (0, 0, {"ffma": 1}), "wait2", (2, 0, {"ffma": 2}), "wait3", (5, 0, {"ffma": 3}),
    ),
    "join_var": (
        (0, 0, {"cbu": 1}),
    ),
    "var": (
        (0, 1, {"adu": 1, "none": 1, "s2r": 1, "smem": 1}), "bar",
        (126, 5, {"ffma": 5, "alu": 2, "xu": 1, "uni": 1, "smem": 5}), "bar",
        (67, 4, {"ffma": 15, "alu": 1, "xu": 1, "cbu": 1, "none": 1, "smem": 2}),
    ),
    "var_exit": (
        (0, 1, {"adu": 1, "none": 1, "s2r": 1, "smem": 1}), "bar",
        (126, 5, {"ffma": 5, "alu": 2, "xu": 1, "uni": 1, "smem": 5}), "bar",
        (67, 4, {"ffma": 15, "alu": 1, "xu": 1, "none": 1, "smem": 2}), "exit",
    ),
    "pre_out": (
        (14, 0, {"ffma": 1, "alu": 5, "xu": 1, "cbu": 1, "none": 2}),
    ),
    "rem_set_out": (
        (33, 0, {"imad": 5, "alu": 8, "adu": 3, "uni": 1, "none": 2, "s2r": 1}),
    ),
    "rem_out": (
        "ld0 in 0", "ld1 g 0", "ld1 b 0", (1, 0, {"imad": 2, "alu": 8}), "wait0", (3, 0, {"ffma": 2}),
        "wait1", (5, 0, {"ffma": 1, "alu": 2}), "st out 0", (1, 0, {"alu": 1, "none": 1}),
    ),
    "after_out": (
        (0, 0, {"cbu": 2}),
    ),
    "after_out_exit": (
        (0, 0, {"cbu": 1}), "exit",
    ),
    "main_out": (
        (31, 0, {"imad": 4, "alu": 6, "hfma2": 1, "adu": 3, "uni": 6, "none": 2}),
    ),
    "by4_out": (
        (2, 0, {"imad": 1, "alu": 3}), "ld1 b 0", "ld0 in 0", "ld1 g 0", (0, 0, {"alu": 1}), "wait0",
        (3, 0, {"ffma": 2, "alu": 1}), "wait1", (5, 0, {"ffma": 1}), "st out 0", "ld0 in 1024",
        "ld1 g 1024", "ld1 b 1024", "wait0", (3, 0, {"ffma": 2}), "wait1", (6, 0, {"ffma": 1}),
        "st out 1024", "ld0 in 2048", "ld1 g 2048", "ld1 b 2048", "wait0", (3, 0, {"ffma": 2}), "wait1",
        (6, 0, {"ffma": 1}), "st out 2048", "ld0 in 3072", "ld1 g 3072", "ld1 b 3072", (2, 0, {"alu": 6}),
        "wait0", (3, 0, {"ffma": 2}), "wait1", (6, 0, {"ffma": 1}), "st out 3072",
        (3, 0, {"imad": 1, "alu": 1, "none": 1}),
    ),
}
