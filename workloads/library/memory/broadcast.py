"""Element-wise kernels of PyTorch with an operand of another kind: a mask of bytes, rows that repeat."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Program
from pysim.workloads.kernels.tiles import WARP

from .offsets import offset_work
from .pointwise_costs import CONVERT
from .pointwise_flat import BEGIN, vectorised
from .pointwise_parts import Work, flat, line, spans
from .strided import View, dense, strided

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS, EACH = 128, 4
CHUNK = THREADS * EACH  # elements of a TB
PLACE = offset_work(2, 3)
MASKED = Work(fp32=2, ints=2)  # a byte to a number, and two products


def masked_scale(gradient: Tensor, mask: Tensor, target: Tensor) -> Kernel:
    """Return the gradient of a dropout: ``gradient`` times ``mask`` (a byte an element) times a number."""
    work = Work(MASKED.fp32, MASKED.ints + (2 * CONVERT if target.item == 2 else 0))
    return vectorised("masked_scale", [gradient, mask], [target], work)


def add_repeated(a: Tensor, rows: Tensor, target: Tensor) -> Kernel:
    """Return ``a`` plus ``rows``, which are repeated all along ``a``; ``elementwise_kernel<128, 4>``.

    Each element is loaded and stored before the next, as pointers may alias. Where ``rows`` are no whole TBs,
    ``strided`` stands in. Raises WorkloadError where ``a`` is no whole number of ``rows``.
    """
    size, period = a.rows * a.cols, rows.rows * rows.cols
    if size % period or not a.item == rows.item == target.item:
        raise WorkloadError(f"add of {size} elements and {period}, repeated: a whole number, of one type")
    if period % CHUNK:
        sizes = period, size // period
        inputs = dense(a, sizes), View(flat(rows), (1, 0))
        return strided("add_repeated", sizes, inputs, dense(target, sizes), Work(1, 3 * CONVERT), EACH)
    grid = (period // CHUNK, size // period, 1)
    views = flat(a), flat(rows), flat(target)

    def once(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) % grid[0] * CHUNK
        zero = np.zeros_like(first)
        return np.stack([zero, zero + 1, first, first + CHUNK], 1)

    accesses = spans(views[0], "read", CHUNK), Access(views[1], "read", once), spans(views[2], "write", CHUNK)
    return Kernel("add_repeated", _repeated(a.item, period), grid, views, accesses)


@lru_cache(maxsize=64)
def _repeated(item: int, period: int) -> Program:
    code = Code()
    BEGIN.emit(code)
    for turn in range(EACH):
        base, bx, by = turn * THREADS * item, CHUNK * item, period * item
        PLACE.emit(code)
        code.load(turn, *line(0, item, THREADS, base=base, bx=bx, by=by))
        code.load(turn, *line(1, item, THREADS, base=base, bx=bx))
        code.wait(turn)
        code.compute(fp32=1, int=3 * CONVERT)
        code.store(EACH, *line(2, item, THREADS, base=base, bx=bx, by=by))
    code.exit()
    return Program("add_repeated", (tuple(code.ops),), THREADS // WARP, 32, 0, 3)
