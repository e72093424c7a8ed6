"""Which kernel a vendor library would take for a GEMM: a list of tiles, an analytic cost of each, habits.

The cost is what a library knows before it launches: how many thread blocks (TBs) share an SM, what a k-step
of one takes of the arithmetic pipe and how long it waits for its tile, bytes over bandwidths, and the cost of
adding split sums. It is not the simulator: like cuBLAS it is wrong for some shapes.

Tile names are those of public profiles of cuBLAS 9 and 10 on a V100. How a kernel walks its k-steps is
CUTLASS's (``overlap`` in ``tiling.Tiling``). Nobody published when the library takes which;
the habits below were read off classes of DeepBench's times (half ``fit``), not off single rows:

- large GEMMs without a transposed A (NN, NT) reach 13.1 of 15.7 TFLOP/s, TN 13.8: their loops yield for
  two cycles and for one (``YIELD``);
- the smallest fp32 tile is taken where its grid has at most a TB an SM;
- a kernel for few columns (``gemmSN``) where the other side is small, too;
- K is split only from ``SPLIT_FROM`` on, and each part stays deep;
- in fp16 small tiles take k-steps of 64: 64 x 64 where its grid fills at most half the SMs, else 128 x 64.
  But where that streams rows of K beyond L2 that are no multiple of 1024, 64 x 64 takes steps of 32. It then
  reads 64 B of a row at a time, each from another DRAM row;
- where one operand fits in L2 and the other does not, TBs that share the large one are dispatched together,
  so that it is streamed once: what CUTLASS orders its TBs for (``efficient_gemm.md``, threadblock
  rasterization). Without it an LSTM of 4096 with a batch of 128 takes half as long again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from pysim.errors import WorkloadError
from pysim.program.job import MAX_TBS

from .cutlass import INTS_COPY, INTS_GROUP, INTS_STEP, VECTOR, WAVEFRONTS, Multistage
from .machine_hints import MachineHints
from .tiles import WARP
from .tiling import FETCH, INTS_A_STEP, Math, Tiling, step_work
from .volta_gemm import MAX_STEPS

Dtype = Literal["fp32", "fp16"]
AnyTiling = Tiling | Multistage
YIELD = {
    False: 2,
    True: 1,
}  # cycles of a yield; True: unsliced kernels of GEMMs with A (cuBLAS's) transposed


def _ffma(name: str, tm: int, tn: int, tk: int, warps: int, slices: int = 1) -> Tiling:
    return Tiling(name, tm, tn, tk, warps, slices=slices, overlap=True, passes=4, fetch=FETCH)


def _hmma(name: str, tm: int, tn: int, tk: int, warps: int, slices: int = 1) -> Tiling:
    return Tiling(name, tm, tn, tk, warps, "hmma", slices=slices, overlap=True, passes=8, fetch=FETCH)


# cuBLAS's M (our tn) comes first in a name.
FP32 = (
    _ffma("sgemm_128x128", 128, 128, 8, 8),
    _ffma("sgemm_128x64", 64, 128, 8, 4),
    _ffma("sgemm_64x64", 64, 64, 8, 2),
    _ffma("sgemm_128x32", 32, 128, 8, 4),
    _ffma("sgemm_32x128", 128, 32, 8, 4),
    _ffma("sgemm_64x32_sliced1x4", 32, 64, 32, 4, 4),
    _ffma("sgemm_32x32_sliced1x4", 32, 32, 32, 4, 4),
    _ffma("gemmSN_64x16", 16, 64, 32, 4, 4),
)
SMALLEST, NARROW = FP32[-2:]
FP16 = (
    _hmma("fp16_s884gemm_256x128", 128, 256, 32, 8),
    _hmma("fp16_s884gemm_128x128", 128, 128, 32, 4),
    _hmma("fp16_s884gemm_128x64", 64, 128, 32, 4),
    _hmma("fp16_s884gemm_128x64_sliced1x2", 64, 128, 64, 8, 2),
    _hmma("fp16_s884gemm_64x64_sliced1x2", 64, 64, 64, 4, 2),
    _hmma("fp16_s884gemm_64x64", 64, 64, 32, 4, 2),
)
WIDE, DEEP, SHALLOW = FP16[-3:]
SPLITS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64)
SPLIT_FROM = {"fp32": 4096, "fp16": 8192}  # K from which on it is split
SPLIT_DEPTH = 1024  # K of a part at the least
NARROW_N, NARROW_M = 16, 1024  # most columns and rows of C (cuBLAS's N and M) for `gemmSN`
WHOLE_ROWS = 1024  # rows of K of a multiple of this are streamed in steps of 64


def _simt(math: Math) -> tuple[Tiling, ...]:
    """Return the fp32 tiles for fp16 operands, on a GPU without tensor cores."""
    return tuple(replace(tile, name=tile.name.replace("sgemm", f"hgemm_{math}"), math=math) for tile in FP32)


# Sizes of cuBLAS's kernels for Ampere: 64 x 64 a warp where the TB's tile is large, 32 x 32 where not. On an
# H200 tiles of 128 x 128 and 64 x 64 were measured, on an A100 those of 256 (cuSync's).
MMA = (
    Multistage(128, 256, 32, 64, 64, 3, waits_b=True),
    Multistage(256, 128, 32, 64, 64, 3, waits_b=True),
    Multistage(128, 128, 32, 64, 64, 4, waits_b=True),
    Multistage(128, 64, 32, 64, 32, 5, waits_b=True),
    Multistage(64, 128, 32, 32, 64, 5, waits_b=True),
    Multistage(64, 64, 64, 32, 32, 5, waits_b=True),
    Multistage(32, 64, 64, 16, 32, 5, waits_b=True),
    Multistage(64, 32, 64, 32, 16, 5, waits_b=True),
)
MMA_SPLIT_FROM, MMA_SPLIT_DEPTH = 2048, 512  # K from which on K is split, and of a part. Assumed


def templates(dtype: Dtype, hints: MachineHints) -> tuple[AnyTiling, ...]:
    """Return the tiles that there are for a type on a machine.

    fp16 runs on tensor cores: HMMA.884 of Volta and Turing, mma.m16n8k16 from Ampere on (a library's own
    kernels for Hopper's wgmma are not here yet). On a GPU without them it runs on the fp16 pipe, or on the
    fp32 pipe where that is faster.
    """
    if dtype not in get_args(Dtype):
        raise WorkloadError(f"gemm on {hints.name}: dtype {dtype}: there are {', '.join(get_args(Dtype))}")
    if dtype == "fp32":
        return FP32
    if hints.compute_capability >= (8, 0):
        return MMA
    if hints.tensor_cores:
        return FP16
    ffma, hfma2, _ = hints.intervals
    return _simt("ffma" if 2 / hfma2 <= 1 / ffma else "hfma2")


def family(dtype: Dtype, hints: MachineHints) -> str:
    """Return the common beginning of the names of a type's tiles on a machine, such as ``fp16_s884gemm``."""
    return re.split(r"_\d", templates(dtype, hints)[0].library)[0]


def occupancy(tiling: AnyTiling, item: int, hints: MachineHints) -> int:
    """TBs that fit an SM."""
    if isinstance(tiling, Multistage):
        registers, smem = tiling.registers, tiling.smem
    else:
        registers, smem = tiling.registers(item), tiling.smem(item)
    by_registers = hints.registers // (registers * WARP * tiling.warps)
    by_smem = hints.smem // (smem + hints.smem_reserved)
    return max(0, min(by_registers, by_smem, hints.warps // tiling.warps, hints.tbs))


@dataclass(frozen=True, slots=True)
class _Step:
    """Cycles that a k-step takes of its warps' sub-core (``math``, ``issue``) and of shared memory (a TB)."""

    math: float
    issue: float
    shared: float


def _step_of(tiling: AnyTiling, item: int, hints: MachineHints) -> _Step:
    moved = (tiling.tm + tiling.tn) * tiling.tk * item
    ffma, hfma2, tensor = hints.intervals
    if isinstance(tiling, Multistage):
        math = tiling.mmas * tiling.groups
        loads = tiling.fragments * tiling.groups
        copies = moved / (WARP * tiling.warps) / VECTOR
        issue = math + loads + copies * (1 + INTS_COPY) + INTS_STEP + INTS_GROUP * tiling.groups
        return _Step(math * tensor, issue, loads * WAVEFRONTS * tiling.warps + moved / 64)
    work = step_work(tiling, tiling.tk, item)
    # each byte of a tile is loaded once and stored to shared memory once, 4 B a lane at worst
    issue = work.math + work.lds + INTS_A_STEP + 2 + moved / (WARP * tiling.warps) / 4 * 1.25
    cycles = {"ffma": ffma, "hfma2": hfma2, "hmma": tensor}[tiling.math]
    return _Step(work.math * cycles + work.conflicts, issue, work.wavefronts * tiling.warps + moved / 64)


def _parts_us(
    tiling: AnyTiling, m: int, n: int, item: int, gz: int, hints: MachineHints, beta: bool
) -> float:
    """Return what adding the parts of a split K costs, in microseconds."""
    if gz == 1:
        return 0.0
    if isinstance(tiling, Multistage):
        # in turn: each reads and stores the sums of its tile
        each = tiling.tm * tiling.tn * item * 2 / 64 + hints.l2_latency
        return (gz - 1) * each / hints.clock_mhz
    return m * n * 32 * gz / (hints.l2_gbs * 1e3) + (0.0 if beta else hints.launch_us)


def estimate_us(
    tiling: AnyTiling,
    m: int,
    n: int,
    k: int,
    item: int,
    hints: MachineHints,
    beta: bool,
    rows_of_k: tuple[bool, bool] = (False, False),
) -> float:
    """Estimated time of C[m, n] = A[m, k] B[k, n] in microseconds; infinite where the tiling cannot run.

    ``rows_of_k``: which of A and B are stored as rows of K, so that a k-step takes a piece of each.
    """
    gx, gy, gz = tiling.grid(m, n, k)
    tbs = gx * gy * gz
    together = min(occupancy(tiling, item, hints), -(-tbs // hints.sms))
    steps = -(-tiling.chunk(k) // tiling.tk)
    if together == 0 or steps > MAX_STEPS or tbs > MAX_TBS:
        return float("inf")
    work = _step_of(tiling, item, hints)
    moved = (tiling.tm + tiling.tn) * tiling.tk * item

    def busy(many: int) -> float:
        """Cycles of a k-step of so many TBs of an SM: the fullest sub-core's, or shared memory's."""
        return max(max(work.math, work.issue) * -(-many * tiling.warps // 4), work.shared * many)

    small = (m * k + k * n) * item < hints.l2_bytes
    latency = hints.l2_latency if small else hints.dram_latency
    in_flight = tiling.stages - 1  # k-steps under way while one is multiplied
    alone = max(work.math, latency / in_flight) + moved / 64
    epilogue = tiling.fetch + 4 * hints.dram_latency
    waves = -(-tbs // (hints.sms * together))
    last = -(-(tbs - (waves - 1) * hints.sms * together) // hints.sms)
    cycles = sum(
        max(steps * busy(many), steps * alone + epilogue) for many in [together] * (waves - 1) + [last]
    )
    # the TBs of an SM hide each other's stalls but for one epilogue
    cycles += tiling.fetch / together
    whole = hints.dram_gbs * 1e3
    pieces = min(whole, tiling.tk * item * hints.row_gbs * 1e3)
    a_rate, b_rate = (pieces if rows and not small else whole for rows in rows_of_k)
    # an operand beyond L2 is read anew by each row or column of tiles unless these run at once
    a_passes = min(gx, waves) if tiling.column_raster and m * k * item > hints.l2_bytes else 1
    b_passes = min(gy, waves) if not tiling.column_raster and k * n * item > hints.l2_bytes else 1
    read_us = a_passes * m * k * item / a_rate + b_passes * k * n * item / b_rate
    dram_us = read_us + m * n * item * (1 + beta) / whole
    l2_bytes = tbs * (tiling.tm + tiling.tn) * tiling.chunk(k) * item + m * n * item * gz
    memory_us = max(dram_us, l2_bytes / (hints.l2_gbs * 1e3))
    # two resources near saturation wait for each other: a smooth maximum
    both: float = ((cycles / hints.clock_mhz) ** 3 + memory_us**3) ** (1 / 3)
    return both + _parts_us(tiling, m, n, item, gz, hints, beta)


def _taken(base: Tiling, m: int, n: int, k: int, rows_of_k: tuple[bool, bool], hints: MachineHints) -> bool:
    """Whether the library's habits allow a tile; ``rows_of_k``: which operands are stored as rows of K."""
    gx, gy, _ = base.grid(m, n, k)
    size = (base.tm, base.tn, base.tk)
    if size == (SMALLEST.tm, SMALLEST.tn, SMALLEST.tk):
        return gx * gy <= hints.sms
    if size == (NARROW.tm, NARROW.tn, NARROW.tk):
        return m <= NARROW_N and n <= NARROW_M and not rows_of_k[1]
    if base in (WIDE, DEEP, SHALLOW):
        gx, gy, _ = DEEP.grid(m, n, k)
        few = 2 * gx * gy <= hints.sms and k < SPLIT_FROM["fp16"]
        streamed = max(m, n) * k * 2 > hints.l2_bytes
        pieces = rows_of_k[0 if m > n else 1] and k % WHOLE_ROWS != 0 and streamed
        return base is (SHALLOW if pieces else DEEP if few else WIDE)
    return True


def _column_raster(base: Tiling, m: int, n: int, k: int, item: int, hints: MachineHints) -> bool:
    """Whether TBs that share a part of B are dispatched one after another: A stays in L2 and B does not."""
    return base.tm < m and m * k * item <= hints.l2_bytes < k * n * item


def with_loop_yields(base: Tiling, a_t: bool, b_t: bool) -> Tiling:
    """Return a tile of the lists with the loop yields of the library's kernel for this storage order."""
    fast = b_t and not a_t and base.slices == 1
    return replace(base, yields=YIELD[fast]) if base.math == "ffma" else base


def _whole(
    base: Tiling, m: int, n: int, k: int, item: int, a_t: bool, b_t: bool, hints: MachineHints
) -> Tiling:
    """Return a tile of the lists as the library's kernel for these operands has it."""
    return replace(with_loop_yields(base, a_t, b_t), column_raster=_column_raster(base, m, n, k, item, hints))


def candidates(
    m: int,
    n: int,
    k: int,
    dtype: Dtype,
    hints: MachineHints,
    beta: bool,
    a_t: bool = False,
    b_t: bool = False,
) -> list[tuple[float, AnyTiling]]:
    """All tilings with their estimated time (us), cheapest first."""
    item = 4 if dtype == "fp32" else 2
    rows_of_k = not a_t, b_t
    found: list[tuple[float, AnyTiling]] = []
    for base in templates(dtype, hints):
        made: AnyTiling = base
        from_k, depth = MMA_SPLIT_FROM, MMA_SPLIT_DEPTH
        if isinstance(base, Tiling):
            if not _taken(base, m, n, k, rows_of_k, hints):
                continue
            made = replace(
                with_loop_yields(base, a_t, b_t), column_raster=_column_raster(base, m, n, k, item, hints)
            )
            from_k, depth = SPLIT_FROM[dtype], SPLIT_DEPTH
        for split in SPLITS:
            tiling = made if split == 1 else _split(made, split)
            if split > 1 and (k < max(from_k, depth * split) or tiling.grid(m, n, k)[2] != split):
                continue  # K is too short
            found.append((estimate_us(tiling, m, n, k, item, hints, beta, rows_of_k), tiling))
    return sorted(found, key=lambda pair: pair[0])


def _split(base: AnyTiling, split: int) -> AnyTiling:
    if isinstance(base, Multistage):
        return replace(base, split_k=split)
    return replace(base, name=f"{base.name}_splitK{split}", split_k=split)


def choose_tiling(
    m: int,
    n: int,
    k: int,
    dtype: Dtype = "fp32",
    *,
    a_t: bool = False,
    b_t: bool = False,
    beta: float = 0.0,
    hints: MachineHints | None = None,
    split: bool = True,
) -> AnyTiling:
    """Tiling for C[m, n] = A[m, k] B[k, n] (row-major); ``split=False`` leaves split-K out.

    ``a_t``, ``b_t``: A is stored as [k, m], B as [n, k]. Raises WorkloadError for a type that there is no
    template of on the machine, and for a GPU on which none of its templates fits an SM.
    """
    ranked = candidates(m, n, k, dtype, hints or MachineHints(), beta != 0.0, a_t, b_t)
    for time, tiling in ranked:
        if time < float("inf") and (split or tiling.split_k == 1):
            return tiling
    machine = hints or MachineHints()
    names = ", ".join(tile.name for tile in templates(dtype, machine))
    raise WorkloadError(f"gemm {m} x {n} x {k} on {machine.name}: no {dtype} tile can run: there are {names}")
