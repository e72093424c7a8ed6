"""The short kernels around an attention's backward loop: row sums of dO O, dQ to 16 bits, strided copies.

Each thread block (TB) has some rows of a plane. It loads them with 16 B a lane, does its arithmetic and
stores; rows of a TB and threads are those of the launches in the sweep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops

from .attention_problem import ITEM, Attention, row_access

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

INTS_BEGIN, INTS_ACCESS = 60, 4  # addresses of a TB, and of an access
DOT_FP32, CONVERT = 3, 1  # of an element: two conversions and a multiply-add; half a pack and a scale
SHUFFLE = 23  # cycles
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


def _load_rows(
    code: Code, p: Attention, shape: RowShape, arg: int, item: int, slot: int, width: int = 16
) -> None:
    for patterns in _row_ops(p, shape, arg, item, width):
        code.compute(int=INTS_ACCESS, chain=0)
        code.load(slot, *patterns, level=2)


def _store_rows(code: Code, p: Attention, shape: RowShape, arg: int, item: int) -> None:
    for patterns in _row_ops(p, shape, arg, item):
        code.compute(int=INTS_ACCESS, chain=0)
        code.store(4, *patterns, level=2)


def _row_ops(
    p: Attention, shape: RowShape, arg: int, item: int, width: int = 16
) -> list[tuple[Pattern, ...]]:
    pitch = p.d * item
    plane = p.q * pitch
    tile = Tile(arg, pitch, item, shape.rows, p.d, bx=shape.rows * pitch, by=p.heads * plane, bz=plane)
    return tile_ops(tile, shape.threads // WARP, width, (shape.rows, p.d))


@lru_cache(maxsize=64)
def _dots(p: Attention, shape: RowShape, cold: int) -> Program:
    code, warps = Code(), shape.threads // WARP
    each = shape.rows * p.d // shape.threads
    code.compute(int=INTS_BEGIN, control=4, chain=20)
    code.delay(cold)
    for arg in (0, 1):
        _load_rows(code, p, shape, arg, ITEM, 0)
    code.wait(0)
    code.compute(fp32=DOT_FP32 * each, chain=8)
    reductions = max(1, each // 8)  # of 8 B x 16 a row: three or four shuffles each
    code.compute(smem=4 * reductions, smem_ops=4 * reductions, fp32=4 * reductions, chain=4 * SHUFFLE)
    tile = Tile(2, p.q * 4, 4, 1, shape.rows, bx=shape.rows * 4, by=p.heads * p.q * 4, bz=p.q * 4)
    for patterns in tile_ops(tile, warps, 4, (1, shape.rows)):
        code.store(4, *patterns, level=2)
    _store_rows(code, p, shape, 3, 4)
    code.exit()
    return Program("attention_dots", (tuple(code.ops),), warps, 40, 0, 4)


@lru_cache(maxsize=64)
def _conversion(p: Attention, shape: RowShape, smem: int, cold: int) -> Program:
    code, warps = Code(), shape.threads // WARP
    each = shape.rows * p.d // shape.threads
    code.compute(int=INTS_BEGIN, control=4, chain=20)
    code.delay(cold)
    _load_rows(code, p, shape, 0, 4, 0, 4)  # as the sums were added: a lane, a value
    code.wait(0)
    code.compute(fp32=CONVERT * each, int=each // 2, chain=8)
    if smem:
        code.compute(smem=each // 2, smem_ops=each // 2, chain=4)
        code.barrier()
        code.compute(smem=each // 2, smem_ops=-(-each // 8), chain=SHUFFLE)
    _store_rows(code, p, shape, 1, ITEM)
    code.exit()
    return Program("attention_convert", (tuple(code.ops),), warps, 48, smem, 2)


def _grid(p: Attention, shape: RowShape, name: str) -> tuple[int, int, int]:
    if p.q % shape.rows:
        raise WorkloadError(f"{name}: {p.q} queries are no multiple of {shape.rows}")
    return p.q // shape.rows, p.batch, p.heads


def _rows_of(p: Attention, shape: RowShape, tbs: Ints) -> Ints:
    """Return the first row of each TB."""
    across = p.q // shape.rows
    plane = tbs // across % p.batch * p.heads + tbs // (across * p.batch)
    return plane * p.q + tbs % across * shape.rows


def row_dots(
    p: Attention, library: str, do: Tensor, o: Tensor, memory: Memory
) -> tuple[Kernel, Tensor, Tensor]:
    """Return the kernel that sums dO O by row and clears the fp32 dQ, the sums [planes, q], and dQ."""
    shape = DOTS[library, p.d]
    sums, dq = p.scalars(memory, "dO O"), p.rows(memory, "dQ sums", item=4)
    grid = _grid(p, shape, "attention_dots")

    def first(tbs: Ints) -> Ints:
        return _rows_of(p, shape, tbs)

    def last(tbs: Ints) -> Ints:
        return _rows_of(p, shape, tbs) + shape.rows

    def of_sums(tbs: Ints) -> Ints:
        row = first(np.asarray(tbs, np.int64))
        return np.stack([row // p.q, row // p.q + 1, row % p.q, row % p.q + shape.rows], 1)

    accesses = (
        row_access(do, "read", first, last),
        row_access(o, "read", first, last),
        Access(sums, "write", of_sums),
        row_access(dq, "write", first, last),
    )
    program = _dots(p, shape, COLD[library][0])
    return Kernel("attention_dots", program, grid, (do, o, sums, dq), accesses), sums, dq


def to_16_bits(p: Attention, library: str, sums: Tensor, memory: Memory) -> tuple[Kernel, Tensor]:
    """Return the kernel that converts the fp32 dQ, and dQ."""
    shape = CONVERSIONS[library, p.d]
    dq = p.rows(memory, "dQ")
    smem = shape.rows * p.d * ITEM if library == "flash" else 0

    def first(tbs: Ints) -> Ints:
        return _rows_of(p, shape, tbs)

    def last(tbs: Ints) -> Ints:
        return _rows_of(p, shape, tbs) + shape.rows

    accesses = (row_access(sums, "read", first, last), row_access(dq, "write", first, last))
    grid = _grid(p, shape, "attention_convert")
    program = _conversion(p, shape, smem, COLD[library][1])
    return Kernel("attention_convert", program, grid, (sums, dq), accesses), dq


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
