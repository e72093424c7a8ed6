"""A GRU's cell beside its GEMM: a tile in fp16 and in fp32."""

# fmt: off
from __future__ import annotations

from pysim.workloads.mirrored.blocks import Block

GRU16: dict[str, Block] = {
    "pre": (
        (172, 0, {"alu": 11, "adu": 5, "cbu": 2, "none": 13, "s2r": 1}),
    ),
    "set": (
        (88, 0, {"imad": 2, "alu": 3, "adu": 4, "cbu": 1, "none": 2}),
    ),
    "turn": (
        (88, 0, {"imad": 7, "alu": 12, "cbu": 1, "none": 2}), "ld0", "ld0", (5, 0, {"imad": 3}), "ld2",
        (2, 0, {"imad": 1}), "ld1", "ld2", "ld3", (0, 0, {"cbu": 1}), "wait0",
        (56, 0, {"ffma": 7, "imad": 1, "alu": 3, "xu": 1}), "wait1", (0, 0, {"ffma": 1}), "wait2",
        (2, 0, {"ffma": 2}), "wait3",
        (187, 0, {"ffma": 12, "imad": 6, "alu": 6, "xu": 3, "cbu": 3, "none": 2}), "ld0",
        (45, 0, {"ffma": 11, "imad": 2, "alu": 4, "xu": 2}), "wait0", (15, 0, {"ffma": 3, "alu": 3}), "st",
        (40, 0, {"imad": 1, "alu": 1, "cbu": 1, "none": 1}),
    ),
    "skip": (
        (112, 0, {"imad": 1, "alu": 5, "cbu": 2, "none": 3}),
    ),
    "end": (
        (68, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
}
GRU32: dict[str, Block] = {
    "pre": (
        (172, 0, {"alu": 11, "adu": 5, "cbu": 2, "none": 13, "s2r": 1}),
    ),
    "set": (
        (88, 0, {"imad": 2, "alu": 3, "adu": 4, "cbu": 1, "none": 2}),
    ),
    "turn": (
        (88, 0, {"imad": 7, "alu": 12, "cbu": 1, "none": 2}), "ld0", "ld0", (4, 0, {"imad": 3}), "ld1",
        (2, 0, {"imad": 1}), "ld1", "ld2", "ld2", (0, 0, {"cbu": 1}), "wait0",
        (114, 0, {"ffma": 8, "imad": 1, "alu": 3, "xu": 2, "cbu": 1, "none": 1}), "wait1",
        (132, 0, {"ffma": 8, "imad": 6, "alu": 6, "xu": 2, "cbu": 2, "none": 1}), "ld0", "wait2",
        (45, 0, {"ffma": 10, "imad": 2, "alu": 5, "xu": 2}), "wait0", (6, 0, {"ffma": 3, "alu": 1}), "st",
        (40, 0, {"imad": 1, "alu": 1, "cbu": 1, "none": 1}),
    ),
    "skip": (
        (112, 0, {"imad": 1, "alu": 5, "cbu": 2, "none": 3}),
    ),
    "end": (
        (68, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
}
