"""``attn_persist``: Q K and P V of attention."""

# fmt: off
from __future__ import annotations

from pysim.workloads.mirrored.blocks import Block

QK: dict[str, Block] = {
    "pre": (
        (162, 0, {"imad": 48, "alu": 33, "xu": 6, "adu": 2, "none": 7}),
    ),
    "load0": (
        (40, 3, {"imad": 3, "alu": 3, "adu": 3, "void": 3}), "cp", "cp",
        (69, 3, {"imad": 7, "alu": 6, "adu": 1, "none": 2, "void": 3}), "cp",
        (33, 0, {"imad": 8, "alu": 1, "adu": 1}), "cp", (3, 0, {"adu": 1}),
    ),
    "commit": (
        (16, 0, {"alu": 1, "none": 1, "lsu": 1}),
    ),
    "load1": (
        (39, 3, {"imad": 3, "alu": 4, "adu": 3, "void": 3}), "cp", "cp",
        (19, 3, {"imad": 5, "alu": 4, "adu": 1, "none": 1, "void": 3}), "cp",
        (16, 0, {"imad": 2, "alu": 3}), "cp",
    ),
    "init": (
        (8, 0, {"alu": 16, "cbu": 1, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (6, 0, {"imad": 4}),
    ),
    "top": (
        (0, 0, {"imad": 1, "none": 1}), "group", "bar", (15, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "load": (
        (41, 3, {"imad": 4, "alu": 5, "adu": 3, "void": 3}), "cp", "cp", "taken",
        (21, 3, {"imad": 6, "alu": 4, "adu": 1, "none": 1, "void": 3}), "cp",
        (10, 0, {"imad": 1, "alu": 2, "adu": 1}), "cp", (38, 0, {"imad": 2, "alu": 1, "cbu": 1}),
    ),
    "math": (
        "taken",
        (31, 12, {"imad": 12, "alu": 8, "adu": 1, "lsu": 1, "smem": 3}, 0), (0, 0, {"hmma": 4}),
        (4, 4, {"smem": 1}, 0), (12, 0, {"imad": 5, "alu": 3, "hmma": 4}), (7, 12, {"smem": 3}, 0),
        (0, 0, {"hmma": 4}), (4, 4, {"smem": 1}, 0), (18, 0, {"hmma": 4, "none": 2}),
    ),
    "out": (
        (13, 0, {"adu": 1, "cbu": 1, "none": 1}), "group",
        (83, 0, {"imad": 27, "alu": 28, "uni": 1, "cbu": 1, "none": 7, "lsu": 2}), "st r0 0",
        (0, 0, {"alu": 2}), "st r8 0", (0, 0, {"alu": 2}), "st r0 16", (0, 0, {"alu": 2}), "st r8 16",
        (0, 0, {"alu": 2}), "st r0 32", (0, 0, {"alu": 2}), "st r8 32", (0, 0, {"alu": 2}), "st r0 48",
        (2, 0, {"alu": 1}), "st r8 48", "st r16 0", "st r24 0", "st r16 16", "st r24 16", "st r16 32",
        "st r24 32", "st r16 48", "st r24 48",
        (69, 0, {"imad": 2, "alu": 1, "adu": 1, "cbu": 1, "none": 2, "lsu": 1}), "bar",
        (50, 0, {"imad": 1, "alu": 1, "none": 1}), "exit",
    ),
}
PV: dict[str, Block] = {
    "pre": (
        (192, 0, {"imad": 56, "alu": 43, "xu": 6, "adu": 4, "uni": 1, "none": 8, "s2r": 1}),
    ),
    "load0": (
        (1, 3, {"adu": 1, "void": 3}), "cp", (26, 0, {"imad": 1, "adu": 1}), "cp",
        (117, 3, {"imad": 8, "alu": 8, "adu": 2, "none": 2, "void": 3}), "cp",
        (2, 0, {"imad": 3, "alu": 1}), "cp", (6, 0, {"adu": 1}),
    ),
    "commit": (
        (16, 0, {"alu": 1, "none": 1, "lsu": 1}),
    ),
    "load1": (
        (1, 3, {"adu": 1, "void": 3}), "cp", (24, 0, {"imad": 1, "alu": 2, "adu": 1}), "cp",
        (57, 3, {"imad": 5, "alu": 7, "adu": 1, "none": 1, "void": 3}), "cp", (2, 0, {"alu": 2}), "cp",
        (8, 0, {"imad": 1}),
    ),
    "init": (
        (7, 0, {"alu": 16, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (8, 0, {"imad": 4, "alu": 2}),
    ),
    "top": (
        (0, 0, {"imad": 1, "none": 1}), "group", (7, 0, {"alu": 1, "cbu": 2}), "bar", (9, 0, {"none": 1}),
    ),
    "load": (
        (5, 3, {"imad": 1, "alu": 1, "adu": 1, "void": 3}), "cp", (20, 0, {"imad": 1, "alu": 1, "adu": 1}),
        "cp", (25, 0, {"alu": 2, "none": 1}), "taken",
        (31, 3, {"imad": 5, "alu": 3, "adu": 2, "void": 3}), "cp", (2, 0, {"alu": 2}), "cp",
        (21, 0, {"alu": 1, "cbu": 1}),
    ),
    "math": (
        "taken",
        (15, 12, {"imad": 8, "alu": 5, "cbu": 1, "lsu": 1, "smem": 3}, 0), (0, 0, {"hmma": 4}),
        (4, 4, {"smem": 1}, 0), (6, 12, {"hmma": 4, "smem": 3}, 0), (0, 0, {"hmma": 4}),
        (4, 4, {"smem": 1}, 0), (18, 0, {"hmma": 4, "none": 2}),
    ),
    "out": (
        (0, 0, {"adu": 1, "none": 1}), "group",
        (120, 0, {"imad": 29, "alu": 36, "adu": 2, "uni": 1, "cbu": 1, "none": 7, "s2r": 1}), "st r0 0",
        (0, 0, {"alu": 2}), "st r8 0", (0, 0, {"alu": 2}), "st r0 16", (0, 0, {"alu": 2}), "st r8 16",
        (0, 0, {"alu": 2}), "st r0 32", (0, 0, {"alu": 2}), "st r8 32", (0, 0, {"alu": 2}), "st r0 48",
        (2, 0, {"alu": 1}), "st r8 48", "st r16 0", "st r24 0", "st r16 16", "st r24 16", "st r16 32",
        "st r24 32", "st r16 48", "st r24 48",
        (70, 0, {"imad": 3, "alu": 1, "adu": 1, "cbu": 2, "none": 2}), "bar",
        (25, 0, {"alu": 1, "none": 1}), "exit",
    ),
}
