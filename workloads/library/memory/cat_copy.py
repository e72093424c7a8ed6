"""``CatArrayBatchedCopy`` of PyTorch: tensors of one shape, one behind another, element by element.

A grid of 264 x tensors TBs of 512 threads; a thread takes an element, then one a grid further on, and finds
the place of each by integer divisions (ATen, native/cuda/Shape). TBs read what they copy as if it lay
contiguous: the gradients that are stacked here may be transposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import SMS, Work, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS = 512
TBS = 2 * SMS  # of each tensor: multiprocessors times two
REGISTERS = 32
BEGIN = Work(ints=20, control=4)
# of an element: four divisions and remainders, for source and target; their issue bounds the kernel (three
# tensors of 8 MiB take 51 us on an H200)
ELEMENT = Work(ints=62, control=2)


def cat(sources: Sequence[Tensor], target: Tensor) -> Kernel:
    """Return the copy of ``sources``, one behind another, into ``target``.

    Raises WorkloadError for other sizes than equal ones of whole TBs, and for more than seven tensors.
    """
    size = sources[0].rows * sources[0].cols
    if any(s.rows * s.cols != size or s.item != target.item for s in sources):
        raise WorkloadError("cat: tensors of one size are known alone")
    if size * len(sources) != target.rows * target.cols or size % THREADS or len(sources) > 7:
        raise WorkloadError(
            f"cat: {len(sources)} tensors of {size} elements into {target.rows * target.cols}: at most 7, of"
            f" multiples of {THREADS}, that fill it"
        )
    chunks = size // THREADS
    tbs = min(TBS, chunks)
    code = [
        _code((number, len(sources)), size, target.item, (chunks, tbs), more)
        for number in range(len(sources))
        for more in (0, 1)
    ]
    x = np.arange(tbs * len(sources)) % tbs
    rows = np.arange(tbs * len(sources)) // tbs * 2 + (x < chunks % tbs)
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
        part = partial(_part, turn, tbs, chunks)
        accesses += [Access(each, "read", partial(part, number, 0)) for number, each in enumerate(inputs)]
        accesses += [Access(out, "write", partial(part, number, number)) for number in range(len(inputs))]
    return Kernel("cat", program, (tbs, len(sources), 1), (*inputs, out), tuple(accesses))


def _part(
    turn: int, tbs: int, chunks: int, number: int, behind: int, numbers: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return what TBs of tensor ``number`` take in a turn; ``behind`` tensors come before it in a row."""
    chunk = np.asarray(numbers, np.int64) % tbs + turn * tbs
    there = (np.asarray(numbers, np.int64) // tbs == number) & (chunk < chunks)
    first = (behind * chunks + chunk) * THREADS
    zero = np.zeros_like(chunk)
    return np.stack(
        [zero, there.astype(np.int64), np.where(there, first, 0), np.where(there, first + THREADS, 0)], 1
    )


def _code(
    source: tuple[int, int], size: int, item: int, deal: tuple[int, int], more: int
) -> tuple[tuple[Op, ...], ...]:
    """Return the code of each warp of a TB of tensor ``source[0]`` of ``source[1]``.

    ``deal``: chunks of a tensor, and TBs that take them in turn; ``more``: with a turn that others have not.
    """
    number, target = source
    turns = deal[0] // deal[1] + more
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
        code.exit()
        made.append(tuple(code.ops))
    return tuple(made)
