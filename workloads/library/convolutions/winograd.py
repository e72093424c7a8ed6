"""cuDNN's Winograd gradient of 3 x 3 filters, in four kernels: F(3 x 3, 4 x 4), 6 x 6 values a tile.

``winogradWgradData4x4`` makes 36 values of each 6 x 6 patch of the images, ``winogradWgradDelta4x4`` of each
4 x 4 tile of the gradients of the result; a batch of 36 GEMMs sums over tiles and images; and
``winogradWgradOutput4x4`` turns 36 values of a filter and channel into 9. A TB of the first two takes 2 x 4
tiles of 32 channels: that and the grids are those of the sweep, and so is the shared memory.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.gemms.staged_gemm import staged_gemm
from pysim.workloads.library.gemms.told import told_staged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.workloads.library.gemms.staged_gemm import StagedGemm
    from pysim.workloads.library.gemms.told import Told

    from .shape import Convolution

    Ints = NDArray[np.int64]

VALUES, TAPS, SIDE = 36, 9, 4  # of a tile, of a filter; pixels of the result along a side of a tile
DOWN, ACROSS, WARPS = 2, 4, 8  # tiles of a TB, one a warp; lanes are channels
# Additions of B^T d B for a 6 x 6 patch, of G g G^T for a 4 x 4 tile, and of A^T m A (6 x 6 to 3 x 3),
# counted from the matrices of F(3, 4) with common terms shared
ADDS = {"winogradWgradData4x4": 144, "winogradWgradDelta4x4": 100, "winogradWgradOutput4x4": 108}
PATCH = {"winogradWgradData4x4": 2, "winogradWgradDelta4x4": 0}  # pixels of a patch beside its tile's
OUTPUT = "winogradWgradOutput4x4"
BEGIN, INTS = 800, 8  # cycles before the first load; instructions of a load or store: estimates
ITEM = 4


def is_winograd(others: tuple[Told, ...]) -> bool:
    """Whether the launches beside the main one are those of this algorithm."""
    return {other.name for other in others} == set(ADDS)


def _blocks(conv: Convolution) -> tuple[int, int, int]:
    """Return tiles of an image, TBs that take them, and tiles of a TB at most."""
    down, across = (-(-side // SIDE) for side in conv.out)
    blocks = -(-down // DOWN) * -(-across // ACROSS)
    return down * across, blocks, min(WARPS, -(-down * across // blocks))


def winograd_grid(name: str, conv: Convolution) -> tuple[int, int, int]:
    """Return the grid of one of the transforms."""
    _, blocks, _ = _blocks(conv)
    if name == OUTPUT:
        return -(-conv.channels // WARP), -(-conv.filters // WARPS), 1
    channels = conv.channels if name == "winogradWgradData4x4" else conv.filters
    return blocks * -(-channels // WARP), conv.images, 1


def winograd_gemm(told: Told, others: tuple[Told, ...], conv: Convolution) -> StagedGemm:
    """Return the batch of 36 GEMMs C[channels, filters]; refuse other passes, filters and grids."""
    _, blocks, each = _blocks(conv)
    right = conv.direction == "backward_weights" and conv.taps == TAPS and conv.stride == 1 and conv.item == 4
    right = right and all(other.grid == winograd_grid(other.name, conv) for other in others)
    if not right or told.grid[2] != VALUES:
        raise WorkloadError(
            f"convolution: Winograd of {conv.direction}, {conv.taps} taps, stride {conv.stride}: must be the"
            f" gradient of 3 x 3 filters in {VALUES} GEMMs on the grids of the sweep"
        )
    deep = blocks * each * conv.images
    gemm = told_staged(replace(told, grid=(*told.grid[:2], 1)), conv.gemm(last=True)[0])
    m, n = conv.channels, conv.filters
    return replace(
        gemm, m=m, n=n, k=deep * VALUES, split_k=VALUES, reduction="kernel", trans_a=False, trans_b=True,
        moves=(deep * m * ITEM, deep * n * ITEM, m * n * ITEM), out=ITEM,
    )  # fmt: skip


@lru_cache(maxsize=64)
def _to_values(name: str, shape: tuple[int, int], channels: int, deep: int, blocks: int, each: int,
               registers: int, smem: int) -> Program:  # fmt: skip
    """Each warp loads four channels of the TB's patch, then makes the 36 values of its tile."""
    height, width = shape
    plane, code = height * width, Code()
    high = min(height, DOWN * SIDE + PATCH[name])
    wide = min(width, ACROSS * SIDE + PATCH[name])
    apart = _apart(height, width, high, wide, blocks) * ITEM
    code.compute(int=40, control=4, chain=BEGIN)
    lanes = (1 << min(wide, WARP)) - 1
    where: dict[str, Any] = {"bx": apart, "by": WARP * plane * ITEM, "bz": channels * plane * ITEM}
    for channel in range(min(WARP, channels) // WARPS or 1):
        for row in range(high):
            code.compute(int=INTS)
            base = (channel * WARPS * plane + row * width) * ITEM
            code.load(
                0, Pattern(0, ITEM, base=base, warp=plane * ITEM, s0=ITEM, lanes=lanes, **where), level=2
            )
    code.wait(0)
    code.compute(smem=high * 4, smem_ops=high * 4, chain=30)
    code.barrier()
    side = SIDE + PATCH[name]
    code.compute(smem=side * side, smem_ops=side * side, fp32=ADDS[name], chain=60)
    line = channels * ITEM
    tiles: dict[str, Any] = {"bx": each * line, "by": WARP * ITEM, "bz": blocks * each * line}
    for value in range(VALUES):
        code.compute(int=2)
        patterns = [
            Pattern(1, ITEM, base=value * deep * line + min(warp, each - 1) * line, s0=ITEM,
                    lanes=((1 << min(WARP, channels)) - 1) if warp < each else 0, **tiles)
            for warp in range(WARPS)
        ]  # fmt: skip
        code.store(1, *patterns, level=2)
    code.exit()
    return Program(name, (tuple(code.ops),), WARPS, registers, smem, 2)


def _apart(height: int, width: int, high: int, wide: int, blocks: int) -> int:
    """Return the elements from the patch of a TB to the next, so that the last ends with the image."""
    span = (high - 1) * width + wide
    return max(0, height * width - span) // max(1, blocks - 1)


def _patches(first: int, images: int, rows: int, span: int, apart: int, blocks: int, groups: int,
             tbs: Ints) -> Ints:  # fmt: skip
    """Return rows (planes of channels) and elements of them that TBs load."""
    x, y, z = tbs % blocks, tbs // blocks % groups, tbs // (blocks * groups)
    begin = z * rows + y * WARP
    return np.stack([begin, np.minimum(begin + WARP, (z + 1) * rows), x * apart, x * apart + span], 1)


def _lines(value: int, deep: int, channels: int, each: int, blocks: int, groups: int, tbs: Ints) -> Ints:
    """Return tiles and channels of one of the 36 planes that TBs store."""
    x, y, z = tbs % blocks, tbs // blocks % groups, tbs // (blocks * groups)
    tile = value * deep + (z * blocks + x) * each
    return np.stack([tile, tile + each, y * WARP, np.minimum((y + 1) * WARP, channels)], 1)


def _transform(told: Told, conv: Convolution, memory: Memory, values: Tensor) -> Kernel:
    """Return the kernel that fills ``values``, one of the operands of the GEMMs."""
    data = told.name == "winogradWgradData4x4"
    (height, width), channels = (conv.size, conv.channels) if data else (conv.out, conv.filters)
    _, blocks, each = _blocks(conv)
    groups, deep = -(-channels // WARP), blocks * each * conv.images
    source = memory.tensor("images" if data else "gradients", conv.images * channels, height * width, ITEM)
    planes = Tensor("values", VALUES * deep, channels, ITEM, values.address)
    program = _to_values(told.name, (height, width), channels, deep, blocks, each, told.registers,
                         told.smem)  # fmt: skip
    high = min(height, DOWN * SIDE + PATCH[told.name])
    wide = min(width, ACROSS * SIDE + PATCH[told.name], WARP)
    apart = _apart(height, width, high, min(width, ACROSS * SIDE + PATCH[told.name]), blocks)
    span = (high - 1) * width + wide
    reads = partial(_patches, 0, conv.images, channels, span, apart, blocks, groups)
    accesses = [Access(source, "read", reads)]
    accesses += [
        Access(planes, "write", partial(_lines, value, deep, channels, each, blocks, groups))
        for value in range(VALUES)
    ]
    grid = blocks, groups, conv.images
    return Kernel(told.name, program, grid, (source, planes), tuple(accesses))


def _result(told: Told, conv: Convolution, memory: Memory, products: Tensor) -> Kernel:
    """Return the kernel that makes the 9 taps of 8 filters and 32 channels, a filter a warp."""
    filters, channels = conv.filters, conv.channels
    taps = memory.tensor("filters", filters, channels * TAPS, ITEM)
    planes = Tensor("values", VALUES * filters, channels, ITEM, products.address)
    grid = told.grid
    if channels % WARP or filters % WARPS:
        raise WorkloadError(
            f"convolution: {told.name} of grid {'x'.join(map(str, told.grid))}: must be {channels} channels"
            f" and {filters} filters in TBs of {WARP} x {WARPS}"
        )
    line, code = channels * ITEM, Code()
    code.compute(int=40, control=4, chain=BEGIN)
    where: dict[str, Any] = {"bx": WARP * ITEM, "by": WARPS * line, "warp": line}
    for value in range(VALUES):
        code.compute(int=2)
        code.load(0, Pattern(0, ITEM, base=value * filters * line, s0=ITEM, **where), level=2)
    code.wait(0)
    code.compute(fp32=ADDS[OUTPUT], chain=60)
    code.compute(smem=TAPS, smem_ops=TAPS, chain=30)
    code.barrier()
    code.compute(smem=TAPS, smem_ops=TAPS, chain=30)
    to: dict[str, Any] = {"bx": WARP * TAPS * ITEM, "by": WARPS * line * TAPS, "warp": line * TAPS}
    for tap in range(TAPS):
        code.compute(int=INTS)
        code.store(1, Pattern(1, ITEM, base=tap * WARP * ITEM, s0=ITEM, **to), level=2)
    code.exit()
    program = Program(told.name, (tuple(code.ops),), WARPS, told.registers, told.smem, 2)

    def block(first: int, wide: int, tbs: Ints) -> Ints:
        x, y = tbs % grid[0], tbs // grid[0]
        row = first + y * WARPS
        return np.stack([row, row + WARPS, x * WARP * wide, (x + 1) * WARP * wide], 1)

    accesses = [Access(planes, "read", partial(block, value * filters, 1)) for value in range(VALUES)]
    accesses.append(Access(taps, "write", partial(block, 0, TAPS)))
    return Kernel(told.name, program, grid, (planes, taps), tuple(accesses))


def winograd(told: Told, others: tuple[Told, ...], conv: Convolution, memory: Memory) -> list[Kernel]:
    """Return the four kernels in their order."""
    gemm = winograd_gemm(told, others, conv)
    kernel, products = staged_gemm(gemm, memory)
    named = {other.name: other for other in others}
    before = [_transform(named[name], conv, memory, kernel.args[number]) for number, name in enumerate(PATCH)]
    return [*before, kernel, _result(named[OUTPUT], conv, memory, products)]
