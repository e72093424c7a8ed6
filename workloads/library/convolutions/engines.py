"""cuDNN's direct convolutions with FFMA, channels first: GEMMs whose operands are made as they are loaded.

A TB of 64 threads (256 of ``precomputed``) keeps one tile of 8 deep in shared memory, which says its size:
8 x (rows + columns + 8) x 4 B. Forward (``implicit_convolve_sgemm``) stores C[pixels, filters]. Backward data
(``dgrad_engine``) multiplies the filters with the gradients of an image, C[pixels of the result, channels x
taps], and adds each result to the pixel that it belongs to by a reduction in L2; images are z of the grid.
Backward weights (``wgrad_alg0_engine``) adds parts of the pixels, z of the grid, to the gradient of the
filters by reductions. ``wgrad_alg1_engine`` has one part. Something clears their target before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.gemms.staged_gemm import Reduction, StagedGemm
from pysim.workloads.library.gemms.staged_loop import Cost
from pysim.workloads.library.gemms.staged_tile import StagedTile

if TYPE_CHECKING:
    from pysim.workloads.library.gemms.told import Told

    from .shape import Convolution

DEEP, PART = 8, 512  # k of a step; pixels of a part


ENGINES = {
    "implicit_convolve_sgemm": "forward",
    "precomputed_convolve_sgemm": "forward",
    "dgrad_engine": "backward_data",
    "wgrad_alg0_engine": "backward_weights",
    "wgrad_alg1_engine": "backward_weights",
}
# tile by shared memory: along pixels (backward: along channels x taps), then along the other side; warps
TILES = {2304: ((32, 32), (2, 1)), 3328: ((64, 32), (2, 1)), 6400: ((64, 128), (2, 4))}
# An element is a load of its own. Forward and backward weights divide its address out of k and pixel, and
# check its bounds; backward data does so for each reduction. Fitted to half `fit`
COSTS = {
    "forward": Cost(begin=2500, copy=20, step=30, late=0, end=200),
    "backward_data": Cost(begin=2500, copy=9, step=30, late=0, end=200, reduce=40),
    "backward_weights": Cost(begin=2500, copy=19, step=30, late=0, end=200, reduce=10),
}


def _sides(told: Told, conv: Convolution) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Return the tile along m and n, its warps, and m and n of a part."""
    if told.smem not in TILES:
        raise WorkloadError(
            f"convolution: {told.name} with {told.smem} B of shared memory: must be"
            f" {', '.join(map(str, TILES))}"
        )
    tile, warps = TILES[told.smem]
    deep = conv.channels * conv.taps
    if ENGINES[told.name] == "backward_data":
        return tile[::-1], warps[::-1], (conv.out[0] * conv.out[1], deep)
    return tile, warps, (conv.pixels if conv.direction == "forward" else deep, conv.filters)


def engine_grid(told: Told, conv: Convolution) -> tuple[int, int, int]:
    """Return the grid that the kernel has for a convolution; parts of backward weights have 512 pixels."""
    (tm, tn), _, (rows, cols) = _sides(told, conv)
    tiles = -(-rows // tm), -(-cols // tn)
    if ENGINES[told.name] == "backward_data":
        return *tiles[::-1], conv.images
    if told.name == "wgrad_alg0_engine":
        return *tiles, conv.images * -(-conv.out[0] * conv.out[1] // PART)
    return *tiles, 1


def engine_gemm(told: Told, conv: Convolution) -> StagedGemm:
    """Return the GEMM of a direct kernel; refuse one of another grid or direction."""
    direction, item = ENGINES[told.name], conv.item
    if direction != conv.direction or told.grid != engine_grid(told, conv):
        raise WorkloadError(
            f"convolution: {told.name} of grid {'x'.join(map(str, told.grid))}: must be {direction},"
            f" {'x'.join(map(str, engine_grid(told, conv)))}"
        )
    (tm, tn), warps, (rows, cols) = _sides(told, conv)
    pixels, parts = conv.out[0] * conv.out[1], told.grid[2]
    tile = StagedTile(tm, tn, DEEP, warps, 1, "ffma", item, told.registers, told.smem)
    if direction == "forward":
        problem, pitches = conv.gemm(last=False)
        return StagedGemm(rows, cols, problem.k, tile, "rows", item, out=item, trans_a=False, pitches=pitches)
    image = conv.channels * conv.size[0] * conv.size[1] * item
    if direction == "backward_data":
        # gradients: filters x pixels an image; filters: filters x (channels, taps). Results overlap: those of
        # a channel's taps within as many rows of the image as the filter has
        side = min(conv.size[0], round(conv.taps**0.5))
        spread = ((conv.channels - 1) * conv.size[0] + side) * conv.size[1] * item
        moves = conv.filters * pixels * item, 0, image
        return StagedGemm(
            rows, cols, conv.filters * parts, tile, "xmma", item, parts, *_added(parts, item), False, True,
            moves=moves, pitch_c=_within(spread, cols, item), apart=round(conv.stride**0.5),
        )  # fmt: skip
    depth = -(-conv.pixels // parts)
    held = image * conv.images // parts  # bytes of the images that a part reads
    pitch = _within(held, rows, item)
    moves = pitch * rows, cols * depth * item, 0
    return StagedGemm(
        rows, cols, depth * parts, tile, "rows", item, parts, *_added(parts, item), True, False,
        pitches=(pitch, 0), moves=moves,
    )  # fmt: skip


def _added(parts: int, item: int) -> tuple[Reduction, int, int]:
    """Return how parts are added, bytes of their elements and of a result's."""
    return ("atomic" if parts > 1 else ""), 4, item


def _within(held: int, rows: int, item: int) -> int:
    """Return the pitch of rows that overlap within so many bytes."""
    return max(item, held // rows // item * item)
