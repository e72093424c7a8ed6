"""GEMMs of one or few columns: a thread block (TB) makes some rows of C, of whole K or a part of it.

One template for cuBLAS's ``gemvx``, ``gemv2T``, ``gemvNSP``, ``dot``, ``gemmSN`` and ``sgemm_largek``. Where
A is contiguous in k the TB's threads lie along k of each row, else along rows, and groups of them take k in
turn. A step loads a tile of A and what it needs of B, nothing ahead; at the end the threads' sums are added
by shuffles and through shared memory. A C of one row is the same with A and B exchanged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Mode, Tensor
from pysim.program.warp_program import Code
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.cutlass import copy_width
from pysim.workloads.kernels.split_k_serial import LAST_X, LAST_Y, LAST_Z
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops
from pysim.workloads.library.memset import memset

from .gemm_launches import split_k_sum
from .operands import after_reset, checked_operands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.warp_program import Op
    from pysim.workloads.library.choices.choice import Problem

    Ints = NDArray[np.int64]

# threads of a TB by the beginning of the name: blocks of the sweep
WARPS = {"gemvx": 4, "gemv2T": 4, "gemvNSP": 1, "dot": 4, "gemmSN_TN": 4, "gemmSN_NN": 8, "sgemm_largek": 4}
# by the registers of a thread: its warps, whose registers fill an SM but for the last
GEMVX_WARPS = {128: 16, 164: 8, 166: 2}
ATOMIC = "sgemm_largek"  # parts of k are added by atomic operations, to a C that a kernel has scaled before
LARGEK_ROWS, LARGEK_TBS = 64, 528  # rows of a TB; TBs that parts of k make at least, where no grid is told
VECTOR = 16  # bytes a lane loads at most
# Loads of A that a thread waits for at once, of gemv2T and gemmSN_NN, and of gemmSN_TN (others: of a step);
# wavefronts of what it needs of a column of B from shared memory for each, where there are several columns:
# fitted to half `fit` of gemmSN_TN and gemv2T (rows above 25 us; 4,900 cycles of a step of 20 warps, k 1536)
TOGETHER, B_WAVES = (2, 1), 5
ROWS_K = 4  # loads of a thread of a step where A is contiguous in m: a guess
BEGIN = 1000  # cycles from a TB's start to its first load, an estimate
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
    together: int

    @property
    def grid(self) -> tuple[int, int, int]:
        """TBs along rows, along columns, parts of k."""
        return -(-self.many // self.rows), -(-self.columns // self.cols), -(-self.k // self.chunk)

    @property
    def deep(self) -> int:
        """K of a step."""
        vector = VECTOR // self.item
        if self.along_k:
            return vector * WARP * self.warps
        across = max(1, min(WARP, -(-self.rows // vector)))
        return ROWS_K * self.warps * (WARP // across)


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
    warps = next((warps for start, warps in WARPS.items() if name.startswith(start)), 0)
    if name.startswith("gemvx"):
        warps = GEMVX_WARPS.get(registers, warps)
    if warps == 0:
        raise WorkloadError(f"library GEMM: no template for kernel {name[:60]}")
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
    if name.startswith(ATOMIC) and grid == (1, 1, 1):
        gx = -(-many // LARGEK_ROWS)
        parts = -(-LARGEK_TBS // gx)
    step = VECTOR // item
    chunk = -(-p.k // (parts * step)) * step if parts > 1 else p.k
    rows, cols = _power(-(-many // gx)), -(-columns // gy)
    atomic = name.startswith(ATOMIC)
    several = TOGETHER[1] if along else TOGETHER[0]
    together = several if cols > 1 else TOGETHER[0] if name.startswith("gemv2T") else 0
    shape = _Shape(many, columns, p.k, rows, cols, chunk, along, other, item, warps, atomic, together)
    planes = 1 if atomic else shape.grid[2]
    out = 4 if planes > 1 else item
    # C of one row is contiguous along what is `many` here, too
    c = memory.tensor("C", columns * planes, many, out)
    kernel = _kernel(shape, matrix, vectors, c, registers, smem)
    if atomic:
        # a kernel has scaled C: a memset of a word of its own stands in, which this one waits for
        scaled = memory.tensor("scaled", 1, 64, 4)
        return (memset(scaled), after_reset(kernel, scaled)), c
    if planes == 1:
        return (kernel,), c
    added, c = split_k_sum(c, planes, memory, item)
    return (kernel, added), c


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
    code.delay(BEGIN)

    def step(deep: int, at: int) -> None:
        matrix = (rows, deep) if s.along_k else (deep, rows)
        vectors = (cols, deep) if s.vectors_k else (deep, cols)
        loads = tile_ops(tile, s.warps, _width(tile), matrix, at * tile.step)
        others = tile_ops(of, s.warps, _width(of), vectors, at * of.step)
        for patterns in others:
            code.load(0, *patterns, level=2 if at else 0)
        values = max(1, tile.cols * tile.rows // (WARP * s.warps * max(1, len(loads))))  # of a load
        reads = s.cols if s.cols > 1 else 0
        together = s.together or max(1, len(loads))
        for first in range(0, len(loads), together):
            some = loads[first : first + together]
            for patterns in some:
                code.load(0, *patterns, level=2 if at else 0)
            code.wait(0)
            many = len(some) * reads
            waves = B_WAVES if s.along_k else 1  # along m, lanes of a k share what they need of B
            code.compute(
                fp32=len(some) * values * s.cols,
                int=2 * len(some) + 6,
                control=1,
                chain=4,
                smem=waves * many,
                smem_ops=many,
            )

    if whole:
        mark = code.loop_begin()
        step(s.deep, 0)
        code.loop_end(mark, whole)
    if rest:
        step(rest, whole)
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


def _width(tile: Tile) -> int:
    return max(tile.item, copy_width(tile, VECTOR))


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
