"""A kernel whose TBs read and write rectangles of matrices at positions that are affine in x and y.

Nothing is cut at an edge: matrices are as large as grid and halo need, so all TBs run one list of ops and the
footprint of each is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Affine, Code, Pattern, Program, TensorTile
from pysim.workloads.kernels.tiles import WARP, Tile, emit_loads, tile_ops

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDEST = 16  # bytes a lane
_FIRST = Affine()


@dataclass(frozen=True, slots=True)
class Block:
    """A ``rows`` x ``cols`` rectangle of a tensor, at ``row`` and ``col`` (elements; ``Affine.bx``, ``by``).

    With a ``step`` in its position it is what one iteration of the kernel's loop touches, and the next
    iteration's rectangle is adjacent: the step is its height or its width.
    """

    tensor: Tensor
    rows: int
    cols: int
    row: Affine = _FIRST
    col: Affine = _FIRST


# arg, pitch, item, rows, cols, row, col: what an op list depends on, whatever the addresses
_Layout = tuple[int, int, int, int, int, Affine, Affine]


@dataclass(frozen=True, slots=True)
class _Shape:
    name: str
    reads: tuple[_Layout, ...]
    writes: tuple[_Layout, ...]
    warps: int
    steps: int
    work: tuple[tuple[str, int], ...]
    chain: int
    registers: int
    smem: int
    args: int


def _width(layout: _Layout) -> int:
    """Bytes of a lane: the widest to which every row of the block is aligned at every position."""
    _, pitch, item, _, cols, row, col = layout
    strides = [cols * item, *(n * item for n in (col.base, col.bx, col.by, col.step))]
    if layout[3] > 1 or row.base or row.bx or row.by or row.step:
        strides.append(pitch)
    return min(WIDEST, math.gcd(256, *strides))


def _ops(layout: _Layout, warps: int) -> list[tuple[Pattern, ...]]:
    """List the memory instructions of one block, of one iteration."""
    arg, pitch, item, rows, cols, row, col = layout
    width = max(item, _width(layout))
    lane = width // item
    # a row longer than a warp's instruction is cut into whole ones, the last of them masked
    wide = cols if cols <= WARP * lane else -(-cols // (WARP * lane)) * WARP * lane
    tile = Tile(
        arg, pitch, item, rows, wide,
        bx=row.bx * pitch + col.bx * item,
        by=row.by * pitch + col.by * item,
        step=row.step * pitch + col.step * item,
    )  # fmt: skip
    return tile_ops(tile, warps, width, (rows, cols), row.base * pitch + col.base * item)


def _part(layout: _Layout, steps: int) -> TensorTile:
    """Return what a TB touches over all iterations."""
    arg, _, _, rows, cols, row, col = layout
    high, wide = rows * (steps if row.step else 1), cols * (steps if col.step else 1)
    return TensorTile(arg, Affine(row.base, row.bx, row.by), high, Affine(col.base, col.bx, col.by), wide)


@lru_cache(maxsize=8192)
def _program(shape: _Shape) -> Program:
    """Build a program once: launches of one shape share it."""
    code = Code()
    code.compute(int=12, control=1)
    for layout in shape.reads:
        code.mark_input(_part(layout, shape.steps), level=2)
    for layout in shape.reads:
        if not (layout[5].step or layout[6].step):
            emit_loads(code, 0, _ops(layout, shape.warps))
    if shape.reads:
        code.wait(0, level=2)
    mark = code.loop_begin()
    looped = [layout for layout in shape.reads if layout[5].step or layout[6].step]
    for layout in looped:
        emit_loads(code, 0, _ops(layout, shape.warps), level=0)
    if looped:
        code.wait(0)
    work = dict(shape.work)
    code.compute(chain=max(4, shape.chain), smem=work.get("smem_ops", 0), **work)
    if shape.smem and shape.warps > 1:
        code.barrier()
    for layout in shape.writes:
        if layout[5].step or layout[6].step:
            for patterns in _ops(layout, shape.warps):
                code.store(1, *patterns, level=0)
    if shape.steps > 1:
        code.loop_end(mark, shape.steps)
    code.mark_main_loop_end()
    for layout in shape.writes:
        if not (layout[5].step or layout[6].step):
            for patterns in _ops(layout, shape.warps):
                code.store(1, *patterns, level=2)
    for layout in shape.writes:
        code.mark_output(_part(layout, shape.steps), level=2)
    code.exit()
    return Program(shape.name, (tuple(code.ops),), shape.warps, shape.registers, shape.smem, shape.args)


def _access(block: Block, mode: Mode, steps: int, grid_x: int) -> Access:
    high = block.rows * (steps if block.row.step else 1)
    wide = block.cols * (steps if block.col.step else 1)

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        tbs = np.asarray(tbs, dtype=np.int64)
        x, y = tbs % grid_x, tbs // grid_x
        row = block.row.base + block.row.bx * x + block.row.by * y
        col = block.col.base + block.col.bx * x + block.col.by * y
        return np.stack([row, row + high, col, col + wide], axis=1)

    return Access(block.tensor, mode, regions)


def _check(name: str, block: Block, steps: int, grid: tuple[int, int]) -> None:
    """Refuse a block that leaves its tensor, or whose iterations leave holes."""
    for what, place, size, limit in (
        ("row", block.row, block.rows, block.tensor.rows),
        ("column", block.col, block.cols, block.tensor.cols),
    ):
        if place.step not in (0, size):
            raise WorkloadError(f"kernel {name}: {block.tensor.name}: {what} step {place.step}: not {size}")
        x, y = place.bx * (grid[0] - 1), place.by * (grid[1] - 1)
        low = place.base + min(x, 0) + min(y, 0)
        high = place.base + max(x, 0) + max(y, 0) + size * (steps if place.step else 1)
        if size < 1 or low < 0 or high > limit:
            where = f"{what}s {low} to {high} of {limit}"
            raise WorkloadError(f"kernel {name}: {block.tensor.name}: {where}: outside")


def region_kernel(
    name: str,
    grid: tuple[int, int],
    warps: int,
    reads: Sequence[Block],
    writes: Sequence[Block],
    work: Mapping[str, int],
    *,
    steps: int = 1,
    chain: int = 4,
    registers: int = 32,
    smem: int = 0,
    stream: int = 0,
) -> Kernel:
    """Make a kernel of ``grid`` (x, y) TBs that read blocks, work ``steps`` times and write blocks.

    ``work``: warp instructions an iteration, pipe and warp (``smem_ops``: accesses of shared memory without
    conflicts); ``chain``: cycles from an iteration's last instruction to what needs it. Blocks that do not
    move are read before the loop and written after it. With ``smem`` (bytes) the warps of a TB have a
    barrier in every iteration. Raises ``WorkloadError`` for blocks that leave their tensors.
    """
    if min(*grid, warps, steps) < 1:
        raise WorkloadError(f"kernel {name}: grid {grid}, {warps} warps, {steps} steps: must be positive")
    for block in (*reads, *writes):
        _check(name, block, steps, grid)
    args = tuple(dict.fromkeys(block.tensor for block in (*reads, *writes)))

    def layout(block: Block) -> _Layout:
        t = block.tensor
        return args.index(t), t.pitch, t.item, block.rows, block.cols, block.row, block.col

    shape = _Shape(
        name, tuple(map(layout, reads)), tuple(map(layout, writes)), warps, steps,
        tuple(work.items()), chain, registers, smem, len(args),
    )  # fmt: skip
    accesses = [_access(block, "read", steps, grid[0]) for block in reads]
    accesses += [_access(block, "write", steps, grid[0]) for block in writes]
    return Kernel(name, _program(shape), (*grid, 1), args, tuple(accesses), stream)
