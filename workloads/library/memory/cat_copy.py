"""``CatArrayBatchedCopy`` of PyTorch: tensors of one shape, one behind another, element by element.

A grid of 264 x tensors TBs of 512 threads; a thread takes an element, then one a grid further on, and finds
the place of each by integer divisions (ATen, native/cuda/Shape). TBs read what they copy as if it lay
contiguous: the gradients that are stacked here may be transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.hopper import SMS

from .pointwise_parts import Work, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS = 512
TBS_SM = 2  # of each tensor
REGISTERS = 32
BEGIN = Work(ints=20, control=4)
# of an element: four divisions and remainders, for source and target; their issue bounds the kernel (three
# tensors of 8 MiB take 51 us on an H200)
ELEMENT = Work(ints=62, control=2)


def cat(sources: Sequence[Tensor], target: Tensor, sms: int = SMS) -> Kernel:
    """Return the copy of ``sources``, one behind another, into ``target``.

    Raises WorkloadError for other sizes than equal ones, and for more than seven tensors.
    """
    size = sources[0].rows * sources[0].cols
    if any(s.rows * s.cols != size or s.item != target.item for s in sources):
        raise WorkloadError("cat: tensors of one size are known alone")
    if size * len(sources) != target.rows * target.cols or len(sources) > 7:
        raise WorkloadError(
            f"cat: {len(sources)} tensors of {size} elements into {target.rows * target.cols}: at most 7,"
            " which must fill it"
        )
    chunks, left = -(-size // THREADS), size % THREADS
    tbs = min(TBS_SM * sms, chunks)
    code = [
        _code((number, len(sources)), size, target.item, (chunks, tbs), more, rest)
        for number in range(len(sources))
        for more, rest in ((0, 0), (1, 0), (int(chunks % tbs > 0), left))
    ]
    x = np.arange(tbs * len(sources)) % tbs
    kind = np.where((x == (chunks - 1) % tbs) & (left > 0), 2, x < chunks % tbs)
    rows = np.arange(tbs * len(sources)) // tbs * 3 + kind
    program = warp_specialized(
        "cat",
        code,
        rows.astype(np.uint32),
        registers=REGISTERS,
        smem=0,
        args=len(sources) + 1,
    )
    out, inputs = flat(target), [flat(source) for source in sources]
    accesses = []
    for turn in range(-(-chunks // tbs)):
        part = partial(_part, turn, tbs, size)
        accesses += [Access(each, "read", partial(part, number, 0)) for number, each in enumerate(inputs)]
        accesses += [Access(out, "write", partial(part, number, number)) for number in range(len(inputs))]
    return Kernel("cat", program, (tbs, len(sources), 1), (*inputs, out), tuple(accesses))


def _part(
    turn: int, tbs: int, size: int, number: int, behind: int, numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return what TBs of tensor ``number`` take in a turn; ``behind`` tensors come before it in a row."""
    chunks = -(-size // THREADS)
    chunk = np.asarray(numbers, np.int64) % tbs + turn * tbs
    there = (np.asarray(numbers, np.int64) // tbs == number) & (chunk < chunks)
    first = behind * size + chunk * THREADS
    last, zero = np.minimum(first + THREADS, (behind + 1) * size), np.zeros_like(chunk)
    return np.stack([zero, there.astype(np.int64), np.where(there, first, 0), np.where(there, last, 0)], 1)


def _code(
    source: tuple[int, int], size: int, item: int, deal: tuple[int, int], more: int, left: int
) -> tuple[tuple[Op, ...], ...]:
    """Return the code of each warp of a TB of tensor ``source[0]`` of ``source[1]``.

    ``deal``: chunks of a tensor, and TBs that take them in turn; ``more``: with a turn that others have not;
    ``left``: elements of the last turn (0: all).
    """
    number, target = source
    turns = deal[0] // deal[1] + more - (left > 0)
    made = []
    for warp in range(THREADS // WARP):
        code = Code()
        BEGIN.emit(code)
        if turns:
            mark = code.loop_begin()
            ELEMENT.emit(code)
            bx, step, base = THREADS * item, deal[1] * THREADS * item, warp * WARP * item
            code.load(0, Pattern(number, item, base=base, s0=item, bx=bx, step=step))
            code.wait(0)
            behind = number * size * item
            code.store(1, Pattern(target, item, base=behind + base, s0=item, bx=bx, step=step))
            code.loop_end(mark, turns)
        if (lanes := min(left - warp * WARP, WARP)) > 0:
            bx, base, mask = (
                THREADS * item,
                (warp * WARP + turns * deal[1] * THREADS) * item,
                (1 << lanes) - 1,
            )
            ELEMENT.emit(code)
            code.load(0, Pattern(number, item, base=base, s0=item, bx=bx, lanes=mask))
            code.wait(0)
            behind = number * size * item
            code.store(1, Pattern(target, item, base=behind + base, s0=item, bx=bx, lanes=mask))
        code.exit()
        made.append(tuple(code.ops))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a tensor, from ``first`` on: what a concatenation along rows takes of each row."""

    tensor: Tensor
    first: int = 0


def cat_columns(sources: Sequence[Columns], cols: int, target: Tensor, sms: int = SMS) -> Kernel:
    """Return the copy of ``cols`` columns of each source, side by side in the rows of ``target``.

    Raises WorkloadError for other rows, and for columns that are no whole warps of a TB.
    """
    rows, item = target.rows, target.item
    if target.cols != cols * len(sources) or cols % WARP or THREADS % cols or rows * cols % THREADS:
        raise WorkloadError(f"cat: {len(sources)} x {cols} columns into {rows} x {target.cols}")
    for each in sources:
        t = each.tensor
        if (t.rows, t.item) != (rows, item) or not 0 <= each.first <= t.cols - cols:
            raise WorkloadError(f"cat: columns {each.first} to {each.first + cols} of {t.rows} x {t.cols}")
    chunks, high = rows * cols // THREADS, THREADS // cols
    tbs = min(TBS_SM * sms, chunks)
    code = []
    for number, each in enumerate(sources):
        read = _Rows(number, each.tensor.pitch, each.first * item, cols, item)
        store = _Rows(len(sources), target.pitch, number * cols * item, cols, item)
        code += [_rows_code(read, store, tbs, chunks // tbs + more) for more in (0, 1)]
    x = np.arange(tbs * len(sources)) % tbs
    order = np.arange(tbs * len(sources)) // tbs * 2 + (x < chunks % tbs)
    program = warp_specialized(
        "cat", code, order.astype(np.uint32), registers=REGISTERS, smem=0, args=len(sources) + 1
    )
    accesses = []
    for turn in range(-(-chunks // tbs)):
        for number, each in enumerate(sources):
            part = partial(_rows_part, turn, (tbs, chunks), high, number)
            accesses.append(Access(each.tensor, "read", partial(part, each.first, each.first + cols)))
            accesses.append(Access(target, "write", partial(part, number * cols, (number + 1) * cols)))
    args = (*(each.tensor for each in sources), target)
    return Kernel("cat", program, (tbs, len(sources), 1), args, tuple(accesses))


def _rows_part(
    turn: int, deal: tuple[int, int], high: int, number: int, col: int, end: int, numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rows and columns that TBs of tensor ``number`` take in a turn."""
    tbs, chunks = deal
    chunk = np.asarray(numbers, np.int64) % tbs + turn * tbs
    there = (np.asarray(numbers, np.int64) // tbs == number) & (chunk < chunks)
    zero = np.zeros_like(chunk)
    return np.stack(
        [chunk * high, np.where(there, (chunk + 1) * high, chunk * high), zero + col, zero + end], 1
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of an argument: bytes from one to the next, before the first, and elements of each."""

    arg: int
    pitch: int
    first: int
    cols: int
    item: int

    def pattern(self, warp: int, tbs: int) -> Pattern:
        """Return the access of a warp."""
        row, col = divmod(warp * WARP, self.cols)
        bx = THREADS // self.cols * self.pitch
        base = self.first + row * self.pitch + col * self.item
        return Pattern(self.arg, self.item, base=base, s0=self.item, bx=bx, step=tbs * bx)


def _rows_code(read: _Rows, store: _Rows, tbs: int, turns: int) -> tuple[tuple[Op, ...], ...]:
    """Return the code of each warp of a TB."""
    made = []
    for warp in range(THREADS // WARP):
        code = Code()
        BEGIN.emit(code)
        if turns:
            mark = code.loop_begin()
            ELEMENT.emit(code)
            code.load(0, read.pattern(warp, tbs))
            code.wait(0)
            code.store(1, store.pattern(warp, tbs))
            code.loop_end(mark, turns)
        code.exit()
        made.append(tuple(code.ops))
    return tuple(made)
