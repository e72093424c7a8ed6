"""Kernels with a TB a channel, which goes over that channel of all images: statistics, sums, normalisation.

Such are cuDNN's kernels of batch normalisation in training with channels first (``1C11`` in their names).
A TB of 512 threads makes one or two passes; after each its warps add up their sums. Where a plane of an image
is small, warps take planes of several images at once. Counts of instructions are by reason; the kernels were
not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.pointwise_parts import Work, paired, shuffles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

THREADS, UNROLL, WIDEST = 512, 4, 16
WARPS = THREADS // WARP


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass reads and writes of each pixel, by number of the kernel's tensors, and its ``work``."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    work: Work


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a program depends on.

    ``pixels``: of a plane of each tensor, ``items``: bytes of one; ``own``: which argument it is behind the
    images, values of a channel, bytes of one, and whether they are written.
    """

    name: str
    count: int
    channels: int
    pixels: tuple[int, ...]
    items: tuple[int, ...]
    own: tuple[tuple[int, int, int, bool], ...]
    passes: tuple[Pass, ...]
    registers: int


def channel_kernel(
    name: str,
    images: Sequence[Tensor],
    own: Sequence[tuple[Tensor, Mode]],
    passes: Sequence[Pass],
    channels: int,
    *,
    registers: int = 40,
) -> Kernel:
    """Return the kernel of ``passes`` over ``images``, [count * channels, pixels] each.

    ``own``: [channels, values], read before the first pass or written after the last; one that is both is
    given twice. Raises WorkloadError for tensors that have different planes, and a pass over planes of
    different sizes.
    """
    rows = images[0].rows
    if rows % channels or any(t.rows != rows for t in images):
        raise WorkloadError(f"{name}: {rows} planes: must be of {channels} channels, all alike")
    if any(len({images[at].cols for at in (*each.reads, *each.writes)}) != 1 for each in passes):
        raise WorkloadError(f"{name}: a pass over planes of different sizes")
    count = rows // channels
    views = [Tensor(t.name, count, channels * t.cols, t.item, t.address) for t in images]
    apart: dict[int, Tensor] = {}  # by address: what is read and written is one argument
    values = [
        apart.setdefault(t.address, Tensor(t.name, channels, t.rows * t.cols // channels, t.item, t.address))
        for t, _ in own
    ]
    places = list(apart)
    shape = _Shape(
        name, count, channels, tuple(t.cols for t in images), tuple(t.item for t in images),
        tuple(
            (places.index(v.address), v.cols, v.item, mode == "write")
            for v, (_, mode) in zip(values, own, strict=True)
        ),
        tuple(passes), registers,
    )  # fmt: skip
    accesses = []
    for number, view in enumerate(views):
        pixels = images[number].cols
        if any(number in each.reads for each in passes):
            accesses.append(Access(view, "read", partial(_planes, count, pixels)))
        if any(number in each.writes for each in passes):
            accesses.append(Access(view, "write", partial(_planes, count, pixels)))
    accesses += [
        Access(view, mode, partial(_rows, view.cols)) for view, (_, mode) in zip(values, own, strict=True)
    ]
    return Kernel(name, _program(shape), (channels, 1, 1), (*views, *apart.values()), tuple(accesses))


def _planes(count: int, pixels: int, tbs: Ints) -> Ints:
    channel = np.asarray(tbs, np.int64)
    zero = np.zeros_like(channel)
    return np.stack([zero, zero + count, channel * pixels, (channel + 1) * pixels], 1)


def _rows(cols: int, tbs: Ints) -> Ints:
    channel = np.asarray(tbs, np.int64)
    zero = np.zeros_like(channel)
    return np.stack([channel, channel + 1, zero, zero + cols], 1)


@lru_cache(maxsize=512)
def _program(shape: _Shape) -> Program:
    code = Code()
    code.compute(int=40, control=6)
    for number, values, item, written in shape.own:
        if not written:
            _own(code, shape, number, values, item)
    if any(not written for *_, written in shape.own):
        code.wait(0)
    for number, each in enumerate(shape.passes):
        _pass(code, shape, each)
        if number < len(shape.passes) - 1 or any(written for *_, written in shape.own):
            _add_up(code)
    for number, values, item, written in shape.own:
        if written:
            _own(code, shape, number, values, item, store=True)
    code.exit()
    return Program(shape.name, (tuple(code.ops),), WARPS, shape.registers, 2 * WARPS * 4, _args(shape))


def _args(shape: _Shape) -> int:
    return len(shape.items) + len({number for number, *_ in shape.own})


def _own(code: Code, shape: _Shape, number: int, values: int, item: int, *, store: bool = False) -> None:
    """Load or store the values of the channel: one warp stores, all load."""
    for first in range(0, values, WARP):
        lanes = (1 << min(WARP, values - first)) - 1
        arg = len(shape.items) + number
        made = paired(Pattern(arg, item, base=first * item, bx=values * item, s0=item, lanes=lanes))
        if store:
            idle = Pattern(arg, made.width, lanes=0)
            code.store(1, made, *[idle] * (WARPS - 1), level=2)
        else:
            code.load(0, made, level=2)


def _add_up(code: Code) -> None:
    """Add the sums of a TB: within warps, then among them through shared memory; all get the result."""
    shuffles(code, 2, fp32=2)
    code.compute(smem=2, smem_ops=2, chain=4)
    code.barrier()
    code.compute(smem=2, smem_ops=2, fp32=2, chain=23)
    shuffles(code, 2, fp32=2)
    code.barrier()
    code.compute(fp32=20, sfu=2, int=8, control=2, chain=60)


def _pixels(shape: _Shape, each: Pass) -> int:
    """Return the pixels of a plane that a pass goes over."""
    return shape.pixels[(*each.reads, *each.writes)[0]]


def _pass(code: Code, shape: _Shape, each: Pass) -> None:
    """Go over all images: planes of one at a time in turns, or several planes at a time."""
    pixels = _pixels(shape, each)
    vector = next(v for v in (WIDEST // max(shape.items), 2, 1) if pixels % v == 0)
    wide = -(-pixels // (vector * WARP))  # warps that a plane fills
    if wide * 2 > WARPS:
        _by_turns(code, shape, each, vector)
        return
    many = min(shape.count, WARPS // wide)
    whole, rest = divmod(shape.count, many)
    if whole:
        mark = code.loop_begin()
        _touch(code, shape, each, vector, (0,), planes=many, step=many, level=0)
        code.loop_end(mark, whole)
    if rest:
        _touch(code, shape, each, vector, (0,), planes=rest, first=whole * many, level=2)


def _by_turns(code: Code, shape: _Shape, each: Pass, vector: int) -> None:
    """Go over the plane of an image in turns of all threads, some loads at once; then the next image."""
    turns, rest = divmod(_pixels(shape, each) // vector, THREADS)
    outer = code.loop_begin()
    groups, more = divmod(turns, UNROLL)
    if groups:
        mark = code.loop_begin()
        _touch(code, shape, each, vector, range(UNROLL), turn_step=UNROLL, level=0, outer=True)
        code.loop_end(mark, groups)
    if more:
        _touch(code, shape, each, vector, range(groups * UNROLL, turns), level=1, step=1)
    if rest:
        _touch(code, shape, each, vector, (turns,), level=1, step=1, left=rest)
    code.loop_end(outer, shape.count, level=1)


def _touch(
    code: Code,
    shape: _Shape,
    each: Pass,
    vector: int,
    turns: Sequence[int],
    *,
    level: int,
    planes: int = 0,
    first: int = 0,
    step: int = 0,
    turn_step: int = 0,
    left: int = THREADS,
    outer: bool = False,
) -> None:
    """Load what a pass reads, compute, and store what it writes.

    ``planes``: of images side by side, from image ``first`` on (0: one, by all threads); ``step``: images
    that a round of the loop of ``level`` moves, ``turn_step``: turns; ``outer``: images are a loop around.
    """

    def patterns(arg: int, turn: int) -> tuple[Pattern, ...]:
        size, pixels = shape.items[arg], shape.pixels[arg]
        plane, image = pixels * size, shape.channels * pixels * size
        moves: dict[str, Any] = {"bx": plane, "step": step * image + turn_step * THREADS * vector * size}
        if outer:
            moves |= {"step2": image, "level2": 1}
        made = []
        for warp in range(WARPS):
            if planes:
                wide = -(-pixels // (vector * WARP))
                number, part = divmod(warp, wide)
                lanes = min(WARP, pixels // vector - part * WARP) if number < planes else 0
                base = (first + number) * image + part * WARP * vector * size
            else:
                lanes = min(WARP, max(0, left - warp * WARP))
                base = (turn * THREADS + warp * WARP) * vector * size
            base = base if lanes else 0
            made.append(
                paired(
                    Pattern(arg, vector * size, base=base, s0=vector * size, lanes=(1 << lanes) - 1, **moves)
                )
            )
        return tuple(made)

    for turn in turns:
        for arg in each.reads:
            code.load(0, *patterns(arg, turn), level=level)
    code.wait(0)
    each.work.times(vector * len(turns)).emit(code)
    for turn in turns:
        for arg in each.writes:
            code.store(1, *patterns(arg, turn), level=level)
