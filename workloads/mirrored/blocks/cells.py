"""Cells of recurrent layers: a GRU's and an LSTM's."""

# fmt: off
from __future__ import annotations

from . import Block

GRU: dict[str, Block] = {
    "all": (
        (145, 0, {"imad": 15, "alu": 20, "xu": 3, "hfma2": 1, "adu": 3, "cbu": 1, "none": 4, "s2r": 1}),
        "ld0", "ld0", (0, 0, {"cbu": 1}), "wait0",
        (97, 0, {"ffma": 8, "imad": 3, "alu": 3, "xu": 2, "adu": 1, "cbu": 1, "none": 1}), "ld0", "ld0",
        (0, 0, {"cbu": 1}), "wait0",
        (96, 0, {"ffma": 8, "imad": 2, "alu": 4, "xu": 2, "adu": 2, "cbu": 1, "none": 1}), "ld0", "ld0",
        (4, 0, {"imad": 1}), "ld1", (0, 0, {"imad": 1, "hfma2": 1}), "wait0",
        (2, 0, {"ffma": 3, "alu": 1, "adu": 1}), "wait1",
        (53, 0, {"ffma": 10, "imad": 1, "alu": 3, "xu": 2}), "st", "exit",
    ),
    "none": (
        (33, 0, {"imad": 2, "alu": 1, "adu": 3, "none": 1, "s2r": 1}), "exit",
    ),
}
LSTM: dict[str, Block] = {
    "all": (
        (147, 0, {"imad": 17, "alu": 21, "xu": 3, "hfma2": 1, "adu": 3, "cbu": 1, "none": 4, "s2r": 1}),
        "ld0", "ld0", (0, 0, {"cbu": 1}), "wait0",
        (69, 0, {"ffma": 8, "imad": 1, "alu": 7, "xu": 2, "cbu": 1, "none": 1}), "ld0", "ld0",
        (0, 0, {"cbu": 1}), "wait0",
        (70, 0, {"ffma": 8, "imad": 2, "alu": 9, "xu": 2, "cbu": 1, "none": 1}), "ld1", (1, 0, {"imad": 1}),
        "ld0", "ld0", "ld1", (0, 0, {"cbu": 1}), "wait0", (0, 0, {"ffma": 1}), "wait1",
        (94, 0, {"ffma": 17, "imad": 3, "alu": 9, "xu": 4, "hfma2": 1, "adu": 2, "cbu": 1, "none": 1}),
        "ld0", (0, 0, {"imad": 1}), "wait0", (5, 0, {"ffma": 4, "alu": 1, "adu": 1}), "st",
        (53, 0, {"ffma": 8, "imad": 1, "alu": 3, "xu": 2}), "st", "exit",
    ),
    "none": (
        (33, 0, {"imad": 2, "alu": 1, "adu": 3, "none": 1, "s2r": 1}), "exit",
    ),
}
