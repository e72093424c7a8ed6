"""Tiled tf32 and fp32 GEMMs: kernels for wgmma (``sm90_xmma``), mma (``cutlass_80``) and FFMA.

1. *Instruction* (tf32): rows of A, B and C that start at multiples of 16 B can use wgmma and TMA. They do
   where the GEMM is large enough: a power law in tiles, K and n (``WGMMA``); a transposed A needs less.
   Others use mma; odd sizes up to 257 a small kernel of 32 x 32. fp32 uses FFMA.
2. *Tile*: a tree over the sizes (``tiled_trees``).
3. *Parts of K* of mma and FFMA kernels: so many that waves of TBs are full (``cutlass.parts_of_k``). How many
   TBs make a wave is a property of a tile (``SLOTS``). Kernels for wgmma are persistent and not split here:
   34 rows of the sweep of 300 take runs of k-steps across tiles (``segment_k_on``), nothing says when.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from pysim.errors import WorkloadError
from pysim.workloads.library.hopper import SMS

from . import tiled_trees
from .choice import GemmChoice, Problem
from .cutlass import FEW_TILES, parts_of_k, swizzled

# log2 of tiles of 64 x 64, of K, of n (64 at least), A transposed, tiles again if so, and what the sum must
# exceed, negative. Fitted: logistic regression on the 426 aligned rows
WGMMA = (1.308, 1.055, 1.381, -5.279, 2.068, -34.18)
ODD_SMALL = 257  # most rows and columns of C of the small kernel for odd sizes
TREES = {name: getattr(tiled_trees, name) for name in ("TF32_WGMMA", "TF32_MMA", "TF32_MMA_ODD", "FP32")}
# TBs of a wave by a name's tile, n x m: what splits of the sweep fill; others 132, one an SM
SLOTS = {(32, 64): 264, (32, 128): 528, (64, 64): 396, (64, 128): 264, (64, 256): 264, (128, 128): 264}
# parts of k of tiles of 32 x 32: of fewer tiles than these; with a K up to so much more parts
SMALL_TILES, SMALL_K, SMALL_PARTS = 192, 257, (3, 4)
SLOTS_SIMT = {(128, 32): 396}
# warps of a TB along n, m and k in the names of FFMA kernels
WARPS = {(64, 64): "1x4x1", (64, 128): "1x4x1", (64, 256): "1x4x1", (256, 128): "4x2x1", (128, 256): "2x4x1"}
CLUSTERED, MANY_TILES = (
    120,
    1200,
)  # TBs of persistent grids of larger clusters; tiles of 128 x 128 from which on
RUNNERS_UP = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """What was fitted: the power law and the trees."""

    wgmma: tuple[float, ...]
    trees: dict[str, str]


ALL = Rules(WGMMA, TREES)


@lru_cache(maxsize=64)
def _lines(tree: str) -> tuple[tuple[int, str], ...]:
    rows = [line for line in tree.splitlines() if line.strip()]
    return tuple(((len(row) - len(row.lstrip())) // 2, row.strip()) for row in rows)


def _holds(question: str, problem: Problem) -> bool:
    """Answer a question of a tree."""
    if question.endswith(" no"):
        return (problem.trans_a if question.startswith("A") else problem.trans_b) != "T"
    name, _, least = question.partition(" <= ")
    m, n, k = problem.m, problem.n, problem.k
    sizes = {"m": m, "n": n, "k": k, "m n": m * n, "m n k": m * n * k, "min(m, n)": min(m, n)}
    if name not in sizes:
        raise WorkloadError(f"library GEMM: a tree asks for {name}, which is no size of a problem")
    return sizes[name] <= float(least)


def walk(tree: str, problem: Problem) -> tuple[list[str], list[str]]:
    """Return kernels, those of a problem's leaf first, then of leaves nearby, and the answers on the way."""
    lines = _lines(tree)
    at, depth, answers, above = 0, 0, [], []
    while lines[at][1].endswith(":"):
        question = lines[at][1][:-1]
        yes = _holds(question, problem)
        answers.append(question if yes else f"not {question}")
        above.append((at, depth))
        if not yes:
            at = next(i for i in range(at + 1, len(lines)) if lines[i] == (depth, "else:"))
        at, depth = at + 1, depth + 1
    kernels = lines[at][1].split()
    for first, level in reversed(above):
        for under, line in lines[first + 1 :]:
            if under < level or (under == level and line != "else:"):
                break
            kernels += [] if line.endswith(":") else line.split()
    return list(dict.fromkeys(kernels)), answers


def uses_wgmma(problem: Problem, weights: tuple[float, ...] = WGMMA) -> bool:
    """Say whether an aligned tf32 GEMM is large enough for wgmma."""
    tiles = math.log2(math.ceil(problem.m / 64) * math.ceil(problem.n / 64))
    turned = problem.trans_a == "T"
    terms = (tiles, math.log2(problem.k), math.log2(max(problem.n, 64)), turned, turned * tiles, 1)
    return sum(weight * term for weight, term in zip(weights, terms, strict=True)) > 0


def _wgmma(problem: Problem, m: int, n: int, step: int) -> GemmChoice:
    letters = (problem.trans_a + problem.trans_b).lower()
    groups = "2x1x1" if m * n > 128 * 128 and min(m, n) >= 128 else "1x1x1"
    name = f"sm90_xmma_gemm_f32f32_tf32f32_f32_{letters}_n_tilesize{m}x{n}x{step}_warpgroupsize{groups}"
    tiles = -(-problem.m // n) * -(-problem.n // m)  # a name says n, then m
    tbs = min(tiles, SMS)
    if tiles > SMS and ((m, n) == (64, 64) or ((m, n) == (128, 128) and tiles >= MANY_TILES)):
        tbs = CLUSTERED
    grid = (tbs // 2, 2, 1) if (m, n) == (128, 256) and tbs % 2 == 0 else (tbs, 1, 1)
    return GemmChoice(
        f"{name}_execute_segment_k_off_kernel__5x_cublas", "sm90_xmma_gemm", (m, n, step), grid=grid
    )


def _split(problem: Problem, tile: tuple[int, int, int], slots: int) -> tuple[int, int, int]:
    """Return tiles along m and n, and parts of k; ``tile``: of m, n and k."""
    tiles_m, tiles_n = -(-problem.m // tile[0]), -(-problem.n // tile[1])
    return tiles_m, tiles_n, parts_of_k(tiles_m * tiles_n, problem.k, tile[2], slots)


def _cutlass(problem: Problem, tile: tuple[int, int, int], stages: int) -> GemmChoice:
    """Return a kernel that is built with CUTLASS: mma in tf32, FFMA in fp32."""
    m, n, step = tile
    tf32 = problem.dtype == "tf32"
    slots = SMS if tf32 else SLOTS_SIMT.get((m, n), SMS)
    tiles_m, tiles_n, parts = _split(problem, tile, slots)
    family = "cutlass_80_tensorop_s1688gemm" if tf32 else "cutlass_80_simt_sgemm"
    letters = (problem.trans_a + problem.trans_b).lower()
    align = 4 if tf32 and problem.alignment() == 4 else 1
    by_kernel = parts > 1 and tiles_m * tiles_n <= FEW_TILES
    return GemmChoice(
        f"{family}_{m}x{n}_{step}x{stages}_{letters}_align{align}",
        family,
        tile,
        stages,
        split_k=parts,
        reduction="" if parts == 1 else "kernel" if by_kernel else "serial",
        grid=(*swizzled(tiles_m, tiles_n), parts),
    )


def _xmma(problem: Problem, tile: tuple[int, int, int], stages: int) -> GemmChoice:
    """Return NVIDIA's own kernel for FFMA, or the small one for odd sizes in tf32."""
    n, m, step = tile  # a name says n, then m
    letters = (problem.trans_a + problem.trans_b).lower()
    if problem.dtype == "tf32":
        tiles_m, tiles_n, parts = -(-problem.m // m), -(-problem.n // n), 1
        types, unit, warps = "f32f32_tf32f32_f32", "tensor16x8x8", "2x2x1"
    else:
        tiles_m, tiles_n, parts = _split(problem, (m, n, step), SLOTS.get((n, m), SMS))
        if (m, n) == (32, 32):
            parts = 1 if tiles_m * tiles_n >= SMALL_TILES else SMALL_PARTS[problem.k <= SMALL_K]
        types, unit = "f32f32_f32f32_f32", "ffma"
        warps = WARPS.get((n, m), "1x2x1" if min(m, n) == 32 else "2x2x1")
    return GemmChoice(
        f"sm80_xmma_gemm_{types}_{letters}_n_tilesize{n}x{m}x{step}_stage{stages}_warpsize{warps}_{unit}"
        "_aligna4_alignc4_execute_kernel__5x_cublas",
        "sm80_xmma_gemm",
        tile,
        stages,
        split_k=parts,
        reduction="serial" if parts > 1 else "",
        grid=(tiles_n, tiles_m, parts),
    )


def _read(problem: Problem, kernel: str) -> GemmChoice:
    sizes, _, stages = kernel.partition("_")
    m, n, step = map(int, sizes.split("x"))
    if stages == "0":
        return _wgmma(problem, m, n, step)
    if problem.dtype == "fp32" and stages == "3":
        return _xmma(problem, (m, n, step), 3)
    return _cutlass(problem, (m, n, step), int(stages))


def _with(choice: GemmChoice, reasons: tuple[str, ...], others: tuple[GemmChoice, ...]) -> GemmChoice:
    fields = {name: getattr(choice, name) for name in choice.__dataclass_fields__}
    return GemmChoice(**{**fields, "reasons": reasons, "runners_up": others})


def choose(problem: Problem, rules: Rules = ALL) -> GemmChoice:
    """Return the kernel for a tiled GEMM of tf32 or fp32."""
    aligned = problem.alignment() == 4
    if problem.dtype == "fp32":
        tree, why = "FP32", "fp32 is computed with FFMA"
    elif aligned and uses_wgmma(problem, rules.wgmma):
        tree, why = "TF32_WGMMA", "rows start at multiples of 16 B and the GEMM is large: wgmma"
    elif problem.alignment(result=False) == 4:
        tree, why = "TF32_MMA", "the GEMM is too small or C too odd for wgmma: mma"
    elif max(problem.m, problem.n) <= ODD_SMALL:
        return _with(_xmma(problem, (32, 32, 64), 3), ("rows do not start at multiples of 16 B",), ())
    else:
        tree, why = "TF32_MMA_ODD", "rows do not start at multiples of 16 B: mma, one element a copy"
    turned = tree == "FP32" and problem.trans_b == "T"
    kernels, answers = walk(tiled_trees.FP32_TURNED if turned else rules.trees[tree], problem)
    first, *others = [_read(problem, kernel) for kernel in kernels]
    said = [why, f"tile of the leaf {', '.join(answers)}" if answers else "the only tile of its tree"]
    if first.split_k > 1:
        said.append(f"K is split into {first.split_k} parts, so that waves of TBs are full")
    return _with(first, tuple(said), tuple(others[:RUNNERS_UP]))
