"""What each stretch of the measured fp16 GEMMs' SASS executes; see ``blocks``.

``cp`` is a LDGSTS (cp.async), ``group`` waits for the oldest group of them. ``*_OUT`` are the stores of a
tile one after another, each with and without rows that exist. The nine LDSM at the start of an HGEMM8 step
are runs of their own, here and in chains: they queue one by one, between those of other warps.
"""

# fmt: off
from __future__ import annotations

from . import Block

HGEMM8: dict[str, Block] = {
    "pre": (
        (67, 0, {"imad": 21, "alu": 23, "adu": 10, "uni": 3, "none": 5, "s2r": 1}),
    ),
    "load0": (
        (3, 3, {"imad": 7, "alu": 7, "void": 3}), "cp", (0, 0, {"alu": 1}), "cp", (2, 0, {"alu": 1}), "cp",
        (3, 0, {"imad": 4, "alu": 2}), "cp",
    ),
    "commit": (
        (0, 0, {"none": 1, "lsu": 1}),
    ),
    "load1": (
        (3, 3, {"imad": 5, "alu": 4, "void": 3}), "cp", (0, 0, {"alu": 4}), "cp", (2, 0, {"alu": 1}), "cp",
        (7, 0, {"imad": 3, "alu": 3}), "cp",
    ),
    "init": (
        (1, 0, {"imad": 2, "alu": 35, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (0, 0, {"imad": 8, "alu": 10, "none": 2}),
    ),
    "top": (
        (0, 0, {"uni": 1, "none": 1}), "group", (0, 0, {"uni": 1}), "bar",
        (13, 0, {"alu": 3, "uni": 1, "none": 1}),
    ),
    "load": (
        (3, 3, {"imad": 6, "alu": 7, "adu": 1, "void": 3}), "cp", (9, 0, {"imad": 3, "alu": 1}), "cp", "cp",
        "cp",
    ),
    "math": (
        (0, 0, {"imad": 1, "alu": 4, "uni": 4, "none": 1, "lsu": 1}), (0, 4, {"smem": 1}),
        (0, 4, {"smem": 1}), "taken",
        *(((0, 4, {"smem": 1}),) * 6),
        (0, 4, {"smem": 1}, 28), (0, 0, {"hmma": 2}, 24), (0, 0, {"hmma": 2}), (0, 4, {"smem": 1}, 24),
        (0, 0, {"hmma": 4}), (0, 4, {"smem": 1}, 24), (0, 0, {"hmma": 4}), (0, 4, {"smem": 1}, 24),
        (0, 0, {"hmma": 4}, 8), (0, 0, {"hmma": 2}, 4), (0, 0, {"hmma": 10}, 0),
        (18, 0, {"hmma": 4, "none": 1}),
    ),
    "out": (
        (0, 0, {"imad": 1, "alu": 1, "adu": 1, "none": 3}), "group",
        (60, 0, {"imad": 6, "alu": 3, "adu": 2, "uni": 10, "none": 2}),
    ),
}
_HGEMM8_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((13, 0, {"imad": 2, "alu": 7, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"imad": 2, "alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((12, 0, {"alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((15, 0, {"imad": 1, "alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"imad": 1, "cbu": 2, "none": 1}),),
    ),
    (
        ((21, 0, {"imad": 22, "alu": 17, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((3, 0, {"imad": 22, "alu": 12, "cbu": 2, "none": 1}),),
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
        ((11, 0, {"alu": 5, "cbu": 1, "none": 1}), "st", "exit",),
        ("exit",),
    ),
)
HGEMM8_OUT = tuple(_HGEMM8_OUT[i] for i in (
    0, 1, 2, 1, 2, 1, 2, 3, 4, 4, 1, 1, 1, 1, 1, 1, 4, 4, 1, 1, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1, 6,
))
HGEMM4: dict[str, Block] = {
    "pre": (
        (23, 0, {"imad": 20, "alu": 82, "adu": 10, "uni": 3, "none": 5, "s2r": 1}),
    ),
    "load0": (
        (6, 3, {"imad": 15, "alu": 13, "void": 3}), "cp", (0, 0, {"imad": 2, "alu": 2}), "cp",
        (0, 0, {"imad": 2, "alu": 2}), "cp", (0, 0, {"alu": 1}), "cp", (2, 0, {"imad": 2}), "cp",
        (0, 0, {"imad": 3}), "cp", (3, 0, {"imad": 2}), "cp", "cp", (3, 0, {"imad": 1, "alu": 1}),
    ),
    "commit": (
        (0, 0, {"none": 1, "lsu": 1}),
    ),
    "load1": (
        (3, 3, {"imad": 8, "alu": 6, "void": 3}), "cp", (0, 0, {"imad": 6, "alu": 6}), "cp",
        (0, 0, {"imad": 2, "alu": 1}), "cp", (0, 0, {"imad": 2, "alu": 2}), "cp",
        (3, 0, {"imad": 2, "alu": 2}), "cp", (3, 0, {"imad": 3}), "cp", (3, 0, {"imad": 2}), "cp",
        (0, 0, {"alu": 1}), "cp", (2, 0, {"imad": 1, "alu": 2}),
    ),
    "init": (
        (4, 0, {"imad": 2, "alu": 8, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (0, 0, {"imad": 12, "alu": 15, "adu": 2, "none": 2}),
    ),
    "top": (
        (0, 0, {"uni": 1, "none": 1}), "group", (0, 0, {"uni": 1}), "bar",
        (13, 0, {"alu": 3, "uni": 1, "none": 1}),
    ),
    "load": (
        (9, 3, {"imad": 12, "alu": 10, "void": 3}), "cp", (0, 0, {"alu": 2}), "cp", (0, 0, {"imad": 1}),
        "cp", "cp", "cp", (0, 0, {"imad": 1}), "cp", (3, 0, {"imad": 2}), "cp", "cp",
    ),
    "math": (
        (0, 0, {"imad": 1, "alu": 4, "uni": 4, "none": 1}), "taken", *(((0, 4, {"smem": 1}),) * 10),
        (0, 4, {"smem": 1}, 36), (0, 0, {"hmma": 1}), (0, 4, {"smem": 1}), (0, 4, {"smem": 1}),
        (0, 0, {"hmma": 1}), (0, 4, {"smem": 1}, 44), (0, 0, {"hmma": 2, "lsu": 1}, 40),
        (0, 0, {"hmma": 2}, 36), (0, 0, {"hmma": 2}), (0, 4, {"smem": 1}, 16), (0, 0, {"hmma": 8}),
        (0, 4, {"smem": 1}), (0, 0, {"hmma": 20}, 16), (0, 0, {"hmma": 2}, 4), (0, 0, {"hmma": 18}, 0),
        (18, 0, {"hmma": 8, "none": 1}),
    ),
    "out": (
        (0, 0, {"adu": 1, "none": 3, "s2r": 1}), "group",
        (55, 0, {"imad": 9, "alu": 8, "adu": 2, "uni": 10, "none": 2}),
    ),
}
_HGEMM4_OUT: tuple[tuple[Block, Block], ...] = (
    (
        ((13, 0, {"imad": 2, "alu": 7, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((1, 0, {"imad": 2, "alu": 2, "cbu": 2, "none": 1}),),
    ),
    (
        ((12, 0, {"alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"cbu": 2, "none": 1}),),
    ),
    (
        ((15, 0, {"imad": 1, "alu": 5, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((0, 0, {"imad": 1, "cbu": 2, "none": 1}),),
    ),
    (
        ((21, 0, {"imad": 22, "alu": 17, "cbu": 1, "none": 2}), "st", (0, 0, {"cbu": 1}),),
        ((3, 0, {"imad": 22, "alu": 12, "cbu": 2, "none": 1}),),
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
        ((11, 0, {"alu": 5, "cbu": 1, "none": 1}), "st", "exit",),
        ("exit",),
    ),
)
HGEMM4_OUT = tuple(_HGEMM4_OUT[i] for i in (
    0, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 3, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4,
    4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 6,
))
HGEMM64: dict[str, Block] = {
    "pre": (
        (54, 0, {"imad": 21, "alu": 25, "adu": 10, "uni": 3, "none": 5, "s2r": 1}),
    ),
    "load0": (
        (3, 3, {"imad": 7, "alu": 7, "void": 3}), "cp", (0, 0, {"alu": 1}), "cp", (2, 0, {"alu": 1}), "cp",
        (3, 0, {"imad": 4, "alu": 2}), "cp",
    ),
    "commit": (
        (0, 0, {"none": 1, "lsu": 1}),
    ),
    "load1": (
        (3, 3, {"imad": 5, "alu": 4, "void": 3}), "cp", (0, 0, {"alu": 4}), "cp", (2, 0, {"alu": 1}), "cp",
        (7, 0, {"imad": 3, "alu": 3}), "cp",
    ),
    "init": (
        (5, 0, {"imad": 3, "alu": 16, "none": 1, "lsu": 1}),
    ),
    "loop": (
        (0, 0, {"imad": 8, "alu": 10, "none": 2}),
    ),
    "top": (
        (0, 0, {"uni": 1, "none": 1}), "group", (0, 0, {"uni": 1}), "bar",
        (13, 0, {"alu": 3, "uni": 1, "none": 1}),
    ),
    "load": (
        (3, 3, {"imad": 6, "alu": 7, "adu": 1, "void": 3}), "cp", (9, 0, {"imad": 3, "alu": 1}), "cp", "cp",
        "cp",
    ),
    "math": (
        (0, 0, {"imad": 1, "alu": 4, "uni": 4, "none": 1, "lsu": 1}), (0, 4, {"smem": 1}), "taken",
        *(((0, 4, {"smem": 1}),) * 4),
        (0, 4, {"smem": 1}, 16), (0, 0, {"hmma": 2}, 12), (0, 0, {"hmma": 2}), (0, 4, {"smem": 1}, 12),
        (0, 0, {"hmma": 2}), (0, 4, {"smem": 1}), (0, 0, {"hmma": 2}, 4), (0, 0, {"hmma": 2}, 0),
        (18, 0, {"hmma": 6, "none": 1}),
    ),
    "out": (
        (0, 0, {"imad": 1, "alu": 1, "adu": 1, "none": 3}), "group",
        (79, 0, {"imad": 14, "alu": 23, "adu": 2, "uni": 9, "none": 3}), "st r0 0", (0, 0, {"alu": 2}),
        "st r8 0", (0, 0, {"alu": 2}), "st r0 16", (0, 0, {"alu": 2}), "st r8 16", (0, 0, {"alu": 2}),
        "st r0 32", (0, 0, {"alu": 2}), "st r8 32", (0, 0, {"alu": 2}), "st r0 48", "st r8 48", "st r16 0",
        "st r24 0", "st r16 16", "st r24 16", "st r16 32", "st r24 32", "st r16 48",
        (3, 0, {"alu": 1, "cbu": 1}), "st r24 48", "exit",
    ),
    "out_cut": (
        (0, 0, {"imad": 1, "alu": 1, "adu": 1, "none": 3}), "group",
        (79, 0, {"imad": 14, "alu": 23, "adu": 2, "uni": 9, "none": 3}), "st r0 0", (0, 0, {"alu": 2}),
        "st r8 0", (0, 0, {"alu": 2}), "st r0 16", (0, 0, {"alu": 2}), "st r8 16", (0, 0, {"alu": 2}),
        "st r0 32", (0, 0, {"alu": 2}), "st r8 32", (0, 0, {"alu": 2}), "st r0 48", "st r8 48", "st r16 0",
        "st r24 0", "st r16 16", "st r24 16", "st r16 32", "st r24 32", "st r16 48", "exit",
    ),
}
