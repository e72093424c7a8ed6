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

from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.captured import in_order
from pysim.workloads.library.gemms.cutlass_sum import cutlass_sum
from pysim.workloads.library.gemms.gemm_launches import gemm_launches, split_k_sum
from pysim.workloads.library.gemms.hopper_epilogue import NVJET
from pysim.workloads.library.gemms.hopper_gemm import HopperGemm
from pysim.workloads.library.gemms.operands import after_reset
from pysim.workloads.library.gemms.staged_gemm import StagedGemm, staged_gemm
from pysim.workloads.library.gemms.staged_loop import Cost
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.hopper import SMS
from pysim.workloads.library.memory.pointwise_parts import whole
from pysim.workloads.library.memset import memset

from .chooser import choose_convolution
from .engines import COSTS, ENGINES
from .fft import fft, is_fft
from .passes import CONTIGUOUS, PASSES, contiguous, elements_of, one_pass
from .relayout import relayout
from .shape import Convolution
from .told_gemm import PADS, SUMS, WITHOUT, has_cutlass_sum, told_convolution
from .winograd import is_winograd, winograd

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pysim.program.job import Kernel, Memory

# Kernels that read pixels: each copy computes the place of a tap and whether it is inside of the image; those
# for wgmma fill tables first. Fitted (half `fit`): without, they are 2.5 us (wgmma) and 20 to 40 % short
WGMMA = replace(NVJET, begin=NVJET.begin + 4000)
FFMA_PIXELS = Cost(begin=2500, copy=14, step=30, late=130, end=200)
MMA_PIXELS = Cost(begin=2300, copy=10, step=12, late=0, end=200)
# k is pixels, divided for each copy: of 20 and 40 the better on 3 rows (half `fit`)
MMA_WGRAD = Cost(begin=2300, copy=40, step=12, late=0, end=200)
# fragments without shared memory: 2 and 5 for a copy made no difference on 7 rows (half `fit`)
WITHOUT_PIXELS = Cost(begin=2300, copy=5, step=12, late=0, end=200)
STRIDED = 9000  # cycles before the first load of a strided gradient more, fitted to the same half
AFTER, SCALED = "toNchw", "scalePackedTensor_kernel"
FILLERS = SMS  # TBs of what clears a tensor, an estimate: one an SM


def _cost(told: Told, gemm: StagedGemm, conv: Convolution) -> Cost | None:
    """Return what the code of a kernel for Ampere costs; None: as a GEMM's."""
    if told.name in ENGINES:
        return COSTS[conv.direction]
    if "gemm_" in told.name and "implicit" not in told.name:
        return None
    if WITHOUT in told.name:
        return WITHOUT_PIXELS
    pixels = FFMA_PIXELS if gemm.tile.unit == "ffma" else MMA_PIXELS
    if has_cutlass_sum(told):
        pixels = MMA_WGRAD
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
        if has_cutlass_sum(told):  # all rows of the sweep have a memset
            return [
                memset(memory.tensor("turns", 1, 64, 4)),
                kernel,
                cutlass_sum(c, gemm.split_k, memory, gemm.out)[0],
            ]
        return [kernel, split_k_sum(c, gemm.split_k, memory, gemm.out)[0]]
    cleared = any(other.name == SCALED for other in others)
    if gemm.reduction != "atomic" or cleared:
        return [kernel]
    fill = Told("fill", (FILLERS, 1, 1), 16, 0)
    return [one_pass(fill, c.rows * c.cols, c.item, memory, target=c.address), kernel]


def convolution(
    told: Told | None, others: tuple[Told, ...], conv: Convolution, memory: Memory
) -> list[Kernel]:
    """Return the kernels of a convolution: changes of layout, the convolution, sums of parts.

    Dependences are those of whole kernels. The arguments are those of :func:`told_convolution`; ``told``
    None: as ``choose_convolution`` predicts.
    """
    if not isinstance(conv, Convolution):
        raise WorkloadError(f"convolution: conv = {type(conv).__name__}: must be a Convolution")
    if not isinstance(others, tuple):
        raise WorkloadError(f"convolution: others = {type(others).__name__}: must be a tuple of Told")
    if told is None:
        if others:
            raise WorkloadError("convolution: kernels beside one that is not told: tell it, too")
        told, others = choose_convolution(conv)
    for each in (told, *others):
        if not isinstance(each, Told):
            raise WorkloadError(f"convolution: launch = {type(each).__name__}: must be Told")
    if is_winograd(others):
        return _coarse(in_order(winograd(told, others, conv, memory), memory))
    if is_fft(told, others):
        return _coarse(fft(told, others, conv, memory))
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
    return _coarse(in_order([*before, *made, *after], memory))


def _coarse(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Return the kernels, each TB of which may touch all that its kernel touches.

    Where a TB's pixels are in memory is not known: edges between single TBs would not be those of the kernel.
    """
    return [
        replace(kernel, accesses=tuple(whole(access.tensor, access.mode) for access in kernel.accesses))
        for kernel in kernels
    ]
