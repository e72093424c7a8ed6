"""Element-wise kernels of PyTorch over contiguous tensors: vectorised, and one element at a time with a cast.

``vectorized_elementwise_kernel<V>``: TBs of 128 threads, eight elements a thread in vectors of V, 16 B of
each operand at a time; all loads come before the arithmetic. The last TB, if it is not full, takes one
element a thread at a time. ``unrolled_elementwise_kernel`` with casts: four elements a thread, each loaded
through a branch on its type, so that a load waits for the one before. ``elementwise_kernel`` copies between
strides. Shapes and order follow ATen/native/cuda (CUDALoops, MemoryAccess) of PyTorch 2.11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import LAST_X, Work, even, flat, line, loads, paired, spans, stores

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS = 128  # num_threads(), CUDALoops
EACH = 8  # elements of a thread: 1024 of a TB in all 330 rows of h200_library_pointwise.csv
CAST_EACH = 4  # thread_work_size(): 512 of a TB in the rows of unrolled kernels
WIDEST = 16  # bytes of a lane
BEGIN = Work(ints=10, control=2)  # index, range check, operand pointers: by reason


def flat_grid(elements: int, each: int = EACH) -> int:
    """Return the TBs that take so many elements, ``each`` of a thread."""
    return -(-elements // (THREADS * each))


@dataclass(frozen=True, slots=True)
class _Flat:
    """What a program depends on: bytes of an element of each operand, and elements of the ``last`` TB."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    last: int
    work: Work
    registers: int


@lru_cache(maxsize=512)
def _vectorised(shape: _Flat) -> Program:
    chunk, items = THREADS * EACH, (*shape.inputs, *shape.outputs)
    vector = min(WIDEST // min(items), EACH)

    def full(arg: int) -> list[tuple[Pattern, ...]]:
        """Vectors of V elements, in pieces of at most 16 B."""
        item = items[arg]
        wide, pieces = vector * item, -(-vector * item // WIDEST)
        return [
            line(
                arg,
                wide // pieces,
                THREADS,
                base=turn * THREADS * wide + piece * WIDEST,
                bx=chunk * item,
                apart=wide,
            )
            for turn in range(EACH // vector)
            for piece in range(pieces)
        ]

    def part(arg: int) -> list[tuple[Pattern, ...]]:
        """Return one element a thread at a time."""
        item = items[arg]
        made = [
            line(
                arg,
                item,
                THREADS,
                base=turn * THREADS * item,
                bx=chunk * item,
                active=shape.last - turn * THREADS,
            )
            for turn in range(EACH)
        ]
        return [tuple(map(paired, each)) for each in made]

    variants = []
    for number in range(8):
        ops = part if number & LAST_X and shape.last < chunk else full
        code = Code()
        BEGIN.emit(code)
        for arg in range(len(shape.inputs)):
            loads(code, 0, ops(arg))
        if shape.inputs:
            code.wait(0)
        shape.work.times(EACH).emit(code)
        for arg in range(len(shape.inputs), len(items)):
            stores(code, 1, ops(arg))
        code.exit()
        variants.append(tuple(code.ops))
    return Program(shape.name, tuple(variants), THREADS // WARP, shape.registers, 0, len(items))


@lru_cache(maxsize=512)
def _one_by_one(shape: _Flat) -> Program:
    """Load and convert each element by itself: the branch on its type ends what a compiler overlaps."""
    chunk = THREADS * CAST_EACH
    (read,), (written,) = shape.inputs, shape.outputs
    variants = []
    for number in range(8):
        left = shape.last if number & LAST_X else chunk
        code = Code()
        BEGIN.emit(code)
        for turn in range(CAST_EACH):
            place = turn * THREADS
            loads(code, 0, [line(0, read, THREADS, base=place * read, bx=chunk * read, active=left - place)])
            code.wait(0)
            shape.work.emit(code)
        for turn in range(CAST_EACH):
            place = turn * THREADS
            stores(
                code,
                1,
                [line(1, written, THREADS, base=place * written, bx=chunk * written, active=left - place)],
            )
            shape.work.emit(code)
        code.exit()
        variants.append(tuple(code.ops))
    return Program(shape.name, tuple(variants), THREADS // WARP, shape.registers, 0, 2)


def _shape(
    name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], work: Work, registers: int, each: int
) -> tuple[_Flat, list[Tensor], int]:
    views = [flat(tensor) for tensor in (*inputs, *outputs)]
    elements = views[0].cols
    if any(view.cols != elements for view in views):
        raise WorkloadError(
            f"{name}: operands of {', '.join(str(v.cols) for v in views)} elements: must be equal"
        )
    last = (elements - 1) % (THREADS * each) + 1
    items = [tuple(t.item for t in group) for group in (inputs, outputs)]
    return _Flat(name, items[0], items[1], last, work, registers), views, flat_grid(elements, each)


def vectorised(
    name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], work: Work, registers: int = 32
) -> Kernel:
    """Return the kernel of an element-wise operation; ``work``: of an element.

    An operand that is read and written may be in both lists. Raises WorkloadError for unequal sizes.
    """
    shape, views, grid = _shape(name, inputs, outputs, work, registers, EACH)
    views = [even(view) for view in views]
    chunk, split = THREADS * EACH, len(inputs)
    accesses = [spans(view, "read", chunk) for view in views[:split]]
    accesses += [spans(view, "write", chunk) for view in views[split:]]
    return Kernel(name, _vectorised(shape), (grid, 1, 1), tuple(views), tuple(accesses))


def unrolled_cast(name: str, source: Tensor, target: Tensor, work: Work, registers: int = 32) -> Kernel:
    """Return the kernel that converts between 2 B types, or from 2 B to 4 B; ``work``: of a conversion."""
    shape, views, grid = _shape(name, [source], [target], work, registers, CAST_EACH)
    chunk = THREADS * CAST_EACH
    accesses = spans(views[0], "read", chunk), spans(views[1], "write", chunk)
    return Kernel(name, _one_by_one(shape), (grid, 1, 1), tuple(views), accesses)


def strided_each(item: int) -> int:
    """Return the elements of a thread of ``elementwise_kernel`` (launch_legacy_kernel's unroll)."""
    return 2 if item >= 4 else 4


def transposed(name: str, source: Tensor, target: Tensor, work: Work, registers: int = 18) -> Kernel:
    """Return the copy of a [rows, cols] matrix into a [cols, rows] one.

    Threads go along the target, so that the lanes of a load are rows apart: a sector for each element. Raises
    WorkloadError for other shapes, and for rows of which neither a TB nor a part of it is a multiple.
    """
    rows, cols, item = source.rows, source.cols, source.item
    if (target.rows, target.cols, target.item) != (cols, rows, item):
        raise WorkloadError(f"{name}: target must be {cols} x {rows} of {item} B")
    each = strided_each(item)
    chunk = THREADS * each
    if rows * cols % chunk or (rows % chunk and chunk % rows):
        raise WorkloadError(f"{name}: {rows} rows: must divide {chunk} elements of a TB, or be a multiple")
    program = _strided(name, rows, cols, item, work, registers)
    high = max(1, rows // chunk)
    grid = (rows * cols // chunk, 1, 1)

    def region(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return rows and columns of the source."""
        x, y = np.asarray(tbs, np.int64) % high, np.asarray(tbs, np.int64) // high
        deep, wide = min(rows, chunk), max(1, chunk // rows)
        return np.stack([x * deep, (x + 1) * deep, y * wide, (y + 1) * wide], axis=1)

    out = flat(target)
    # the grid is one-dimensional; x and y here stand for the part of a column and the column
    accesses = Access(source, "read", region), spans(out, "write", chunk)
    shape = (high, grid[0] // high, 1)
    return Kernel(name, program, shape, (source, out), accesses)


@lru_cache(maxsize=64)
def _strided(name: str, rows: int, cols: int, item: int, work: Work, registers: int) -> Program:
    each = strided_each(item)
    chunk, pitch = THREADS * each, cols * item
    code = Code()
    BEGIN.emit(code)
    wide = max(1, chunk // rows)  # columns of a TB
    for turn in range(each):
        work.emit(code)
        patterns = []
        for warp in range(THREADS // WARP):
            first = turn * THREADS + warp * WARP
            row, col = first % rows, first // rows
            patterns.append(
                Pattern(
                    0,
                    item,
                    base=row * pitch + col * item,
                    bx=chunk * pitch,
                    by=wide * item,
                    s0=pitch,
                    s1=item,
                    minor=min(rows, WARP),
                )
            )
        code.load(0, *patterns, level=2)
    code.wait(0)
    for turn in range(each):
        across = max(1, rows // chunk) * chunk * item
        stores(code, 1, [line(1, item, THREADS, base=turn * THREADS * item, bx=chunk * item, by=across)])
    code.exit()
    return Program(name, (tuple(code.ops),), THREADS // WARP, registers, 0, 2)
