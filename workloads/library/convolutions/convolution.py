"""Convolutions as cuDNN runs them on an H200, as GEMMs whose operand of pixels overlaps.

With channels last, forward is C[filters, pixels] = W[filters, k] X[k, pixels], where k are channels and taps.
What a pixel reads of the images overlaps with what its neighbours read. Here a tap is as many bytes after the
one before as a pixel has channels, and a pixel as many after the one before as the images have bytes a pixel:
the size and the reuse of the images are right, taps of other rows lie closer than they do. With channels
first, k has the pitch and pixels are contiguous. Backward data multiplies with the gradients of the result in
the same way; where it is strided, only the taps that meet a pixel count. Backward weights has pixels as k.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from pysim.errors import WorkloadError
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.gemms.gemm_launches import gemm_launches, split_k_sum
from pysim.workloads.library.gemms.hopper_epilogue import NVJET
from pysim.workloads.library.gemms.hopper_gemm import STEP, HopperGemm
from pysim.workloads.library.gemms.operands import after_reset
from pysim.workloads.library.gemms.staged_gemm import Order, Reduction, StagedGemm, staged_gemm
from pysim.workloads.library.gemms.staged_loop import Cost
from pysim.workloads.library.gemms.staged_tile import StagedTile, Unit
from pysim.workloads.library.gemms.told import Told, told_hopper, told_staged
from pysim.workloads.library.memset import memset

from .relayout import relayout

if TYPE_CHECKING:
    from pysim.program.job import Kernel, Memory

Direction = Literal["forward", "backward_data", "backward_weights"]
_SIZES = re.compile(r"tilesize(\d+)x(\d+)x(\d+)")
_STAGED = re.compile(r"stage(\d+)_warpsize(\d+)x(\d+)x1")
_CUTLASS = re.compile(
    r"cutlass_tensorop_(f16_)?s\d+(?:fprop|dgrad|wgrad)_optimized_\w*?_(\d+)x(\d+)_(\d+)x(\d+)_"
)
EPILOGUE = 4096  # bytes of shared memory beside the stages, of kernels for wgmma
MOST_STAGES = 16
# Kernels that read pixels: each copy computes the place of a tap and whether it is inside of the image; those
# for wgmma fill tables first. Fitted (half `fit`): without, they are 2.5 us (wgmma) and 20 to 40 % short
WGMMA = replace(NVJET, begin=NVJET.begin + 4000)
FFMA_PIXELS = Cost(begin=2500, copy=14, step=30, late=130, end=200)
MMA_PIXELS = Cost(begin=2300, copy=10, step=12, late=0, end=200)
STRIDED = 9000  # cycles before the first load of a strided gradient more, fitted to the same half
DTYPES = ("fp16", "tf32", "fp32")
OTHERS = ("toNhwc", "toNchw", "init")  # launches beside the main one that have templates


@dataclass(frozen=True, slots=True)
class Convolution:
    """``images`` of ``size`` (H, W) and ``channels``, convolved to ``out`` (P, Q) of ``filters``.

    ``taps``: of a filter; ``stride``: product of both strides. ``item``: bytes of an element. ``last``:
    channels are contiguous.
    """

    images: int
    channels: int
    size: tuple[int, int]
    filters: int
    out: tuple[int, int]
    taps: int
    stride: int
    direction: Direction
    dtype: str
    last: bool

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive, and types without a kernel."""
        sizes = (self.images, self.channels, *self.size, self.filters, *self.out, self.taps, self.stride)
        if min(sizes) < 1 or self.dtype not in DTYPES or self.direction not in get_args(Direction):
            raise WorkloadError(
                f"convolution: sizes {', '.join(map(str, sizes))}, {self.dtype}, {self.direction}: must be"
                f" positive, one of {', '.join(DTYPES)} and of {', '.join(get_args(Direction))}"
            )

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return 2 if self.dtype == "fp16" else 4

    @property
    def pixels(self) -> int:
        """Pixels of the result of all images."""
        return self.images * self.out[0] * self.out[1]

    @property
    def inputs(self) -> int:
        """Pixels of all images."""
        return self.images * self.size[0] * self.size[1]

    @property
    def flops(self) -> float:
        """FLOP: each output has a multiply and an add for each tap and channel."""
        return 2.0 * self.pixels * self.filters * self.channels * self.taps

    @property
    def nbytes(self) -> float:
        """Bytes of images, filters and result."""
        weights = self.filters * self.channels * self.taps
        return float(self.item) * (self.inputs * self.channels + weights + self.pixels * self.filters)

    def gemm(self, last: bool) -> tuple[Problem, tuple[int, int]]:
        """Return the GEMM with channels ``last`` or first, and the pitches of A and B in bytes; 0: own."""
        if self.direction == "backward_weights":
            if not last and self.taps == 1 and self.stride == 1:
                return Problem(self.channels, self.filters, self.pixels, "T", "N", self.dtype), (0, 0)
            if not last:
                raise WorkloadError("convolution: backward weights with channels first: no template")
            return self._weights()
        back = self.direction == "backward_data"
        rows, deep = (self.channels, self.filters) if back else (self.filters, self.channels)
        pixels, others = (self.inputs, self.pixels) if back else (self.pixels, self.inputs)
        k = max(1, deep * self.taps // (self.stride if back else 1))
        held = deep * others * self.item  # bytes that are read
        overlaps = self.taps > 1 or self.stride > 1
        if last:
            pitch = -(-held // pixels // 16) * 16 if overlaps else 0
            trans_a = "N" if back else "T"
            return Problem(rows, pixels, k, trans_a, "N", self.dtype), (0, pitch)
        pitch = max(4, held // k // 4 * 4) if overlaps else 0
        return Problem(pixels, rows, k, "N", "T" if back else "N", self.dtype), (pitch, 0)

    def _weights(self) -> tuple[Problem, tuple[int, int]]:
        m = self.channels * self.taps
        held = self.inputs * self.channels * self.item
        pitch = -(-held // self.pixels // 16) * 16 if self.taps > 1 or self.stride > 1 else 0
        return Problem(m, self.filters, self.pixels, "N", "T", self.dtype), (pitch, 0)


def _tile(told: Told, swap: bool) -> tuple[int, int, int]:
    """Return the tile along m and n of our GEMM, and along k; ``swap``: the name begins with n."""
    found = _SIZES.search(told.name)
    if found is None:
        raise WorkloadError(f"convolution: no template for kernel {told.name[:60]}")
    first, second, deep = map(int, found.groups())
    return (second, first, deep) if swap else (first, second, deep)


def _hopper(told: Told, problem: Problem, pitches: tuple[int, int], item: int) -> HopperGemm:
    """Return the GEMM of a kernel for wgmma: its stages fill the shared memory."""
    m, n, _ = _tile(told, swap=True)
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
    found, warps = _CUTLASS.search(told.name), _STAGED.search(told.name)
    unit: Unit = "ffma" if "_ffma" in told.name else "mma"
    if found:
        n, m, deep, stages = (int(found[number]) for number in range(2, 6))
        shape = (2, 2) if min(m, n) * 2 > max(m, n) or max(m, n) < 256 else ((4, 1) if m > n else (1, 4))
    elif warps and int(warps[1]) > 1:
        m, n, deep = _tile(told, swap=True)
        stages, shape = int(warps[1]), (int(warps[3]), int(warps[2]))
    else:
        raise WorkloadError(f"convolution: no template for kernel {told.name[:60]}")
    if not last:
        m, n, shape = n, m, shape[::-1]
    order: Order = "xmma"
    parts = told.grid[2]
    reduction: Reduction = "" if parts == 1 else "kernel" if told.summed else "serial"
    tile = StagedTile(m, n, deep, shape, min(stages, 6), unit, item, told.registers, told.smem)
    return StagedGemm(
        m=problem.m,
        n=problem.n,
        k=problem.k,
        tile=tile,
        order=order,
        copy=16 if last else 4,
        split_k=parts,
        reduction=reduction,
        out=item,
        trans_a=problem.trans_a == "T",
        trans_b=problem.trans_b == "T",
        pitches=pitches,
    )


def told_convolution(told: Told, others: tuple[Told, ...], conv: Convolution) -> HopperGemm | StagedGemm:
    """Return the GEMM of a convolution's main kernel.

    ``others``: launches beside it, those of :func:`relayout` by ``toNhwc`` and ``toNchw``. Raises
    WorkloadError for kernels without template.
    """
    unknown = [other.name for other in others if other.name not in OTHERS]
    if unknown:
        raise WorkloadError(f"convolution: no template for kernel {unknown[0][:60]}")
    last = conv.last or "nhwc" in told.name or any(other.name == "toNhwc" for other in others)
    problem, pitches = conv.gemm(last)
    if told.name.startswith("nvjet"):
        return told_hopper(told, problem)
    if "gemm_" in told.name and "implicit" not in told.name:
        images = told if told.summed else replace(told, grid=(*told.grid[:2], 1))  # else z is images
        if told.name.startswith("sm90_xmma"):
            return _hopper(images, problem, (0, 0), conv.item)
        return told_staged(images, problem)
    if told.name.startswith("sm90_xmma"):
        return _hopper(told, problem, pitches, conv.item)
    return _staged(told, problem, pitches, conv.item, last)


def convolution(told: Told, others: tuple[Told, ...], conv: Convolution, memory: Memory) -> list[Kernel]:
    """Return the kernels of a convolution: changes of layout, the convolution, sums of parts.

    The arguments are those of :func:`told_convolution`.
    """
    gemm = told_convolution(told, others, conv)
    reads_pixels = "gemm_" not in told.name or "implicit" in told.name
    # a strided gradient runs the pixels of each place within the stride apart
    more = STRIDED if conv.direction == "backward_data" and conv.stride > 1 else 0
    if isinstance(gemm, HopperGemm):
        hopper = NVJET if told.name.startswith("nvjet") else replace(WGMMA, begin=WGMMA.begin + more)
        made = list(gemm_launches(gemm, memory, cost=hopper)[0])
        if gemm.split_k > 1 and not told.name.startswith("nvjet"):
            made.pop()  # TBs add the parts themselves
    else:
        pixels = FFMA_PIXELS if gemm.tile.unit == "ffma" else MMA_PIXELS
        cost = replace(pixels, begin=pixels.begin + more) if reads_pixels else None
        kernel, c = staged_gemm(gemm, memory, cost=cost)
        made = [kernel]
        if gemm.reduction == "kernel":
            made.append(split_k_sum(c, gemm.split_k, memory, gemm.out)[0])
    main = next(kernel for kernel in made if len(kernel.args) > 2)
    operand, result = main.args[1], made[-1].args[min(2, len(made[-1].args) - 1)]
    before = [relayout(o, memory, conv.item, operand, reads=False) for o in others if o.name == "toNhwc"]
    after = [relayout(o, memory, conv.item, result, reads=True) for o in others if o.name == "toNchw"]
    if any(other.name == "init" for other in others):
        # stands in for the kernel that sets up the addresses of a strided gradient
        order = memory.tensor("init", 1, 64, 4)
        before.append(memset(order))
        made = [after_reset(kernel, order) if kernel is main else kernel for kernel in made]
    return [*before, *made, *after]
