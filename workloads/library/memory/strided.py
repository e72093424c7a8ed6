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
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Code, Op, Pattern, Program
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .offsets import offset_work
from .pointwise_flat import BEGIN, THREADS
from .pointwise_parts import Work, flat, paired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_OUTER = 4  # dimensions of TBs: three of a grid, and one that x counts with the first
REGISTERS = 32
MOST_PIECES = 16  # rectangles that a TB takes of an operand


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
    """How TBs take an operation: ``inner``, what one takes of each dimension, then dimensions of TBs.

    ``outer``: TBs along a dimension, which one, and how many places of it a TB moves.
    """

    inner: tuple[int, ...]
    outer: tuple[tuple[int, int, int], ...]

    @property
    def folded(self) -> int:
        """Values of the second of four dimensions of TBs, each with a program of its own; else 1."""
        return self.outer[1][0] if len(self.outer) == MOST_OUTER else 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """TBs in x, y and z."""
        sizes = [size for size, *_ in self.outer]
        if len(sizes) == MOST_OUTER:
            sizes[:2] = [sizes[0] * sizes[1]]
        x, y, z = (*sizes, 1, 1, 1)[:3]
        return x, y, z


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
        raise WorkloadError(f"{name}: sizes {sizes}: no whole TBs of {chunk} in {MOST_OUTER} dimensions")
    return _Plan(tuple(inner), tuple(outer))


_Operand = tuple[int, int, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a program depends on.

    ``operands``: bytes of an element, the first element, strides within a TB, and how far TBs along each
    dimension of theirs are apart, in elements.
    """

    name: str
    plan: _Plan
    operands: tuple[_Operand, ...]
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
        moves = tuple(own[at] * part for _, at, part in plan.outer)
        operands.append((view.tensor.item, view.first, tuple(own[: len(plan.inner)]), moves))
    work = _with(offset_work(len(dims), len(views)), work)
    shape = _Shape(name, plan, tuple(operands), len(inputs), each, work)
    accesses = []
    for number, (view, operand) in enumerate(zip(views, operands, strict=True)):
        mode: Mode = "read" if number < len(inputs) else "write"
        regions = _regions(name, plan, view.tensor.cols, operand)
        accesses += [Access(view.tensor, mode, region) for region in regions]
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
    """A rectangle of an operand that each TB uses, from its element ``first`` on; ``cols``: of the tensor."""

    outer: tuple[int, ...]
    cols: int
    first: int
    size: tuple[int, int]
    moves: tuple[int, ...]

    def __call__(self, tbs: Ints) -> Ints:
        """Return the regions of ``tbs``."""
        left = np.asarray(tbs, np.int64)
        row, col = np.full_like(left, self.first // self.cols), np.full_like(left, self.first % self.cols)
        for size, move in zip(self.outer, self.moves, strict=True):
            number, left = left % size, left // size
            row, col = row + move // self.cols * number, col + move % self.cols * number
        return np.stack([row, row + self.size[0], col, col + self.size[1]], 1)


def _regions(name: str, plan: _Plan, cols: int, operand: _Operand) -> list[_Region]:
    """Return the rectangles that TBs use of an operand: one, or one a place of a dimension with gaps."""
    _, first, strides, moves = operand
    along = sorted((s, size) for s, size in zip(strides, plan.inner, strict=True) if s and size > 1)
    high, wide, firsts = 1, 1, [first]
    for stride, size in along:
        if stride == wide and stride < cols and high == 1:
            wide *= size
        elif stride == high * cols:
            high *= size
        else:
            firsts = [one + place * stride for one in firsts for place in range(size)]
    rows = any(move % cols and move > cols for move in moves)
    if wide > cols or rows or len(firsts) > MOST_PIECES:
        raise WorkloadError(f"{name}: a TB takes no few rectangles of an operand")
    outer = tuple(size for size, *_ in plan.outer)
    return [_Region(outer, cols, one, (high, wide), moves) for one in firsts]


@lru_cache(maxsize=256)
def _program(shape: _Shape) -> Program | RecordedProgram:
    warps, args, plan = THREADS // WARP, len(shape.operands), shape.plan
    if plan.folded == 1:
        return Program(shape.name, (_code(shape, 0),), warps, REGISTERS, 0, args)
    (across, *_), (x, y, z) = plan.outer[0], plan.grid
    rows = np.tile(np.arange(x) // across, y * z).astype(np.uint32)
    code = [(_code(shape, number),) * warps for number in range(plan.folded)]
    return warp_specialized(shape.name, code, rows, registers=REGISTERS, smem=0, args=args)


def _code(shape: _Shape, number: int) -> tuple[Op, ...]:
    """Return the code of TBs at a place of the folded dimension."""
    code = Code()
    BEGIN.emit(code)
    for turn in range(shape.each):
        shape.work.emit(code)
        for arg in range(shape.inputs):
            code.load(0, *_lanes(shape, arg, turn, number))
        if shape.inputs:
            code.wait(0)
        for arg in range(shape.inputs, len(shape.operands)):
            code.store(1, *_lanes(shape, arg, turn, number))
    code.exit()
    return tuple(code.ops)


def _lanes(shape: _Shape, arg: int, turn: int, number: int) -> tuple[Pattern, ...]:
    """Return the access of an operand: of each warp the places of 32 neighbouring elements."""
    item, origin, strides, moves = shape.operands[arg]
    if (
        shape.plan.folded > 1
    ):  # x counts places of the first dimension, and all of them once for each of these
        origin += number * (moves[1] - shape.plan.outer[0][0] * moves[0])
        moves = (moves[0], *moves[2:])
    x, y, z = (move * item for move in (*moves, 0, 0, 0)[:3])
    made = []
    for warp in range(THREADS // WARP):
        left, at = turn * THREADS + warp * WARP, origin
        for size, stride in zip(shape.plan.inner, strides, strict=True):
            left, own = divmod(left, size)
            at += own * stride
        minor = min(shape.plan.inner[0], WARP)
        s0, s1 = strides[0] * item, strides[1] * item if minor < WARP else 0
        made.append(paired(Pattern(arg, item, base=at * item, bx=x, by=y, bz=z, s0=s0, s1=s1, minor=minor)))
    return tuple(made)
