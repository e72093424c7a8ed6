"""The naive and the tiled transpose."""

# fmt: off
from __future__ import annotations

from . import Block

NAIVE: dict[str, Block] = {
    "full": (
        (69, 0, {"imad": 6, "alu": 6, "adu": 4, "uni": 1, "none": 3, "s2r": 2}), "ld0",
        (29, 0, {"imad": 7, "alu": 9, "adu": 1}), "wait0", "st", "ld0",
        (28, 0, {"imad": 5, "alu": 5, "adu": 1}), "wait0", "st", "ld0", (3, 0, {"imad": 1, "alu": 1}),
        "wait0", "st", (15, 0, {"imad": 4, "alu": 5, "cbu": 1, "none": 1}), "ld0", "wait0", "st", "exit",
    ),
    "cut": (
        (69, 0, {"imad": 6, "alu": 6, "adu": 4, "uni": 1, "none": 3, "s2r": 2}), "ld0",
        (29, 0, {"imad": 7, "alu": 9, "adu": 1}), "wait0", "st", "ld0",
        (28, 0, {"imad": 5, "alu": 5, "adu": 1}), "wait0", "st", "ld0", (3, 0, {"imad": 1, "alu": 1}),
        "wait0", "st", "exit",
    ),
}
TILED: dict[str, Block] = {
    "load": (
        (64, 0, {"imad": 19, "alu": 16, "adu": 7, "uni": 1, "none": 2, "s2r": 2}), "ld0",
        (4, 0, {"imad": 3, "alu": 4}), "ld1", (1, 0, {"alu": 2}), "ld2", "ld3",
        (36, 0, {"imad": 7, "alu": 8, "adu": 1, "uni": 1, "cbu": 1}), "wait0",
        (3, 1, {"alu": 2, "smem": 1}), "wait1", (0, 1, {"alu": 1, "smem": 1}), "wait2", (0, 1, {"smem": 1}),
        "wait3", (1, 1, {"smem": 1}), "bar",
    ),
    "store0": (
        (14, 1, {"imad": 3, "alu": 4, "none": 2, "smem": 1}), "st", (0, 0, {"cbu": 1}),
    ),
    "skip0": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "store1": (
        (15, 1, {"imad": 5, "alu": 4, "cbu": 1, "none": 2, "smem": 1}), "st", (0, 0, {"cbu": 1}),
    ),
    "skip1": (
        (0, 0, {"cbu": 2, "none": 1}),
    ),
    "store2": (
        (12, 1, {"imad": 5, "alu": 4, "cbu": 1, "none": 2, "smem": 1}), "st", (0, 0, {"cbu": 1}),
    ),
    "skip2": (
        (0, 0, {"cbu": 2, "none": 1}),
    ),
    "store3": (
        (17, 1, {"imad": 4, "alu": 3, "cbu": 1, "none": 1, "smem": 1}), "st", "exit",
    ),
    "skip3": (
        "exit",
    ),
}
