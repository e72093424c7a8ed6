"""Softmax of attention, a row a warp."""

# fmt: off
from __future__ import annotations

from pysim.workloads.mirrored.blocks import Block

SOFTMAX: dict[str, Block] = {
    "head": (
        (274, 0, {"imad": 5, "alu": 27, "xu": 3, "hfma2": 1, "adu": 4, "cbu": 2, "none": 8, "s2r": 1}),
    ),
    "set": (
        (96, 0, {"alu": 10, "adu": 2, "cbu": 1, "none": 2}),
    ),
    "row": (
        (76, 0, {"imad": 4, "alu": 14, "hfma2": 1, "adu": 1, "cbu": 2, "none": 4}),
    ),
    "max_rem": (
        (13, 0, {"imad": 1, "alu": 3}), "ld0 in 0", (0, 0, {"alu": 1}), "wait0",
        (12, 0, {"ffma": 2, "alu": 3, "none": 1}),
    ),
    "max_rem2": (
        (0, 0, {"alu": 1}), "ld0 in 128", "ld1 in 256", "wait0", (5, 0, {"ffma": 2, "alu": 4}), "wait1",
        (14, 0, {"ffma": 2, "alu": 2}),
    ),
    "max_mid": (
        (17, 0, {"cbu": 1, "none": 1}),
    ),
    "max_set": (
        (25, 0, {"imad": 1, "alu": 8, "cbu": 1, "none": 1}),
    ),
    "max_by16": (
        "ld0 in 0", "ld0 in 128", "ld1 in 256", "ld2 in 384", "ld3 in 512", "wait0",
        (6, 0, {"ffma": 2, "alu": 1}), "ld0 in 640", (0, 0, {"ffma": 2, "alu": 1}), "wait1",
        (5, 0, {"ffma": 2, "alu": 2}), "ld1 in 768", (0, 0, {"alu": 1}), "wait2",
        (0, 0, {"ffma": 2, "alu": 1}), "ld2 in 896", (3, 0, {"alu": 1}), "ld2 in 1024", (1, 0, {"alu": 1}),
        "wait3", (6, 0, {"ffma": 2, "alu": 1}), "ld3 in 1152", (1, 0, {"alu": 1}), "wait0",
        (6, 0, {"ffma": 2, "alu": 1}), "ld0 in 1280", (1, 0, {"alu": 1}), "wait1",
        (5, 0, {"ffma": 2, "alu": 1}), "wait2", (4, 0, {"ffma": 3, "alu": 2}), "ld1 in 1408",
        (3, 0, {"ffma": 1, "alu": 2}), "wait3", (0, 0, {"ffma": 1}), "ld2 in 1536",
        (4, 0, {"ffma": 1, "alu": 2}), "ld2 in 1664", (2, 0, {"alu": 1}), "ld3 in 1792", "wait0",
        (6, 0, {"ffma": 2, "alu": 1}), "ld0 in 1920", (1, 0, {"alu": 1}), "wait1", (2, 0, {"ffma": 2}),
        "wait2", (5, 0, {"ffma": 4, "alu": 5}), "wait3", (50, 0, {"ffma": 2, "alu": 7, "none": 1}), "wait0",
        (19, 0, {"ffma": 2, "alu": 2, "none": 1}),
    ),
    "max_mid2": (
        (32, 0, {"imad": 1, "alu": 1, "cbu": 2, "none": 1}),
    ),
    "max_by8": (
        "ld0 in 0", "ld0 in 128", "ld1 in 256", "ld2 in 384", "ld3 in 512", "wait0",
        (6, 0, {"ffma": 2, "alu": 1}), "ld0 in 640", (2, 0, {"alu": 1}), "ld0 in 768", (2, 0, {"ffma": 2}),
        "ld0 in 896", (4, 0, {"alu": 2}), "wait1", (5, 0, {"ffma": 2, "alu": 1}), "wait2",
        (0, 0, {"ffma": 2, "alu": 1}), "wait3", (6, 0, {"ffma": 2, "alu": 8}), "wait0",
        (16, 0, {"ffma": 6, "alu": 6}),
    ),
    "max_mid3": (
        (29, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "max_by4": (
        "ld0 in 0", "ld1 in 128", "ld3 in 256", "ld2 in 384", "wait0", (5, 0, {"ffma": 2, "alu": 1}),
        "wait1", (0, 0, {"ffma": 2, "alu": 1}), "wait2", (0, 0, {"ffma": 2, "alu": 1}), "wait3",
        (12, 0, {"ffma": 2, "alu": 5}),
    ),
    "max": (
        (156, 5, {"alu": 5, "hfma2": 1, "cbu": 2, "none": 3, "smem": 5}),
    ),
    "sum_set": (
        (12, 0, {"alu": 6, "cbu": 1, "none": 1}),
    ),
    "sum_rem": (
        (13, 0, {"imad": 1, "alu": 3, "adu": 1}), "ld0 in 0", "wait0",
        (58, 0, {"ffma": 14, "alu": 4, "xu": 2, "none": 1}),
    ),
    "sum_rem2": (
        (12, 0, {"alu": 1}), "ld0 in 256", (2, 0, {"alu": 1}), "ld1 in 128", "wait0", (8, 0, {"ffma": 8}),
        "wait1", (80, 0, {"ffma": 20, "alu": 9, "xu": 4}),
    ),
    "sum_mid": (
        (17, 0, {"cbu": 1, "none": 1}),
    ),
    "sum_by4": (
        (4, 0, {"imad": 1}), "ld0 in 0", "ld3 in 128", "ld1 in 256", "ld2 in 384",
        (46, 0, {"alu": 1, "none": 2}), "wait0", (4, 0, {"ffma": 4}), "wait1", (0, 0, {"ffma": 3}), "wait2",
        (0, 0, {"ffma": 2}), "wait3", (66, 0, {"ffma": 47, "alu": 9, "xu": 8, "none": 1}),
    ),
    "sum": (
        (229, 5, {"ffma": 8, "alu": 3, "xu": 1, "cbu": 4, "none": 4, "smem": 5}),
    ),
    "out_set": (
        (12, 0, {"alu": 3, "cbu": 1, "none": 2}),
    ),
    "out_rem": (
        (10, 0, {"alu": 4, "adu": 1}), "ld0 in 0", "wait0", (54, 0, {"ffma": 14, "alu": 7, "xu": 2}),
        "st out 0", (5, 0, {"alu": 1, "none": 1}),
    ),
    "out_rem2": (
        "ld0 in 128", "wait0", (53, 0, {"ffma": 14, "alu": 5, "xu": 2}), "st out 128", (4, 0, {"none": 1}),
    ),
    "out_rem3": (
        "ld0 in 256", "wait0", (54, 0, {"ffma": 14, "alu": 4, "xu": 2}), "st out 256",
    ),
    "out_mid": (
        (37, 0, {"imad": 1, "alu": 2, "cbu": 1, "none": 1}),
    ),
    "out_by4": (
        (6, 0, {"imad": 1, "alu": 2, "none": 1}), "ld0 in 0", "wait0",
        (54, 0, {"ffma": 14, "imad": 1, "alu": 3, "xu": 2}), "st out 0", "ld0 in 128", "wait0",
        (55, 0, {"ffma": 14, "alu": 3, "xu": 2}), "st out 128", "ld0 in 256", "wait0",
        (55, 0, {"ffma": 14, "alu": 3, "xu": 2}), "st out 256", "ld0 in 384", (0, 0, {"alu": 1}), "wait0",
        (54, 0, {"ffma": 14, "alu": 4, "xu": 2}), "st out 384", (10, 0, {"none": 1}),
    ),
    "end_row": (
        (67, 0, {"alu": 2, "adu": 1, "cbu": 1, "none": 1}),
    ),
    "end": (
        (68, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
}
