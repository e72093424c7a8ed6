"""Tensors side by side in the rows of another (``torch.cat`` along features), and copies between layouts.

``cat`` of PyTorch takes whole tensors of any strides in one launch (``CatArrayBatchedCopy``); here a thread
block copies a row of one of them, a vector a thread: the same bytes in one launch, not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Op
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.memory.pointwise_parts import Work, flat, line
from pysim.workloads.library.memory.strided import View, dense, strided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

VECTOR = 16  # bytes of a thread
MOST_THREADS = 256
BEGIN = Work(ints=40, control=4)
CAT, COPY = stand_in("CatArrayBatchedCopy"), stand_in("direct_copy_kernel")
SPREAD = stand_in("nothing: states begin at multiples of 256 B here", measured=False)


@dataclass(frozen=True, slots=True)
class _Rows:
    """An argument: bytes of a row that are copied, from one row to the next, and before the first."""

    arg: int
    size: int
    pitch: int
    first: int


def side_by_side(tape: Tape, values: Sequence[Value]) -> Value:
    """Return the columns of several tensors of as many rows, in their order.

    Backward: the gradient of each is copied out, as who takes it wants it contiguous.
    """
    tensors = [value.tensor for value in values]
    made = tape.memory.tensor("cat", tensors[0].rows, sum(t.cols for t in tensors), tensors[0].item)
    tape.launch([cat_rows(tensors, made)])

    def backward(given: Gradients) -> Gradients:
        gradient, found, col = one(given), list[Tensor](), 0
        for tensor in tensors:
            back = tape.memory.tensor("grad_cat", tensor.rows, tensor.cols, tensor.item)
            sizes = tensor.cols, tensor.rows
            source = View(gradient, (1, gradient.cols), col)
            kernel = strided("copy", sizes, [source], dense(back, sizes), Work(), _each(tensor.item))
            tape.launch([replace(kernel, library=COPY)])
            found.append(back)
            col += tensor.cols
        return found

    return tape.record((made,), values, backward)[0]


def turned(tape: Tape, x: Value, outer: int, inner: int) -> Value:
    """Return [outer * inner, cols] as [inner * outer, cols]: steps of a sequence one below the other."""
    if 1 in (outer, inner):
        return x  # is that already
    made = _turned(tape, x.tensor, outer, inner)

    def backward(given: Gradients) -> Gradients:
        return (_turned(tape, one(given), inner, outer),)

    return tape.record((made,), (x,), backward)[0]


def spread(tape: Tape, x: Value, steps: int, batch: int, room: int) -> Value:
    """Return rows of ``batch`` sequences a step as such of ``room``, of which the last have no meaning.

    Of fewer sequences than ``batch`` only those are kept. Backward: the same the other way round.
    """
    made = _spread(tape, x.tensor, steps, batch, room)

    def backward(given: Gradients) -> Gradients:
        return (_spread(tape, one(given), steps, room, batch),)

    return tape.record((made,), (x,), backward)[0]


def _spread(tape: Tape, source: Tensor, steps: int, batch: int, room: int) -> Tensor:
    cols, item = source.cols, source.item
    made, sizes = tape.memory.tensor("spread", steps * room, cols, item), (min(batch, room) * cols, steps)
    views = View(flat(source), (1, batch * cols)), View(flat(made), (1, room * cols))
    kernel = strided("copy", sizes, views[:1], views[1], Work(), _each(item))
    tape.launch([replace(kernel, library=SPREAD)])
    return made


def _turned(tape: Tape, source: Tensor, outer: int, inner: int) -> Tensor:
    cols = source.cols
    made = tape.memory.tensor("turned", source.rows, cols, source.item)
    sizes = cols, outer, inner
    view = View(source, (1, inner * cols, cols))
    kernel = strided("copy", sizes, [view], dense(made, sizes), Work(), _each(source.item))
    tape.launch([replace(kernel, library=COPY)])
    return made


def _each(item: int) -> int:
    return 2 if item > 2 else 4


def cat_rows(sources: Sequence[Tensor], target: Tensor) -> Kernel:
    """Return the copy of tensors side by side into the rows of ``target``.

    Raises WorkloadError for other rows, and for rows that are no whole vectors of warps.
    """
    item, rows = target.item, target.rows
    wide = [source.cols * item for source in sources]
    if any((s.rows, s.item) != (rows, item) for s in sources) or sum(wide) != target.pitch:
        raise WorkloadError(f"cat: {len(sources)} tensors into {rows} x {target.cols}: must fill its rows")
    if any(size % (VECTOR * WARP) for size in wide):
        raise WorkloadError(f"cat: rows of {wide} B: must be multiples of {VECTOR * WARP} B")
    first = [sum(wide[:number]) for number in range(len(wide))]
    code = [
        _code(_Rows(number, size, size, 0), _Rows(len(wide), size, target.pitch, first[number]))
        for number, size in enumerate(wide)
    ]
    threads = max(len(each) for each in code)
    code = [each + (_idle(),) * (threads - len(each)) for each in code]
    order = np.repeat(np.arange(len(wide)), rows).astype(np.uint32)
    program = warp_specialized("cat", code, order, registers=32, smem=0, args=len(wide) + 1)
    accesses = []
    for number, source in enumerate(sources):
        part = partial(_row, rows, number)
        accesses.append(Access(source, "read", partial(part, 0, source.cols)))
        accesses.append(Access(target, "write", partial(part, first[number] // item, source.cols)))
    grid = (rows, len(wide), 1)
    return Kernel("cat", program, grid, (*sources, target), tuple(accesses), library=CAT)


def _row(rows: int, number: int, col: int, cols: int, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
    row, there = np.asarray(tbs, np.int64) % rows, np.asarray(tbs, np.int64) // rows == number
    zero = np.zeros_like(row)
    return np.stack([row, row + there, zero + col, zero + col + cols], 1)


@lru_cache(maxsize=64)
def _code(read: _Rows, store: _Rows) -> tuple[tuple[Op, ...], ...]:
    """Return the code of each warp of a thread block that copies a row."""
    threads = min(MOST_THREADS, read.size // VECTOR)
    whole, rest = divmod(read.size, threads * VECTOR)
    made = []
    for warp in range(threads // WARP):
        code = Code()
        BEGIN.emit(code)
        for turn in range(whole + bool(rest)):
            at = turn * threads * VECTOR + warp * WARP * VECTOR
            if at >= read.size:
                break
            code.load(0, *line(read.arg, VECTOR, WARP, base=read.first + at, bx=read.pitch))
            code.wait(0)
            code.store(1, *line(store.arg, VECTOR, WARP, base=store.first + at, bx=store.pitch))
        code.exit()
        made.append(tuple(code.ops))
    return tuple(made)


@lru_cache(maxsize=1)
def _idle() -> tuple[Op, ...]:
    code = Code()
    code.exit()
    return tuple(code.ops)
