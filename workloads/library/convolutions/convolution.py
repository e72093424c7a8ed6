"""Convolutions as cuDNN runs them on an H200, as GEMMs whose operand of pixels overlaps.

With channels last, forward is C[filters, pixels] = W[filters, k] X[k, pixels], where k are channels and taps.
What a pixel reads of the images overlaps with what its neighbours read. Here a tap is as many bytes after the
one before as a pixel has channels, and a pixel as many after the one before as the images have bytes a pixel:
the size and the reuse of the images are right, taps of other rows lie closer than they do. With channels
first, k has the pitch and pixels are contiguous. Backward data multiplies with the gradients of the result in
the same way; where it is strided, only the taps that meet a pixel count. Backward weights has pixels as k.

Kernels that are no such GEMM are in ``engines`` (FFMA, channels first), ``winograd`` and ``fft``; changes of
layout and other passes over a tensor in ``relayout`` and ``passes``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Access
from pysim.workloads.library.gemms.gemm_launches import gemm_launches, split_k_sum
from pysim.workloads.library.gemms.hopper_epilogue import NVJET
from pysim.workloads.library.gemms.hopper_gemm import STEP, HopperGemm
from pysim.workloads.library.gemms.operands import after_reset, first_element
from pysim.workloads.library.gemms.staged_gemm import Order, Reduction, StagedGemm, staged_gemm
from pysim.workloads.library.gemms.staged_loop import Cost
from pysim.workloads.library.gemms.staged_tile import StagedTile, Unit
from pysim.workloads.library.gemms.told import Told, told_hopper, told_staged
from pysim.workloads.library.memset import memset

from .engines import COSTS, ENGINES, engine_gemm
from .fft import fft, fft_gemm, is_fft
from .names import tile_of, warps_of
from .passes import CONTIGUOUS, PADDED, PASSES, contiguous, elements_of, one_pass
from .relayout import relayout
from .shape import Convolution
from .winograd import is_winograd, winograd, winograd_gemm

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory
    from pysim.workloads.library.choices.choice import Problem

_CUTLASS = re.compile(
    r"cutlass_tensorop_(f16_)?s\d+(?:fprop|dgrad|wgrad)_optimized_\w*?_(\d+)x(\d+)_(\d+)x(\d+)_"
)
_WGRAD = re.compile(r"ImplicitGemmConvolution_(\d+)x(\d+)x(\d+)_(\d+)x(\d+)_(\d+)")
_ALIGN = re.compile(r"_aligna(\d+)")
EPILOGUE = 4096  # bytes of shared memory beside the stages, of kernels for wgmma
MOST_STAGES = 16
# Kernels that read pixels: each copy computes the place of a tap and whether it is inside of the image; those
# for wgmma fill tables first. Fitted (half `fit`): without, they are 2.5 us (wgmma) and 20 to 40 % short
WGMMA = replace(NVJET, begin=NVJET.begin + 4000)
FFMA_PIXELS = Cost(begin=2500, copy=14, step=30, late=130, end=200)
MMA_PIXELS = Cost(begin=2300, copy=10, step=12, late=0, end=200)
STRIDED = 9000  # cycles before the first load of a strided gradient more, fitted to the same half
BATCHED = "reduce_wgrad_nchw_helper"  # adds the gradients of filters that each image has
SUMS = ("sm90_xmma_wgrad_indexed_", "sm80_xmma_wgrad_implicit", "sm90_xmma_fprop_implicit", BATCHED)
# launches beside the main one that have templates
OTHERS = ("toNhwc", "toNchw", "init", CONTIGUOUS, *PASSES, *SUMS)
AFTER, PADS, SCALED = "toNchw", ("nhwcAddPaddingKernel",), "scalePackedTensor_kernel"
WITHOUT = "wo_smem"  # in the name: fragments are loaded to registers at once
FILLERS = 132  # TBs of what clears a tensor, an estimate: one an SM


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
    if any(name in PADS for name in names):
        conv = replace(conv, channels=-(-conv.channels // PADDED) * PADDED)
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


def _cost(told: Told, gemm: StagedGemm, conv: Convolution) -> Cost | None:
    """Return what the code of a kernel for Ampere costs; None: as a GEMM's."""
    if told.name in ENGINES:
        return COSTS[conv.direction]
    if "gemm_" in told.name and "implicit" not in told.name:
        return None
    pixels = FFMA_PIXELS if gemm.tile.unit == "ffma" else MMA_PIXELS
    return replace(pixels, begin=pixels.begin + _strided(conv))


def _strided(conv: Convolution) -> int:
    """Return cycles more before the first load: a strided gradient runs the places within a stride apart."""
    return STRIDED if conv.direction == "backward_data" and conv.stride > 1 else 0


def _main(told: Told, others: tuple[Told, ...], conv: Convolution, memory: Memory) -> list[Kernel]:
    """Return the kernel of the GEMM, with a reset of its counter before it and a sum of parts after it."""
    gemm = told_convolution(told, others, conv)
    summed = any(other.name in SUMS for other in others)
    if isinstance(gemm, HopperGemm):
        nvjet = told.name.startswith("nvjet")
        hopper = NVJET if nvjet else replace(WGMMA, begin=WGMMA.begin + _strided(conv))
        kernels, c = gemm_launches(gemm, memory, cost=hopper)
        made = list(kernels)
        if gemm.split_k > 1 and not nvjet and not summed:
            made.pop()  # TBs add the parts themselves
        if gemm.batch > 1:
            made.append(split_k_sum(c, gemm.batch, memory, conv.item)[0])
        return made
    kernel, c = staged_gemm(gemm, memory, cost=_cost(told, gemm, conv))
    if gemm.reduction == "kernel":
        return [kernel, split_k_sum(c, gemm.split_k, memory, gemm.out)[0]]
    cleared = any(other.name == SCALED for other in others)
    if gemm.reduction != "atomic" or cleared:
        return [kernel]
    fill = Told("fill", (FILLERS, 1, 1), 16, 0)
    return [one_pass(fill, c.rows * c.cols, c.item, memory, target=c.address), kernel]


def convolution(told: Told, others: tuple[Told, ...], conv: Convolution, memory: Memory) -> list[Kernel]:
    """Return the kernels of a convolution: changes of layout, the convolution, sums of parts.

    The arguments are those of :func:`told_convolution`.
    """
    if is_winograd(others):
        return winograd(told, others, conv, memory)
    if is_fft(told, others):
        return fft(told, others, conv, memory)
    made = _main(told, others, conv, memory)
    main = next(kernel for kernel in made if len(kernel.args) > 2)
    operand, result = main.args[1], made[-1].args[min(2, len(made[-1].args) - 1)]
    before, after = [], []
    seen: dict[str, int] = {}
    for other in others:
        number = seen[other.name] = seen.get(other.name, -1) + 1
        if other.name == "toNhwc":
            before.append(relayout(other, memory, conv.item, operand, reads=False))
        elif other.name == AFTER:
            after.append(relayout(other, memory, conv.item, result, reads=True))
        elif other.name == CONTIGUOUS:
            before.append(contiguous(other, conv, memory))
        elif other.name in PASSES:
            size = elements_of(other, conv, number)
            target = result.address if other.name == SCALED else None
            unpads = other.name in PADS and conv.direction == "backward_data" and number
            kernel = one_pass(other, size, conv.item, memory, target, target)
            (after if unpads else before).append(kernel)
    if any(other.name == "init" for other in others):
        # stands in for the kernel that sets up the addresses of a strided gradient
        order = memory.tensor("init", 1, 64, 4)
        before.append(memset(order))
        made = [after_reset(kernel, order) if kernel is main else kernel for kernel in made]
    kernels = [*before, *made, *after]
    plain = all(other.name in ("toNhwc", "toNchw", "init") for other in others)
    return kernels if plain else _in_order(kernels, memory)


def _in_order(kernels: list[Kernel], memory: Memory) -> list[Kernel]:
    """Return kernels of which each waits for the one before, as in a stream: by a word that it reads."""
    made, before = [], None
    for kernel in kernels:
        order = memory.tensor("order", 1, 64, 4)
        accesses = [*kernel.accesses, Access(order, "update", first_element)]
        if before is not None:
            accesses.append(Access(before, "read", first_element))
        made.append(replace(kernel, accesses=tuple(accesses)))
        before = order
    return made
