"""Convolutions of images with channels first as implicit GEMMs, with the tiles and loops of a GEMM for Volta.

C[filters, pixels] of an image = W[filters, taps x channels] X[taps x channels, pixels]: z of the grid is the
image, a TB owns ``tm`` filters and ``tn`` pixels, and its loop runs over the channels of one tap after
another. A tap moves the pixels that are read by whole rows and pixels, as far as the plane goes. Backward
data multiplies with the gradients of the result in the same way; where it is strided, the taps that meet a
pixel count, and neighbouring pixels share what they read. The gradient of the filters is a GEMM over all
pixels whose operand of images overlaps (``Weights``), K in parts.

What a TB of the first two waits for are the rows of pixels that its windows cover, of all channels. It is not
any vendor's kernel: tiles are chosen as for a GEMM of as many pixels (``gemm_choice``), and loads of pixels
are single elements but for filters of one tap. fp16 reads pixels in vectors, as if a tap moved by whole ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Program

from . import volta_gemm
from .gemm_case import Place
from .gemm_choice import candidates, choose_tiling
from .split_k_serial import LAST_X, LAST_Y
from .tiles import Tile, emit_loads, tile_ops, vector_width
from .tiling import FFMA_LATENCY, Tiling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .gemm_choice import Dtype
    from .machine_hints import MachineHints

    Ints = NDArray[np.int64]

MOST_STEPS = 65535


@dataclass(frozen=True, slots=True)
class Filtered:
    """Images of ``size`` (H, W) and ``channels`` that filters of ``side`` x ``side`` turn into ``filters``.

    ``out``: rows and columns of the result. ``data``: the gradient of the images is made, from that of the
    result.
    """

    images: int
    channels: int
    size: tuple[int, int]
    filters: int
    out: tuple[int, int]
    side: int
    stride: int
    pad: int
    data: bool = False

    @property
    def deep(self) -> int:
        """Channels of what is read beside the filters."""
        return self.filters if self.data else self.channels

    @property
    def made(self) -> int:
        """Channels of what is made."""
        return self.channels if self.data else self.filters

    @property
    def read(self) -> tuple[int, int]:
        """Rows and columns of what is read."""
        return self.out if self.data else self.size

    @property
    def result(self) -> tuple[int, int]:
        """Rows and columns of what is made."""
        return self.size if self.data else self.out

    @property
    def pixels(self) -> tuple[int, int]:
        """Pixels of a plane that is read, and of one that is made."""
        return self.read[0] * self.read[1], self.result[0] * self.result[1]

    @property
    def taps(self) -> int:
        """Taps that a pixel meets, rounded up."""
        return -(-(self.side**2) // self.stride**2) if self.data else self.side**2

    @property
    def each(self) -> int:
        """Channels of a tap, so that all taps have as many as there are multiplications."""
        if not self.data:
            return self.channels
        return max(1, -(-self.filters * self.side**2 // (self.stride**2 * self.taps)))


def _tiling(m: int, n: int, images: int, k: int, dtype: Dtype, hints: MachineHints) -> Tiling:
    """Return the tile of least estimated time, counting what TBs compute beyond the edge of a plane."""
    found = []
    for time, tile in candidates(m, n * images, k, dtype, hints, False):
        if isinstance(tile, Tiling) and tile.split_k == 1 and time < float("inf"):
            found.append((time * -(-n // tile.tn) * tile.tn / n, replace(tile, column_raster=False)))
    if not found:
        raise WorkloadError(
            f"convolution on {hints.name}: {dtype}: no tile: there are those of Volta's GEMMs"
        )
    return min(found, key=lambda pair: pair[0])[1]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a program depends on: the convolution, the tile, bytes of an element."""

    f: Filtered
    t: Tiling
    item: int

    @property
    def merged(self) -> bool:
        """Whether channels are fewer than a step is deep, so that taps are as channels."""
        return self.f.each < self.t.tk

    @property
    def taps(self) -> tuple[int, int]:
        """Taps, and k of each."""
        return (1, self.f.each * self.f.taps) if self.merged else (self.f.taps, self.f.each)

    @property
    def grid(self) -> tuple[int, int, int]:
        """TBs in x (pixels), y (filters) and z (images)."""
        return -(-self.f.pixels[1] // self.t.tn), -(-self.f.made // self.t.tm), self.f.images

    @property
    def case(self) -> volta_gemm.Case:
        """The GEMM of an image, for the epilogue."""
        taps, deep = self.taps
        m, n, k = self.f.made, self.f.pixels[1], taps * deep
        a = Place(m, down=k) if self.f.data else Place(k, down=m)
        return volta_gemm.Case(
            self.t, m, n, k, self.item, self.item, self.f.data, False, False, self.f.images,
            (a, Place(n, down=k), Place(n, down=m)),
        )  # fmt: skip

    @property
    def squared(self) -> int:
        """Pixels of the larger plane for each of the smaller one."""
        return self.f.stride**2

    def shift(self, tap: int, *, last: bool) -> int:
        """Return by how many pixels a tap moves what is read: not beyond the plane."""
        if self.merged or last:
            return 0
        side, (_, wide) = self.f.side, self.f.read
        down, right = divmod(tap * self.squared if self.f.data else tap, side)
        rest = self.f.pixels[1] - (self.grid[0] - 1) * self.t.tn  # pixels of the last TB
        slack = rest // self.squared if self.f.data else rest * self.squared
        at = min(max(0, (down - self.f.pad) * wide + right - self.f.pad), slack)
        return at // self.vector * self.vector

    @property
    def vector(self) -> int:
        """Elements of a load of pixels."""
        if self.f.stride > 1 or (self.item == 4 and self.f.taps > 1):
            return 1
        tile = Tile(1, self.f.pixels[0] * self.item, self.item, self.t.tk, self.t.tn)
        return vector_width(tile, self.t.warps) // self.item

    def tiles(self) -> tuple[Tile, Tile]:
        """Return the tiles of filters and of pixels."""
        f, t, item = self.f, self.t, self.item
        pitch = f.channels * (1 if self.merged and f.data else f.side**2) * item
        if f.data:
            filters = Tile(0, pitch, item, t.tk, t.tm, by=t.tm * item, step=t.tk * pitch)
        else:
            filters = Tile(0, pitch, item, t.tm, t.tk, by=t.tm * pitch, step=t.tk * item)
        plane, image = f.pixels[0] * item, f.deep * f.pixels[0] * item
        if self.merged:
            rows = self.taps[1]
            plane = (f.deep * f.pixels[0] - f.pixels[0]) // max(1, rows - 1) * item
        if f.data and f.stride > 1:
            cols = max(1, t.tn // self.squared)
            pixels = Tile(1, plane, item, t.tk, cols, bx=cols * item, bz=image, step=t.tk * plane)
        else:
            apart = f.stride * item
            move = t.tn * self.squared * item
            pixels = Tile(1, plane, apart, t.tk, t.tn, bx=move, bz=image, step=t.tk * plane)
        return filters, pixels


def _loads(
    code: Code,
    plan: _Plan,
    valid: tuple[int, int],
    tap: int,
    at: int,
    k: int,
    *,
    last: bool,
    level: int,
    ahead: int,
) -> None:
    """Load ``k`` of both operands from step ``at`` of a tap on."""
    f, t = plan.f, plan.t
    filters, pixels = plan.tiles()
    rows, cols = valid
    start = tap * (f.channels if f.data else plan.taps[1]) * plan.item
    of_filters = (k, rows) if f.data else (rows, k)
    a = tile_ops(filters, t.warps, vector_width(filters, t.warps), of_filters, start + at * filters.step)
    if f.data and f.stride > 1:
        cols = min(pixels.cols, -(-cols // plan.squared))
    width = plan.vector * pixels.item
    base = plan.shift(tap, last=last) * plan.item + at * pixels.step
    b = tile_ops(pixels, t.warps, width, (k, cols), base)
    each = plan.vector * plan.item
    b = [tuple(replace(p, width=each) for p in patterns) for patterns in b]
    code.mark_loads()
    for ops in (a, b):
        emit_loads(code, 0, ops, level=level, ahead=ahead)


def _variant(plan: _Plan, number: int) -> Code:
    f, t, case = plan.f, plan.t, plan.case
    gx, gy, _ = plan.grid
    last = bool(number & LAST_X)
    rows = f.made - (gy - 1) * t.tm if number & LAST_Y else t.tm
    cols = f.pixels[1] - (gx - 1) * t.tn if last else t.tn
    valid, code = (rows, cols), Code()
    taps, deep = plan.taps
    steps, rest = divmod(deep, t.tk)
    if steps > MOST_STEPS:
        raise WorkloadError(f"convolution: {steps} k-steps a tap: at most {MOST_STEPS}")
    filters, _ = plan.tiles()
    stores = volta_gemm.shared_stores(case, (vector_width(filters, t.warps), plan.vector * plan.item))
    load = partial(_loads, code, plan, valid, last=last)
    # one step after another: tap, step, k, and whether a loop repeats it from there to the end of the tap
    sizes = [t.tk] * (steps > 0) + [rest] * (rest > 0)
    code.compute(int=40 + f.taps, control=2, chain=FFMA_LATENCY + t.fetch // 2)
    load(0, 0, sizes[0], level=2, ahead=0)
    volta_gemm.stage(code, t, stores)
    for tap in range(taps):
        if steps > 1:
            mark = code.loop_begin()
            load(tap, 0, t.tk, level=0, ahead=1)
            volta_gemm.step(code, case, stores)
            code.loop_end(mark, steps - 1)
        if steps and rest:
            load(tap, steps, rest, level=2, ahead=0)
            volta_gemm.step(code, case, stores)
        size = rest or t.tk
        if tap + 1 < taps:
            load(tap + 1, 0, sizes[0], level=2, ahead=0)
        volta_gemm.multiply(code, case, size)
        if tap + 1 < taps:
            volta_gemm.stage(code, t, stores)
    code.mark_main_loop_end()
    if t.fetch:
        code.compute(int=8, chain=t.fetch - t.fetch // 2)
    volta_gemm.epilogue(code, case, valid, number)
    code.exit()
    return code


@lru_cache(maxsize=512)
def _program(plan: _Plan) -> Program:
    variants = tuple(tuple(_variant(plan, number).ops) for number in range(8))
    t = plan.t
    return Program(f"conv_{t.name}", variants, t.warps, t.registers(plan.item), t.smem(plan.item), 3)


def image_gemm(
    name: str, f: Filtered, images: Tensor, filters: Tensor, result: Tensor, dtype: Dtype, hints: MachineHints
) -> Kernel:
    """Return the kernel of a convolution, or of the gradient of its images.

    ``images``: [images * channels, pixels] of what is read, ``result`` of what is made; ``filters``:
    [filters, taps * channels]. Raises WorkloadError for a type without tiles on the machine.
    """
    t = _tiling(f.made, f.pixels[1], f.images, f.each * f.taps, dtype, hints)
    plan = _Plan(f, t, images.item)
    accesses = (
        Access(images, "read", partial(_band, plan)),
        Access(filters, "read", partial(_all, filters)),
        Access(result, "write", partial(_made, plan)),
    )
    args = (filters, images, result)
    return Kernel(
        name, _program(plan), plan.grid, args, accesses, library=stand_in(t.library), tensor=t.tensor
    )


def _place(plan: _Plan, tbs: Ints) -> tuple[Ints, Ints, Ints]:
    tbs, (gx, gy, _) = np.asarray(tbs, np.int64), plan.grid
    return tbs % gx, tbs // gx % gy, tbs // (gx * gy)


def _all(tensor: Tensor, tbs: Ints) -> Ints:
    return np.tile(np.array([0, tensor.rows, 0, tensor.cols], np.int64), (len(tbs), 1))


def _made(plan: _Plan, tbs: Ints) -> Ints:
    (x, y, z), f, t = _place(plan, tbs), plan.f, plan.t
    row, col = y * t.tm, x * t.tn
    ends = np.minimum(row + t.tm, f.made), np.minimum(col + t.tn, f.pixels[1])
    return np.stack([z * f.made + row, z * f.made + ends[0], col, ends[1]], 1)


def _band(plan: _Plan, tbs: Ints) -> Ints:
    """Return the rows of pixels under the windows of TBs, and what their programs touch beside."""
    (x, _, z), f, t = _place(plan, tbs), plan.f, plan.t
    size, wide = f.pixels[0], f.read[1]
    if plan.merged:
        zero = np.zeros_like(x)
        return np.stack([z * f.deep, (z + 1) * f.deep, zero, zero + size], 1)
    first, last = x * t.tn, np.minimum((x + 1) * t.tn, f.pixels[1]) - 1
    up, down = first // f.result[1], last // f.result[1]
    if f.data:
        top, bottom = -(-(up + f.pad - f.side + 1) // f.stride), (down + f.pad) // f.stride + 1
        begin, span = first // plan.squared, -(-t.tn // plan.squared)
    else:
        top, bottom = up * f.stride - f.pad, down * f.stride - f.pad + f.side
        begin, span = first * plan.squared, (t.tn - 1) * f.stride + 1
    most = max(plan.shift(tap, last=False) for tap in range(f.taps))
    low = np.minimum(top * wide, begin)
    high = np.maximum(bottom * wide, begin + span + most)
    return np.stack([z * f.deep, (z + 1) * f.deep, np.maximum(low, 0), np.minimum(high, size)], 1)


@dataclass(frozen=True, slots=True)
class Weights(volta_gemm.Case):
    """The gradient of filters C[filters, taps * channels] = G[filters, pixels] X[taps * channels, pixels]^T.

    ``apart``: elements from a row of X to the next, which overlap, so that all are within the images.
    """

    apart: int = 0

    def operands(self) -> tuple[Tile, Tile, Tile]:
        """Tiles of the operands; rows of X are as far apart as said."""
        a, b, c = volta_gemm.Case.operands(self)
        pitch = self.apart * self.item
        return a, replace(b, pitch=pitch, bx=self.tiling.tn * pitch), c


def filter_gradient(
    name: str,
    images: Tensor,
    gradient: Tensor,
    result: Tensor,
    f: Filtered,
    dtype: Dtype,
    hints: MachineHints,
) -> Kernel:
    """Return the kernel of the gradient of the filters, [filters, taps * channels].

    Where its K is in parts (``gemm.adds_to_c``) the result must be zero before. Each TB is taken to need all
    of both operands. Raises WorkloadError for a type without tiles on the machine.
    """
    k = f.images * f.out[0] * f.out[1]
    m, n = f.filters, f.channels * f.side**2
    tile = choose_tiling(m, n, k, dtype, b_t=True, hints=hints)
    if not isinstance(tile, Tiling):
        raise WorkloadError(
            f"convolution on {hints.name}: {dtype}: no tile: there are those of Volta's GEMMs"
        )
    t = replace(tile, column_raster=False)
    held = images.rows * images.cols
    case = Weights(
        t, m, n, k, images.item, result.item, False, True, False, apart=max(0, held - k) // max(1, n - 1)
    )
    gx, gy, gz = t.grid(m, n, k)
    views = (
        Tensor(gradient.name, 1, m * k, gradient.item, gradient.address),
        Tensor(images.name, 1, held, images.item, images.address),
    )
    mode: Mode = "update" if t.split_k > 1 else "write"
    made = case.accesses(*views, result, lambda x: x % gx, lambda x: x // gx % gy, lambda x: x // (gx * gy))[
        2
    ]
    accesses = (*(Access(view, "read", partial(_all, view)) for view in views), replace(made, mode=mode))
    return Kernel(
        name, volta_gemm.program_of(case), (gx, gy, gz), (*views, result), accesses,
        library=stand_in(t.library), tensor=t.tensor,
    )  # fmt: skip
