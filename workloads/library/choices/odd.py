"""fp16 and bf16 where rows do not start at multiples of 16 B: kernels written for Ampere and Turing.

TMA needs 16 B, so no kernel for Hopper fits. Rows of an even number of elements are copied 4 or 8 B at a
time by kernels for Ampere (``cutlass_80``), others one element at a time by kernels for Turing
(``cutlass_75``); both use mma. The thresholds were read off the 172 rows of odd sizes, by hand, so their
figures are no forecast. fp16 and bf16 differ: bf16 has no small kernel for odd rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from pysim.workloads.library.hopper import SMS

from .choice import GemmChoice, Problem
from .cutlass import FEW_TILES, parts_of_k, swizzled

SMALL = 257  # most rows and columns of C that are small
NARROW = 40  # rows or columns of C up to which tiles of 64 x 64 are taken
TINY = 8  # rows or columns up to which the smallest tile is taken in fp16
SMALL_EVEN, MIDDLE_EVEN = 128, 512  # most rows and columns: tiles of 32 x 32, of 64 x 64 in fp16
LARGE = 500  # tiles of 128 x 128 from which on twice as large ones are taken, A not transposed
MOST_PARTS = 3  # of K, of kernels for Ampere
SLOTS = {(64, 64): 396, (128, 128): 264}  # TBs of a wave of kernels for Turing; others one an SM


@dataclass(frozen=True, slots=True)
class _Kernel:
    kind: str  # "mma" or "wmma"
    tile: tuple[int, int, int]
    stages: int
    why: str


def _turing(problem: Problem) -> _Kernel:
    m, n = problem.m, problem.n
    small = max(m, n) <= SMALL
    if problem.dtype == "fp16" and (small or min(m, n) <= TINY):
        step = 128 if max(m, n) == SMALL else 64
        return _Kernel("wmma", (32, 32, step), 1, f"C has at most {SMALL} rows and columns, or {TINY} of one")
    if small or min(m, n) <= NARROW:
        return _Kernel("mma", (64, 64, 0), 0, f"C is small or at most {NARROW} wide")
    if problem.trans_b == "T":
        return _Kernel("mma", (128, 256, 0), 0, "B is transposed")
    if problem.trans_a == "N" and -(-m // 128) * -(-n // 128) >= LARGE:
        return _Kernel("mma", (256, 128, 0), 0, f"C has {LARGE} tiles of 128 x 128 or more")
    return _Kernel("mma", (128, 128, 0), 0, "C is neither small nor narrow")


def _ampere(problem: Problem) -> _Kernel:
    m, n = problem.m, problem.n
    most, bf16 = max(m, n), problem.dtype == "bf16"
    if most <= (MIDDLE_EVEN if bf16 else SMALL_EVEN):
        return _Kernel("wmma", (32, 32, 128 if bf16 else 64), 2 if bf16 else 1, f"C is at most {most} large")
    if most <= MIDDLE_EVEN:
        return _Kernel("mma", (64, 64, 64), 6, f"C is at most {MIDDLE_EVEN} large")
    wide = -(-m // 256) * -(-n // 128) - -(-m // 128) * -(-n // 256)  # tiles more of 256 x 128
    if wide < 0 or (wide == 0 and m < n):
        return _Kernel("mma", (256, 128, 64), 3, "256 x 128 needs fewer tiles, or m is less than n")
    return _Kernel("mma", (128, 256, 64), 3, "128 x 256 needs fewer tiles, or n is at most m")


def _family(problem: Problem, chip: int, kind: str, by_kernel: bool) -> str:
    """Return the family; parts that a second kernel adds are fp32, and the name has no type of C."""
    shape = {"wmma": "161616", "mma": "1688" if chip == 75 else "16816"}[kind]
    short = "f16" if problem.dtype == "fp16" else "bf16"
    result = "" if by_kernel else f"_{short}"
    unit = "wmma_tensorop" if kind == "wmma" else "tensorop"
    return f"cutlass_{chip}_{unit}{result}_s{shape}gemm_{short}"


def choose(problem: Problem) -> GemmChoice:
    """Return the kernel for a problem of fp16 or bf16 with rows that are not aligned to 16 B."""
    align = problem.alignment()
    chip = 75 if align == 1 else 80
    kernel = _turing(problem) if chip == 75 else _ampere(problem)
    m, n, step = kernel.tile
    tiles_m, tiles_n = -(-problem.m // m), -(-problem.n // n)
    tiles = tiles_m * tiles_n
    parts = 1
    if kernel.kind == "mma" or min(problem.m, problem.n) <= TINY:
        slots = SLOTS.get((m, n), SMS) if chip == 75 else SMS
        most = MOST_PARTS if chip == 80 else 40
        parts = parts_of_k(tiles, problem.k, step or 32, slots, most) if kernel.stages != 6 else 1
    by_kernel = parts > 1 and chip == 75 and tiles <= FEW_TILES
    family = _family(problem, chip, kernel.kind, by_kernel)
    letters = (problem.trans_a + problem.trans_b).lower()
    depth = f"_{step}x{kernel.stages}" if step else ""
    said = [f"rows start at multiples of {align * problem.item} B, not 16", f"{m} x {n}: {kernel.why}"]
    if parts > 1:
        said.append(f"K is split into {parts} parts, so that waves of TBs are full")
    return GemmChoice(
        f"{family}_{m}x{n}{depth}_{letters}_align{align}",
        family,
        kernel.tile,
        kernel.stages,
        split_k=parts,
        reduction="" if parts == 1 else "kernel" if by_kernel else "serial",
        grid=(*swizzled(tiles_m, tiles_n), parts),
        reasons=tuple(said),
    )
