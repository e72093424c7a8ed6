"""Rows that are added to rows of a table by index, as PyTorch's ``index_add_`` of a batch of rows does.

A TB a row: the index, then the row in vectors of 16 B, which atomics add to the table in L2, 4 B a lane
(ATen/native/cuda/Indexing.cu, ``indexFuncLargeIndex``, which has the same work in other TBs). Not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Op
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_gather import INDEX
from .pointwise_parts import line, rows, spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

THREADS, REGISTERS = 256, 32
WIDE, ATOMIC = 16, 4  # bytes of a lane: of a load, of an addition


def index_add(source: Tensor, index: Tensor, table: Tensor, taken: Ints) -> Kernel:
    """Return the kernel that adds row i of ``source`` to row ``taken[i]`` of ``table``.

    ``index``: the tensor that holds the numbers, of 8 B. Raises WorkloadError for other columns, rows that
    are no whole vectors of 16 B, and numbers beyond the table.
    """
    many, row = source.rows, source.pitch
    if (table.cols, table.item) != (source.cols, source.item) or len(taken) != many or row % WIDE:
        raise WorkloadError(f"index_add: {len(taken)} rows of {row} B into {table.rows} x {table.cols}")
    if not 0 <= int(taken.min()) <= int(taken.max()) < table.rows:
        raise WorkloadError(f"index_add: row {int(taken.max())}: the table has {table.rows}")
    lists = {number: _code(number, row) for number in np.unique(taken).tolist()}
    place = {number: at for at, number in enumerate(lists)}
    order = np.array([place[number] for number in taken.tolist()], np.uint32)
    code = [(ops,) * (THREADS // WARP) for ops in lists.values()]
    program = warp_specialized("index_add", code, order, registers=REGISTERS, smem=0, args=3)

    def target(tbs: Ints) -> Ints:
        at = taken[np.asarray(tbs, np.int64)]
        zero = np.zeros_like(at)
        return np.stack([at, at + 1, zero, zero + table.cols], 1)

    accesses = rows(source, "read"), spans(index, "read", 1), Access(table, "update", target)
    library = stand_in("indexFuncLargeIndex")
    return Kernel("index_add", program, (many, 1, 1), (source, index, table), accesses, library=library)


def _code(number: int, row: int) -> tuple[Op, ...]:
    """Return the code of a TB that adds to row ``number``; ``row``: bytes."""
    code = Code()
    code.compute(int=20, control=3)
    code.load(0, *line(1, INDEX, THREADS, bx=INDEX, active=1), level=2)
    code.wait(0)
    for first in range(0, row, THREADS * WIDE):
        active = min(THREADS, (row - first) // WIDE)
        code.load(0, *line(0, WIDE, THREADS, base=first, bx=row, active=active), level=2)
    code.wait(0)
    for first in range(0, row, THREADS * ATOMIC):
        active = min(THREADS, (row - first) // ATOMIC)
        code.compute(int=4)
        code.reduce(1, *line(2, ATOMIC, THREADS, base=number * row + first, active=active), level=2)
    code.exit()
    return tuple(code.ops)
