"""Rows of a table by index, as PyTorch's embedding takes them.

``vectorized_gather_kernel<16>``: a TB a row, 16 B a thread; ``indexSelectSmallIndex`` up to 16 indices: the
threads share a row's elements and take the indices one after another. Shapes follow
ATen/native/cuda (IndexKernelUtils, Indexing) of PyTorch 2.11. The sum of gradients of equal indices
(``embedding_dense_backward``) was not measured and has no template.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Op, Program
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.arguments import check_sizes
from pysim.workloads.library.hopper import SMS

from .pointwise_parts import Work, line, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 16  # indices up to which the other kernel is chosen
FEW_THREADS, FEW_TBS_SM = 128, 8
MOST_THREADS = 256
INDEX = 8  # bytes
MOST_INDICES = 2**24  # each is a TB, or a step of a loop: some seconds to make
BEGIN = Work(ints=24, control=6, wait=420)  # range check of the index, 64-bit addresses
BETWEEN = Work(ints=40, control=4, wait=280)  # IndexToOffset divides twice an index: by reason


def gather_shape(indices: int, cols: int, item: int) -> tuple[int, int]:
    """Return TBs and threads of a gather of rows of ``cols`` elements."""
    if indices <= FEW:
        return min(-(-cols // FEW_THREADS), SMS * FEW_TBS_SM), FEW_THREADS
    return indices, min(MOST_THREADS, -(-cols * item // 16 // WARP) * WARP)


def drawn(indices: int, table_rows: int, seed: int = 1) -> NDArray[np.int64]:
    """Return random rows of a table, as a measurement draws them."""
    check_sizes("embedding", most=MOST_INDICES, indices=indices)
    return np.random.default_rng(seed).integers(0, table_rows, indices)


def gather(table: Tensor, index: Tensor, target: Tensor, taken: NDArray[np.int64]) -> Kernel:
    """Return the kernel that copies row ``taken[i]`` of ``table`` to row i of ``target``.

    ``index``: the tensor that holds the numbers, of 8 B. Rows wider than 4 KiB take a TB for each 4 KiB, the
    y of the grid. Raises WorkloadError for rows that are no whole vectors of 16 B.
    """
    indices, cols, item = target.rows, target.cols, target.item
    grid, threads = gather_shape(indices, cols, item)
    if len(taken) != indices or table.cols != cols or index.rows * index.cols != indices:
        raise WorkloadError(f"gather: {len(taken)} indices for {indices} rows of {cols}")
    if int(taken.min()) < 0 or int(taken.max()) >= table.rows:
        raise WorkloadError(f"gather: index {int(taken.max())}: the table has {table.rows} rows")
    if indices <= FEW:
        return _few(table, index, target, taken)
    if cols * item % 16:
        raise WorkloadError(f"gather: rows of {cols * item} B: must be multiples of 16")
    row, wide = cols * item, threads * 16
    parts = -(-row // wide)
    # the row of the table is data: a list of TBs' programs would be as long as the grid, so that equal rows
    # of code differ only in the base of one load
    lists: dict[tuple[int, bool], tuple[Op, ...]] = {}
    for last in (False, True) if parts > 1 else (True,):
        active = (row - (parts - 1) * wide if last else wide) // 16
        of_index = line(1, 8, threads, bx=INDEX, active=1)
        of_table = line(0, 16, threads, by=wide, active=active)
        of_target = line(2, 16, threads, bx=row, by=wide, active=active)
        for number in np.unique(taken).tolist():
            code = Code()
            code.compute(int=8, control=1)
            code.load(0, *of_index, level=2)
            code.wait(0)
            BEGIN.emit(code)
            code.load(0, *(replace(each, base=each.base + number * row) for each in of_table), level=2)
            code.wait(0)
            code.store(1, *of_target, level=2)
            code.exit()
            lists[number, last] = tuple(code.ops)
    place = {key: at for at, key in enumerate(lists)}
    tb_rows = np.array(
        [place[number, part == parts - 1] for part in range(parts) for number in taken.tolist()], np.uint32
    )
    code_rows = [(ops,) * (threads // WARP) for ops in lists.values()]
    program = warp_specialized("gather", code_rows, tb_rows, registers=32, smem=0, args=3)

    def part_of(tbs: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.asarray(tbs, np.int64) // indices * (wide // item)
        return np.stack([at, at + 1, first, np.minimum(first + wide // item, cols)], axis=1)

    def number_of(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.asarray(tbs, np.int64) % indices
        return np.stack([np.zeros_like(at), np.ones_like(at), at, at + 1], axis=1)

    accesses = (
        Access(table, "read", lambda tbs: part_of(tbs, taken[np.asarray(tbs, np.int64) % indices])),
        Access(index, "read", number_of),
        Access(target, "write", lambda tbs: part_of(tbs, np.asarray(tbs, np.int64) % indices)),
    )
    return Kernel("gather", program, (grid, parts, 1), (table, index, target), accesses)


def _few(table: Tensor, index: Tensor, target: Tensor, taken: NDArray[np.int64]) -> Kernel:
    cols, item, indices = target.cols, target.item, target.rows
    grid, threads = gather_shape(indices, cols, item)
    if cols > grid * threads:
        raise WorkloadError(f"gather: rows of {cols} elements: at most {grid * threads} of few indices")
    program = _few_program(tuple(taken.tolist()), cols, item)
    wide = threads

    def of_columns(tensor: Tensor, row: int) -> Access:
        def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
            first = np.minimum(np.asarray(tbs, np.int64) * wide, cols)
            at = np.full_like(first, row)
            return np.stack([at, at + 1, first, np.minimum(first + wide, cols)], axis=1)

        return Access(tensor, "write" if tensor is target else "read", regions)

    accesses = [of_columns(table, row) for row in sorted(set(taken.tolist()))]
    accesses += [of_columns(target, row) for row in range(indices)]
    accesses.append(whole(index))
    return Kernel("gather_few", program, (grid, 1, 1), (table, index, target), tuple(accesses))


@lru_cache(maxsize=64)
def _few_program(taken: tuple[int, ...], cols: int, item: int) -> Program:
    """Index, row and store follow each other: the compiler cannot know that the target is not the table."""
    last = (cols - 1) % FEW_THREADS + 1
    variants = []
    for number in range(8):
        active = last if number & 1 else FEW_THREADS
        code = Code()
        code.compute(int=12, control=2)
        for at, row in enumerate(taken):
            code.load(0, *line(1, 8, FEW_THREADS, base=at * INDEX, active=1), level=2)
            code.wait(0)
            BETWEEN.emit(code)
            moved = FEW_THREADS * item
            code.load(
                0, *line(0, item, FEW_THREADS, base=row * cols * item, bx=moved, active=active), level=2
            )
            code.wait(0)
            code.store(
                1, *line(2, item, FEW_THREADS, base=at * cols * item, bx=moved, active=active), level=2
            )
        code.exit()
        variants.append(tuple(code.ops))
    return Program("gather_few", tuple(variants), FEW_THREADS // WARP, 32, 0, 3)
