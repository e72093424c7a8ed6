"""GEMMs of one or few columns: a thread block (TB) makes some rows of C, of whole K or a part of it.

One template for cuBLAS's ``gemvx``, ``gemv2T``, ``gemvNSP``, ``dot``, ``gemmSN`` and ``sgemm_largek``. Where
A is contiguous in k the TB's threads lie along k of each row, else along rows, and groups of them take k in
turn. ``vector_loops`` says what a step loads and executes; at the end the threads' sums are added by shuffles
and through shared memory. A C of one row is the same with A and B exchanged.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Mode, Tensor
from pysim.program.warp_program import Code, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.cutlass import copy_width
from pysim.workloads.kernels.split_k_serial import LAST_X, LAST_Y, LAST_Z
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops
from pysim.workloads.library.memset import memset

from .gemm_launches import split_k_sum
from .operands import after_reset, checked_operands
from .vector_loops import Loop, loop_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.warp_program import Op
    from pysim.workloads.library.choices.choice import Problem

    Ints = NDArray[np.int64]

# warps of a TB by the beginning of the name: blocks of the sweep
WARPS = {"gemvx": 4, "gemv2T": 4, "gemvNSP": 24, "dot": 4, "gemmSN_TN": 4, "gemmSN_NN": 8, "sgemm_largek": 4}
_THREADS = re.compile(r"gemmSN_.._kernel<\w+, (\d+)")  # threads of a TB, in the name
ATOMIC = "sgemm_largek"  # parts of k are added by atomic operations, to a C that a kernel has scaled before
LARGEK_ROWS = 64  # rows of a TB of it
GEMVX_LANES = {4: 32, 8: 32, 16: 16, 32: 16, 64: 8, 128: 4}  # lanes along k, by the rows of a TB
# an A of up to so many elements, not transposed, that TBs of 32 rows take with two lanes along k
FEW_LANES, FEW_LANES_ROWS, FEW_LANES_SIZE = 2, 32, 1_800_000
MOST_RUN = 16  # neighbouring elements that a lane of `gemvx` takes where rows are short
SN_NN_DEEP = 4  # k of a step of `gemmSN_NN` for each warp of a TB: eight loads of a lane
K_ALIGN = 16  # elements: parts of k begin at multiples
ALIGNED = 4  # elements of k; other rows are not loaded ahead of their step
WIDTH = 4  # bytes a lane loads at most
SHUFFLE = 25  # cycles of a shuffle and an addition
MOST_STEPS = 65535


class _Shape(NamedTuple):
    """``many`` rows of a matrix, ``k``, ``columns`` of the vectors; what a TB takes of each; ``along_k``."""

    many: int
    columns: int
    k: int
    rows: int
    cols: int
    chunk: int
    along_k: bool
    vectors_k: bool
    item: int
    warps: int
    atomic: bool
    loop: Loop

    @property
    def grid(self) -> tuple[int, int, int]:
        """TBs along rows, along columns, parts of k."""
        return -(-self.many // self.rows), -(-self.columns // self.cols), -(-self.k // self.chunk)

    @property
    def deep(self) -> int:
        """K of a step."""
        return self.loop.deep * WARP * self.warps // self.rows if self.loop.dots else self.loop.deep


def vector_dots(
    name: str,
    problem: Problem,
    memory: Memory,
    operands: Sequence[Tensor] | None,
    grid: tuple[int, int, int],
    registers: int,
    smem: int,
) -> tuple[tuple[Kernel, ...], Tensor]:
    """Return the kernels of a GEMM of few columns, and C, n x m; ``grid`` as launched.

    Raises WorkloadError for kernels that are none of ``WARPS``.
    """
    p, item = problem, problem.item
    a = (p.m, p.k) if p.trans_a == "T" else (p.k, p.m)
    b = (p.n, p.k) if p.trans_b == "N" else (p.k, p.n)
    given = checked_operands(operands, [("A", *a, item), ("B", *b, item)], memory)
    a_along, b_along = p.trans_a == "T", p.trans_b == "N"
    matrix, vectors = given
    many, columns, along, other = p.m, p.n, a_along, b_along
    if p.m == 1:
        matrix, vectors, many, columns, along, other = vectors, matrix, p.n, 1, b_along, a_along
    gx, gy, parts = (many, 1, grid[0]) if name.startswith("dot") else grid
    chunk = -(-p.k // (parts * K_ALIGN)) * K_ALIGN if parts > 1 else p.k
    rows, cols = _power(-(-many // gx)), -(-columns // gy)
    atomic = name.startswith(ATOMIC)
    loop, warps = loop_of(name, cols), _warps(name, rows, smem)
    if smem == 0 and rows == FEW_LANES_ROWS and not along and many * p.k <= FEW_LANES_SIZE:
        warps = FEW_LANES
    if name.startswith("gemmSN_NN"):
        loop = loop._replace(deep=SN_NN_DEEP * warps)
    shape = _Shape(many, columns, p.k, rows, cols, chunk, along, other, item, warps, atomic, loop)
    planes = 1 if atomic else shape.grid[2]
    out = 4 if planes > 1 else item
    # C of one row is contiguous along what is `many` here, too
    c = memory.tensor("C", columns * planes, many, out)
    kernel = _kernel(shape, matrix, vectors, c, registers, smem)
    if atomic:
        # a kernel has scaled C: a memset of a word of its own stands in, which this one waits for
        scaled = memory.tensor("scaled", 1, 64, 4)
        return (memset(scaled), after_reset(kernel, scaled)), c
    made: tuple[Kernel, ...] = (kernel,)
    if planes > 1:
        added, c = split_k_sum(c, planes, memory, item)
        made = kernel, added
    return made, replace(c, rows=p.n, cols=p.m)


def _warps(name: str, rows: int, smem: int) -> int:
    """Return the warps of a TB; of ``gemvx`` by the sums of its lanes in shared memory, where told."""
    if name.startswith("gemvx"):
        lanes = smem // (4 * rows) - 1  # a row of sums is padded by one
        if lanes not in (FEW_LANES, *GEMVX_LANES.values()):
            lanes = GEMVX_LANES.get(rows, WARP)
        return max(1, rows * lanes // WARP)
    if found := _THREADS.match(name):
        return int(found[1]) // WARP
    return next(warps for start, warps in WARPS.items() if name.startswith(start))


def _power(size: int) -> int:
    """Return the power of two that holds a size."""
    return 1 << (size - 1).bit_length()


def _tiles(s: _Shape, out: int) -> tuple[Tile, Tile, Tile]:
    """Return the tiles of the matrix and the vectors of a step, and of C."""
    made = []
    for arg, size, all_of, along in ((0, s.rows, s.many, s.along_k), (1, s.cols, s.columns, s.vectors_k)):
        pitch = (s.k if along else all_of) * s.item
        own, deep = (size * pitch, s.item) if along else (size * s.item, pitch)
        shape = (size, s.deep) if along else (s.deep, size)
        bx, by = (own, 0) if arg == 0 else (0, own)
        made.append(Tile(arg, pitch, s.item, *shape, bx=bx, by=by, bz=s.chunk * deep, step=s.deep * deep))
    pitch = s.many * out
    plane = 0 if s.atomic else s.columns * pitch
    c = Tile(2, pitch, out, s.cols, s.rows, bx=s.rows * out, by=s.cols * pitch, bz=plane)
    return made[0], made[1], c


def _kernel(s: _Shape, matrix: Tensor, vectors: Tensor, c: Tensor, registers: int, smem: int) -> Kernel:
    gx, gy, gz = s.grid
    tb = np.arange(gx * gy * gz, dtype=np.int64)
    x, y, z = tb % gx, tb // gx % gy, tb // (gx * gy)
    kinds = LAST_X * (x == gx - 1) + LAST_Y * (y == gy - 1) + LAST_Z * (z == gz - 1)
    found = sorted(set(kinds.tolist()))
    row = np.zeros(8, np.uint32)
    row[found] = np.arange(len(found))
    code = [(_ops(s, c.item, kind),) * s.warps for kind in found]
    program = warp_specialized("vector_dots", code, row[kinds], registers=registers, smem=smem, args=3)
    mode: Mode = "update" if s.atomic else "write"
    accesses = (
        Access(matrix, "read", partial(_region, s, "matrix")),
        Access(vectors, "read", partial(_region, s, "vectors")),
        Access(c, mode, partial(_region, s, "c")),
    )
    return Kernel("vector_dots", program, s.grid, (matrix, vectors, c), accesses)


def _ops(s: _Shape, out: int, kind: int) -> tuple[Op, ...]:
    gx, gy, gz = s.grid
    rows = s.many - (gx - 1) * s.rows if kind & LAST_X else s.rows
    cols = s.columns - (gy - 1) * s.cols if kind & LAST_Y else s.cols
    depth = s.k - (gz - 1) * s.chunk if kind & LAST_Z else s.chunk
    tile, of, to = _tiles(s, out)
    whole, rest = divmod(depth, s.deep)
    if whole > MOST_STEPS:
        raise WorkloadError(f"vector GEMM: {whole} k-steps: at most {MOST_STEPS}")
    code = Code()
    code.compute(int=40, control=4)
    code.delay(s.loop.begin)
    step = _dots if s.loop.dots else _shared
    ahead = s.loop.ahead if s.k % ALIGNED == 0 else 0
    if whole:
        for number in range(min(ahead, whole)):
            _fetch(code, s, (tile, of), (rows, cols, s.deep), number, slot=number)
        mark = code.loop_begin()
        step(code, s, (tile, of), (rows, cols, s.deep), 0, whole if ahead else 0)
        code.loop_end(mark, whole)
    if rest:
        step(code, s, (tile, of), (rows, cols, rest), whole, 0)
    values = max(1, s.rows * s.cols // s.warps)
    for _ in range(5 if s.along_k else 1):
        code.compute(smem=values, smem_ops=values, fp32=values, chain=SHUFFLE)
    code.barrier()
    code.compute(smem=s.warps, smem_ops=s.warps, fp32=s.warps, chain=2 * SHUFFLE)
    for patterns in tile_ops(to, s.warps, out, (cols, rows)):
        if s.atomic:
            code.reduce(1, *patterns, level=2)
        else:
            code.store(1, *patterns, level=2)
    code.exit()
    return tuple(code.ops)


def _loads(s: _Shape, tile: Tile, along_k: bool, size: int, deep: int, at: int) -> list[tuple[Pattern, ...]]:
    """Return the loads of ``deep`` of k of ``size`` rows or columns, step ``at``."""
    valid = (size, deep) if along_k else (deep, size)
    return tile_ops(tile, s.warps, max(s.item, copy_width(tile, WIDTH)), valid, at * tile.step)


def _dots(
    code: Code, s: _Shape, tiles: tuple[Tile, Tile], valid: tuple[int, int, int], at: int, _steps: int
) -> None:
    """Load a step's rows, and with each load of a warp what it multiplies them by."""
    rows, _, deep = valid
    tile, of = tiles
    if s.along_k and s.k <= MOST_RUN * WARP and s.rows == s.warps:
        _runs(code, s, tiles, rows)
        return
    loads = _loads(s, tile, s.along_k, rows, deep, at)
    level = 2 if at else 0
    wide = min(WARP, s.deep // s.loop.deep) if s.along_k else max(1, WARP // s.rows)  # values of a load
    for number, patterns in enumerate(loads):
        first = deep * number // len(loads)
        lanes = (1 << min(wide, deep - first)) - 1
        base = at * of.step + first * s.item
        code.load(
            0, Pattern(1, s.item, base=base, bz=of.bz, step=of.step, s0=s.item, lanes=lanes), level=level
        )
        code.load(0, *patterns, level=level)
    code.wait(0)
    _multiply(code, s, len(loads))


def _runs(code: Code, s: _Shape, tiles: tuple[Tile, Tile], rows: int) -> None:
    """Load a row that is shorter than a step: a warp each, each lane neighbouring elements one by one."""
    tile, _ = tiles
    run = -(-s.k // WARP)
    for number in range(run):
        lanes = (1 << -(-(s.k - number) // run)) - 1
        at = number * s.item
        code.load(0, Pattern(1, s.item, base=at, s0=run * s.item, lanes=lanes), level=2)
        where = Pattern(0, s.item, base=at, bx=tile.bx, s0=run * s.item, lanes=lanes)
        own = [
            replace(where, base=at + row * tile.pitch, lanes=lanes * (row < rows)) for row in range(s.warps)
        ]
        code.load(0, *own, level=2)
    code.wait(0)
    _multiply(code, s, run)


def _multiply(code: Code, s: _Shape, loads: int) -> None:
    """Multiply what a warp of ``dots`` has loaded."""
    share = loads / s.loop.deep
    code.compute(
        fp32=loads, int=round(share * s.loop.ints), control=1, chain=max(4, round(share * s.loop.chain))
    )


def _fetch(
    code: Code,
    s: _Shape,
    tiles: tuple[Tile, Tile],
    valid: tuple[int, int, int],
    at: int,
    steps: int = 0,
    slot: int = 0,
) -> None:
    """Load a step's rows and columns; with ``steps`` those of a later one of so many."""
    rows, cols, deep = valid
    loads = _loads(s, tiles[0], s.along_k, rows, deep, at)
    others = _loads(s, tiles[1], s.vectors_k, cols, deep, at)
    level, ahead = 2 if at else 0, s.loop.ahead if steps else 0
    for patterns in loads:
        code.load(slot, *patterns, level=level, stages=ahead, ahead=ahead, limit=steps)
    if s.loop.stages_a:
        code.wait(0)
    for patterns in others:
        code.load(slot, *patterns, level=level, stages=ahead, ahead=ahead, limit=steps)


def _shared(
    code: Code, s: _Shape, tiles: tuple[Tile, Tile], valid: tuple[int, int, int], at: int, steps: int
) -> None:
    """Load a step's rows and columns, or with ``steps`` the next one's, and multiply from shared memory."""
    deep = valid[2]
    if not steps:
        _fetch(code, s, tiles, valid, at)
    rows = len(_loads(s, tiles[0], s.along_k, valid[0], deep, at))
    others = len(_loads(s, tiles[1], s.vectors_k, valid[1], deep, at))
    stores = others + rows * s.loop.stages_a
    code.wait(0, stages=s.loop.ahead if steps else 0)
    # what L2 returns is written to the memory of L1 and shared memory, a wavefront a load
    code.compute(int=2 * stores, smem=stores + rows + others, smem_ops=stores)
    code.barrier()
    if steps:
        _fetch(code, s, tiles, valid, at, steps)
    share = deep / s.loop.deep
    multiplies = s.rows * s.loop.cols * deep // (WARP * s.warps)
    code.compute(
        fp32=max(1, multiplies),
        int=round(share * s.loop.ints),
        control=1,
        chain=max(4, round(share * s.loop.chain)),
        smem=round(share * s.loop.waves),
        smem_ops=round(share * s.loop.reads),
    )
    if s.loop.stages_a:
        code.barrier()  # columns have two places in shared memory, rows one


def _region(s: _Shape, what: str, tbs: Ints) -> Ints:
    """Return the rectangle of a tensor that each TB uses."""
    tbs = np.asarray(tbs, np.int64)
    gx, gy, _ = s.grid
    at = tbs % gx, tbs // gx % gy, tbs // (gx * gy)
    sides = []
    for place, size, most in zip(at, (s.rows, s.cols, s.chunk), (s.many, s.columns, s.k), strict=True):
        sides.append((place * size, np.minimum((place + 1) * size, most)))
    rows, cols, deep = sides
    if what == "c":
        plane = 0 if s.atomic else at[2] * s.columns
        return np.stack([cols[0] + plane, cols[1] + plane, *rows], 1)
    own, along = (rows, s.along_k) if what == "matrix" else (cols, s.vectors_k)
    return np.stack([*own, *deep] if along else [*deep, *own], 1)
