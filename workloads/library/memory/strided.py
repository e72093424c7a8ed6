"""Element-wise kernels of PyTorch between tensors of any strides: ``elementwise_kernel<128, 2 or 4>``.

A TB of 128 threads takes 256 or 512 neighbouring elements of an operation's result, a thread two or four, 128
apart. Each is computed and stored before the next is loaded, as pointers may alias; divisions give the place
of an element in each operand (ATen, native/cuda/CUDALoops and detail/OffsetCalculator). The grid is measured
as one row of TBs; here it has the same TBs in the same order, in up to three dimensions. Where TBs of so many
elements would cut rows, TBs that end at whole rows stand in: some of their lanes have nothing to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.recorded_program import RecordedProgram
from pysim.program.warp_program import Code, Op, Pattern, Program
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .offsets import offset_work
from .pointwise_flat import BEGIN, THREADS
from .pointwise_parts import Work, flat, paired
from .strided_plan import Operand, Plan, plan_of, regions_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

REGISTERS = 32
ENDS = stand_in("elementwise_kernel whose TBs end at whole rows", measured=False)


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
    if not made:  # of one element
        return [1], [[view.strides[0]] for view in views]
    return made, strides


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a program depends on.

    ``operands``: bytes of an element, the first element, strides within a TB, and how far TBs along each
    dimension of theirs are apart, in elements.
    """

    name: str
    plan: Plan
    operands: tuple[Operand, ...]
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
    *,
    full: bool = False,
) -> Kernel:
    """Return the kernel of an operation over ``sizes`` (innermost first), ``each`` elements a thread.

    ``work``: of an element beside its places; ``full``: refuse sizes of which TBs would cut rows. Raises
    WorkloadError for more dimensions than a grid has, and where what a TB takes of an operand is no few
    rectangles.
    """
    views = (*inputs, output)
    if any(len(view.strides) != len(sizes) for view in views):
        raise WorkloadError(f"{name}: {len(sizes)} sizes: as many strides each")
    dims, strides = _merged(sizes, views)
    plan = plan_of(name, dims, THREADS * each)
    if full and plan.last:
        raise WorkloadError(f"{name}: sizes {dims}: TBs of {THREADS * each} would cut rows")
    operands = []
    for view, own in zip(views, strides, strict=True):
        moves = tuple(own[at] * part for _, at, part in plan.outer)
        operands.append((view.tensor.item, view.first, tuple(own[: len(plan.inner)]), moves))
    work = _with(offset_work(len(dims), len(views)), work)
    shape = _Shape(name, plan, tuple(operands), len(inputs), each, work)
    accesses = []
    for number, (view, operand) in enumerate(zip(views, operands, strict=True)):
        mode: Mode = "read" if number < len(inputs) else "write"
        regions = regions_of(name, plan, view.tensor.cols, operand)
        accesses += [Access(view.tensor, mode, region) for region in regions]
    tensors, said = tuple(view.tensor for view in views), ENDS if plan.last else ""
    return Kernel(name, _program(shape), plan.grid, tensors, tuple(accesses), library=said)


def _with(place: Work, work: Work) -> Work:
    return Work(
        place.fp32 + work.fp32,
        place.ints + work.ints,
        place.sfu + work.sfu,
        place.fp64 + work.fp64,
        place.control + work.control,
        place.wait + work.wait,
    )


@lru_cache(maxsize=256)
def _program(shape: _Shape) -> Program | RecordedProgram:
    warps, args, plan = THREADS // WARP, len(shape.operands), shape.plan
    if plan.last:
        (across, *_), (x, y, z) = plan.outer[0], plan.grid
        turns = np.tile(np.arange(x), y * z)
        rows = (2 * (turns // across) + (turns % across == across - 1)).astype(np.uint32)
        code = [
            (_code(shape, number, inner),) * warps
            for number in range(plan.folded)
            for inner in (plan.inner, plan.left)
        ]
        return warp_specialized(shape.name, code, rows, registers=REGISTERS, smem=0, args=args)
    if plan.folded == 1:
        return Program(shape.name, (_code(shape, 0),), warps, REGISTERS, 0, args)
    (across, *_), (x, y, z) = plan.outer[0], plan.grid
    rows = np.tile(np.arange(x) // across, y * z).astype(np.uint32)
    code = [(_code(shape, number),) * warps for number in range(plan.folded)]
    return warp_specialized(shape.name, code, rows, registers=REGISTERS, smem=0, args=args)


def _code(shape: _Shape, number: int, inner: tuple[int, ...] = ()) -> tuple[Op, ...]:
    """Return the code of TBs at a place of the folded dimension; ``inner``: what they take, if not all."""
    code, many = Code(), math.prod(inner) if inner else THREADS * shape.each
    BEGIN.emit(code)
    for turn in range(-(-many // THREADS)):
        shape.work.emit(code)
        for arg in range(shape.inputs):
            code.load(0, *_lanes(shape, arg, turn, number, inner))
        if shape.inputs:
            code.wait(0)
        for arg in range(shape.inputs, len(shape.operands)):
            code.store(1, *_lanes(shape, arg, turn, number, inner))
    code.exit()
    return tuple(code.ops)


def _lanes(
    shape: _Shape, arg: int, turn: int, number: int, inner: tuple[int, ...] = ()
) -> tuple[Pattern, ...]:
    """Return the access of an operand: of each warp the places of 32 neighbouring elements."""
    item, origin, strides, moves = shape.operands[arg]
    if (
        shape.plan.folded > 1
    ):  # x counts places of the first dimension, and all of them once for each of these
        origin += number * (moves[1] - shape.plan.outer[0][0] * moves[0])
        moves = (moves[0], *moves[2:])
    x, y, z = (move * item for move in (*moves, 0, 0, 0)[:3])
    made = []
    for warp in range(THREADS // WARP if inner else 0):
        first = turn * THREADS + warp * WARP
        lanes = range(first, min(first + WARP, math.prod(inner)))
        apart = [_place(each, inner, strides) * item for each in lanes] or [0]
        offsets = tuple(each - apart[0] for each in apart) + (0,) * (WARP - len(apart))
        base, mask = (origin * item + apart[0]), (1 << len(lanes)) - 1
        made.append(_even(Pattern(arg, item, base=base, bx=x, by=y, bz=z, lanes=mask, offsets=offsets)))
    for warp in range(0 if inner else THREADS // WARP):
        left, at = turn * THREADS + warp * WARP, origin
        for size, stride in zip(shape.plan.inner, strides, strict=True):
            left, own = divmod(left, size)
            at += own * stride
        minor = min(shape.plan.inner[0], WARP)
        s0, s1 = strides[0] * item, strides[1] * item if minor < WARP else 0
        made.append(paired(Pattern(arg, item, base=at * item, bx=x, by=y, bz=z, s0=s0, s1=s1, minor=minor)))
    return tuple(made)


def _place(number: int, inner: Sequence[int], strides: Sequence[int]) -> int:
    """Return how far an element of a TB is from its first."""
    at = 0
    for size, stride in zip(inner, strides, strict=True):
        number, own = divmod(number, size)
        at += own * stride
    return at


def _even(pattern: Pattern) -> Pattern:
    """Return an access of single bytes as one of pairs at even addresses, which the simulator takes."""
    if pattern.width > 1:
        return pattern
    base = pattern.base // 2 * 2
    offsets = tuple((pattern.base + each) // 2 * 2 - base for each in pattern.offsets)
    return replace(pattern, width=2, base=base, offsets=offsets)
