"""Copies between [batch * seq, heads * d] and [batch * heads * seq, d], as PyTorch makes views contiguous.

``elementwise_kernel<128, 4>``: 512 elements of the result a TB, four of a thread 128 apart. Each is loaded
and stored before the next one's load, as pointers may alias; divisions give its source's place
(ATen, native/cuda/CUDALoops). The grid is measured as
one row of TBs; here it has the same TBs in the same order as rows of a head, heads and batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

from .offsets import offset_work
from .pointwise_flat import BEGIN
from .pointwise_parts import Work, flat
from .strided import View, dense, strided

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS, EACH = 128, 4
CHUNK = THREADS * EACH  # elements of a TB
PLACE = offset_work(4, 2)
Way = Literal["split", "merge", "split_turned"]


@dataclass(frozen=True, slots=True)
class Heads:
    """``batch`` sequences of ``seq`` rows, in which ``heads`` have ``d`` columns each."""

    batch: int
    seq: int
    heads: int
    d: int

    def full(self, way: Way) -> bool:
        """Whether TBs of so many elements are whole rows of a head."""
        if (self.seq * self.d) % CHUNK or self.d % WARP or CHUNK % self.d:
            return False
        if way != "split_turned":
            return True
        return self.seq % WARP == 0 and (
            CHUNK % self.seq == 0 or (self.seq % CHUNK == 0 and (self.batch == 1 or self.seq == CHUNK))
        )

    def check(self, name: str, wide: Tensor, col0: int, narrow: tuple[int, int]) -> None:
        """Raise WorkloadError where the tensors do not fit."""
        if wide.rows != self.batch * self.seq or col0 + self.heads * self.d > wide.cols:
            raise WorkloadError(f"{name}: {wide.name} is {wide.rows} x {wide.cols}: no {self} at {col0}")
        if narrow[0] * narrow[1] != self.batch * self.heads * self.seq * self.d:
            raise WorkloadError(f"{name}: {narrow[0]} x {narrow[1]} elements are not those of {self}")


@dataclass(frozen=True, slots=True)
class _Shape:
    way: Way
    heads: Heads
    pitch: int  # bytes of a row of the wide tensor
    col0: int
    item: int


def _long(way: Way, h: Heads) -> bool:
    """Whether a TB takes a part of a row of the result: x goes along seq, y along d, z over heads."""
    return way == "split_turned" and h.seq > CHUNK


def _grid(way: Way, h: Heads) -> tuple[int, int, int]:
    """Return the TBs along a head's elements, heads and batches; of long turned rows: seq, d and heads."""
    if _long(way, h):
        return h.seq // CHUNK, h.d, h.heads
    return h.seq * h.d // CHUNK, h.heads, h.batch


def _strides(shape: _Shape) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return bytes from a TB to the next in x, y and z: in the wide tensor, and in the heads."""
    h, item, pitch = shape.heads, shape.item, shape.pitch
    head = h.seq * h.d * item
    if _long(shape.way, h):
        return (CHUNK * pitch, item, h.d * item), (CHUNK * item, h.seq * item, head)
    along = CHUNK // h.seq * item if shape.way == "split_turned" else CHUNK // h.d * pitch
    return (along, h.d * item, h.seq * pitch), (CHUNK * item, head, head * h.heads)


def _pieces(shape: _Shape, arg: int, *, wide: bool) -> list[tuple[Pattern, ...]]:
    """Return the accesses of a TB, four instructions of four warps: of the wide tensor, or of the heads."""
    h, item = shape.heads, shape.item
    strides = _strides(shape)[0 if wide else 1]
    turned = shape.way == "split_turned"  # lanes take neighbouring rows of the wide tensor
    made = []
    for turn in range(EACH):
        patterns = []
        for warp in range(THREADS // WARP):
            first = turn * THREADS + warp * WARP
            base, apart = first * item, item
            if wide:
                row, col = (first % h.seq, first // h.seq) if turned else (first // h.d, first % h.d)
                base = row * shape.pitch + (shape.col0 + col) * item
                apart = shape.pitch if turned else item
            x, y, z = strides
            patterns.append(Pattern(arg, item, base=base, s0=apart, bx=x, by=y, bz=z))
        made.append(tuple(patterns))
    return made


@lru_cache(maxsize=128)
def _program(shape: _Shape) -> Program:
    code = Code()
    reads = _pieces(shape, 0, wide=shape.way != "merge")
    writes = _pieces(shape, 1, wide=shape.way == "merge")
    BEGIN.emit(code)
    for number, (source, target) in enumerate(zip(reads, writes, strict=True)):
        PLACE.emit(code)
        code.load(number, *source)
        code.wait(number)
        code.store(EACH, *target)
    code.exit()
    return Program(f"heads_{shape.way}", (tuple(code.ops),), THREADS // WARP, 32, 0, 2)


def head_copy(way: Way, heads: Heads, wide: Tensor, narrow: Tensor, col0: int = 0) -> Kernel:
    """Return a copy of heads out of [batch * seq, ...] (``split_turned``: transposed), or back into it.

    ``wide``: [batch * seq, cols], of which ``heads * d`` columns from ``col0`` on are used; ``narrow``:
    [batch * heads * seq, d], turned [batch * heads * d, seq]. Where TBs would cut rows, ``strided``
    stands in. Raises WorkloadError for tensors that do not fit.
    """
    name = f"copy {way}"
    heads.check(name, wide, col0, (narrow.rows, narrow.cols))
    if not heads.full(way):
        return _ragged(way, heads, wide, narrow, col0)
    shape = _Shape(way, heads, wide.cols * wide.item, col0, wide.item)
    grid = _grid(way, heads)

    def of(tbs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return tbs % grid[0], tbs // grid[0] % grid[1], tbs // (grid[0] * grid[1])

    def of_wide(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        x, head, batch = of(np.asarray(tbs, np.int64))
        if _long(way, heads):
            at = col0 + batch * heads.d + head
            return np.stack([x * CHUNK, (x + 1) * CHUNK, at, at + 1], 1)
        rows, first = CHUNK // heads.d, batch * heads.seq
        at = col0 + head * heads.d
        if way == "split_turned":
            cols = CHUNK // heads.seq
            return np.stack([first, first + heads.seq, at + x * cols, at + (x + 1) * cols], 1)
        return np.stack([first + x * rows, first + (x + 1) * rows, at, at + heads.d], 1)

    def of_narrow(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        x, head, batch = of(np.asarray(tbs, np.int64))
        if _long(way, heads):
            first = batch * heads.d + head
            return np.stack([first, first + 1, x * CHUNK, (x + 1) * CHUNK], 1)
        high = CHUNK // narrow.cols
        first = (batch * heads.heads + head) * (heads.seq * heads.d // narrow.cols) + x * high
        zero = np.zeros_like(x)
        return np.stack([first, first + high, zero, zero + narrow.cols], 1)

    source, target = (narrow, wide) if way == "merge" else (wide, narrow)
    access = (of_narrow, of_wide) if way == "merge" else (of_wide, of_narrow)
    return Kernel(
        name.replace(" ", "_"),
        _program(shape),
        grid,
        (source, target),
        (Access(source, "read", access[0]), Access(target, "write", access[1])),
    )


def _ragged(way: Way, h: Heads, wide: Tensor, narrow: Tensor, col0: int) -> Kernel:
    """Return the copy with TBs that end at whole rows."""
    along, pitch = [1, wide.cols], wide.cols
    sizes = [h.d, h.seq, h.heads, h.batch]
    if way == "split_turned":
        sizes[:2], along = [h.seq, h.d], [wide.cols, 1]
    outside = View(flat(wide) if h.heads * h.d == pitch else wide, (*along, h.d, h.seq * pitch), col0)
    inside = dense(narrow, sizes)
    source, target = (inside, outside) if way == "merge" else (outside, inside)
    return strided(f"copy_{way}", sizes, [source], target, Work(), EACH)
