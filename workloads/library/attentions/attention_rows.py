"""The short kernels around an attention's backward loop: row sums of dO O, dQ to 16 bits, strided copies.

Each thread block (TB) has some rows of a plane. It loads them with 16 B a lane, does its arithmetic and
stores; rows of a TB and threads are those of the launches in the sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops
from pysim.workloads.library.hopper import SHUFFLE

from .attention_problem import ITEM, Attention, Planes, row_access

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

INTS_BEGIN, INTS_ACCESS = 60, 4  # addresses of a TB, and of an access
DOT_FP32, CONVERT = 3, 1  # of an element: two conversions and a multiply-add; half a pack and a scale
COPY_THREADS, COPY_ELEMENTS = 128, 4  # <128, 4> in the name of PyTorch's elementwise_kernel
# Offsets of an element by divisions with magic numbers, source and target of four dimensions each: from
# the largest copies, 1.44 elements a cycle and SM.
COPY_INTS = 42
COPY_MOST = 1 << 31  # elements


@dataclass(frozen=True, slots=True)
class RowShape:
    """Rows of a TB and its threads."""

    rows: int
    threads: int


# Cycles until a TB of the row sums, and of the conversion, has its code; found with calls of 16
# planes of 128 queries.
COLD = {"flash": (1000, 3000), "cudnn": (300, 600)}
# (library, d): of the row sums and of the conversion
DOTS = {
    ("flash", 64): RowShape(128, 256),
    ("flash", 128): RowShape(64, 256),
    ("cudnn", 64): RowShape(16, 128),
    ("cudnn", 128): RowShape(8, 128),
}
CONVERSIONS = {
    ("flash", 64): RowShape(128, 256),
    ("flash", 128): RowShape(64, 256),
    ("cudnn", 64): RowShape(32, 128),
    ("cudnn", 128): RowShape(16, 128),
}


def _load_rows(code: Code, shape: RowShape, rows: _Rows, slot: int, width: int = 16) -> None:
    for patterns in _row_ops(shape, rows, width):
        code.compute(int=INTS_ACCESS, chain=0)
        code.load(slot, *patterns, level=2)


def _store_rows(code: Code, shape: RowShape, rows: _Rows) -> None:
    for patterns in _row_ops(shape, rows):
        code.compute(int=INTS_ACCESS, chain=0)
        code.store(4, *patterns, level=2)


def _row_ops(shape: RowShape, rows: _Rows, width: int = 16) -> list[tuple[Pattern, ...]]:
    pitch, batch, head, base = rows.strides
    tile = Tile(rows.arg, pitch, rows.item, shape.rows, rows.d, bx=shape.rows * pitch, by=batch, bz=head)
    return tile_ops(tile, shape.threads // WARP, width, (shape.rows, rows.d), base)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of an argument: bytes of an element, elements of a row, and strides (``Planes.strides``)."""

    arg: int
    item: int
    d: int
    strides: tuple[int, int, int, int]


def _rows(arg: int, planes: Planes, heads: int) -> _Rows:
    return _Rows(arg, planes.tensor.item, planes.d, planes.strides(heads))


@lru_cache(maxsize=64)
def _dots(p: Attention, shape: RowShape, rows: tuple[_Rows, _Rows, _Rows], cold: int) -> Program:
    code, warps = Code(), shape.threads // WARP
    each = shape.rows * p.d // shape.threads
    code.compute(int=INTS_BEGIN, control=4, chain=20)
    code.delay(cold)
    for read in rows[:2]:
        _load_rows(code, shape, read, 0)
    code.wait(0)
    code.compute(fp32=DOT_FP32 * each, chain=8)
    reductions = max(1, each // 8)  # of 8 B x 16 a row: three or four shuffles each
    code.compute(smem=4 * reductions, smem_ops=4 * reductions, fp32=4 * reductions, chain=4 * SHUFFLE)
    tile = Tile(2, p.q * 4, 4, 1, shape.rows, bx=shape.rows * 4, by=p.heads * p.q * 4, bz=p.q * 4)
    for patterns in tile_ops(tile, warps, 4, (1, shape.rows)):
        code.store(4, *patterns, level=2)
    _store_rows(code, shape, rows[2])
    code.exit()
    return Program("attention_dots", (tuple(code.ops),), warps, 40, 0, 4)


@lru_cache(maxsize=64)
def _conversion(shape: RowShape, rows: tuple[_Rows, _Rows], smem: int, cold: int) -> Program:
    code, warps = Code(), shape.threads // WARP
    each = shape.rows * rows[0].d // shape.threads
    code.compute(int=INTS_BEGIN, control=4, chain=20)
    code.delay(cold)
    _load_rows(code, shape, rows[0], 0, 4)  # as the sums were added: a lane, a value
    code.wait(0)
    code.compute(fp32=CONVERT * each, int=each // 2, chain=8)
    if smem:
        code.compute(smem=each // 2, smem_ops=each // 2, chain=4)
        code.barrier()
        code.compute(smem=each // 2, smem_ops=-(-each // 8), chain=SHUFFLE)
    _store_rows(code, shape, rows[1])
    code.exit()
    return Program("attention_convert", (tuple(code.ops),), warps, 48, smem, 2)


def _grid(p: Attention, shape: RowShape, name: str) -> tuple[int, int, int]:
    if p.q % shape.rows:
        raise WorkloadError(f"{name}: {p.q} queries are no multiple of {shape.rows}")
    return p.q // shape.rows, p.batch, p.heads


def _plane_of(p: Attention, shape: RowShape, tbs: Ints) -> Ints:
    """Return the plane of each TB."""
    across = p.q // shape.rows
    return tbs // across % p.batch * p.heads + tbs // (across * p.batch)


def _row_of(p: Attention, shape: RowShape, tbs: Ints) -> Ints:
    """Return the first row of each TB in its plane."""
    return tbs % (p.q // shape.rows) * shape.rows


def row_dots(
    p: Attention, library: str, do: Planes, o: Planes, memory: Memory
) -> tuple[Kernel, Tensor, Tensor]:
    """Return the kernel that sums dO O by row and clears the fp32 dQ, the sums [planes, q], and dQ."""
    shape = DOTS[library, p.d]
    sums, dq = p.scalars(memory, "dO O"), p.rows(memory, "dQ sums", item=4)
    grid = _grid(p, shape, "attention_dots")

    def of_sums(tbs: Ints) -> Ints:
        plane, row = (place(p, shape, np.asarray(tbs, np.int64)) for place in (_plane_of, _row_of))
        return np.stack([plane, plane + 1, row, row + shape.rows], 1)

    plane, first = partial(_plane_of, p, shape), partial(_row_of, p, shape)
    accesses = (
        do.access("read", plane, first, shape.rows),
        o.access("read", plane, first, shape.rows),
        Access(sums, "write", of_sums),
        p.stacked(dq).access("write", plane, first, shape.rows),
    )
    rows = _rows(0, do, p.heads), _rows(1, o, p.heads), _rows(3, p.stacked(dq), p.heads)
    program = _dots(p, shape, rows, COLD[library][0])
    return Kernel("attention_dots", program, grid, (do.tensor, o.tensor, sums, dq), accesses), sums, dq


def to_16_bits(p: Attention, library: str, sums: Tensor, dq: Planes) -> Kernel:
    """Return the kernel that converts the fp32 dQ to ``dq``."""
    shape = CONVERSIONS[library, p.d]
    smem = shape.rows * p.d * ITEM if library == "flash" else 0

    plane, first = partial(_plane_of, p, shape), partial(_row_of, p, shape)
    accesses = (
        p.stacked(sums).access("read", plane, first, shape.rows),
        dq.access("write", plane, first, shape.rows),
    )
    grid = _grid(p, shape, "attention_convert")
    rows = _rows(0, p.stacked(sums), p.heads), _rows(1, dq, p.heads)
    program = _conversion(shape, rows, smem, COLD[library][1])
    return Kernel("attention_convert", program, grid, (sums, dq.tensor), accesses)


@lru_cache(maxsize=4)
def _copy_program(item: int) -> Program:
    code = Code()
    warps = COPY_THREADS // WARP
    each = COPY_THREADS * item
    code.compute(int=8, control=2, chain=10)
    for at in range(COPY_ELEMENTS):
        source = Pattern(0, item, base=at * each, bx=COPY_ELEMENTS * each, warp=WARP * item, s0=item)
        code.compute(int=COPY_INTS, chain=20)
        code.load(0, source, level=2)
        code.wait(0)
        code.store(1, replace(source, arg=1), level=2)
    code.exit()
    return Program("attention_copy", (tuple(code.ops),), warps, 18, 0, 2)


def strided_copy(source: Tensor, memory: Memory) -> tuple[Kernel, Tensor]:
    """Return PyTorch's copy of a tensor to another layout, an element of a thread after the other.

    Both are seen in memory order: rows of a head are whole in either layout. Raises WorkloadError where the
    elements are no multiple of those of a TB.
    """
    size = source.rows * source.cols
    chunk = COPY_THREADS * COPY_ELEMENTS
    if size % chunk or size > COPY_MOST:
        raise WorkloadError(f"attention_copy: {size} elements: must be a multiple of {chunk}, below 2^31")
    target = memory.tensor(source.name, source.rows, source.cols, source.item)
    rows = chunk // source.cols

    def first(tbs: Ints) -> Ints:
        return tbs * rows

    def last(tbs: Ints) -> Ints:
        return (tbs + 1) * rows

    accesses = (row_access(source, "read", first, last), row_access(target, "write", first, last))
    grid = (size // chunk, 1, 1)
    return Kernel("attention_copy", _copy_program(source.item), grid, (source, target), accesses), target
