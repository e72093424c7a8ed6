"""``mlp_persist``: GEMMs of layers."""

# fmt: off
from __future__ import annotations

from pysim.workloads.mirrored.blocks import Block
from pysim.workloads.mirrored.blocks.steps import with_steps

HGEMM8: dict[str, Block] = {
    "pre": (
        (87, 0, {"imad": 22, "alu": 20, "xu": 3, "adu": 3, "cbu": 1, "none": 1}),
    ),
    "load0": (
        (29, 3, {"imad": 4, "alu": 2, "adu": 2, "void": 3}), "cp", "cp",
        (41, 3, {"imad": 10, "alu": 10, "adu": 2, "none": 2, "void": 3}), "cp",
        (22, 0, {"imad": 6, "alu": 1}), "cp", (0, 0, {"cbu": 1}),
    ),
    "commit": (
        (1, 0, {"alu": 1, "cbu": 1, "none": 1, "lsu": 1}),
    ),
    "load1": (
        (30, 3, {"imad": 3, "alu": 2, "adu": 3, "void": 3}), "cp", (4, 0, {"imad": 1}), "cp",
        (15, 3, {"imad": 8, "alu": 10, "adu": 1, "none": 1, "void": 3}), "cp",
        (19, 0, {"imad": 6, "alu": 1}), "cp", (0, 0, {"cbu": 1}),
    ),
    "init": (
        (2, 0, {"alu": 32, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (0, 0, {"imad": 2, "alu": 1}),
    ),
    "top": (
        (0, 0, {"imad": 1, "alu": 1, "none": 1}), "group", (3, 0, {"alu": 2, "cbu": 2}), "bar",
        (17, 0, {"alu": 1, "none": 1}),
    ),
    "load": (
        (32, 3, {"imad": 4, "alu": 3, "adu": 3, "void": 3}), "cp", (4, 0, {"imad": 1}), "cp",
        (25, 0, {"alu": 2, "none": 1}), "taken", (18, 3, {"imad": 11, "alu": 8, "adu": 2, "void": 3}), "cp",
        (1, 0, {"imad": 2}), "cp", (13, 0, {"cbu": 1}),
    ),
    "math": (
        "taken",
        (30, 20, {"imad": 12, "alu": 6, "adu": 1, "cbu": 1, "lsu": 1, "smem": 5}, 12),
        (0, 0, {"hmma": 2}, 8), (1, 4, {"hmma": 2, "smem": 1}, 8), (0, 0, {"hmma": 4}),
        (0, 4, {"smem": 1}, 4), (0, 0, {"hmma": 4}), (0, 4, {"smem": 1}, 4),
        (3, 12, {"hmma": 4, "smem": 3}, 8), (0, 0, {"hmma": 2}, 4), (0, 4, {"hmma": 3, "smem": 1}, 4),
        (0, 0, {"hmma": 5}, 0), (21, 0, {"alu": 4, "hmma": 6, "none": 2}),
    ),
    "out": (
        (0, 0, {"adu": 1, "none": 1}), "group", (28, 0, {"imad": 1, "alu": 1, "adu": 1}),
    ),
    "end": (
        (2, 0, {"imad": 2, "alu": 1, "cbu": 1, "none": 1}), "bar",
        (13, 0, {"imad": 1, "alu": 3, "none": 1}), "exit",
    ),
}
_HGEMM8_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((37, 0, {"imad": 9, "alu": 13, "adu": 3, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((22, 0, {"imad": 8, "alu": 8, "adu": 3, "cbu": 2, "none": 2}),),
    ),
    (
        ((13, 0, {"imad": 1, "alu": 7, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((17, 0, {"imad": 2, "alu": 7, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((14, 0, {"imad": 2, "alu": 7, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"imad": 1, "alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((19, 0, {"imad": 5, "alu": 11, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((4, 0, {"imad": 3, "alu": 6, "cbu": 2, "none": 1}),),
    ),
    (
        ((17, 0, {"imad": 2, "alu": 8, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((2, 0, {"alu": 3, "cbu": 2, "none": 1}),),
    ),
    (
        ((13, 0, {"imad": 1, "alu": 8, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((2, 0, {"alu": 3, "cbu": 2, "none": 1}),),
    ),
    (
        ((17, 0, {"imad": 2, "alu": 6, "cbu": 1, "none": 1}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"alu": 1, "cbu": 2, "none": 1}),),
    ),
)
HGEMM8_OUT = tuple(_HGEMM8_OUT[i] for i in (
    0, 1, 2, 2, 2, 2, 2, 2, 1, 3, 2, 2, 2, 2, 4, 5, 1, 1, 2, 2, 2, 2, 2, 2, 1, 6, 2, 2, 2, 2, 2, 7,
))
HGEMM64: dict[str, Block] = {
    "pre": (
        (186, 0, {"imad": 23, "alu": 23, "xu": 3, "adu": 4, "cbu": 1, "none": 1, "lsu": 1}),
    ),
    "load0": (
        (34, 3, {"imad": 4, "alu": 2, "adu": 2, "void": 3}), "cp", "cp",
        (111, 3, {"imad": 15, "alu": 10, "adu": 2, "none": 2, "void": 3}), "cp",
        (9, 0, {"imad": 3, "alu": 1}), "cp", (14, 0, {"cbu": 1}),
    ),
    "commit": (
        (14, 0, {"alu": 1, "cbu": 1, "none": 1, "lsu": 1}),
    ),
    "load1": (
        (35, 3, {"imad": 3, "alu": 2, "adu": 3, "void": 3}), "cp", (4, 0, {"imad": 1}), "cp",
        (61, 3, {"imad": 13, "alu": 10, "adu": 1, "none": 1, "void": 3}), "cp",
        (9, 0, {"imad": 3, "alu": 1}), "cp", (14, 0, {"cbu": 1}),
    ),
    "init": (
        (7, 0, {"alu": 16, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (6, 0, {"imad": 4}),
    ),
    "top": (
        (0, 0, {"imad": 1, "alu": 1, "none": 1}), "group", (7, 0, {"alu": 2, "cbu": 2}), "bar",
        (17, 0, {"alu": 1, "none": 1}),
    ),
    "load": (
        (37, 3, {"imad": 4, "alu": 3, "adu": 3, "void": 3}), "cp", (4, 0, {"imad": 1}), "cp",
        (25, 0, {"alu": 2, "none": 1}), "taken", (37, 3, {"imad": 12, "alu": 8, "adu": 2, "void": 3}), "cp",
        (2, 0, {"imad": 3}), "cp",
        (16, 0, {"cbu": 1}),
    ),
    "math": (
        "taken",
        (39, 12, {"imad": 12, "alu": 7, "adu": 1, "cbu": 1, "s2r": 1, "lsu": 1, "smem": 3}, 4),
        (5, 0, {"hmma": 1}, 0), (5, 4, {"hmma": 3, "smem": 1}, 0), (6, 12, {"hmma": 4, "smem": 3}, 0),
        (0, 0, {"hmma": 4}), (4, 4, {"smem": 1}, 0), (30, 0, {"alu": 4, "hmma": 4, "none": 1}),
    ),
    "out": (
        (0, 0, {"adu": 1, "none": 1}), "group",
        (28, 0, {"imad": 2, "alu": 1, "adu": 1, "s2r": 1, "lsu": 1}),
    ),
    "end": (
        (24, 0, {"imad": 2, "alu": 3, "cbu": 1, "none": 1, "lsu": 1}), "bar",
        (37, 0, {"imad": 1, "alu": 1, "none": 1}), "exit",
    ),
}
_HGEMM64_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((88, 0, {"imad": 9, "alu": 19, "adu": 4, "cbu": 1, "none": 2}), "st", (16, 0, {"cbu": 1}),),
        ((87, 0, {"imad": 8, "alu": 14, "adu": 4, "cbu": 2, "none": 2}),),
    ),
    (
        ((16, 0, {"imad": 1, "alu": 7, "cbu": 1, "none": 1}), "st", (16, 0, {"cbu": 1}),),
        ((25, 0, {"alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((21, 0, {"imad": 2, "alu": 7, "cbu": 1, "none": 1}), "st", (16, 0, {"cbu": 1}),),
        ((25, 0, {"alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((16, 0, {"imad": 1, "alu": 8, "cbu": 1, "none": 1}), "st", (16, 0, {"cbu": 1}),),
        ((26, 0, {"alu": 3, "cbu": 2, "none": 1}),),
    ),
    (
        ((22, 0, {"imad": 2, "alu": 6, "cbu": 1, "none": 1}), "st", (16, 0, {"cbu": 1}),),
        ((25, 0, {"alu": 1, "cbu": 2, "none": 1}),),
    ),
)
HGEMM64_OUT = tuple(_HGEMM64_OUT[i] for i in (
    0, 1, 2, 2, 2, 2, 2, 2, 1, 3, 2, 2, 2, 2, 2, 4,
))
SGEMM64 = with_steps({
    "pre": (
        (108, 0, {"imad": 8, "alu": 23, "xu": 3, "adu": 1}), "ld0",
        (128, 0, {"imad": 4, "alu": 21, "hfma2": 1, "adu": 3, "none": 3}), "ld1",
        (9, 0, {"alu": 1, "hfma2": 1}),
    ),
    "front": (
        (50, 0, {"alu": 5, "adu": 1, "cbu": 2, "none": 1}), "bar", (29, 0, {"imad": 1, "alu": 6}), "wait1",
        (9, 8, {"smem": 4}), "wait0", (0, 4, {"smem": 1}), "bar", (9, 0, {"none": 1}),
    ),
    "fetch": (
        (43, 0, {"imad": 2, "alu": 5, "adu": 1}), "ld0",
        (96, 0, {"imad": 4, "alu": 11, "hfma2": 1, "adu": 2, "none": 1}), "ld1", (15, 0, {"cbu": 1}),
    ),
    "math": (
        (6, 6, {"alu": 6, "lds128": 2}, 0), *(((8, 0, {"ffma": 16}), (0, 6, {"lds128": 2}, 0)) * 15),
        (11, 0, {"ffma": 16, "none": 1}),
    ),
    "out": (
        (33, 0, {"imad": 1, "alu": 2, "hfma2": 1, "adu": 2}),
    ),
    "end": (
        (14, 0, {"alu": 2, "cbu": 1, "none": 2}), "bar", (33, 0, {"imad": 1, "alu": 4, "none": 1}), "exit",
    ),
})
_SGEMM64_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((91, 0, {"imad": 8, "alu": 23, "adu": 4, "cbu": 1, "none": 2}), "st", "st", "st", "st", (14, 0,
         {"cbu": 1}),),
        ((65, 0, {"imad": 4, "alu": 10, "adu": 2, "cbu": 2, "none": 2}),),
    ),
    (
        ((65, 0, {"imad": 2, "alu": 8, "hfma2": 1, "adu": 2, "cbu": 1, "none": 1}), "st", (2, 0,
         {"alu": 1}), "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((26, 0, {"cbu": 2, "none": 1}),),
    ),
)
SGEMM64_OUT = tuple(_SGEMM64_OUT[i] for i in (
    0, 1, 1, 1,
))
SGEMM128 = with_steps({
    "pre": (
        (113, 0, {"imad": 7, "alu": 21, "xu": 3, "hfma2": 1, "adu": 2}), "ld0",
        (116, 0, {"imad": 3, "alu": 47, "adu": 4, "none": 3}), "ld1", (9, 0, {"alu": 1, "hfma2": 1}),
    ),
    "front": (
        (50, 0, {"alu": 5, "adu": 1, "cbu": 2, "none": 1}), "bar", (29, 0, {"imad": 1, "alu": 6}), "wait1",
        (9, 4, {"smem": 4}), "wait0", (0, 4, {"smem": 1}), "bar", (9, 0, {"none": 1}),
    ),
    "fetch": (
        (41, 0, {"imad": 1, "alu": 4, "adu": 2}), "ld0",
        (85, 0, {"imad": 3, "alu": 11, "adu": 3, "none": 1}), "ld1", (15, 0, {"cbu": 1}),
    ),
    "math": (
        (11, 12, {"alu": 2, "lds128": 4}, 6), (0, 0, {"ffma": 4}, 3), (0, 0, {"ffma": 20}, 0),
        (0, 0, {"ffma": 40}), (6, 15, {"lds128": 5}, 9), (0, 0, {"ffma": 4}, 6), (0, 0, {"ffma": 20}, 3),
        (0, 0, {"ffma": 40}), (4, 12, {"lds128": 4}, 6), (0, 0, {"ffma": 32}, 3), (0, 0, {"ffma": 16}),
        (4, 15, {"ffma": 16, "lds128": 5}, 12), (0, 0, {"ffma": 16}, 9), (0, 0, {"ffma": 16}, 6),
        (0, 0, {"ffma": 16}), (0, 6, {"ffma": 16, "lds128": 2}, 6), (0, 0, {"ffma": 16}),
        (0, 3, {"lds128": 1}, 6), (0, 0, {"ffma": 7}, 3), (0, 0, {"ffma": 41}), (4, 12, {"lds128": 4}, 9),
        (0, 0, {"ffma": 8}, 6), (0, 0, {"ffma": 9}, 3), (0, 0, {"ffma": 27}),
        (4, 12, {"ffma": 20, "lds128": 4}, 9), (0, 0, {"ffma": 4}, 6), (0, 0, {"ffma": 19}, 3),
        (0, 0, {"ffma": 25, "alu": 1}), (3, 9, {"ffma": 16, "alu": 3, "lds128": 3}, 6),
        (0, 0, {"ffma": 4}, 3), (0, 0, {"ffma": 12}, 0), (11, 0, {"ffma": 48, "none": 1}),
    ),
    "out": (
        (34, 0, {"alu": 2, "adu": 2}),
    ),
    "end": (
        (14, 0, {"alu": 2, "cbu": 1, "none": 2}), "bar", (33, 0, {"imad": 1, "alu": 4, "none": 1}), "exit",
    ),
})
_SGEMM128_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((44, 0, {"imad": 6, "alu": 25, "adu": 3, "cbu": 1, "none": 2}), "st", (0, 0, {"alu": 2}), "st",
         (0, 0, {"alu": 2}), "st", (0, 0, {"alu": 2}), "st", "st", "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((45, 0, {"imad": 3, "alu": 8, "adu": 2, "cbu": 2, "none": 2}),),
    ),
    (
        ((28, 0, {"imad": 1, "alu": 15, "adu": 1, "cbu": 1, "none": 1}), "st", (0, 0, {"alu": 2}), "st",
         (0, 0, {"alu": 2}), "st", (2, 0, {"alu": 1}), "st", "st", "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((26, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((35, 0, {"imad": 1, "alu": 23, "adu": 1, "cbu": 1, "none": 1}), "st", (0, 0, {"alu": 2}), "st",
         (0, 0, {"alu": 2}), "st", (0, 0, {"alu": 2}), "st", "st", "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((32, 0, {"alu": 9, "cbu": 2, "none": 1}),),
    ),
    (
        ((31, 0, {"imad": 1, "alu": 16, "adu": 1, "cbu": 1, "none": 1}), "st", (0, 0, {"alu": 2}), "st",
         (0, 0, {"alu": 2}), "st", (2, 0, {"alu": 1}), "st", "st", "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((30, 0, {"alu": 1, "cbu": 2, "none": 1}),),
    ),
)
SGEMM128_OUT = tuple(_SGEMM128_OUT[i] for i in (
    0, 1, 1, 2, 3, 1, 1, 1,
))
