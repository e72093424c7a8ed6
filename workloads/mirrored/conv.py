"""Direct 3 x 3 convolution, NCHW, padding 1: 16 x 16 pixels and 8 output channels a TB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Memory
from pysim.program.warp_program import Pattern

from .blocks.convolution import CONV
from .code import Launch, Warp, launch
from .lanes import always, lane_pattern, mask
from .stream import WARPS, positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIXELS = 16  # of a side of the tile
HALO = PIXELS + 2
KERNELS = 8  # output channels of a TB
TAPS = 9


class _Shape:
    """Sizes of one convolution and the position of one tile in it."""

    def __init__(self, channels: int, size: int, kernels: int, tile: tuple[int, int]) -> None:
        """Sizes in elements; ``tile`` is the first row and column of the tile."""
        self.channels, self.size, self.kernels = channels, size, kernels
        self.y, self.x = tile
        self.plane = 4 * size * size

    def halo(self, warp: int, turn: int) -> Pattern | None:
        """Read the warp's part of the tile with its halo; None: no lane reads."""
        offsets: list[int | None] = []
        for lane in range(32):
            i = 256 * turn + 32 * warp + lane
            y, x = self.y + i // HALO - 1, self.x + i % HALO - 1
            inside = i < HALO * HALO and 0 <= y < self.size and 0 <= x < self.size
            offsets.append(4 * (y * self.size + x) if inside else None)
        if all(at is None for at in offsets):
            return None
        base = Pattern(0, 4, bz=self.channels * self.plane, step=self.plane)
        return lane_pattern(base, offsets)

    def weights(self, warp: int) -> Pattern:
        """Read the taps of one input channel: 72 threads, 9 taps of each of 8 kernels."""
        offsets: list[int | None] = []
        for lane in range(32):
            i = 32 * warp + lane
            inside = i < TAPS * KERNELS
            offsets.append(4 * (i // TAPS * self.channels * TAPS + i % TAPS) if inside else None)
        pitch = 4 * TAPS * self.channels
        return lane_pattern(Pattern(1, 4, by=KERNELS * pitch, step=4 * TAPS), offsets)

    def pixels(self, warp: int) -> list[int | None]:
        """Where the lanes of a warp store, two rows of the tile; None: outside of the image."""
        made: list[int | None] = []
        for lane in range(32):
            y, x = self.y + 2 * warp + lane // PIXELS, self.x + lane % PIXELS
            made.append(4 * (y * self.size + x) if y < self.size and x < self.size else None)
        return made


def _load(w: Warp, shape: _Shape, warp: int, turn: int, name: str) -> None:
    """Add one round of the loop that loads the tile."""
    at = shape.halo(warp, turn)
    if at is None:
        w.run(CONV[f"{name}_off"])
        return
    w.run(CONV[name], always(at), level=0)
    if at.lanes != mask(min(32, HALO * HALO - 256 * turn - 32 * warp)):
        w.mix(cbu=1)  # lanes without a pixel reach the end of the branch on their own


def _warp(shape: _Shape, warp: int) -> Warp:
    w = Warp()
    w.run(CONV["head"])
    w.run(CONV["setup"])
    mark = w.begin()
    w.run(CONV["chan"])
    _load(w, shape, warp, 0, "first")
    more = HALO * HALO - 256 - 32 * warp  # threads with a second element
    if more > 0:
        _load(w, shape, warp, 1, "second")
    w.run(CONV["load_end"])
    if 0 < more < 32:
        w.mix(cbu=1)
    taps = shape.weights(warp)
    w.run(CONV["weights"], always(taps), level=0)
    w.run(CONV["math"])
    w.end(mark, shape.channels)
    pixels = shape.pixels(warp)
    if all(at is None for at in pixels):
        w.run(CONV["tail_off"])
        return w
    w.run(CONV["tail"])

    def store(name: str, _offset: int) -> tuple[Pattern, ...]:
        by, bz = KERNELS * shape.plane, shape.kernels * shape.plane
        return (lane_pattern(Pattern(2, 4, base=int(name) * shape.plane, by=by, bz=bz), pixels),)

    w.run(CONV["store"], store)
    return w


def conv3x3_direct(n: int = 8, c: int = 64, size: int = 56, k: int = 64) -> Launch:
    """Convolve ``n`` images of ``c`` channels of ``size`` x ``size`` pixels with ``k`` kernels."""
    positive("conv3x3_direct", N=n, C=c, size=size, K=k)
    if k % KERNELS:
        raise WorkloadError(f"conv3x3_direct: K = {k}: must be a multiple of {KERNELS}")
    memory = Memory()
    source = memory.tensor("in", n * c, size * size, 4)
    weights = memory.tensor("w", k, c * TAPS, 4)
    target = memory.tensor("out", n * k, size * size, 4)
    across = -(-size // PIXELS)
    tiles = across * across
    code = []
    for tile in range(tiles):
        corner = tile // across * PIXELS, tile % across * PIXELS
        code.append([_warp(_Shape(c, size, k, corner), warp) for warp in range(WARPS)])
    grid = (tiles, k // KERNELS, n)
    tb = np.arange(grid[0] * grid[1] * grid[2], dtype=np.int64)

    def image(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) // (grid[0] * grid[1]) * c
        y = np.asarray(tbs, np.int64) % tiles // across * PIXELS
        top, bottom = np.maximum(y - 1, 0), np.minimum(y + PIXELS + 1, size)
        return np.stack([first, first + c, top * size, bottom * size], axis=1)

    def taps(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) // grid[0] % grid[1] * KERNELS
        return np.stack([first, first + KERNELS, first * 0, first * 0 + c * TAPS], axis=1)

    def planes(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) // grid[0] * KERNELS
        y = np.asarray(tbs, np.int64) % tiles // across * PIXELS
        return np.stack([first, first + KERNELS, y * size, np.minimum(y + PIXELS, size) * size], axis=1)

    accesses = (
        Access(source, "read", image),
        Access(weights, "read", taps),
        Access(target, "update" if across > 1 else "write", planes),
    )
    return launch(
        "conv3x3_direct", grid, code, tb % tiles, (source, weights, target), accesses,
        warps=WARPS, registers=56, smem=4 * (HALO * HALO + KERNELS * TAPS),
    )  # fmt: skip
