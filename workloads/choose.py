"""Which tile a vendor library would take for a GEMM: an analytic cost of each candidate, cheapest first.

The cost is what a library knows before it launches: waves, pipe, issue and shared-memory rates, bytes over
bandwidths, latency of a k-step, and the cost of adding split sums. It is not the simulator: like cuBLAS it
is wrong for some shapes. Three habits of cuBLAS 10 on a V100 are read off classes of DeepBench's times, not
off single rows: an SM's TBs are costed one after another; the smallest tile is taken only where its grid has
at most a TB an SM; K is split only where each part stays deep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pysim.errors import WorkloadError

from .gemm import INTS_A_STEP, MAX_STEPS, Tiling, step_work
from .tiles import WARP

Dtype = Literal["fp32", "fp16"]


@dataclass(frozen=True, slots=True)
class MachineHints:
    """Published figures of the device, a V100 by default (rates in GB/s, latencies in cycles)."""

    sms: int = 80
    clock_mhz: float = 1455.0
    dram_gbs: float = 900.0
    l2_gbs: float = 2155.0
    dram_latency: int = 450
    l2_latency: int = 220
    registers: int = 65536
    smem: int = 98304
    warps: int = 64
    tbs: int = 32
    launch_us: float = 2.0


# Names are cuBLAS's: its M (our tn) comes first. Kernel lists: profiles of cuBLAS 9 and 10 on V100.
FP32 = (
    Tiling("sgemm_128x128", 128, 128, 8, 8),
    Tiling("sgemm_128x64", 64, 128, 8, 4),
    Tiling("sgemm_64x64", 64, 64, 8, 2),
    Tiling("sgemm_128x32", 32, 128, 8, 4),
    Tiling("sgemm_32x128", 128, 32, 8, 4),
    Tiling("sgemm_64x32_sliced1x4", 32, 64, 32, 4, slices=4),
    Tiling("sgemm_32x32_sliced1x4", 32, 32, 32, 4, slices=4),
)
SMALLEST = FP32[-1]
FP16 = (
    Tiling("fp16_s884gemm_256x128", 128, 256, 32, 8, "hmma"),
    Tiling("fp16_s884gemm_128x128", 128, 128, 32, 4, "hmma"),
    Tiling("fp16_s884gemm_128x64", 64, 128, 32, 4, "hmma"),
    Tiling("fp16_s884gemm_64x64", 64, 64, 32, 4, "hmma", slices=2),
)
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
# K of a part at the least: cuBLAS 10 leaves K of some thousand whole, however small the grid
SPLIT_DEPTH = 4096
STEP_OVERHEAD = 235  # cycles of a k-step of one TB that no other hides: L2 hit 193, barrier 20, first LDS 23


def occupancy(tiling: Tiling, item: int, hints: MachineHints) -> int:
    """TBs that fit an SM."""
    by_registers = hints.registers // (tiling.registers(item) * WARP * tiling.warps)
    by_smem = hints.smem // tiling.smem(item)
    return max(0, min(by_registers, by_smem, hints.warps // tiling.warps, hints.tbs))


def estimate_us(tiling: Tiling, m: int, n: int, k: int, item: int, hints: MachineHints, beta: bool) -> float:
    """Estimated time of C[m, n] = A[m, k] B[k, n] in microseconds; infinite where the tiling cannot run."""
    fit = occupancy(tiling, item, hints)
    gx, gy, gz = tiling.grid(m, n, k)
    steps = -(-tiling.chunk(k) // tiling.tk)
    if fit == 0 or steps > MAX_STEPS:
        return float("inf")
    work = step_work(tiling, tiling.tk, item)
    per_scheduler = tiling.warps / 4
    moved = (tiling.tm + tiling.tn) * tiling.tk * item
    # each byte of a tile is loaded once and stored to shared memory once, 4 B a lane at worst
    issue = work.math + work.lds + INTS_A_STEP + 2 + moved / (WARP * tiling.warps) / 4 * 1.25
    # a scheduler without a warp of this TB is idle, so fewer than four warps leave pipes unused
    math = work.math * 2 + work.conflicts
    shared = work.wavefronts * tiling.warps + moved / 64
    step = max(math * max(1.0, per_scheduler), issue * max(1.0, per_scheduler), shared) + STEP_OVERHEAD
    tbs = gx * gy * gz
    compulsory = (m * k + k * n) * item + m * n * 4 * (1 + beta)
    latency = hints.dram_latency if m * n < 512 * k else hints.l2_latency
    waves = -(-tbs // hints.sms)
    cycles = waves * (steps * max(step, float(latency)) + 2 * latency)
    sm_us = cycles / hints.clock_mhz
    l2_bytes = tbs * (tiling.tm + tiling.tn) * tiling.chunk(k) * item + m * n * 4 * gz
    updates_us = m * n * 32 * (gz > 1) * gz / (hints.l2_gbs * 1e3)
    memory_us = max(compulsory / (hints.dram_gbs * 1e3), l2_bytes / (hints.l2_gbs * 1e3))
    extra = updates_us + (hints.launch_us if gz > 1 and not beta else 0.0)
    # two resources near saturation wait for each other: a smooth maximum
    both: float = (sm_us**3 + memory_us**3) ** (1 / 3)
    return both + extra


def candidates(
    m: int, n: int, k: int, dtype: Dtype, hints: MachineHints, beta: bool
) -> list[tuple[float, Tiling]]:
    """All tilings with their estimated time (us), cheapest first."""
    if dtype not in ("fp32", "fp16"):
        raise WorkloadError(f"dtype {dtype}: must be fp32 or fp16")
    item = 4 if dtype == "fp32" else 2
    found = []
    for base in FP32 if dtype == "fp32" else FP16:
        gx, gy, _ = base.grid(m, n, k)
        if base is SMALLEST and gx * gy > hints.sms:
            continue  # the smallest tile is for grids that fill less than the device
        for split in SPLITS:
            tiling = base if split == 1 else replace(base, name=f"{base.name}_splitK{split}", split_k=split)
            if split > 1 and (k < SPLIT_DEPTH * split or tiling.grid(m, n, k)[2] != split):
                continue  # K is too short
            found.append((estimate_us(tiling, m, n, k, item, hints, beta), tiling))
    return sorted(found, key=lambda pair: pair[0])


def choose_gemm(
    m: int,
    n: int,
    k: int,
    dtype: Dtype = "fp32",
    *,
    beta: float = 0.0,
    hints: MachineHints | None = None,
    split: bool = True,
) -> Tiling:
    """Tiling for C[m, n] = A[m, k] B[k, n] (row-major); ``split=False`` leaves split-K out."""
    ranked = candidates(m, n, k, dtype, hints or MachineHints(), beta != 0.0)
    return next(tiling for _, tiling in ranked if split or tiling.split_k == 1)
