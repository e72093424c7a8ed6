"""Kernels that make planes of images, a plane a channel of an image: windows, biases, depthwise convolutions.

A TB of 256 threads makes a part of a plane, or some whole planes where these are small; a thread makes
``each`` results, one after another, each from ``loads`` values of every operand. A TB reads the pixels that
its results lie over, and some rows around them, evenly spread over the loads of its threads: bytes and
instructions are those of a kernel that computes the place of each pixel, which pixel a lane reads is not.
Beside the pixels a TB may read what belongs to its channels: biases, statistics, filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.pointwise_parts import LAST_X, Work, line, paired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

THREADS = 256
MOST_PLANES = 16 * THREADS  # values of a channel's own that a TB loads, at most


@dataclass(frozen=True, slots=True)
class Band:
    """Planes that results are made from.

    ``tensor``: [images * channels, pixels]. ``loads``: values of a result. ``around``: pixels before and
    behind those that a TB's results lie over, which it reads, too.
    """

    tensor: Tensor
    loads: int = 1
    around: int = 0


@dataclass(frozen=True, slots=True)
class _Operand:
    """``size``: pixels of a plane; ``shift``: from the part of a TB to that of the next; ``span``: of one."""

    item: int
    size: int
    loads: int
    around: int
    shift: int
    span: int


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a program depends on.

    ``made``: results of a plane; ``items``: bytes of one in each tensor that is written. ``together``: whole
    planes of a TB (0: it has a part of one); ``own``: values of a channel, bytes of each.
    """

    name: str
    made: int
    items: tuple[int, ...]
    chunk: int
    together: int
    tbs: int
    channels: int
    each: int
    reads: tuple[_Operand, ...]
    own: tuple[tuple[int, int], ...]
    work: Work
    registers: int


def _together(made: int, channels: int, chunk: int) -> int:
    """Return how many whole planes of ``made`` results a TB of ``chunk`` takes; they divide the channels."""
    return max((g for g in range(1, channels + 1) if channels % g == 0 and g * made <= chunk), default=0)


def plane_kernel(
    name: str,
    reads: Sequence[Band],
    own: Sequence[Tensor],
    writes: Sequence[Tensor],
    channels: int,
    work: Work,
    *,
    each: int = 1,
    registers: int = 32,
) -> Kernel:
    """Return the kernel that makes ``writes``, [images * channels, pixels], all of one size.

    ``own``: [channels, values] of each channel; ``work``: of a result, beside its loads and stores. Raises
    WorkloadError for tensors of other numbers of planes.
    """
    target = writes[0]
    planes, made, chunk = target.rows, target.cols, THREADS * each
    if planes % channels or any((t.rows, t.cols) != (planes, made) for t in writes):
        raise WorkloadError(f"{name}: {planes} planes of {channels} channels: results of one size")
    if any(b.tensor.rows != planes for b in reads) or any(t.rows * t.cols % channels for t in own):
        raise WorkloadError(f"{name}: operands of other planes than {planes}, or of other channels")
    group = _together(made, channels, chunk)
    gx = 1 if group else -(-made // chunk)
    operands = tuple(_operand(band, made, chunk, group, gx) for band in reads)
    values = tuple((t.rows * t.cols // channels, t.item) for t in own)
    shape = _Shape(
        name, made, tuple(t.item for t in writes), chunk, group, gx, channels, each, operands, values, work,
        registers,
    )  # fmt: skip
    grid = (gx, channels // max(1, group), planes // channels)
    own_views = [Tensor(t.name, channels, t.rows * t.cols // channels, t.item, t.address) for t in own]
    accesses = [
        Access(band.tensor, "read", partial(_pixels, shape, number)) for number, band in enumerate(reads)
    ]
    accesses += [Access(view, "read", partial(_own_rows, shape, view.cols)) for view in own_views]
    accesses += [Access(tensor, "write", partial(_results, shape)) for tensor in writes]
    args = (*(band.tensor for band in reads), *own_views, *writes)
    return Kernel(name, _program(shape), grid, args, tuple(accesses))


def _operand(band: Band, made: int, chunk: int, group: int, gx: int) -> _Operand:
    size, item = band.tensor.cols, band.tensor.item
    if group or gx == 1:
        return _Operand(item, size, band.loads, band.around, 0, max(1, group) * size)
    shift = chunk * size // made
    span = min(size - (gx - 2) * shift, -(-chunk * size // made) + band.around)
    return _Operand(item, size, band.loads, band.around, shift, span)


def _place(shape: _Shape, tbs: Ints) -> tuple[Ints, Ints]:
    """Return the first plane of TBs, and their part of it."""
    tbs = np.asarray(tbs, np.int64)
    group = max(1, shape.together)
    return tbs // shape.tbs * group, tbs % shape.tbs


def _pixels(shape: _Shape, number: int, tbs: Ints) -> Ints:
    operand, (plane, part) = shape.reads[number], _place(shape, tbs)
    if shape.tbs == 1:
        zero = np.zeros_like(plane)
        return np.stack([plane, plane + max(1, shape.together), zero, zero + operand.size], 1)
    first, last = part * shape.chunk, np.minimum((part + 1) * shape.chunk, shape.made)
    low = first * operand.size // shape.made - operand.around
    high = -(-last * operand.size // shape.made) + operand.around
    low = np.minimum(low, part * operand.shift)
    high = np.where(
        part == shape.tbs - 1, operand.size, np.maximum(high, part * operand.shift + operand.span)
    )
    return np.stack([plane, plane + 1, np.maximum(low, 0), np.minimum(high, operand.size)], 1)


def _results(shape: _Shape, tbs: Ints) -> Ints:
    plane, part = _place(shape, tbs)
    first = part * shape.chunk
    end = np.minimum(first + shape.chunk, shape.made)
    return np.stack([plane, plane + max(1, shape.together), first, end], 1)


def _own_rows(shape: _Shape, cols: int, tbs: Ints) -> Ints:
    plane, _ = _place(shape, tbs)
    channel, zero = plane % shape.channels, np.zeros_like(plane)
    return np.stack([channel, channel + max(1, shape.together), zero, zero + cols], 1)


@lru_cache(maxsize=1024)
def _program(shape: _Shape) -> Program:
    """Return the program; TBs that are last in x have what is left of a plane."""
    variants = tuple(_code(shape, last=bool(number & LAST_X)) for number in range(8))
    args = len(shape.reads) + len(shape.own) + len(shape.items)
    return Program(shape.name, variants, THREADS // WARP, shape.registers, 0, args)


def _code(shape: _Shape, *, last: bool) -> tuple[Op, ...]:
    group = max(1, shape.together)
    results = group * shape.made if shape.tbs == 1 else shape.chunk
    if last and shape.tbs > 1:
        results = shape.made - (shape.tbs - 1) * shape.chunk
    code = Code()
    code.compute(int=24, control=4)
    for number, (values, item) in enumerate(shape.own):
        _own_loads(code, len(shape.reads) + number, group * values, item)
    turns = min(shape.each, -(-results // THREADS))
    for turn in range(turns):
        for number, operand in enumerate(shape.reads):
            span = operand.span
            if last and shape.tbs > 1:
                span = operand.size - (shape.tbs - 1) * operand.shift
            where = {
                "bx": operand.shift * operand.item,
                "by": group * operand.size * operand.item,
                "bz": shape.channels * operand.size * operand.item,
            }
            _spread(code, number, operand, turn, turns, span, where)
        if shape.reads or shape.own:
            code.wait(0)
        shape.work.emit(code)
        active = min(THREADS, results - turn * THREADS)
        for number, item in enumerate(shape.items):
            _line(code, len(shape.reads) + len(shape.own) + number, item, shape, turn, active)
    code.exit()
    return tuple(code.ops)


def _own_loads(code: Code, arg: int, values: int, item: int) -> None:
    """Load a TB's share of what belongs to channels: each warp all of it, as each thread needs some."""
    for first in range(0, min(values, MOST_PLANES), WARP):
        lanes = (1 << min(WARP, values - first)) - 1
        code.load(
            0, paired(Pattern(arg, item, base=first * item, by=values * item, s0=item, lanes=lanes)), level=2
        )


def _spread(
    code: Code, arg: int, operand: _Operand, turn: int, turns: int, span: int, where: dict[str, int]
) -> None:
    """Load a turn's values, spread evenly over the ``span`` pixels of a TB."""
    loads, item = operand.loads, operand.item
    wide = max(1, min(THREADS, span))
    apart = max(1, span // (loads * turns * wide))
    for number in range(loads):
        room = span - wide * apart
        at = room * (turn * loads + number) // max(1, loads * turns - 1) if room > 0 else 0
        made = line(arg, item, THREADS, base=at * item, apart=apart * item, active=wide)
        code.load(
            0, *(paired(replace(p, bx=where["bx"], by=where["by"], bz=where["bz"])) for p in made), level=2
        )


def _line(code: Code, arg: int, item: int, shape: _Shape, turn: int, active: int) -> None:
    made = line(arg, item, THREADS, base=turn * THREADS * item, active=active)
    plane = max(1, shape.together) * shape.made * item
    moves: dict[str, Any] = {"bx": shape.chunk * item, "by": plane, "bz": shape.channels * shape.made * item}
    code.store(1, *(paired(replace(p, **moves)) for p in made), level=2)
