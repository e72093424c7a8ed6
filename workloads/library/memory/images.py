"""Kernels over images with channels first, fp32: batch normalisation with known statistics, maximum pooling.

``bn_fw_inf_1C11_kernel_NCHW`` of cuDNN: a TB takes a channel of an image, each thread every so many-th pixel,
a load, an operation and a store after another. ``max_pool_forward_nchw`` of PyTorch (native/cuda/
DilatedMaxPool2d): 256 threads, a result each, whose window is read pixel by pixel; the place of the largest
is stored, too, in 8 B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import Work, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

ITEM, INDEX = 4, 8  # bytes of a pixel, and of a place
NORM_REGISTERS, POOL_REGISTERS, POOL_THREADS = 19, 23, 256
# By reason: index and parameters of a channel, whose deviation takes a square root and a division; of a pixel
# its address and a test beside the multiplication and the sum
NORM_BEGIN, NORM_PIXEL = Work(ints=40, fp32=20, sfu=2, control=6), Work(ints=6, fp32=2, control=1)
# three divisions for the place of a result; of a pixel its address, a comparison and a test for NaN. Integers
# are fitted to the first pooling of a ResNet, 104 us on an H200 and on an H100
POOL_BEGIN, POOL_PIXEL = Work(ints=90, control=6), Work(ints=20, fp32=2, control=2)
LEAST = 64  # threads of a normalising TB; more where a channel has more pixels: as launched for ResNets
NORM_THREADS = ((3136, 512), (784, 256))


@dataclass(frozen=True, slots=True)
class Images:
    """``count`` images of ``channels``, ``height`` x ``width``; a tensor of theirs has a row a channel."""

    count: int
    channels: int
    height: int
    width: int

    @property
    def pixels(self) -> int:
        """Pixels of a channel of an image."""
        return self.height * self.width

    def tensor_of(self, tensor: Tensor, name: str) -> None:
        """Raise WorkloadError where a tensor is not these images, a row a channel of an image."""
        if (tensor.rows, tensor.cols, tensor.item) != (self.count * self.channels, self.pixels, ITEM):
            raise WorkloadError(f"{name}: {tensor.rows} x {tensor.cols} of {tensor.item} B are not {self}")


def norm_threads(pixels: int) -> int:
    """Return the threads of a TB that normalises so many pixels."""
    return next((threads for least, threads in NORM_THREADS if pixels >= least), LEAST)


def batch_norm(source: Tensor, statistics: Tensor, target: Tensor, images: Images) -> Kernel:
    """Return the kernel that normalises each channel; ``statistics``: [4, channels].

    Raises WorkloadError for tensors that are not those of the images.
    """
    images.tensor_of(source, "batch_norm")
    images.tensor_of(target, "batch_norm")
    if (statistics.rows, statistics.cols, statistics.item) != (4, images.channels, ITEM):
        raise WorkloadError(f"batch_norm: {statistics.rows} x {statistics.cols} statistics of {images}")
    channels = images.channels
    code = [_norm_code(images)]
    program = warp_specialized("batch_norm", code, None, registers=NORM_REGISTERS, smem=0, args=3)

    def own(tbs: Ints) -> Ints:
        row = np.asarray(tbs, np.int64)
        zero = np.zeros_like(row)
        return np.stack([row, row + 1, zero, zero + images.pixels], 1)

    def values(tbs: Ints) -> Ints:
        channel = np.asarray(tbs, np.int64) % channels
        zero = np.zeros_like(channel)
        return np.stack([zero, zero + 4, channel, channel + 1], 1)

    accesses = Access(source, "read", own), Access(statistics, "read", values), Access(target, "write", own)
    grid = (channels, images.count, 1)
    return Kernel("batch_norm", program, grid, (source, statistics, target), accesses)


@lru_cache(maxsize=64)
def _norm_code(images: Images) -> tuple[tuple[Op, ...], ...]:
    threads, pixels = norm_threads(images.pixels), images.pixels
    turns, rest = divmod(pixels, threads)
    plane = pixels * ITEM
    made = []
    for warp in range(threads // WARP):
        code = Code()
        for value in range(4):
            base = value * images.channels * ITEM
            code.load(0, Pattern(1, ITEM, base=base, bx=ITEM), level=2)
        code.wait(0)
        NORM_BEGIN.emit(code)

        def pixel(level: int, base: int, step: int, lanes: int, code: Code = code) -> None:
            NORM_PIXEL.emit(code)
            mask = (1 << lanes) - 1
            read = Pattern(
                0, ITEM, base=base, bx=plane, by=plane * images.channels, step=step, s0=ITEM, lanes=mask
            )
            code.load(0, read, level=level)
            code.wait(0)
            store = Pattern(
                2, ITEM, base=base, bx=plane, by=plane * images.channels, step=step, s0=ITEM, lanes=mask
            )
            code.store(1, store, level=level)

        if turns:
            mark = code.loop_begin()
            pixel(0, warp * WARP * ITEM, threads * ITEM, WARP)
            code.loop_end(mark, turns)
        lanes = min(WARP, max(0, rest - warp * WARP))
        if lanes:
            pixel(2, (turns * threads + warp * WARP) * ITEM, 0, lanes)
        code.exit()
        made.append(tuple(code.ops))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Window:
    """A square of ``side`` pixels that moves by ``stride``; ``pad`` rows and columns around an image."""

    side: int
    stride: int
    pad: int = 0

    def out(self, size: int) -> int:
        """Return places along a side of an image."""
        return (size + 2 * self.pad - self.side) // self.stride + 1


def max_pool(source: Tensor, target: Tensor, places: Tensor, images: Images, window: Window) -> Kernel:
    """Return the kernel that takes the largest pixel of each window, and its place.

    TBs of 256 results begin at the same pixels of an image again after some planes. Raises WorkloadError
    where that is never the case within the grid, and for tensors that are not those of the images.
    """
    images.tensor_of(source, "max_pool")
    high, wide = window.out(images.height), window.out(images.width)
    size, planes = high * wide, images.count * images.channels
    results = planes * size
    if (target.rows, target.cols) != (planes, size) or (places.rows * places.cols, places.item) != (
        results,
        INDEX,
    ):
        raise WorkloadError(f"max_pool: {target.rows} x {target.cols} results of {planes} x {size}")
    period = size // np.gcd(size, POOL_THREADS)  # TBs after which the pattern is the same
    group = int(period * POOL_THREADS // size)  # planes of so many TBs
    if planes % group:
        raise WorkloadError(f"max_pool: {planes} planes of {size} results: no multiple of {group}")
    code = [_pool_code(images, window, int(number), group) for number in range(int(period))]
    grid = (int(period), planes // group, 1)
    rows = np.tile(np.arange(period, dtype=np.uint32), planes // group)
    program = warp_specialized("max_pool", code, rows, registers=POOL_REGISTERS, smem=0, args=3)
    out, index, read = flat(target), flat(places), flat(source)

    def results_of(tbs: Ints) -> Ints:
        first = np.asarray(tbs, np.int64) * POOL_THREADS
        zero = np.zeros_like(first)
        return np.stack([zero, zero + 1, first, first + POOL_THREADS], 1)

    accesses = (
        Access(read, "read", partial(_pool_region, images, window)),
        Access(out, "write", results_of),
        Access(index, "write", results_of),
    )
    return Kernel("max_pool", program, grid, (read, out, index), accesses)


def _pool_region(images: Images, window: Window, tbs: Ints) -> Ints:
    """Return the pixels from the first row that a TB reads to the last."""
    wide, size = window.out(images.width), window.out(images.width) * window.out(images.height)
    first = np.asarray(tbs, np.int64) * POOL_THREADS
    last = first + POOL_THREADS - 1
    top = np.maximum(0, first % size // wide * window.stride - window.pad)
    bottom = np.minimum(images.height, last % size // wide * window.stride - window.pad + window.side)
    begin = first // size * images.pixels + top * images.width
    end = last // size * images.pixels + bottom * images.width
    zero = np.zeros_like(first)
    return np.stack([zero, zero + 1, begin, end], 1)


@lru_cache(maxsize=256)
def _pool_code(images: Images, window: Window, number: int, group: int) -> tuple[tuple[Op, ...], ...]:
    """Return the code of the TB ``number`` of those that go through ``group`` planes."""
    wide, size = window.out(images.width), window.out(images.width) * window.out(images.height)
    move = group * images.pixels * ITEM
    made = []
    for warp in range(POOL_THREADS // WARP):
        result = number * POOL_THREADS + warp * WARP + np.arange(WARP)
        row, col = (
            result % size // wide * window.stride - window.pad,
            result % wide * window.stride - window.pad,
        )
        plane = result // size * images.pixels
        code = Code()
        POOL_BEGIN.emit(code)
        for down in range(window.side):
            for right in range(window.side):
                y, x = row + down, col + right
                there = (y >= 0) & (y < images.height) & (x >= 0) & (x < images.width)
                at = np.where(there, (plane + y * images.width + x) * ITEM, 0)
                base = int(at[there].min()) if there.any() else 0
                lanes = sum(1 << lane for lane in range(WARP) if there[lane])
                offsets = tuple(int(v) - base if ok else 0 for v, ok in zip(at, there, strict=True))
                POOL_PIXEL.emit(code)
                if lanes:
                    code.load(0, Pattern(0, ITEM, base=base, by=move, offsets=offsets, lanes=lanes))
                    code.wait(0)
        first = number * POOL_THREADS + warp * WARP
        for arg, item in ((1, ITEM), (2, INDEX)):
            code.store(1, Pattern(arg, item, base=first * item, by=group * size * item, s0=item))
        code.exit()
        made.append(tuple(code.ops))
    return tuple(made)
