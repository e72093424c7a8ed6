"""Element-wise kernels of PyTorch between tensors of any strides: ``elementwise_kernel<128, 2 or 4>``.

A TB of 128 threads takes 256 or 512 neighbouring elements of an operation's result, a thread two or four, 128
apart. Each is computed and stored before the next is loaded, as pointers may alias; divisions give the place
of an element in each operand (ATen, native/cuda/CUDALoops and detail/OffsetCalculator). The grid is measured
as one row of TBs; here it has the same TBs in the same order, in up to three dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

from .offsets import offset_work
from .pointwise_flat import BEGIN, THREADS
from .pointwise_parts import Work, flat, paired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_OUTER = 3  # dimensions of a grid


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a tensor: ``strides`` in elements, a dimension of the operation each, innermost first.

    0: all places of the dimension are one element. ``first``: the element at the origin.
    """

    tensor: Tensor
    strides: tuple[int, ...]
    first: int = 0


def dense(tensor: Tensor, sizes: Sequence[int]) -> View:
    """Return the view of a tensor whose elements lie as the operation's dimensions say, innermost first."""
    strides, wide = [], 1
    for size in sizes:
        strides.append(wide)
        wide *= size
    if wide != tensor.rows * tensor.cols:
        raise WorkloadError(
            f"{tensor.name}: {tensor.rows} x {tensor.cols} elements, the operation has {wide}"
        )
    return View(flat(tensor), tuple(strides))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How TBs take an operation: dimensions of a TB, then those of the grid."""

    inner: tuple[int, ...]
    grid: tuple[int, int, int]
    steps: tuple[tuple[int, int], ...]  # of x, y and z: which dimension, and how many places a TB moves


def _merged(sizes: Sequence[int], views: Sequence[View]) -> tuple[list[int], list[list[int]]]:
    """Return sizes and strides, dimensions that are one in all operands joined, as TensorIterator does."""
    made: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for at, size in enumerate(sizes):
        each = [view.strides[at] for view in views]
        if size == 1:
            continue
        if made and all(s[-1] * made[-1] == new for s, new in zip(strides, each, strict=True)):
            made[-1] *= size
            continue
        made.append(size)
        for s, new in zip(strides, each, strict=True):
            s.append(new)
    return made, strides


def _plan(name: str, sizes: Sequence[int], chunk: int) -> _Plan:
    inner, outer, whole = [], [], 1
    for at, size in enumerate(sizes):
        if whole == chunk:
            outer.append((size, at, 1))
        elif whole * size <= chunk and chunk % (whole * size) == 0:
            inner.append(size)
            whole *= size
        elif size % (chunk // whole) == 0:
            part = chunk // whole
            inner.append(part)
            outer.append((size // part, at, part))
            whole = chunk
        else:
            raise WorkloadError(f"{name}: sizes {sizes}: TBs of {chunk} would cut rows")
    if whole != chunk or len(outer) > MOST_OUTER or (inner[0] % WARP and WARP % inner[0]):
        raise WorkloadError(
            f"{name}: sizes {', '.join(map(str, sizes))}: no whole TBs of {chunk} in 3 dimensions"
        )
    outer += [(1, 0, 0)] * (MOST_OUTER - len(outer))
    grid = outer[0][0], outer[1][0], outer[2][0]
    return _Plan(tuple(inner), grid, tuple((at, part) for _, at, part in outer))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a program depends on.

    ``operands``: bytes of an element, the first element, strides within a TB, and how far a TB moves in x, y
    and z, in elements.
    """

    name: str
    inner: tuple[int, ...]
    operands: tuple[tuple[int, int, tuple[int, ...], tuple[int, int, int]], ...]
    inputs: int
    each: int
    work: Work


def strided(
    name: str,
    sizes: Sequence[int],
    inputs: Sequence[View],
    output: View,
    work: Work,
    each: int,
) -> Kernel:
    """Return the kernel of an operation over ``sizes`` (innermost first), ``each`` elements a thread.

    ``work``: of an element beside its places. Raises WorkloadError where TBs would cut rows, and where what a
    TB takes of an operand is no rectangle.
    """
    views = (*inputs, output)
    if any(len(view.strides) != len(sizes) for view in views):
        raise WorkloadError(f"{name}: {len(sizes)} sizes: as many strides each")
    dims, strides = _merged(sizes, views)
    plan = _plan(name, dims, THREADS * each)
    operands = []
    for view, own in zip(views, strides, strict=True):
        moves = [own[at] * part for at, part in plan.steps]
        operands.append(
            (view.tensor.item, view.first, tuple(own[: len(plan.inner)]), (moves[0], moves[1], moves[2]))
        )
    work = _with(offset_work(len(dims), len(views)), work)
    shape = _Shape(name, plan.inner, tuple(operands), len(inputs), each, work)
    accesses = []
    for number, (view, operand) in enumerate(zip(views, operands, strict=True)):
        mode: Mode = "read" if number < len(inputs) else "write"
        accesses.append(Access(view.tensor, mode, _Region(plan, view.tensor.cols, *operand[1:]).check(name)))
    return Kernel(name, _program(shape), plan.grid, tuple(view.tensor for view in views), tuple(accesses))


def _with(place: Work, work: Work) -> Work:
    return Work(
        place.fp32 + work.fp32,
        place.ints + work.ints,
        place.sfu + work.sfu,
        place.fp64 + work.fp64,
        place.control + work.control,
        place.wait + work.wait,
    )


@dataclass(frozen=True, slots=True)
class _Region:
    """The rectangle of an operand that each TB uses; ``cols``: of the tensor."""

    plan: _Plan
    cols: int
    first: int
    strides: tuple[int, ...]
    moves: tuple[int, int, int]

    def check(self, name: str) -> _Region:
        """Return the region; refuse what is no rectangle."""
        self.extents(name)
        return self

    def extents(self, name: str = "") -> tuple[int, int]:
        """Return rows and columns of a TB's rectangle."""
        along = sorted(
            (s, size) for s, size in zip(self.strides, self.plan.inner, strict=True) if s and size > 1
        )
        rows = cols = 1
        for stride, size in along:
            if stride < self.cols and stride == cols and rows == 1:
                cols *= size
            elif stride % self.cols == 0 and stride // self.cols == rows:
                rows *= size
            else:
                raise WorkloadError(f"{name}: a TB takes no rectangle of an operand")
        if cols > self.cols or any(move % self.cols and move > self.cols for move in self.moves):
            raise WorkloadError(f"{name}: a TB takes no rectangle of an operand")
        return rows, cols

    def __call__(self, tbs: Ints) -> Ints:
        """Return the regions of ``tbs``."""
        (gx, gy, _), tbs = self.plan.grid, np.asarray(tbs, np.int64)
        at = tbs % gx, tbs // gx % gy, tbs // (gx * gy)
        row, col = np.full_like(tbs, self.first // self.cols), np.full_like(tbs, self.first % self.cols)
        for move, number in zip(self.moves, at, strict=True):
            row, col = row + move // self.cols * number, col + move % self.cols * number
        rows, cols = self.extents()
        return np.stack([row, row + rows, col, col + cols], 1)


@lru_cache(maxsize=256)
def _program(shape: _Shape) -> Program:
    code = Code()
    BEGIN.emit(code)
    for turn in range(shape.each):
        shape.work.emit(code)
        for arg in range(shape.inputs):
            code.load(0, *_lanes(shape, arg, turn))
        if shape.inputs:
            code.wait(0)
        for arg in range(shape.inputs, len(shape.operands)):
            code.store(1, *_lanes(shape, arg, turn))
    code.exit()
    args = len(shape.operands)
    return Program(shape.name, (tuple(code.ops),), THREADS // WARP, 32, 0, args)


def _lanes(shape: _Shape, arg: int, turn: int) -> tuple[Pattern, ...]:
    """Return the access of an operand: of each warp the places of 32 neighbouring elements."""
    item, origin, strides, moves = shape.operands[arg]
    made = []
    for warp in range(THREADS // WARP):
        left, at = turn * THREADS + warp * WARP, origin
        for size, stride in zip(shape.inner, strides, strict=True):
            left, own = divmod(left, size)
            at += own * stride
        minor = min(shape.inner[0], WARP)
        next_stride = strides[1] if minor < WARP else 0
        x, y, z = (move * item for move in moves)
        pattern = Pattern(
            arg,
            item,
            base=at * item,
            bx=x,
            by=y,
            bz=z,
            s0=strides[0] * item,
            s1=next_stride * item,
            minor=minor,
        )
        made.append(paired(pattern))
    return tuple(made)
