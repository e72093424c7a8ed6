"""How a GEMM is cut into tiles, and what a warp issues for one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pysim.errors import WorkloadError
from pysim.program.job import HMMA_884

from .tiles import WARP

LDS_LATENCY = 23  # cycles, Volta, load to use (Jia et al. 2018)
FFMA_LATENCY = 4
HMMA_LATENCY = 10
# Vendor loops of this generation yield to another warp every 7 FFMA, and yielding seldom gains about 10 %,
# up to 93 % of a V100's peak: Yan et al., PPoPP 2020, on cuDNN 7.6 (93 % is in the abstract; 7 and 10 % are
# quoted from memory). The cost is assumed, in view of the rates of DeepBench's large GEMMs: a cycle for
# the switch and one for the next FFMA, which finds the reuse cache empty.
YIELD_EVERY = 7  # FFMA
YIELD_COST = 2  # cycles of the fp32 pipe
FFMA_REGISTERS = 128  # at most: maxas's SGEMM of 8 x 8 a thread takes 127, so that 512 threads fit an SM
INTS_A_STEP = 8  # address bumps, buffer flips and the loop compare of a k-step
# Rows and columns of a warp's tile, at most, that CUTLASS's fp32 epilogue for Volta stores. Its iterators
# (fragment_iterator_volta_tensor_op.h, tile_iterator_volta_tensor_op.h of 3.1) address rows by two bits of an
# index and columns by three, so the other sums of a larger warp tile are never stored, and the compiler drops
# the code that computes them. Built by ptxas 12.2 for sm_70, warps of 64 x 64, 64 x 128, 128 x 64 and 128 x
# 128 alike have 512 HMMA and 32 LDS a step, those of 32 x 64, 32 x 128 and 128 x 32 have 256 and 24.
VOLTA_STORED = 64
# Wavefronts of an LDS.128 of CUTLASS's fragments for Volta. 256 of its 512 bytes are distinct, but that lanes
# i and i ^ 8 (A) or i ^ 4 (B) share an address does not make it shorter: measured on an H200, 4.02 cycles an
# instruction of 16 warps, as with 512 distinct bytes (2.01 where all lanes share one address).
VOLTA_LDS = 4
# Cycles of a TB in which its straight-line code (addresses, first k-step, epilogue) waits to be fetched:
# assumed to be the reason. Fitted (DeepBench, half `fit`): without it GEMMs of few TBs come out 3 to 4 us
# short whatever their K, and fp16 tiles of 256 x 128, alone on their SM, as much a wave.
FETCH = 5000
Math = Literal["ffma", "hfma2", "hmma"]


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a GEMM is cut: TB tile ``tm`` x ``tn`` x ``tk``, ``warps``, K parts over the grid and inside a TB.

    ``split_k`` > 1 makes grid z and turns the stores of C into updates; ``slices`` > 1 lets groups of warps
    compute different k of each tile and add their sums through shared memory (cuBLAS's ``sliced1x4``).
    ``stages`` is 1 (one buffer, two barriers a step) or 2. ``cutlass``: parts of a split add to C in turn
    (``split_k_serial``), a step loads B before A, and sums leave a few rows at a time. ``warp``: rows
    and columns of a warp's tile where they are known; (0, 0): as square as the TB tile allows. CUTLASS for
    Volta computes only a part of a large one (``VOLTA_STORED``).

    ``overlap``: the tile in flight is stored to shared memory among the arithmetic of the last group but one,
    and the last group runs after the barrier on fragments that are in registers already (CUTLASS's
    ``mma_pipelined.h``). ``passes``: C leaves in so many rounds, each through shared memory; where
    C is read, each waits for its part (CUTLASS's epilogue; maxas's SGEMM). ``fetch``: cycles of a TB in which
    straight-line code before and after the loop waits to be fetched; ``yields``: cycles of a yield.
    ``column_raster``: the tiles of a column of C are dispatched one after another, not those of a row.
    """

    name: str
    tm: int
    tn: int
    tk: int
    warps: int
    math: Math = "ffma"
    stages: int = 2
    split_k: int = 1
    slices: int = 1
    cutlass: bool = False
    overlap: bool = False
    passes: int = 1
    fetch: int = 0
    yields: int = YIELD_COST
    column_raster: bool = False
    warp: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Refuse tiles that the lanes of a warp cannot share evenly."""
        for label, value in (("tm", self.tm), ("tn", self.tn), ("tk", self.tk), ("warps", self.warps)):
            if value <= 0 or value & (value - 1):
                raise WorkloadError(f"tiling {self.name}: {label} = {value}: must be a power of two")
        if min(self.tm, self.tn, self.tk) < 8 or self.warps > 32:
            raise WorkloadError(f"tiling {self.name}: tiles start at 8 x 8 x 8 and a TB has at most 32 warps")
        if self.stages not in (1, 2):
            raise WorkloadError(f"tiling {self.name}: stages = {self.stages}: must be 1 or 2")
        if self.split_k < 1 or self.slices < 1 or self.warps % self.slices or self.tk % self.slices:
            raise WorkloadError(f"tiling {self.name}: split_k and slices must divide the work evenly")
        if self.tm * self.tn < WARP * self.warps or self.tm * self.tn * self.tk < 256 * self.warps:
            raise WorkloadError(f"tiling {self.name}: too many warps for the tile")

    @property
    def library(self) -> str:
        """The library's kernel: name in reports."""
        return self.name

    @property
    def tensor(self) -> str:
        """Tensor instruction of its kernels (``Kernel.tensor``)."""
        return HMMA_884 if self.math == "hmma" else ""

    @property
    def outputs(self) -> int:
        """Accumulators of a thread."""
        return max(1, self.tm * self.tn * self.slices // (WARP * self.warps))

    @property
    def warp_tile(self) -> tuple[int, int]:
        """Rows and columns of C that are one warp's: as listed, or as square as the TB tile allows."""
        if self.warp != (0, 0):
            return self.warp
        area, rows = self.outputs * WARP, 1
        while rows * rows * 4 <= area and rows < self.tm:
            rows *= 2
        rows = max(rows, area // self.tn)
        return rows, area // rows

    @property
    def multiplied(self) -> tuple[int, int]:
        """Rows and columns of ``warp_tile`` that are computed."""
        rows, cols = self.warp_tile
        if self.cutlass and self.math == "hmma":
            return min(rows, VOLTA_STORED), min(cols, VOLTA_STORED)
        return rows, cols

    @property
    def thread_tile(self) -> tuple[int, int]:
        """Rows and columns of C that one thread computes (FFMA)."""
        rows = 1
        while rows * rows * 2 <= self.outputs:
            rows *= 2
        rows = min(rows, self.warp_tile[0])
        return rows, self.outputs // rows

    def held(self, item: int) -> int:
        """Bytes an element in shared memory and registers: what FFMA multiplies is converted to fp32."""
        return 4 if self.math == "ffma" else item

    def smem(self, item: int) -> int:
        """Shared memory of a TB in bytes: the buffers, or the partial sums of the slices if larger."""
        buffers = self.stages * (self.tm + self.tn) * self.tk * self.held(item)
        return max(buffers, (self.slices - 1) * self.tm * self.tn * 4)

    def registers(self, item: int) -> int:
        """32-bit registers a thread: accumulators, two fragments an operand, tile in flight, addresses."""
        moving = -(-(self.tm + self.tn) * self.tk * item // (4 * WARP * self.warps))
        if self.math != "hmma":
            fragments = 2 * sum(self.thread_tile) * self.held(item) // 4
        else:
            # k of 4, each value in two lanes
            fragments = 2 * sum(self.warp_tile) * 4 * item * 2 // (4 * WARP)
        most = 255 if self.math == "hmma" else FFMA_REGISTERS
        return min(most, -(-(self.outputs + fragments + moving + 24) // 8) * 8)

    def chunk(self, k: int) -> int:
        """K of one part of the split: a multiple of tk."""
        return -(-k // (self.split_k * self.tk)) * self.tk

    def grid(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """TBs in x (N), y (M) and z (K); fewer parts than split_k where K is too short."""
        return -(-n // self.tn), -(-m // self.tm), -(-k // self.chunk(k))


@dataclass(frozen=True, slots=True)
class StepWork:
    """Instructions of one warp for ``k`` of a tile."""

    math: int
    lds: int
    wavefronts: int
    conflicts: int


def lds_wavefronts(distinct: int, width: int) -> int:
    """Wavefronts of a conflict-free LDS of ``width`` bytes a lane that reads ``distinct`` bytes."""
    return max(width // 8, -(-distinct // 128), 1)


def step_work(tiling: Tiling, k: int, item: int) -> StepWork:
    """Count what one warp issues for ``k`` of the tile (per slice: each warp takes its share of k).

    ``item``: bytes an element in global memory. FFMA and HFMA2, which makes two products: a thread reads its
    ``thread_tile`` fragments of each k by LDS.128; lanes of a warp share fragments (broadcast), so an LDS.128
    takes two wavefronts and one of 512 distinct bytes four. HMMA.884: each fragment value sits in two lanes,
    so LDS.128 reads 256 distinct bytes; what that saves is known of CUTLASS alone (``VOLTA_LDS``), of others
    it is assumed to halve the wavefronts. ``conflicts`` are cycles in which the fp32 pipe waits for operands
    after a yield.
    """
    if tiling.math == "hmma":
        rows, cols = tiling.multiplied
        mine = tiling.warp_tile[0] * tiling.warp_tile[1]
        total = tiling.tm * tiling.tn * k * rows * cols // mine
        lds = -(-(rows + cols) * k * item * 2 // (512 * tiling.slices))
        waves = VOLTA_LDS if tiling.cutlass else lds_wavefronts(256, 16)
        return StepWork(-(-total // (256 * tiling.warps)), lds, lds * waves, 0)
    rows, cols = tiling.thread_tile
    held, each = tiling.held(item), 2 if tiling.math == "hfma2" else 1
    lds = waves = 0
    for length, span in ((rows, tiling.warp_tile[0]), (cols, tiling.warp_tile[1])):
        width = min(16, length * held)
        count = -(-length * held // 16)
        lds += count
        waves += count * lds_wavefronts(span // length * width, width)
    mine = -(-k // tiling.slices)
    # the last k of a sliced tile may not divide: the total stays exact, the fragments round up
    math = tiling.tm * tiling.tn * k // (WARP * tiling.warps * each)
    return StepWork(math, lds * mine, waves * mine, math // YIELD_EVERY * tiling.yields)
