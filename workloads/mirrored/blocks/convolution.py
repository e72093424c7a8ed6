"""The direct 3 x 3 convolution."""

# fmt: off
from __future__ import annotations

from . import Block

CONV: dict[str, Block] = {
    "head": (
        (105, 0, {"imad": 15, "alu": 9, "xu": 3, "hfma2": 2, "adu": 3, "uni": 4, "none": 3}),
    ),
    "setup": (
        (29, 0, {"imad": 32, "alu": 42, "adu": 3, "uni": 1, "none": 2, "s2r": 1}),
    ),
    "chan": (
        (52, 0, {"imad": 6, "alu": 8, "adu": 1, "uni": 1, "cbu": 2, "none": 4, "s2r": 1}),
    ),
    "first": (
        (14, 0, {"alu": 4, "hfma2": 1, "cbu": 1, "none": 2}), "ld0", (0, 0, {"cbu": 1}), "wait0",
        (2, 1, {"imad": 1, "alu": 1, "none": 1, "smem": 1}),
    ),
    "first_off": (
        (4, 1, {"imad": 1, "alu": 1, "hfma2": 1, "cbu": 2, "none": 2, "smem": 1}),
    ),
    "second": (
        (13, 0, {"alu": 5, "cbu": 1, "none": 2}), "ld0", (0, 0, {"cbu": 1}), "wait0",
        (2, 1, {"imad": 1, "alu": 1, "none": 1, "smem": 1}),
    ),
    "second_off": (
        (3, 1, {"imad": 1, "alu": 2, "cbu": 2, "none": 2, "smem": 1}),
    ),
    "load_end": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "weights": (
        (33, 0, {"imad": 6, "alu": 12, "adu": 1, "cbu": 1}), "ld0", (29, 0, {"alu": 2, "adu": 1, "uni": 1}),
        "wait0", (0, 1, {"smem": 1}), "bar",
    ),
    "math": (
        (0, 16, {"smem": 8}, 12), (0, 0, {"ffma": 1}, 10), (1, 2, {"ffma": 1, "smem": 1}, 10),
        (0, 2, {"ffma": 2, "smem": 1}, 10), (0, 2, {"ffma": 1, "smem": 1}, 10),
        (3, 2, {"ffma": 4, "smem": 1}, 6), (0, 0, {"ffma": 1}, 4), (4, 6, {"ffma": 4, "smem": 3}, 4),
        (1, 0, {"ffma": 1}, 2), (0, 6, {"ffma": 8, "smem": 3}, 4), (3, 0, {"ffma": 2}, 0),
        (4, 8, {"ffma": 11, "smem": 4}, 6), (0, 0, {"ffma": 2}, 4), (0, 0, {"ffma": 2}, 2),
        (2, 0, {"ffma": 3}, 0), (3, 6, {"ffma": 7, "smem": 3}, 4), (0, 2, {"ffma": 3, "smem": 1}, 4),
        (1, 2, {"ffma": 3, "smem": 1}, 4), (9, 0, {"ffma": 7, "adu": 1}), "bar", (13, 0, {"alu": 1}, 2),
        (0, 0, {"ffma": 1}, 0), (6, 0, {"ffma": 8, "none": 1}),
    ),
    "tail": (
        (31, 0, {"alu": 5, "cbu": 1, "none": 2, "s2r": 1}),
    ),
    "tail_off": (
        (31, 0, {"alu": 5, "none": 2, "s2r": 1}), "exit",
    ),
    "store": (
        (55, 0, {"imad": 9, "alu": 9, "adu": 3, "uni": 7, "none": 1}), "st", (0, 0, {"alu": 2}), "st",
        (0, 0, {"alu": 2}), "st", (0, 0, {"alu": 2}), "st", (0, 0, {"alu": 2}), "st", (0, 0, {"alu": 2}),
        "st", (2, 0, {"alu": 1}), "st", "st", "exit",
    ),
}
