"""GEMMs of the chains."""

# fmt: off
from __future__ import annotations

from pysim.workloads.mirrored.blocks import Block
from pysim.workloads.mirrored.blocks.steps import with_steps

SGEMM64 = with_steps({
    "pre": (
        (181, 0, {"imad": 5, "alu": 24, "adu": 6, "cbu": 2, "none": 10, "s2r": 1}), "ld0",
        (119, 0, {"imad": 6, "alu": 28, "hfma2": 1, "adu": 3, "uni": 1, "none": 5}), "ld1",
        (35, 0, {"imad": 1, "alu": 10, "hfma2": 1, "adu": 1, "uni": 1, "none": 4}),
    ),
    "front": (
        (50, 0, {"cbu": 1, "none": 1}), "bar", (0, 0, {"alu": 4, "cbu": 1}), "wait1", (9, 8, {"smem": 4}),
        "wait0", (0, 4, {"smem": 1}), "bar",
    ),
    "fetch": (
        (24, 0, {"imad": 3, "alu": 6, "adu": 1, "none": 3}), "ld0",
        (42, 0, {"imad": 1, "alu": 2, "none": 1}), "ld1",
    ),
    "math": (
        (21, 9, {"alu": 3, "cbu": 1, "lds128": 3}, 3), (0, 0, {"ffma": 6}),
        (0, 6, {"ffma": 10, "lds128": 2}, 3),
        *(((0, 0, {"ffma": 5}), (0, 6, {"ffma": 11, "lds128": 2}, 3)) * 13), (0, 0, {"ffma": 5}),
        (0, 3, {"ffma": 11, "lds128": 1}, 0), (11, 0, {"ffma": 16, "none": 1}),
    ),
    "out": (
        (121, 0, {"imad": 20, "alu": 31, "adu": 4, "uni": 2, "cbu": 1, "none": 5}), "st", "st", "st", "st",
        "st", "st", "st", "st", "st", "st", "st", "st", "st", "st", "st", "st",
        (69, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
})
SGEMM32 = with_steps({
    "pre": (
        (188, 0, {"imad": 1, "alu": 21, "adu": 6, "uni": 8, "cbu": 2, "none": 13, "s2r": 1}), "ld0",
        (98, 0, {"imad": 6, "alu": 19, "hfma2": 1, "adu": 3, "none": 4}), "ld1",
        (10, 0, {"imad": 1, "alu": 5, "hfma2": 1, "uni": 1, "none": 1}),
    ),
    "front": (
        (50, 0, {"alu": 4, "adu": 1, "cbu": 1, "none": 4}), "bar", (28, 0, {"imad": 1, "alu": 5, "cbu": 1}),
        "wait1", (9, 16, {"smem": 4}), "wait0", (0, 4, {"smem": 1}), "bar",
    ),
    "fetch": (
        (24, 0, {"imad": 3, "alu": 6, "adu": 1, "none": 3}), "ld0",
        (30, 0, {"imad": 1, "alu": 2, "none": 1}), "ld1",
    ),
    "math": (
        (19, 3, {"alu": 3, "cbu": 1, "lds64": 2}, 0),
        *(((4, 0, {"ffma": 4}), (0, 3, {"lds64": 2}, 0)) * 29), (3, 0, {"ffma": 4}),
        (3, 4, {"lds64": 3}, 0), (0, 2, {"ffma": 4, "lds64": 1}, 0), (11, 0, {"ffma": 4, "none": 1}),
    ),
    "out": (
        (68, 0, {"imad": 8, "alu": 21, "adu": 1, "uni": 7, "cbu": 1, "none": 6}), "st", "st", "st", "st",
        (69, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
})
SGEMM128 = with_steps({
    "pre": (
        (181, 0, {"imad": 5, "alu": 24, "adu": 6, "cbu": 2, "none": 9, "s2r": 1}), "ld0",
        (73, 0, {"imad": 7, "alu": 58, "hfma2": 1, "adu": 2, "none": 6}), "ld1",
        (31, 0, {"imad": 1, "alu": 12, "hfma2": 1, "adu": 1, "uni": 1, "none": 4}),
    ),
    "front": (
        (50, 0, {"cbu": 1, "none": 1}), "bar", (3, 0, {"alu": 2, "cbu": 1}), "wait1", (9, 4, {"smem": 4}),
        "wait0", (0, 4, {"smem": 1}), "bar",
    ),
    "fetch": (
        (24, 0, {"imad": 3, "alu": 6, "adu": 1, "none": 3}), "ld0",
        (51, 0, {"imad": 1, "alu": 2, "none": 1}), "ld1",
    ),
    "math": (
        (24, 12, {"alu": 3, "cbu": 1, "lds128": 4}, 6), (0, 0, {"ffma": 4}, 3), (0, 0, {"ffma": 28}),
        (0, 3, {"lds128": 1}, 3), (4, 15, {"ffma": 32, "lds128": 5}, 12), (0, 0, {"ffma": 4}, 9),
        (0, 0, {"ffma": 28}, 6), (0, 9, {"ffma": 32, "lds128": 3}, 6), (0, 0, {"ffma": 32}, 3),
        (3, 15, {"ffma": 32, "lds128": 5}, 12), (0, 0, {"ffma": 4}, 9), (0, 0, {"ffma": 28}, 6),
        (3, 12, {"ffma": 32, "lds128": 4}, 9), (0, 0, {"ffma": 4}, 6), (0, 0, {"ffma": 32}),
        (0, 6, {"ffma": 28, "lds128": 2}, 6), (0, 0, {"ffma": 10}, 3), (0, 0, {"ffma": 22}),
        (0, 3, {"lds128": 1}, 3), (0, 0, {"ffma": 5}), (3, 15, {"ffma": 27, "lds128": 5}, 12),
        (0, 0, {"ffma": 4}, 9), (0, 0, {"ffma": 28}, 6), (0, 6, {"ffma": 32, "alu": 1, "lds128": 2}, 6),
        (0, 0, {"ffma": 6}, 3), (0, 0, {"ffma": 25}, 0), (11, 0, {"ffma": 33, "none": 1}),
    ),
    "out": (
        (77, 0, {"imad": 4, "alu": 6, "adu": 4, "uni": 1, "cbu": 1, "none": 3}),
    ),
    "end": (
        (68, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
})
_SGEMM128_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((17, 0, {"imad": 4, "alu": 21, "cbu": 1, "none": 2}), "st", "st", "st", "st", "st", "st", "st",
         "st", (14, 0, {"cbu": 1}),),
        ((28, 0, {"alu": 7, "cbu": 2, "none": 1}),),
    ),
    (
        ((17, 0, {"imad": 4, "alu": 13, "cbu": 1, "none": 2}), "st", "st", "st", "st", "st", "st", "st",
         "st", (14, 0, {"cbu": 1}),),
        ((26, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((27, 0, {"imad": 4, "alu": 18, "cbu": 1, "none": 2}), "st", (0, 0, {"alu": 2}), "st", (2, 0,
         {"alu": 1}), "st", "st", "st", "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((32, 0, {"alu": 8, "cbu": 2, "none": 1}),),
    ),
    (
        ((19, 0, {"imad": 4, "alu": 12, "cbu": 1, "none": 2}), "st", (2, 0, {"alu": 1}), "st", "st",
         "st", "st", "st", "st", "st", (14, 0, {"cbu": 1}),),
        ((26, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((21, 0, {"imad": 4, "alu": 13, "cbu": 1, "none": 2}), "st", "st", "st", "st", "st", "st", "st",
         "st", (14, 0, {"cbu": 1}),),
        ((26, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((15, 0, {"imad": 4, "alu": 12, "none": 2}), "st", "st", "st", "st", "st", "st", "st", "st",),
        ((0, 0, {"none": 1}),),
    ),
)
SGEMM128_OUT = tuple(_SGEMM128_OUT[i] for i in (
    0, 1, 1, 2, 3, 4, 4, 5,
))
HGEMM8: dict[str, Block] = {
    "pre": (
        (112, 0, {"imad": 20, "alu": 34, "adu": 8, "uni": 23, "cbu": 2, "none": 22, "s2r": 1}),
    ),
    "load0": (
        (3, 3, {"imad": 3, "alu": 2, "adu": 1, "void": 3}), "cp", (2, 0, {"imad": 1, "alu": 1}), "cp",
        (84, 3, {"imad": 7, "alu": 9, "adu": 2, "none": 2, "void": 3}), "cp", (7, 0, {"imad": 3, "alu": 1}),
        "cp",
    ),
    "commit": (
        (31, 0, {"alu": 1, "adu": 1, "none": 1, "lsu": 1}),
    ),
    "load1": (
        (2, 3, {"imad": 1, "adu": 1, "none": 1, "void": 3}), "cp", (24, 0, {"alu": 3, "adu": 1}), "cp",
        (8, 3, {"imad": 4, "alu": 6, "adu": 1, "none": 1, "void": 3}), "cp",
        (33, 0, {"imad": 3, "alu": 5, "adu": 1}), "cp",
    ),
    "init": (
        (3, 0, {"alu": 32, "cbu": 1, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (16, 0, {"imad": 6, "alu": 3, "uni": 3, "none": 1}),
    ),
    "top": (
        (0, 0, {"imad": 1, "none": 1}), "group", "bar", (15, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "load": (
        (30, 3, {"imad": 3, "alu": 4, "adu": 2, "void": 3}), "cp", (0, 0, {"alu": 1}), "cp",
        (19, 0, {"none": 1}), "taken",
        (5, 3, {"imad": 3, "alu": 8, "adu": 1, "void": 3}), "cp", "cp",
        (3, 0, {"imad": 1, "alu": 1}), "taken", (8, 0, {"alu": 1}),
    ),
    "math": (
        (14, 0, {"imad": 13, "alu": 10, "cbu": 1, "lsu": 1}), *(((0, 4, {"smem": 1}),) * 8),
        (0, 4, {"smem": 1}, 28), (0, 0, {"hmma": 2}, 24), (0, 0, {"hmma": 2}), (0, 4, {"smem": 1}, 24),
        (0, 0, {"hmma": 4}), (0, 4, {"smem": 1}, 20), (0, 0, {"hmma": 4}), (0, 4, {"smem": 1}),
        (0, 0, {"hmma": 4}, 8), (0, 0, {"hmma": 2}, 4), (0, 0, {"hmma": 10}, 0),
        (18, 0, {"hmma": 4, "none": 2}),
    ),
    "out": (
        (0, 0, {"adu": 1, "cbu": 1, "none": 1}), "group",
        (60, 0, {"imad": 11, "alu": 9, "adu": 5, "cbu": 1, "none": 3}),
    ),
    "end": (
        (32, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
}
_HGEMM8_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((12, 0, {"imad": 2, "alu": 9, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((2, 0, {"imad": 2, "alu": 4, "cbu": 2, "none": 1}),),
    ),
    (
        ((12, 0, {"alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((14, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"imad": 1, "alu": 1, "cbu": 2, "none": 1}),),
    ),
    (
        ((16, 0, {"imad": 2, "alu": 6, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"imad": 2, "alu": 1, "cbu": 2, "none": 1}),),
    ),
    (
        ((18, 0, {"imad": 4, "alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((3, 0, {"imad": 4, "cbu": 2, "none": 1}),),
    ),
    (
        ((15, 0, {"imad": 3, "alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((2, 0, {"imad": 3, "cbu": 2, "none": 1}),),
    ),
    (
        ((19, 0, {"imad": 14, "alu": 13, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((4, 0, {"imad": 14, "alu": 8, "cbu": 2, "none": 1}),),
    ),
    (
        ((13, 0, {"imad": 1, "alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"imad": 1, "cbu": 2, "none": 1}),),
    ),
    (
        ((14, 0, {"imad": 2, "alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"imad": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((11, 0, {"alu": 5, "none": 2}), "st",),
        ((0, 0, {"none": 1}),),
    ),
)
HGEMM8_OUT = tuple(_HGEMM8_OUT[i] for i in (
    0, 1, 2, 1, 3, 1, 4, 1, 5, 5, 1, 1, 1, 1, 1, 6, 7, 7, 1, 1, 1, 1, 1, 1, 8, 1, 1, 1, 1, 1, 1, 9,
))
HGEMM64: dict[str, Block] = {
    "pre": (
        (155, 0, {"imad": 20, "alu": 34, "adu": 8, "uni": 23, "cbu": 2, "none": 22, "s2r": 1}),
    ),
    "load0": (
        (6, 3, {"imad": 3, "alu": 2, "adu": 1, "void": 3}), "cp", (3, 0, {"imad": 1, "alu": 1}), "cp",
        (87, 3, {"imad": 7, "alu": 7, "adu": 1, "none": 2, "void": 3}), "cp",
        (38, 0, {"imad": 3, "alu": 3, "adu": 1}), "cp",
    ),
    "commit": (
        (44, 0, {"alu": 1, "adu": 1, "none": 1, "lsu": 1}),
    ),
    "load1": (
        (5, 3, {"imad": 1, "adu": 1, "none": 1, "void": 3}), "cp", (22, 0, {"alu": 3, "adu": 1}), "cp",
        (33, 3, {"imad": 4, "alu": 6, "adu": 1, "none": 1, "void": 3}), "cp",
        (36, 0, {"imad": 3, "alu": 5, "adu": 1}), "cp",
    ),
    "init": (
        (20, 0, {"alu": 17, "adu": 1, "cbu": 1, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (12, 0, {"imad": 5, "alu": 5, "uni": 1, "none": 1}),
    ),
    "top": (
        (0, 0, {"imad": 1, "none": 1}), "group", "bar", (15, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "load": (
        (6, 3, {"imad": 3, "alu": 1, "adu": 2, "void": 3}), "cp", (18, 0, {"alu": 3}), "cp",
        (22, 0, {"alu": 1, "none": 1}), "taken", (11, 3, {"imad": 3, "alu": 10, "adu": 1, "void": 3}), "cp",
        (4, 0, {"alu": 1}), "cp", (2, 0, {"imad": 1, "alu": 1}), "taken", (8, 0, {"alu": 1}),
    ),
    "math": (
        (18, 0, {"imad": 11, "alu": 11, "cbu": 1, "lsu": 1}), *(((0, 4, {"smem": 1}),) * 3),
        (0, 4, {"smem": 1}, 8), (0, 0, {"hmma": 2}, 4), (0, 0, {"hmma": 2}, 0), (0, 0, {"hmma": 1}),
        (3, 0, {"imad": 2, "alu": 2}), (0, 0, {"hmma": 1}), (0, 4, {"smem": 1}), (1, 0, {"alu": 1}, 4),
        (0, 4, {"smem": 1}), (0, 0, {"hmma": 1}), (4, 0, {"imad": 1}, 8), (0, 4, {"smem": 1}),
        (0, 0, {"hmma": 1}), (0, 4, {"smem": 1}, 4),
        (0, 0, {"hmma": 4}, 0), (18, 0, {"hmma": 4, "none": 2}),
    ),
    "out": (
        (13, 0, {"adu": 1, "cbu": 1, "none": 1}), "group",
        (103, 0, {"imad": 19, "alu": 28, "adu": 4, "cbu": 1, "none": 5}), "st r0 0", (0, 0, {"alu": 2}),
        "st r8 0", (0, 0, {"alu": 2}), "st r0 16", (0, 0, {"alu": 2}), "st r8 16", (0, 0, {"alu": 2}),
        "st r0 32", (0, 0, {"alu": 2}), "st r8 32", (0, 0, {"alu": 2}), "st r0 48", (2, 0, {"alu": 1}),
        "st r8 48", "st r16 0", "st r24 0", "st r16 16", "st r24 16", "st r16 32", "st r24 32", "st r16 48",
        "st r24 48", (69, 0, {"alu": 1, "adu": 1, "cbu": 1, "none": 1}), "exit",
    ),
}
