"""What each stretch of the measured kernels' SASS executes, from cuobjdump of the measured program.

It was built with CUDA 13.0, ``nvcc -O3 -arch=sm_90a``. A run of instructions is ``(stall, wavefronts, {pipe:
instructions})``, see ``code``; in order, ``ld1 a 512`` is a load of slot 1 through pointer
``a`` at 512 bytes, ``wait1`` is where the SASS first uses what slot 1 loads, ``st`` a store, ``bar`` a
BAR.SYNC. Loads whose first use is the same instruction share a slot, and neighbours do where slots run
out. A fourth figure of a run means that the next instruction waits for shared memory except for that
many latest wavefronts; for ``void`` (LDS RZ that no lane executes) nothing waits. Stretches are named by
what the source does there; loops repeat a stretch.
"""

# fmt: off
from __future__ import annotations

Run = tuple[int, int, dict[str, int]] | tuple[int, int, dict[str, int], int]
Block = tuple[Run | str, ...]

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
REDUCE: dict[str, Block] = {
    "all": (
        (65, 0, {"imad": 1, "alu": 4, "adu": 4, "none": 2, "s2r": 1}), "ld0 in 0", (4, 0, {"imad": 1}),
        "ld0 in 1024", (37, 0, {"imad": 3, "alu": 11, "hfma2": 1, "adu": 5}), "ld1 in 3072", "ld2 in 4096",
        (4, 0, {"imad": 1}), "ld2 in 5120", (4, 0, {"imad": 1}), "ld3 in 6144", "wait0",
        (1, 0, {"ffma": 1, "alu": 2}), "ld0 in 2048", (32, 0, {"ffma": 1, "imad": 1, "alu": 1, "adu": 2}),
        "ld3 in 7168", (4, 0, {"imad": 1}), "ld3 in 8192", (0, 0, {"alu": 3}), "wait0",
        (1, 0, {"ffma": 1, "alu": 2}), "wait1", (1, 0, {"ffma": 1, "alu": 2}), "wait2",
        (2, 0, {"ffma": 2, "alu": 2, "adu": 1}), "wait3",
        (21, 0, {"ffma": 3, "imad": 2, "alu": 5, "adu": 5}), "ld0 in 9216", (2, 0, {"imad": 1}),
        "ld0 in 10240", (0, 0, {"imad": 1, "adu": 1}), "ld1 in 11264", "ld1 in 12288", (4, 0, {"imad": 1}),
        "ld2 in 13312", (10, 0, {"imad": 1}), "ld2 in 14336", (9, 0, {"imad": 1}), "ld3 in 15360",
        (28, 0, {"adu": 1, "uni": 1, "none": 1}), "wait0", (3, 0, {"ffma": 2}), "wait1",
        (6, 0, {"ffma": 2}), "wait2", (5, 0, {"ffma": 2, "alu": 1}), "wait3",
        (6, 1, {"ffma": 1, "smem": 1}), "bar", (28, 3, {"ffma": 1, "alu": 2, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar", (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar", (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar", (25, 3, {"ffma": 1, "alu": 1, "smem": 3}), "bar",
        (25, 3, {"ffma": 1, "smem": 3}), "bar",
    ),
    "first": (
        (33, 1, {"imad": 1, "adu": 1, "cbu": 1, "smem": 1}), "st out 0", "exit",
    ),
    "rest": (
        "exit",
    ),
}
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
SOFTMAX: dict[str, Block] = {
    "head": (
        (28, 0, {"alu": 2, "hfma2": 1, "adu": 2, "cbu": 1, "none": 2, "s2r": 1}),
    ),
    "pre": (
        (6, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 1}),
    ),
    "rem_set": (
        (39, 0, {"imad": 3, "alu": 5, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem": (
        (3, 0, {"imad": 1, "alu": 1}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (1, 0, {"alu": 1, "none": 1}),
    ),
    "after": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main": (
        (40, 0, {"imad": 3, "alu": 8, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16": (
        (0, 0, {"alu": 2}),
    ),
    "by16": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (6, 0, {"imad": 1, "alu": 3}),
        "wait0", (7, 0, {"alu": 4}), "wait1", (9, 0, {"alu": 4}), "wait2", (9, 0, {"alu": 4}), "wait3",
        (10, 0, {"alu": 4, "none": 1}),
    ),
    "mid": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1, "alu": 3}), "wait0", (3, 0, {"alu": 3}), "wait1",
        (1, 0, {"alu": 3}), "wait2", (5, 0, {"alu": 2}), "wait3", (5, 0, {"alu": 2}),
    ),
    "last": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (0, 0, {"alu": 1}), "wait1",
        (3, 0, {"alu": 1}), "wait2", (3, 0, {"alu": 1}), "wait3", (3, 0, {"alu": 1}),
    ),
    "join": (
        (0, 0, {"cbu": 1}),
    ),
    "max": (
        (0, 1, {"adu": 1, "smem": 1}), "bar",
        (127, 5, {"alu": 8, "uni": 1, "cbu": 1, "none": 1, "smem": 5}), "bar",
        (36, 4, {"alu": 7, "hfma2": 1, "none": 1, "smem": 2}),
    ),
    "pre_sum": (
        (7, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 1}),
    ),
    "rem_set_sum": (
        (30, 0, {"imad": 3, "alu": 7, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem_sum": (
        (3, 0, {"imad": 1}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (31, 0, {"ffma": 5, "alu": 1, "xu": 1, "none": 1}),
    ),
    "after_sum": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main_sum": (
        (32, 0, {"imad": 3, "alu": 8, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16_sum": (
        (0, 0, {"alu": 2}),
    ),
    "by16_sum": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (0, 0, {"imad": 1}), "wait0",
        (4, 0, {"ffma": 8, "alu": 2}), "wait1", (0, 0, {"ffma": 10, "alu": 2, "xu": 1}), "wait2",
        (5, 0, {"ffma": 10, "alu": 1, "xu": 2}), "wait3",
        (38, 0, {"ffma": 52, "alu": 14, "xu": 13, "none": 1}),
    ),
    "mid_sum": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8_sum": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1}), "wait0", (3, 0, {"ffma": 3}), "wait1",
        (2, 0, {"ffma": 4, "alu": 2}), "wait2", (0, 0, {"ffma": 6, "alu": 2}), "wait3",
        (23, 0, {"ffma": 27, "alu": 7, "xu": 8}),
    ),
    "last_sum": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4_sum": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (3, 0, {"ffma": 2}), "wait1",
        (0, 0, {"ffma": 1}), "wait2", (2, 0, {"ffma": 2, "alu": 1}), "wait3",
        (34, 0, {"ffma": 15, "alu": 3, "xu": 4}),
    ),
    "join_sum": (
        (0, 0, {"cbu": 1}),
    ),
    "sum": (
        (0, 1, {"alu": 1, "smem": 1}), "bar", (127, 5, {"ffma": 5, "alu": 1, "smem": 5}), "bar",
        (76, 4, {"ffma": 11, "alu": 3, "xu": 1, "cbu": 1, "none": 1, "smem": 2}),
    ),
    "sum_exit": (
        (0, 1, {"alu": 1, "smem": 1}), "bar", (127, 5, {"ffma": 5, "alu": 1, "smem": 5}), "bar",
        (76, 4, {"ffma": 11, "alu": 3, "xu": 1, "none": 1, "smem": 2}), "exit",
    ),
    "pre_out": (
        (15, 0, {"alu": 5, "cbu": 1, "none": 2}),
    ),
    "rem_set_out": (
        (41, 0, {"imad": 3, "alu": 8, "adu": 1, "uni": 1, "none": 2, "s2r": 1}),
    ),
    "rem_out": (
        (3, 0, {"alu": 2}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (30, 0, {"ffma": 5, "imad": 2, "alu": 3, "xu": 1}), "st out 0", (0, 0, {"none": 1}),
    ),
    "after_out": (
        (0, 0, {"cbu": 2}),
    ),
    "after_out_exit": (
        (0, 0, {"cbu": 1}), "exit",
    ),
    "main_out": (
        (40, 0, {"imad": 2, "alu": 2, "adu": 3, "uni": 6}),
    ),
    "by4_out": (
        (6, 0, {"imad": 1, "alu": 1}), "ld0 in 0", "wait0", (32, 0, {"ffma": 5, "alu": 3, "xu": 1}),
        "st out 0", "ld0 in 1024", "wait0", (34, 0, {"ffma": 5, "alu": 1, "xu": 1}), "st out 1024",
        "ld0 in 2048", "wait0", (34, 0, {"ffma": 5, "alu": 1, "xu": 1}), "st out 2048", "ld0 in 3072",
        (2, 0, {"alu": 3}), "wait0", (33, 0, {"ffma": 5, "alu": 2, "xu": 1}), "st out 3072",
        (0, 0, {"none": 1}),
    ),
}
LAYERNORM: dict[str, Block] = {
    "head": (
        (28, 0, {"alu": 2, "hfma2": 1, "adu": 2, "cbu": 1, "none": 2, "s2r": 1}),
    ),
    "pre": (
        (7, 0, {"imad": 1, "alu": 6, "cbu": 1, "none": 1}),
    ),
    "rem_set": (
        (38, 0, {"imad": 3, "alu": 5, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem": (
        (4, 0, {"imad": 1, "alu": 1}), "ld0 in 0", (0, 0, {"imad": 1, "alu": 4}), "wait0",
        (0, 0, {"ffma": 1, "none": 1}),
    ),
    "after": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main": (
        (40, 0, {"imad": 3, "alu": 7, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16": (
        (0, 0, {"alu": 2}),
    ),
    "by16": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (6, 0, {"imad": 1, "alu": 3}),
        "wait0", (9, 0, {"ffma": 4}), "wait1", (12, 0, {"ffma": 4}), "wait2", (12, 0, {"ffma": 4}), "wait3",
        (12, 0, {"ffma": 4, "none": 1}),
    ),
    "mid": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1, "alu": 1}), "wait0", (3, 0, {"ffma": 2, "alu": 1}),
        "wait1", (3, 0, {"ffma": 2, "alu": 3}), "wait2", (5, 0, {"ffma": 2}), "wait3", (6, 0, {"ffma": 2}),
    ),
    "last": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (0, 0, {"ffma": 1}), "wait1",
        (3, 0, {"ffma": 1}), "wait2", (3, 0, {"ffma": 1}), "wait3", (3, 0, {"ffma": 1}),
    ),
    "join": (
        (0, 0, {"cbu": 1}),
    ),
    "mean": (
        (0, 1, {"adu": 1, "smem": 1}), "bar",
        (126, 5, {"ffma": 5, "alu": 4, "uni": 1, "none": 1, "smem": 5}), "bar",
        (54, 4, {"ffma": 13, "xu": 2, "hfma2": 1, "cbu": 1, "none": 2, "smem": 2}),
    ),
    "pre_var": (
        (32, 0, {"alu": 7, "adu": 1, "cbu": 1, "none": 1, "s2r": 1}),
    ),
    "rem_set_var": (
        (31, 0, {"imad": 3, "alu": 5, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem_var": (
        (3, 0, {"imad": 1, "alu": 1}), "ld0 in 0", (0, 0, {"alu": 5}), "wait0",
        (3, 0, {"ffma": 2, "none": 1}),
    ),
    "after_var": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main_var": (
        (33, 0, {"imad": 3, "alu": 7, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16_var": (
        (0, 0, {"alu": 2}),
    ),
    "by16_var": (
        "ld0 in 0", "ld0 in 1024", "ld0 in 2048", "ld0 in 3072", "ld1 in 4096", "ld1 in 5120",
        "ld1 in 6144", "ld1 in 7168", "ld2 in 8192", "ld2 in 9216", "ld2 in 10240", "ld2 in 11264",
        "ld3 in 12288", "ld3 in 13312", "ld3 in 14336", "ld3 in 15360", (2, 0, {"alu": 2}), "wait0",
        (7, 0, {"ffma": 7}), "wait1", (13, 0, {"ffma": 9}), "wait2", (12, 0, {"ffma": 8}), "wait3",
        (9, 0, {"ffma": 8, "imad": 1, "alu": 2, "none": 1}),
    ),
    "mid_var": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8_var": (
        "ld0 in 0", "ld0 in 1024", "ld1 in 2048", "ld1 in 3072", "ld2 in 4096", "ld2 in 5120",
        "ld3 in 6144", "ld3 in 7168", (0, 0, {"imad": 1, "alu": 1}), "wait0", (6, 0, {"ffma": 4}), "wait1",
        (6, 0, {"ffma": 4}), "wait2", (3, 0, {"ffma": 3}), "wait3", (5, 0, {"ffma": 5, "alu": 3}),
    ),
    "last_var": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4_var": (
        "ld0 in 0", "ld1 in 1024", "ld2 in 2048", "ld3 in 3072", "wait0", (3, 0, {"ffma": 2}), "wait1",
        (0, 0, {"ffma": 1}), "wait2", (2, 0, {"ffma": 2}), "wait3", (5, 0, {"ffma": 3}),
    ),
    "join_var": (
        (0, 0, {"cbu": 1}),
    ),
    "var": (
        (0, 1, {"adu": 1, "none": 1, "s2r": 1, "smem": 1}), "bar",
        (126, 5, {"ffma": 5, "alu": 2, "xu": 1, "uni": 1, "smem": 5}), "bar",
        (67, 4, {"ffma": 15, "alu": 1, "xu": 1, "cbu": 1, "none": 1, "smem": 2}),
    ),
    "var_exit": (
        (0, 1, {"adu": 1, "none": 1, "s2r": 1, "smem": 1}), "bar",
        (126, 5, {"ffma": 5, "alu": 2, "xu": 1, "uni": 1, "smem": 5}), "bar",
        (67, 4, {"ffma": 15, "alu": 1, "xu": 1, "none": 1, "smem": 2}), "exit",
    ),
    "pre_out": (
        (14, 0, {"ffma": 1, "alu": 5, "xu": 1, "cbu": 1, "none": 2}),
    ),
    "rem_set_out": (
        (33, 0, {"imad": 5, "alu": 8, "adu": 3, "uni": 1, "none": 2, "s2r": 1}),
    ),
    "rem_out": (
        "ld0 in 0", "ld1 g 0", "ld1 b 0", (1, 0, {"imad": 2, "alu": 8}), "wait0", (3, 0, {"ffma": 2}),
        "wait1", (5, 0, {"ffma": 1, "alu": 2}), "st out 0", (1, 0, {"alu": 1, "none": 1}),
    ),
    "after_out": (
        (0, 0, {"cbu": 2}),
    ),
    "after_out_exit": (
        (0, 0, {"cbu": 1}), "exit",
    ),
    "main_out": (
        (31, 0, {"imad": 4, "alu": 6, "hfma2": 1, "adu": 3, "uni": 6, "none": 2}),
    ),
    "by4_out": (
        (2, 0, {"imad": 1, "alu": 3}), "ld1 b 0", "ld0 in 0", "ld1 g 0", (0, 0, {"alu": 1}), "wait0",
        (3, 0, {"ffma": 2, "alu": 1}), "wait1", (5, 0, {"ffma": 1}), "st out 0", "ld0 in 1024",
        "ld1 g 1024", "ld1 b 1024", "wait0", (3, 0, {"ffma": 2}), "wait1", (6, 0, {"ffma": 1}),
        "st out 1024", "ld0 in 2048", "ld1 g 2048", "ld1 b 2048", "wait0", (3, 0, {"ffma": 2}), "wait1",
        (6, 0, {"ffma": 1}), "st out 2048", "ld0 in 3072", "ld1 g 3072", "ld1 b 3072", (2, 0, {"alu": 6}),
        "wait0", (3, 0, {"ffma": 2}), "wait1", (6, 0, {"ffma": 1}), "st out 3072",
        (3, 0, {"imad": 1, "alu": 1, "none": 1}),
    ),
}
GEMV: dict[str, Block] = {
    "head": (
        (34, 0, {"alu": 3, "adu": 2, "cbu": 1, "none": 1, "s2r": 1}),
    ),
    "head_exit": (
        (34, 0, {"alu": 3, "adu": 2, "none": 1, "s2r": 1}), "exit",
    ),
    "pre0": (
        (37, 0, {"alu": 5, "hfma2": 1, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "pre": (
        (1, 0, {"alu": 9, "cbu": 1, "none": 1}),
    ),
    "rem_set": (
        (26, 0, {"imad": 3, "alu": 6, "hfma2": 1, "adu": 1, "none": 1}),
    ),
    "rem": (
        (0, 0, {"alu": 4}), "ld0 a 0", "ld0 x 0", (0, 0, {"alu": 7}), "wait0",
        (12, 0, {"ffma": 5, "none": 1}),
    ),
    "after": (
        (0, 0, {"cbu": 1, "none": 1}),
    ),
    "main": (
        (24, 0, {"imad": 3, "alu": 9, "adu": 1, "cbu": 1, "none": 2}),
    ),
    "set16": (
        (0, 0, {"alu": 2}),
    ),
    "by16": (
        "ld0 a 0", "ld0 x 0", "ld1 a 1024", "ld1 x 1024", "ld2 a 512", "ld2 x 512", "wait0",
        (9, 0, {"ffma": 4}), "ld0 a 2048", "wait1", (0, 0, {"ffma": 1}), "wait2", (0, 0, {"ffma": 1}),
        "ld1 x 2048", (3, 0, {"ffma": 4}), "wait0", "wait1", (3, 0, {"ffma": 3}), "ld0 a 2560",
        "ld0 x 2560", (0, 0, {"ffma": 1}), "ld1 a 1536", "ld1 x 1536", (2, 0, {"ffma": 4}), "ld2 a 3584",
        "wait0", (3, 0, {"ffma": 3}), "ld0 x 3584", "wait1", (8, 0, {"ffma": 5}), "ld1 a 3072",
        "ld1 x 3072", "wait0", "wait2", (3, 0, {"ffma": 4}), "ld0 a 4096", "ld0 x 4096", "wait1",
        (4, 0, {"ffma": 6}), "ld2 x 5120", (1, 0, {"ffma": 1}), "ld1 a 4608", "ld1 x 4608", "wait0",
        (3, 0, {"ffma": 3}), "ld0 a 5120", (1, 0, {"ffma": 1}), "wait1", (3, 0, {"ffma": 3}), "ld1 x 5632",
        "wait0", "wait2", (3, 0, {"ffma": 3}), "ld0 a 5632", (1, 0, {"ffma": 4}), "ld3 x 6656",
        (1, 0, {"ffma": 1}), "ld2 a 6144", "ld2 x 6144", "wait0", "wait1", (3, 0, {"ffma": 3}),
        "ld0 a 6656", (1, 0, {"ffma": 1}), "wait2", (5, 0, {"ffma": 5}), "wait0", "wait3",
        (3, 0, {"ffma": 3}), "ld0 x 7168", (1, 0, {"ffma": 1}), "ld0 a 7168", (0, 0, {"ffma": 1}),
        "ld1 a 7680", "ld1 x 7680", (8, 0, {"ffma": 4, "alu": 3}), "wait0", (3, 0, {"ffma": 2, "alu": 1}),
        "wait1", (9, 0, {"ffma": 8, "alu": 3, "none": 1}),
    ),
    "mid": (
        (5, 0, {"alu": 2, "cbu": 2, "none": 1}),
    ),
    "by8": (
        "ld0 a 0", "ld0 x 0", "ld1 a 512", "ld1 x 512", "ld2 a 1024", "ld2 x 1024", "wait0",
        (3, 0, {"ffma": 2}), "wait1", (4, 0, {"ffma": 4}), "ld0 x 1536", (0, 0, {"ffma": 1}), "ld0 a 1536",
        "wait2", (3, 0, {"ffma": 3}), "ld1 x 2048", (1, 0, {"ffma": 1}), "wait0", (0, 0, {"ffma": 2}),
        "ld0 a 2048", (1, 0, {"ffma": 3}), "ld2 a 2560", "ld2 x 2560", (0, 0, {"ffma": 1}), "wait0",
        "wait1", (3, 0, {"ffma": 2}), "wait2", (2, 0, {"ffma": 5}), "ld0 a 3072", (0, 0, {"ffma": 1}),
        "ld0 x 3072", (0, 0, {"ffma": 2}), "ld1 a 3584", "ld1 x 3584", (6, 0, {"ffma": 3, "alu": 6}),
        "wait0", (3, 0, {"ffma": 2}), "wait1", (9, 0, {"ffma": 8}),
    ),
    "last": (
        (3, 0, {"alu": 1, "cbu": 1, "none": 1}),
    ),
    "by4": (
        "ld0 a 0", "ld0 x 0", "ld1 a 512", "ld1 x 512", "ld2 a 1024", "ld2 x 1024", "ld3 a 1536",
        "ld3 x 1536", "wait0", (3, 0, {"ffma": 2}), "wait1", (2, 0, {"ffma": 3}), "wait2",
        (1, 0, {"ffma": 4}), "wait3", (7, 0, {"ffma": 11}),
    ),
    "join": (
        (0, 0, {"cbu": 1}),
    ),
    "sum": (
        (135, 5, {"ffma": 5, "imad": 1, "alu": 1, "adu": 1, "cbu": 1, "smem": 5}), "st y 0", "exit",
    ),
}
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
