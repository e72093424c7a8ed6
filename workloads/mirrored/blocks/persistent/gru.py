"""``gru_persist``: GEMMs and cells of a GRU."""

# fmt: off
from __future__ import annotations

from pysim.workloads.mirrored.blocks import Block

HGEMM64: dict[str, Block] = {
    "pre": (
        (111, 0, {"imad": 24, "alu": 21, "xu": 3, "adu": 2, "uni": 1, "none": 4}),
    ),
    "load0": (
        (24, 3, {"imad": 9, "alu": 7, "adu": 2, "uni": 1, "none": 1, "void": 3}), "cp", "cp", "cp",
        (7, 0, {"imad": 4, "alu": 1}), "cp",
    ),
    "commit": (
        (4, 0, {"none": 1, "lsu": 1}),
    ),
    "load1": (
        (27, 3, {"imad": 5, "alu": 8, "adu": 2, "uni": 1, "none": 1, "void": 3}), "cp", "cp", "cp",
        (2, 0, {"alu": 1}), "cp", (8, 0, {"imad": 2}),
    ),
    "init": (
        (7, 0, {"alu": 15, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (41, 0, {"imad": 7, "alu": 4, "adu": 1, "uni": 1, "none": 1, "s2r": 1}),
    ),
    "top": (
        (0, 0, {"imad": 1, "none": 1}), "group", (7, 0, {"alu": 1, "cbu": 2}), "bar", (9, 0, {"none": 1}),
    ),
    "load": (
        (39, 3, {"imad": 6, "alu": 3, "adu": 3, "uni": 1, "none": 1, "void": 3}), "cp", "cp", "taken",
        (10, 0, {"imad": 6, "alu": 3}), "cp", "cp", (24, 0, {"imad": 1, "alu": 1, "cbu": 1}),
    ),
    "math": (
        "taken",
        (8, 12, {"imad": 9, "alu": 5, "lsu": 1, "smem": 3}, 0), (0, 0, {"hmma": 4}), (4, 4, {"smem": 1}, 0),
        (6, 12, {"hmma": 4, "smem": 3}, 0), (0, 0, {"hmma": 4}), (4, 4, {"smem": 1}, 0),
        (18, 0, {"hmma": 4, "none": 2}),
    ),
    "out": (
        (0, 0, {"alu": 1, "none": 2, "lsu": 1}), "group",
        (70, 0, {"imad": 21, "alu": 25, "none": 3, "s2r": 1}), "st r0 0", (0, 0, {"alu": 2}), "st r8 0",
        (0, 0, {"alu": 2}), "st r0 16", (0, 0, {"alu": 2}), "st r8 16", (0, 0, {"alu": 2}), "st r0 32",
        (0, 0, {"alu": 2}), "st r8 32", (0, 0, {"alu": 2}), "st r0 48", (2, 0, {"alu": 1}), "st r8 48",
        "st r16 0", "st r24 0", "st r16 16", "st r24 16", "st r16 32", "st r24 32", "st r16 48",
        "st r24 48", (5, 0, {"cbu": 1, "none": 1}), "bar", (26, 0, {"imad": 1, "alu": 1, "none": 1}),
        "exit",
    ),
}
SGEMM32: dict[str, Block] = {
    "pre": (
        (163, 0, {"imad": 18, "alu": 38, "xu": 3, "adu": 3, "uni": 1, "none": 6}), "ld0", "ld1",
        (35, 0, {"imad": 2, "alu": 15, "hfma2": 1, "adu": 1, "s2r": 1}),
    ),
    "body": (
        (50, 0, {"alu": 2, "cbu": 1, "none": 1}), "bar", (12, 0, {"imad": 1, "alu": 4, "adu": 1}), "wait1",
        (21, 16, {"imad": 3, "adu": 1, "smem": 4}), "wait0", (5, 4, {"alu": 1, "smem": 1}), "bar",
        (28, 2, {"alu": 2, "lds64": 1}), "ld0", (4, 0, {"imad": 1}), "ld1", (4, 2, {"lds64": 1}, 0),
        *(((4, 0, {"ffma": 4}), (0, 3, {"lds64": 2}, 0)) * 29), (4, 0, {"ffma": 4}),
        (0, 3, {"alu": 1, "lds64": 2}, 0), (4, 0, {"ffma": 4}), (0, 3, {"lds64": 2}, 0),
        (11, 0, {"ffma": 4, "none": 1}),
    ),
    "out": (
        (103, 0, {"imad": 9, "alu": 22, "adu": 1, "uni": 1, "none": 5, "s2r": 1}), "st", "st", "st", "st",
        (21, 0, {"imad": 1, "alu": 1, "uni": 4, "cbu": 1, "none": 2}), "bar",
        (24, 0, {"alu": 1, "none": 1}), "exit",
    ),
}
GRU16: dict[str, Block] = {
    "pre": (
        (123, 0, {"imad": 17, "alu": 10, "xu": 3, "adu": 2, "none": 1}),
    ),
    "set": (),
    "turn": (
        (81, 0, {"imad": 9, "alu": 9, "cbu": 1, "none": 5}), "ld0 0 0", (4, 0, {"alu": 1}), "ld0 1 0",
        (4, 0, {"imad": 3}), "ld2 3 0", (2, 0, {"imad": 1}), "ld1 2 0", "ld2 4 0", "ld3 5 0",
        (0, 0, {"cbu": 1}), "wait0", (56, 0, {"ffma": 7, "imad": 1, "alu": 3, "xu": 1}), "wait1",
        (0, 0, {"ffma": 1}), "wait2", (2, 0, {"ffma": 2}), "wait3",
        (182, 0, {"ffma": 13, "imad": 5, "alu": 7, "xu": 3, "cbu": 3, "none": 5}), "ld0 6 0",
        (42, 0, {"ffma": 10, "imad": 1, "alu": 4, "xu": 2}), "wait0", (13, 0, {"ffma": 3, "alu": 3}),
        "st 7 0", (40, 0, {"imad": 1, "alu": 1, "cbu": 1, "none": 1}),
    ),
    "skip": (
        (111, 0, {"imad": 1, "alu": 5, "cbu": 2, "none": 4}),
    ),
    "end": (
        (4, 0, {"imad": 1, "cbu": 1}), "bar", (22, 0, {"alu": 1, "none": 1}), "exit",
    ),
}
GRU32: dict[str, Block] = {
    "pre": (
        (120, 0, {"imad": 6, "alu": 19, "xu": 3, "hfma2": 1, "none": 1}),
    ),
    "set": (),
    "turn": (
        (112, 0, {"imad": 9, "alu": 16, "adu": 2, "cbu": 1, "none": 4}), "ld0 0 0", "ld0 1 0",
        (5, 0, {"imad": 3}), "ld1 2 0", (2, 0, {"imad": 1}), "ld2 4 0", "ld1 3 0", "ld2 5 0",
        (0, 0, {"cbu": 1}), "wait0", (114, 0, {"ffma": 8, "alu": 4, "xu": 2, "cbu": 1, "none": 1}), "wait1",
        (123, 0, {"ffma": 8, "imad": 1, "alu": 10, "xu": 2, "cbu": 2, "none": 3}), "wait2",
        (0, 0, {"ffma": 1, "alu": 1, "hfma2": 1, "none": 1}), "ld0 6 0",
        (42, 0, {"ffma": 10, "alu": 5, "xu": 2}), "wait0", (6, 0, {"ffma": 2, "alu": 1}), "st 7 0",
        (41, 0, {"imad": 1, "alu": 1, "cbu": 1, "none": 2}),
    ),
    "skip": (
        (113, 0, {"imad": 1, "alu": 5, "adu": 1, "cbu": 2, "none": 4}),
    ),
    "end": (
        (4, 0, {"cbu": 1, "none": 1}), "bar", (25, 0, {"alu": 2, "none": 1}), "exit",
    ),
}
