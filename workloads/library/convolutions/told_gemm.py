"""The GEMM of a convolution's main kernel, by the kernel's name and grid."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.gemms.hopper_gemm import STEP, HopperGemm
from pysim.workloads.library.gemms.staged_gemm import Order, Reduction, StagedGemm
from pysim.workloads.library.gemms.staged_tile import StagedTile, Unit
from pysim.workloads.library.gemms.told import Told, told_hopper, told_staged

from .engines import ENGINES, engine_gemm
from .fft import fft_gemm, is_fft
from .names import tile_of, warps_of
from .passes import CONTIGUOUS, PASSES
from .winograd import is_winograd, winograd_gemm

if TYPE_CHECKING:
    from pysim.workloads.library.choices.choice import Problem

    from .shape import Convolution

_CUTLASS = re.compile(
    r"cutlass_tensorop_(f16_)?s\d+(?:fprop|dgrad|wgrad)_optimized_\w*?_(\d+)x(\d+)_(\d+)x(\d+)_"
)
_WGRAD = re.compile(r"ImplicitGemmConvolution_(\d+)x(\d+)x(\d+)_(\d+)x(\d+)_(\d+)")
_ALIGN = re.compile(r"_aligna(\d+)")
ALIGNED = 16  # bytes
EPILOGUE = 4096  # bytes of shared memory beside the stages, of kernels for wgmma
MOST_STAGES = 16
BATCHED = "reduce_wgrad_nchw_helper"  # adds the gradients of filters that each image has
SUMS = ("sm90_xmma_wgrad_indexed_", "sm80_xmma_wgrad_implicit", "sm90_xmma_fprop_implicit", BATCHED)
# launches beside the main one that have templates
OTHERS = ("toNhwc", "toNchw", "init", CONTIGUOUS, *PASSES, *SUMS)
PADS = ("nhwcAddPaddingKernel",)
WITHOUT = "wo_smem"  # in the name: fragments are loaded to registers at once


def has_cutlass_sum(told: Told) -> bool:
    """Whether a kernel of CUTLASS's own sum adds the parts."""
    return _WGRAD.match(told.name) is not None


def _hopper(told: Told, problem: Problem, pitches: tuple[int, int], item: int) -> HopperGemm:
    """Return the GEMM of a kernel for wgmma: its stages fill the shared memory."""
    n, m, _ = tile_of(told.name)
    stages = min(MOST_STAGES, (told.smem - EPILOGUE) // ((m + n) * 128))
    groups = "warpgroupsize2x1x1" in told.name
    # where there are fewer tiles than TBs, these take runs of k-steps (``segment_k_on``)
    tiles = -(-problem.m // m) * -(-problem.n // n)
    steps = -(-problem.k * item // STEP)
    each = -(-steps // max(1, told.tbs // tiles))
    parts = -(-steps // each)
    return HopperGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=(m, n),
        stages=stages,
        cluster=(1, 1),
        tbs=told.tbs,
        split="n" if groups else "none",
        split_k=parts,
        item=item,
        out=item,
        smem=told.smem,
        registers=told.registers,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
        clipped=True,
        pitches=pitches,
    )


def _staged(told: Told, problem: Problem, pitches: tuple[int, int], item: int, last: bool) -> StagedGemm:
    """Return the GEMM of a kernel for Ampere."""
    found, wgrad = _CUTLASS.search(told.name), _WGRAD.search(told.name)
    unit: Unit = "ffma" if "_ffma" in told.name else "mma"
    if found:
        n, m, deep, stages = (int(found[number]) for number in range(2, 6))
        shape = (2, 2) if min(m, n) * 2 > max(m, n) or max(m, n) < 256 else ((4, 1) if m > n else (1, 4))
    elif wgrad:
        n, m, deep, down, across, stages = map(int, wgrad.groups())
        shape = across, down
    else:
        n, m, deep = tile_of(told.name)
        stages, *across_down = warps_of(told.name)
        shape = across_down[1], across_down[0]
    if not last:
        m, n, shape = n, m, shape[::-1]
    order: Order = "xmma"
    parts = told.grid[2]
    adds: Reduction = "atomic" if WITHOUT in told.name else "serial"
    reduction: Reduction = "" if parts == 1 else "kernel" if told.summed else adds
    align = _ALIGN.search(told.name)
    copy = min(16, int(align[1]) * item) if align and WITHOUT in told.name else 16
    if "wgrad" in told.name and WITHOUT in told.name:
        copy = item  # a multiply takes pairs of pixels, which do not lie side by side
    tile = StagedTile(m, n, deep, shape, min(stages, 6), unit, item, told.registers, told.smem)
    return StagedGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=tile,
        order=order,
        copy=copy if last else 4,
        split_k=parts,
        reduction=reduction,
        out=4 if reduction == "atomic" else item,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
        pitches=pitches,
    )


def tile_along(told: Told, conv: Convolution) -> tuple[int, int, int]:
    """Return tiles along n and m of a kernel's GEMM, and its k-steps."""
    gemm = told_convolution(told, (), conv if "nchw_" in told.name else replace(conv, last=True))
    m, n = gemm.tiles
    deep = gemm.tile.tk if isinstance(gemm, StagedGemm) else STEP // gemm.item
    return n, m, -(-gemm.k // deep)


def _images(told: Told, problem: Problem, images: int, item: int) -> HopperGemm | StagedGemm:
    """Return the GEMMs of an image each, of k pixels, that gradients of 1 x 1 filters are added from."""
    if not told.name.startswith(("nvjet", "sm90_xmma")):
        return told_staged(replace(told, summed=True), problem)
    each = replace(problem, k=problem.k // images, batch=images)
    if told.name.startswith("nvjet"):
        return replace(told_hopper(told, each), out=4)
    return replace(_hopper(told, each, (0, 0), item), split_k=1, batch=images)


def told_convolution(told: Told, others: tuple[Told, ...], conv: Convolution) -> HopperGemm | StagedGemm:
    """Return the GEMM of a convolution's main kernel.

    ``others``: launches beside it, those of :func:`relayout` by ``toNhwc`` and ``toNchw``. Raises
    WorkloadError for kernels without template.
    """
    if is_winograd(others):
        return winograd_gemm(told, others, conv)
    if is_fft(told, others):
        return fft_gemm(told, others, conv)
    names = [other.name for other in others]
    unknown = [name for name in names if name not in OTHERS]
    if unknown:
        raise WorkloadError(f"convolution: no template for kernel {unknown[0][:60]}")
    if told.name in ENGINES:
        return engine_gemm(told, conv)
    if any(name in PADS for name in names) or has_cutlass_sum(told):
        each = ALIGNED // conv.item  # channels are padded to 16 B: grids are of as many
        conv = replace(conv, channels=-(-conv.channels // each) * each)
    last = conv.last or "nhwc" in told.name or "toNhwc" in names
    problem, pitches = conv.gemm(last)
    if BATCHED in names:
        return _images(told, problem, conv.images, conv.item)
    told = replace(told, summed=told.summed or any(name in SUMS for name in names))
    if told.name.startswith("nvjet"):
        return told_hopper(told, problem)
    if "gemm_" in told.name and "implicit" not in told.name:
        images = told if told.summed else replace(told, grid=(*told.grid[:2], 1))  # else z is images
        if told.name.startswith("sm90_xmma"):
            return _hopper(images, problem, (0, 0), conv.item)
        return told_staged(images, problem)
    if told.name.startswith("sm90_xmma") and "first_layer" not in told.name:
        return _hopper(told, problem, pitches, conv.item)
    return _staged(told, problem, pitches, conv.item, last)
