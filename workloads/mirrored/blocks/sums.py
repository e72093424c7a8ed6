"""Sums: a reduction over all elements, and a matrix by a vector."""

# fmt: off
from __future__ import annotations

from . import Block

REDUCE: dict[str, Block] = {
    "all": (
        (65, 0, {"imad": 1, "alu": 4, "adu": 4, "none": 2, "s2r": 1}), "ld0 in 0", (4, 0, {"imad": 1}),
        "ld0 in 1024", (37, 0, {"imad": 3, "alu": 11, "hfma2": 1, "adu": 5}), "ld1 in 3072", "ld2 in 4096",
        (4, 0, {"imad": 1}), "ld2 in 5120", (4, 0, {"imad": 1}), "ld3 in 6144", "wait0",
        (1, 0, {"ffma": 1, "alu": 2}), "ld0 in 2048", (32, 0, {"ffma": 1, "imad": 1, "alu": 1, "adu": 2}),
        "ld3 in 7168", (4, 0, {"imad": 1}), "ld3 in 8192", (0, 0, {"alu": 3}), "wait0",
        (1, 0, {"ffma": 1, "alu": 2}), "wait1", (1, 0, {"ffma": 1, "alu": 2}), "wait2",
        (2, 0, {"ffma": 2, "alu": 2, "adu": 1}), "wait3",
        (21, 0, {"ffma": 3, "imad": 2, "alu": 5, "adu": 5}), "ld0 in 9216", (2, 0, {"imad": 1}),
        "ld0 in 10240", (0, 0, {"imad": 1, "adu": 1}), "ld1 in 11264", "ld1 in 12288", (4, 0, {"imad": 1}),
        "ld2 in 13312", (10, 0, {"imad": 1}), "ld2 in 14336", (9, 0, {"imad": 1}), "ld3 in 15360",
        (28, 0, {"adu": 1, "uni": 1, "none": 1}), "wait0", (3, 0, {"ffma": 2}), "wait1",
        (6, 0, {"ffma": 2}), "wait2", (5, 0, {"ffma": 2, "alu": 1}), "wait3",
        (6, 1, {"ffma": 1, "smem": 1}), "bar", (28, 3, {"ffma": 1, "alu": 2, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar", (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar", (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar", (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "smem": 3}), "bar",
    ),
    "first": (
        (33, 1, {"imad": 1, "adu": 1, "cbu": 1, "smem": 1}), "st out 0", "exit",
    ),
    "rest": (
        "exit",
    ),
}
GEMV: dict[str, Block] = {
    "head": (
        (34, 0, {"alu": 3, "adu": 2, "cbu": 1, "none": 1, "s2r": 1}),
    ),
    "head_exit": (
        (34, 0, {"alu": 3, "adu": 2, "none": 1, "s2r": 1}), "exit",
    ),
    "pre0": (
        (37, 0, {"alu": 5, "hfma2": 1, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "pre": (
        (1, 0, {"alu": 9, "cbu": 1, "none": 1}),
    ),
    "rem_set": (
        (26, 0, {"imad": 3, "alu": 6, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem": (
        (0, 0, {"alu": 4}), "ld0 a 0", "ld0 x 0", (0, 0, {"alu": 7}), "wait0",
        (12, 0, {"ffma": 5, "none": 1}),
    ),
    "after": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main": (
        (24, 0, {"imad": 3, "alu": 9, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16": (
        (0, 0, {"alu": 2}),
    ),
    "by16": (
        "ld0 a 0", "ld0 x 0", "ld1 a 1024", "ld1 x 1024", "ld2 a 512", "ld2 x 512", "wait0",
        (9, 0, {"ffma": 4}), "ld0 a 2048", "wait1", (0, 0, {"ffma": 1}), "wait2", (0, 0, {"ffma": 1}),
        "ld1 x 2048", (3, 0, {"ffma": 4}), "wait0", "wait1", (3, 0, {"ffma": 3}), "ld0 a 2560",
        "ld0 x 2560", (0, 0, {"ffma": 1}), "ld1 a 1536", "ld1 x 1536", (2, 0, {"ffma": 4}), "ld2 a 3584",
        "wait0", (3, 0, {"ffma": 3}), "ld0 x 3584", "wait1", (8, 0, {"ffma": 5}), "ld1 a 3072",
        "ld1 x 3072", "wait0", "wait2", (3, 0, {"ffma": 4}), "ld0 a 4096", "ld0 x 4096", "wait1",
        (4, 0, {"ffma": 6}), "ld2 x 5120", (1, 0, {"ffma": 1}), "ld1 a 4608", "ld1 x 4608", "wait0",
        (3, 0, {"ffma": 3}), "ld0 a 5120", (1, 0, {"ffma": 1}), "wait1", (3, 0, {"ffma": 3}), "ld1 x 5632",
        "wait0", "wait2", (3, 0, {"ffma": 3}), "ld0 a 5632", (1, 0, {"ffma": 4}), "ld3 x 6656",
        (1, 0, {"ffma": 1}), "ld2 a 6144", "ld2 x 6144", "wait0", "wait1", (3, 0, {"ffma": 3}),
        "ld0 a 6656", (1, 0, {"ffma": 1}), "wait2", (5, 0, {"ffma": 5}), "wait0", "wait3",
        (3, 0, {"ffma": 3}), "ld0 x 7168", (1, 0, {"ffma": 1}), "ld0 a 7168", (0, 0, {"ffma": 1}),
        "ld1 a 7680", "ld1 x 7680", (8, 0, {"ffma": 4, "alu": 3}), "wait0", (3, 0, {"ffma": 2, "alu": 1}),
        "wait1", (9, 0, {"ffma": 8, "alu": 3, "none": 1}),
    ),
    "mid": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8": (
        "ld0 a 0", "ld0 x 0", "ld1 a 512", "ld1 x 512", "ld2 a 1024", "ld2 x 1024", "wait0",
        (3, 0, {"ffma": 2}), "wait1", (4, 0, {"ffma": 4}), "ld0 x 1536", (0, 0, {"ffma": 1}), "ld0 a 1536",
        "wait2", (3, 0, {"ffma": 3}), "ld1 x 2048", (1, 0, {"ffma": 1}), "wait0", (0, 0, {"ffma": 2}),
        "ld0 a 2048", (1, 0, {"ffma": 3}), "ld2 a 2560", "ld2 x 2560", (0, 0, {"ffma": 1}), "wait0",
        "wait1", (3, 0, {"ffma": 2}), "wait2", (2, 0, {"ffma": 5}), "ld0 a 3072", (0, 0, {"ffma": 1}),
        "ld0 x 3072", (0, 0, {"ffma": 2}), "ld1 a 3584", "ld1 x 3584", (6, 0, {"ffma": 3, "alu": 6}),
        "wait0", (3, 0, {"ffma": 2}), "wait1", (9, 0, {"ffma": 8}),
    ),
    "last": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4": (
        "ld0 a 0", "ld0 x 0", "ld1 a 512", "ld1 x 512", "ld2 a 1024", "ld2 x 1024", "ld3 a 1536",
        "ld3 x 1536", "wait0", (3, 0, {"ffma": 2}), "wait1", (2, 0, {"ffma": 3}), "wait2",
        (1, 0, {"ffma": 4}), "wait3", (7, 0, {"ffma": 11}),
    ),
    "join": (
        (0, 0, {"cbu": 1}),
    ),
    "sum": (
        (135, 5, {"ffma": 5, "imad": 1, "alu": 1, "adu": 1, "cbu": 1, "smem": 5}), "st y 0", "exit",
    ),
}
