"""cuDNN's direct convolutions with FFMA, channels first: GEMMs whose operands are made as they are loaded.

A TB of 64 threads (256 of ``precomputed``) keeps one tile of 8 deep in shared memory, which says its size:
8 x (rows + columns + 8) x 4 B. Forward (``implicit_convolve_sgemm``) stores C[pixels, filters]. Backward data
(``dgrad_engine``) multiplies the filters with the gradients of an image, C[pixels of the result, channels x
taps], and adds each result to the pixel that it belongs to by a reduction in L2; images are z of the grid.
Backward weights (``wgrad_alg0_engine``) adds parts of the pixels, z of the grid, to the gradient of the filters
by reductions. ``wgrad_alg1_engine`` has one part. Before the reductions something clears their target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.workloads.library.gemms.staged_gemm import StagedGemm
from pysim.workloads.library.gemms.staged_loop import Cost
from pysim.workloads.library.gemms.staged_tile import StagedTile

if TYPE_CHECKING:
    from pysim.workloads.library.gemms.told import Told

    from .shape import Convolution

DEEP, PAD = 8, 8  # k of a step; columns of shared memory beside the tile's


ENGINES = {
    "implicit_convolve_sgemm": "forward",
    "precomputed_convolve_sgemm": "forward",
    "dgrad_engine": "backward_data",
    "wgrad_alg0_engine": "backward_weights",
    "wgrad_alg1_engine": "backward_weights",
}
# tile by shared memory: along pixels (backward data: channels x taps; backward weights: the same), then along the
# other side; warps of both
TILES = {2304: ((32, 32), (2, 1)), 3328: ((64, 32), (2, 1)), 6400: ((64, 128), (2, 4))}
# An element is a load of its own. Forward and backward weights divide its address out of k and pixel, and check
# its bounds; backward data does so for each reduction. Fitted to half `fit`
COSTS = {
    "forward": Cost(begin=2500, copy=20, step=30, late=0, end=200),
    "backward_data": Cost(begin=2500, copy=10, step=30, late=0, end=200, reduce=20),
    "backward_weights": Cost(begin=2500, copy=17, step=30, late=0, end=200, reduce=10),
}


def engine_gemm(told: Told, conv: Convolution) -> StagedGemm:
    """Return the GEMM of a direct kernel; refuse one whose grid or direction is not that of the convolution."""
    direction, item = ENGINES[told.name], conv.item
    if told.smem not in TILES:
        raise WorkloadError(
            f"convolution: {told.name} with {told.smem} B of shared memory: must be {', '.join(map(str, TILES))}"
        )
    (tm, tn), warps = TILES[told.smem]
    back = direction == "backward_data"
    if back:
        tm, tn, warps = tn, tm, warps[::-1]
    pixels, deep = conv.out[0] * conv.out[1], conv.channels * conv.taps
    tile = StagedTile(tm, tn, DEEP, warps, 1, "ffma", item, told.registers, told.smem)
    rows, cols, parts = conv.pixels, conv.filters, 1
    if back:
        rows, cols, parts = pixels, deep, conv.images
    elif direction == "backward_weights":
        rows, parts = deep, told.grid[2]
    tiles = -(-rows // tm), -(-cols // tn)
    wanted = (*(tiles[::-1] if back else tiles), parts)
    if direction != conv.direction or told.grid != wanted:
        raise WorkloadError(
            f"convolution: {told.name} of grid {'x'.join(map(str, told.grid))}: must be {direction},"
            f" {'x'.join(map(str, wanted))}"
        )
    if direction == "forward":
        problem, pitches = conv.gemm(last=False)
        return StagedGemm(rows, cols, problem.k, tile, "rows", item, out=item, trans_a=False, pitches=pitches)
    image = conv.channels * conv.size[0] * conv.size[1] * item
    if back:
        # gradients: filters x pixels an image; filters: filters x (channels, taps); results overlap
        moves = conv.filters * pixels * item, 0, image
        return StagedGemm(
            rows, cols, conv.filters * parts, tile, "xmma", item, parts, *_added(parts, item), False, True,
            moves=moves, pitch_c=_within(image, cols, item), apart=round(conv.stride**0.5),
        )  # fmt: skip
    depth = -(-conv.pixels // parts)
    held = image * conv.images // parts  # bytes of the images that a part reads
    pitch = _within(held, rows, item)
    moves = pitch * rows, cols * depth * item, 0
    return StagedGemm(
        rows, cols, depth * parts, tile, "rows", item, parts, *_added(parts, item), True, False,
        pitches=(pitch, 0), moves=moves,
    )  # fmt: skip


def _added(parts: int, item: int) -> tuple[str, int, int]:
    """Return how parts are added, bytes of their elements and of a result's."""
    return ("atomic" if parts > 1 else ""), 4, item


def _within(held: int, rows: int, item: int) -> int:
    """Return the pitch of rows that overlap within so many bytes."""
    return max(item, held // rows // item * item)
