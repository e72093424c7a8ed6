"""cuDNN's convolutions by FFT: 32 x 32 tiles to 544 frequencies, a complex GEMM for each, and back.

A TB of ``fft2d_r2c_32x32`` has 16 warps and makes 16 transforms, a warp each; it stores lines of 16 values of
a frequency. ``fft2d_c2r_32x32`` reads such lines and stores what of its tiles is kept. Images larger than a
tile are cut: each piece is a pass of an r2c, a GEMM and a c2r, and passes run on two streams in turn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.gemms.staged_gemm import StagedGemm, staged_gemm
from pysim.workloads.library.gemms.staged_tile import COMPLEX, StagedTile

from .names import tile_of, warps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.workloads.library.gemms.told import Told

    from .shape import Convolution

    Ints = NDArray[np.int64]

SIDE, FREQUENCIES, EACH = 32, 32 * 17, 16  # pixels of a tile's side; values of a real one; transforms of a TB
R2C, C2R, GEMM = "fft2d_r2c_32x32", "fft2d_c2r_32x32", "sm80_xmma_gemm_cf32cf32_"
NAMES = (R2C, C2R, GEMM, "flip_filter")
# 32 rows of 32 real values and 17 columns of complex ones take 5/2 N log2 N and 5 N log2 N operations:
# 26,400, 825 of a lane. What goes through shared memory between rows and columns, and cycles of a warp
# beside: estimates from 10 us of a kernel with two TBs an SM
FLOPS, EXCHANGED, WAIT = 825, 140, 6000
ITEM = 4


def is_fft(told: Told, others: tuple[Told, ...]) -> bool:
    """Whether the kernels are those of this algorithm."""
    names = {other.name for other in others}
    return told.name.startswith(GEMM) and {R2C, C2R} <= names and names <= set(NAMES)


def fft_gemm(told: Told, others: tuple[Told, ...], conv: Convolution) -> StagedGemm:
    """Return the batch of complex GEMMs of a pass; refuse counts of kernels that do not make one."""
    r2c, c2r = (sum(other.name == name for other in others) for name in (R2C, C2R))
    more = sum(other.name == GEMM for other in others)
    weights = conv.direction == "backward_weights"
    tiles = [other.tbs * EACH for other in others if other.name == R2C]
    filters = conv.filters * conv.channels
    if weights:
        m, n, k = conv.filters, conv.channels, conv.images
        right = sorted(tiles) == sorted((m * k, n * k)) and c2r == 1 and more == 0
    else:
        m, k = conv.filters, conv.channels
        if conv.direction == "backward_data":
            m, k = k, m
        rest = [size for size in tiles if size != filters] or [filters]
        n = rest[0] // k
        right = (
            filters in tiles and c2r == more + 1 == r2c - 1 and n * k == rest[0] and set(rest) == {rest[0]}
        )
    if not right or told.grid[2] != FREQUENCIES:
        raise WorkloadError(
            f"convolution: {r2c} {R2C}, {more + 1} GEMMs and {c2r} {C2R}: no passes of a convolution"
        )
    tn, tm, deep = tile_of(told.name)
    stages, down, across = warps_of(told.name)
    tile = StagedTile(tm, tn, deep, (across, down), stages, "ffma", COMPLEX, told.registers, told.smem)
    along = "_tn_n_" in told.name
    return StagedGemm(
        m, n, k * FREQUENCIES, tile, "xmma", 8, FREQUENCIES, "kernel", COMPLEX, COMPLEX, along, not along,
        moves=(m * k * COMPLEX, n * k * COMPLEX, m * n * COMPLEX),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _program(name: str, pixels: tuple[int, int], transforms: int, registers: int, smem: int) -> Program:
    """Return a transform of ``pixels`` (rows, columns) of each tile; columns are contiguous."""
    (rows, cols), code, backward = pixels, Code(), name == C2R
    code.compute(int=60, control=6, chain=200)
    flat = max(1, rows * cols // WARP)
    real = [
        Pattern(int(backward), ITEM, base=at * WARP * ITEM, bx=EACH * rows * cols * ITEM,
                warp=rows * cols * ITEM, s0=ITEM, lanes=(1 << min(WARP, rows * cols - at * WARP)) - 1)
        for at in range(flat)
    ]  # fmt: skip
    line = transforms * COMPLEX  # of a frequency; a warp takes two of them at a time
    values = [
        Pattern(int(not backward), COMPLEX, base=at * 2 * EACH * line, bx=EACH * COMPLEX, warp=2 * line,
                s0=COMPLEX, s1=line, minor=EACH)
        for at in range(FREQUENCIES // (2 * EACH))
    ]  # fmt: skip
    for pattern in values if backward else real:
        code.compute(int=4)
        code.load(0, pattern, level=2)
    code.wait(0)
    code.delay(WAIT)
    for _ in range(2):
        code.compute(smem=EXCHANGED, smem_ops=EXCHANGED // 2, fp32=FLOPS // 2, int=FLOPS // 4, chain=60)
        code.barrier()
    for pattern in real if backward else values:
        code.compute(int=4)
        code.store(1, pattern, level=2)
    code.exit()
    return Program(name, (tuple(code.ops),), EACH, registers, smem, 2)


def _all(tbs: Ints, end: int = 1) -> tuple[Ints, Ints]:
    return 0 * tbs, 0 * tbs + end


def _transform(
    told: Told, pixels: tuple[int, int], tiles: int, frequencies: Tensor, memory: Memory
) -> Kernel:
    """Return an r2c that fills ``frequencies``, or a c2r that reads them; the last TB is taken as full."""
    tbs, size = -(-tiles // EACH), pixels[0] * pixels[1]
    image = memory.tensor("tiles", tbs * EACH, size, ITEM)
    program = _program(told.name, pixels, tbs * EACH, told.registers, told.smem)
    values = Tensor("values", FREQUENCIES, tbs * EACH, COMPLEX, frequencies.address)
    backward = told.name == C2R

    def own(numbers: Ints) -> Ints:
        return np.stack([numbers * EACH, (numbers + 1) * EACH, *_all(numbers, size)], 1)

    def columns(numbers: Ints) -> Ints:
        return np.stack([*_all(numbers, FREQUENCIES), numbers * EACH, (numbers + 1) * EACH], 1)

    accesses = (
        Access(image, "write" if backward else "read", own),
        Access(values, "read" if backward else "write", columns),
    )
    args = (values, image) if backward else (image, values)
    return Kernel(told.name, program, (tbs, 1, 1), args, accesses)


def fft(told: Told, others: tuple[Told, ...], conv: Convolution, memory: Memory) -> list[Kernel]:
    """Return the kernels: transforms of the filters (or of the images), then passes."""
    gemm = fft_gemm(told, others, conv)
    named = {other.name: other for other in others}
    passes = sum(other.name == C2R for other in others)
    weights = conv.direction == "backward_weights"
    k = gemm.k // FREQUENCIES
    image = _kept(conv.size), _kept(conv.out)
    side = max(1, round(conv.taps**0.5))
    filters, read, result = (side, conv.taps // side), *image
    if weights:
        filters, result = image[1], filters
    elif conv.direction == "backward_data":
        read, result = image[1], image[0]
    first, second = memory.tensor("A", 1, gemm.m * k * FREQUENCIES, COMPLEX), []
    made = [_transform(named[R2C], filters, gemm.m * k, first, memory)]
    for number in range(passes):
        if number < 2:  # streams have a workspace each
            b = memory.tensor("B", 1, gemm.n * k * FREQUENCIES, COMPLEX)
            second.append((b, *staged_gemm(gemm, memory, (first, b))))
        b, kernel, product = second[number % 2]
        made.append(_transform(named[R2C], read, gemm.n * k, b, memory))
        made.append(kernel)
        made.append(_transform(named[C2R], result, gemm.m * gemm.n, product, memory))
    return made


def _kept(size: tuple[int, int]) -> tuple[int, int]:
    """Return rows and columns of a tile that an image fills."""
    return min(SIDE, size[0]), min(SIDE, size[1])
