"""Element-wise kernels between strides where TBs of PyTorch would cut rows: here each takes whole rows.

``elementwise_kernel`` gives each TB 256 or 512 neighbouring elements of the result; where a dimension is no
multiple, TBs begin in the middle of rows, and what one takes is no rectangle. Here a TB takes a row, or as
many of up to 512 elements in all as divide the next dimension. Bytes, coalescing and dependences between
rows are those of the real kernel; TBs are of other sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.offsets import offset_work
from pysim.workloads.library.memory.pointwise_flat import BEGIN
from pysim.workloads.library.memory.pointwise_parts import Work, paired
from pysim.workloads.library.memory.strided import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

THREADS, CHUNK, REGISTERS = 128, 512, 32
LEAST, MOST = (
    32,
    8192,
)  # elements of a row: of shorter ones lanes would idle, longer ones would keep a TB long
MOST_ROWS = 8  # of a TB: each is a rectangle of its own
OUTER = 3  # dimensions of a grid
STANDS_IN = stand_in("TBs of whole rows")


@dataclass(frozen=True, slots=True)
class _Operand:
    """Of a view: elements of the tensor's rows, the first element, strides along a row and outside."""

    item: int
    cols: int
    first: int
    along: int
    outer: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A TB takes ``many`` rows of ``row`` elements; ``grid``: TBs along the outer dimensions."""

    row: int
    many: int
    grid: tuple[int, int, int]


def row_aligned(name: str, sizes: Sequence[int], inputs: Sequence[View], output: View, work: Work) -> Kernel:
    """Return the kernel of an operation over ``sizes`` (innermost first); ``work``: of an element.

    Raises WorkloadError for rows that are too short or too long, for more dimensions than a grid has, and
    where a row of an operand is no rectangle.
    """
    views = (*inputs, output)
    dims, strides = _joined(sizes, views)
    if not LEAST <= dims[0] <= MOST or len(dims) > OUTER + 1:
        raise WorkloadError(f"{name}: rows of {dims[0]} elements in {len(dims)} dimensions")
    outer = [*dims[1:], 1, 1, 1][:OUTER]
    most = min(MOST_ROWS, max(1, CHUNK // dims[0]))
    many = next(count for count in range(most, 0, -1) if outer[0] % count == 0)
    shape = _Shape(dims[0], many, (outer[0] // many, outer[1], outer[2]))
    operands = []
    for view, own in zip(views, strides, strict=True):
        steps = [*own[1:], 0, 0, 0]
        operands.append(
            _Operand(view.tensor.item, view.tensor.cols, view.first, own[0], (steps[0], steps[1], steps[2]))
        )
    accesses = []
    for number, (view, operand) in enumerate(zip(views, operands, strict=True)):
        mode: Mode = "read" if number < len(inputs) else "write"
        for at in range(many):
            region = _Region(name, operand, shape, at)
            region(
                np.arange(shape.grid[0] * shape.grid[1] * shape.grid[2])
            )  # raises where it is no rectangle
            accesses.append(Access(view.tensor, mode, region))
    program = _program(name, operands, len(inputs), shape, work, len(dims))
    return Kernel(
        name, program, shape.grid, tuple(v.tensor for v in views), tuple(accesses), library=STANDS_IN
    )


def _joined(sizes: Sequence[int], views: Sequence[View]) -> tuple[list[int], list[list[int]]]:
    """Return sizes and strides without dimensions of one place; those that are one in all operands joined."""
    dims: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for at, size in enumerate(sizes):
        each = [view.strides[at] for view in views]
        if size == 1 and len(sizes) > 1:
            continue
        if dims and all(own[-1] * dims[-1] == new for own, new in zip(strides, each, strict=True)):
            dims[-1] *= size
            continue
        dims.append(size)
        for own, new in zip(strides, each, strict=True):
            own.append(new)
    return dims, strides


@dataclass(frozen=True, slots=True)
class _Region:
    """The ``at``-th row of each TB in an operand."""

    name: str
    operand: _Operand
    shape: _Shape
    at: int

    def __call__(self, tbs: Ints) -> Ints:
        """Return the regions of ``tbs``; raise WorkloadError where a row is no rectangle."""
        o, (x, y, _) = self.operand, self.shape.grid
        left = np.asarray(tbs, np.int64)
        place = o.first + (left % x * self.shape.many + self.at) * o.outer[0]
        place = place + left // x % y * o.outer[1] + left // (x * y) * o.outer[2]
        row, col = place // o.cols, place % o.cols
        high, wide = 1, 1
        if o.along == 1:
            wide = self.shape.row
        elif o.along and o.along % o.cols == 0:
            high = (self.shape.row - 1) * (o.along // o.cols) + 1
        elif o.along:
            raise WorkloadError(f"{self.name}: elements {o.along} apart in rows of {o.cols}")
        if len(col) and int(col.max()) + wide > o.cols:
            raise WorkloadError(f"{self.name}: rows of {self.shape.row} elements cross rows of {o.cols}")
        return np.stack([row, row + high, col, col + wide], 1)


def _program(
    name: str, operands: Sequence[_Operand], inputs: int, shape: _Shape, work: Work, dims: int
) -> Program:
    threads = min(THREADS, -(-shape.row // WARP) * WARP)
    place = offset_work(dims, len(operands))
    code = Code()
    BEGIN.emit(code)

    def of(arg: int, at: int, turn: int) -> tuple[Pattern, ...]:
        o = operands[arg]
        bx, by, bz = (step * o.item for step in o.outer)
        base = (o.first + at * o.outer[0] + turn * threads * o.along) * o.item
        made = []
        for warp in range(threads // WARP):
            lanes = min(WARP, max(0, shape.row - turn * threads - warp * WARP))
            begin = base + warp * WARP * o.along * o.item
            mask = (1 << lanes) - 1
            pattern = Pattern(
                arg, o.item, base=begin, bx=bx * shape.many, by=by, bz=bz, s0=o.along * o.item, lanes=mask
            )
            made.append(paired(pattern))
        return tuple(made)

    for at in range(shape.many):
        for turn in range(-(-shape.row // threads)):
            place.emit(code)
            for arg in range(inputs):
                code.load(0, *of(arg, at, turn))
            if inputs:
                code.wait(0)
            work.emit(code)
            for arg in range(inputs, len(operands)):
                code.store(1, *of(arg, at, turn))
    code.exit()
    return Program(name, (tuple(code.ops),), threads // WARP, REGISTERS, 0, len(operands))
