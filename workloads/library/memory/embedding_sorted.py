"""Gradient of an embedding with more than 3,072 indices, as PyTorch computes it once they are sorted.

``embedding_backward_cuda_kernel`` (ATen/native/cuda/EmbeddingBackwardKernel.cu, 2.11): rows of the gradient
with equal indices are a segment; parts of ten rows of a segment are added in fp32 (``compute_grad_weight``),
then the parts of each segment (``sum_and_scatter``). Both stand in, not measured; what sorts the indices, a
few kernels of one pass over 8 B an index, is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Memory, Mode, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Op, Pattern
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import Work, line

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

PART, FLOAT, THREADS, REGISTERS = 10, 4, 256, 32
BEGIN, ROW = Work(ints=30, control=6), Work(ints=8, fp32=1, control=1)
STANDS_IN = stand_in("", measured=False)


def embedding_backward_sorted(
    gradient: Tensor, table: Tensor, taken: Ints, memory: Memory
) -> tuple[Kernel, Kernel]:
    """Return the kernels that add row i of ``gradient`` to row ``taken[i]`` of ``table``, its gradient.

    Raises WorkloadError where indices are not those of the rows.
    """
    if len(taken) != gradient.rows or not 0 <= taken.min() <= taken.max() < table.rows:
        raise WorkloadError(f"embedding_backward: {len(taken)} indices for {gradient.rows} rows")
    order = np.argsort(taken, kind="stable")
    numbers, starts, counts = np.unique(taken[order], return_index=True, return_counts=True)
    parts = [
        order[first : min(first + PART, start + count)]
        for start, count in zip(starts.tolist(), counts.tolist(), strict=True)
        for first in range(start, start + count, PART)
    ]
    shares = -(-counts // PART)
    sums = memory.tensor("partial_sums", len(parts), table.cols, FLOAT)
    first = np.cumsum(shares) - shares
    added = _sums("compute_grad_weight", gradient, sums, parts, np.arange(len(parts)))
    spread = [np.arange(at, at + many) for at, many in zip(first.tolist(), shares.tolist(), strict=True)]
    return added, _sums("sum_and_scatter", sums, table, spread, numbers)


def _sums(name: str, source: Tensor, target: Tensor, rows: list[Ints], to: Ints) -> Kernel:
    """Return a kernel that writes the sums of rows of ``source`` to rows ``to`` of ``target``.

    A TB a sum and 256 columns.
    """
    wide = -(-target.cols // THREADS)
    lists: list[tuple[Op, ...]] = []
    places = np.zeros((wide, len(rows)), np.uint32)
    for last in (False, True) if wide > 1 else (True,):
        active = target.cols - (wide - 1) * THREADS if last else THREADS
        lines = tuple(
            line(arg, tensor.item, THREADS, by=THREADS * tensor.item, active=active)
            for arg, tensor in enumerate((source, target))
        )
        for number, (taken, row) in enumerate(zip(rows, to.tolist(), strict=True)):
            places[wide - 1 if last else slice(0, wide - 1), number] = len(lists)
            lists.append(_code(source, target, taken, row, lines))
    program = warp_specialized(
        name,
        [(ops,) * (THREADS // WARP) for ops in lists],
        places.ravel(),
        registers=REGISTERS,
        smem=0,
        args=2,
    )
    most = max(len(taken) for taken in rows)
    table = np.full((len(rows), most), -1, np.int64)
    for number, taken in enumerate(rows):
        table[number, : len(taken)] = taken

    def access(tensor: Tensor, mode: Mode, of: Ints) -> Access:
        def regions(tbs: Ints) -> Ints:
            number, part = np.asarray(tbs, np.int64) % len(rows), np.asarray(tbs, np.int64) // len(rows)
            row = of[number]
            cols = part * THREADS
            there = row >= 0
            return np.stack(
                [
                    np.where(there, row, 0),
                    np.where(there, row + 1, 0),
                    cols,
                    np.minimum(cols + THREADS, tensor.cols),
                ],
                axis=1,
            )

        return Access(tensor, mode, regions)

    accesses = [access(source, "read", table[:, at]) for at in range(most)]
    accesses.append(access(target, "write", to))
    return Kernel(
        name, program, (len(rows), wide, 1), (source, target), tuple(accesses), library=STANDS_IN + name
    )


def _code(
    source: Tensor, target: Tensor, rows: Ints, row: int, lines: tuple[tuple[Pattern, ...], ...]
) -> tuple[Op, ...]:
    """Return the code of a TB; ``lines``: of a row of the source and of the target, of the first row."""
    code = Code()

    def at(which: int, base: int, step: int = 0) -> list[Pattern]:
        return [replace(each, base=each.base + base, step=step) for each in lines[which]]

    BEGIN.emit(code)
    apart = np.diff(rows)
    if len(rows) > 2 and (apart == apart[0]).all():
        mark = code.loop_begin()
        code.load(0, *at(0, int(rows[0]) * source.pitch, int(apart[0]) * source.pitch), level=0)
        code.wait(0)
        ROW.emit(code)
        code.loop_end(mark, len(rows))
    else:
        for number in rows.tolist():
            code.load(0, *at(0, number * source.pitch))
            code.wait(0)
            ROW.emit(code)
    code.store(1, *at(1, row * target.pitch))
    code.exit()
    return tuple(code.ops)
