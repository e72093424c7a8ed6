"""What each stretch of the measured fp32 GEMMs' SASS executes; see ``blocks``.

``*_OUT`` are the stores of a tile one after another, each with and without rows that exist.
"""

# fmt: off
from __future__ import annotations

from . import Block

SGEMM64: dict[str, Block] = {
    "pre": (
        (65, 0, {"imad": 6, "alu": 25, "adu": 6, "uni": 7, "none": 6, "s2r": 1}), "ld0 B 0", "ld1 A 0",
        (3, 0, {"alu": 1, "none": 1}),
    ),
    "init": (
        (6, 0, {"imad": 1, "alu": 18, "hfma2": 3, "adu": 1, "uni": 1}),
    ),
    "body": (
        "bar", (3, 0, {"alu": 6, "adu": 1}), "wait1", (2, 8, {"alu": 1, "adu": 1, "smem": 4}), "wait0",
        (14, 4, {"imad": 1, "smem": 1}), "bar", (10, 0, {"imad": 2, "alu": 3}), "ld0",
        (0, 12, {"lds128": 4}, 6), (0, 0, {"ffma": 16}, 0), (1, 12, {"ffma": 16, "lds128": 4}, 6),
        (0, 3, {"ffma": 16, "lds128": 1}, 3), (1, 9, {"ffma": 16, "lds128": 3}, 6),
        (0, 0, {"ffma": 13, "imad": 1}), "ld1", (0, 3, {"ffma": 2, "lds128": 1}, 3),
        (1, 9, {"ffma": 17, "lds128": 3}, 6), (1, 6, {"ffma": 10, "lds128": 2}, 6),
        (1, 6, {"ffma": 22, "lds128": 2}, 6), (1, 6, {"ffma": 16, "lds128": 2}, 6),
        (1, 6, {"ffma": 16, "lds128": 2}, 6), (1, 6, {"ffma": 16, "lds128": 2}, 6),
        (1, 6, {"ffma": 16, "lds128": 2}, 6), (0, 6, {"ffma": 16, "lds128": 2}, 6),
        (1, 6, {"ffma": 16, "alu": 1, "lds128": 2}, 6), (0, 0, {"ffma": 16}, 0),
        (0, 0, {"ffma": 16, "none": 1}),
    ),
    "out": (
        (69, 0, {"imad": 16, "alu": 32, "adu": 3, "uni": 7, "none": 5}), "st B 0", "st B 4", "st B 8",
        "st B 12", "st C1 0", "st C1 4", "st C1 8", "st C1 12", "st C2 0", "st C2 4", "st C2 8", "st C2 12",
        (0, 0, {"cbu": 1}), "st C3 0", "st C3 4", "st C3 8", "st C3 12", "exit",
    ),
    "out_cut": (
        (69, 0, {"imad": 16, "alu": 32, "adu": 3, "uni": 7, "none": 5}), "st B 0", "st B 4", "st B 8",
        "st B 12", "st C1 0", "st C1 4", "st C1 8", "st C1 12", "st C2 0", "st C2 4", "st C2 8", "st C2 12",
        "exit",
    ),
}
SGEMM32: dict[str, Block] = {
    "pre": (
        (58, 0, {"imad": 6, "alu": 28, "adu": 6, "uni": 7, "none": 7, "s2r": 1}), "ld0", "ld1",
        (21, 0, {"imad": 1, "alu": 14, "hfma2": 3, "adu": 1, "uni": 1}),
    ),
    "body": (
        (0, 0, {"alu": 1}), "bar", (8, 0, {"alu": 3, "adu": 2}), "wait1",
        (17, 16, {"imad": 1, "alu": 1, "smem": 4}), "wait0", (0, 4, {"imad": 2, "smem": 1}), "bar",
        (6, 0, {"alu": 3}), "ld0", (0, 3, {"lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (0, 3, {"ffma": 4, "lds64": 2}, 0), (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (3, 3, {"ffma": 4, "imad": 1, "lds64": 2}, 0), "ld1", (0, 3, {"ffma": 4, "lds64": 2}, 0),
        (2, 6, {"ffma": 4, "lds64": 4}, 3), (0, 2, {"ffma": 4, "lds64": 1}, 2),
        (1, 4, {"ffma": 4, "lds64": 3}, 3), (1, 3, {"ffma": 4, "lds64": 2}, 3),
        (1, 3, {"ffma": 4, "lds64": 2}, 3), (1, 3, {"ffma": 4, "lds64": 2}, 3),
        (1, 3, {"ffma": 4, "lds64": 2}, 3), (1, 3, {"ffma": 4, "lds64": 2}, 3),
        (1, 3, {"ffma": 4, "lds64": 2}, 3), (1, 3, {"ffma": 4, "lds64": 2}, 3),
        (1, 3, {"ffma": 4, "alu": 1, "lds64": 2}, 3), (0, 0, {"ffma": 4}, 0), (0, 0, {"ffma": 4, "none": 1}),
    ),
    "out": (
        (61, 0, {"imad": 8, "alu": 20, "adu": 3, "uni": 7, "none": 5}), "st", "st", (0, 0, {"cbu": 1}),
        "st", "st", "exit",
    ),
    "out_cut": (
        (61, 0, {"imad": 8, "alu": 20, "adu": 3, "uni": 7, "none": 5}), "st", "st", "exit",
    ),
}
SGEMM128: dict[str, Block] = {
    "pre": (
        (63, 0, {"imad": 7, "alu": 25, "adu": 7, "uni": 6, "none": 5, "s2r": 1}), "ld0", "ld1",
        (3, 0, {"alu": 5, "none": 1}),
    ),
    "init": (
        (1, 0, {"imad": 1, "alu": 42, "hfma2": 7, "adu": 1, "uni": 1}),
    ),
    "body": (
        "bar", (3, 0, {"alu": 6, "adu": 1}), "wait1", (2, 4, {"alu": 1, "adu": 1, "smem": 4}), "wait0",
        (14, 4, {"imad": 1, "smem": 1}), "bar", (10, 0, {"imad": 2, "alu": 3}), "ld0",
        (0, 12, {"lds128": 4}, 6), (0, 0, {"ffma": 4}, 3), (0, 6, {"ffma": 23, "lds128": 2}, 6),
        (0, 6, {"ffma": 36, "lds128": 2}, 6), (0, 3, {"ffma": 17, "lds128": 1}, 6), (0, 0, {"ffma": 4}, 3),
        (2, 15, {"ffma": 44, "imad": 1, "lds128": 5}, 12), "ld1", (0, 0, {"ffma": 4}, 9),
        (0, 0, {"ffma": 28}, 6), (0, 6, {"ffma": 32, "lds128": 2}, 6), (0, 0, {"ffma": 7}, 3),
        (0, 3, {"ffma": 25, "lds128": 1}, 3), (2, 18, {"ffma": 32, "lds128": 6}, 15), (0, 0, {"ffma": 4}, 12),
        (0, 0, {"ffma": 28}, 9), (2, 12, {"ffma": 32, "lds128": 4}, 12),
        (0, 3, {"ffma": 32, "lds128": 1}, 12),
        (0, 0, {"ffma": 32}, 3), (0, 12, {"ffma": 32, "alu": 1, "lds128": 4}, 12), (0, 0, {"ffma": 32}, 3),
        (0, 0, {"ffma": 24}, 0), (0, 0, {"ffma": 40, "none": 1}),
    ),
    "out": (
        (46, 0, {"alu": 3, "adu": 2, "uni": 7, "none": 4}),
    ),
}
_SGEMM128_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((6, 0, {"imad": 4, "alu": 19, "cbu": 1, "none": 2}), "st", "st", "st", "st", "st", "st", "st",
         "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"alu": 3, "cbu": 2, "none": 1}),),
    ),
    (
        ((13, 0, {"imad": 4, "alu": 24, "cbu": 1, "none": 2}), "st", (1, 0, {"alu": 2}), "st", (2, 0,
         {"alu": 1}), "st", "st", "st", "st", "st", "st", (0, 0, {"cbu": 1}),),
        ((2, 0, {"alu": 12, "cbu": 2, "none": 1}),),
    ),
    (
        ((7, 0, {"imad": 4, "alu": 14, "cbu": 1, "none": 2}), "st", (2, 0, {"alu": 1}), "st", "st", "st",
         "st", "st", "st", "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((8, 0, {"imad": 4, "alu": 15, "cbu": 1, "none": 2}), "st", "st", "st", "st", "st", "st", "st",
         "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((7, 0, {"imad": 4, "alu": 15, "cbu": 1, "none": 1}), "st", "st", "st", "st", "st", "st", "st",
         "st", "exit",),
        ("exit",),
    ),
)
SGEMM128_OUT = tuple(_SGEMM128_OUT[i] for i in (
    0, 1, 2, 3, 3, 3, 3, 4,
))
