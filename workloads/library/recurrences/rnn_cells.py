"""Pointwise kernels of cuDNN's recurrent passes: cells, their gradients, bias gradients, transposed weights.

A cell is a thread for each element of [batch, H], 256 threads a thread block (TB), as the grids of the sweep
say (batch * H / 256 TBs). Which arrays a cell reads and writes follows from the mathematics of the cell and
from what the backward pass needs. Its time beside its loads is a chain of dependent instructions: index
divisions, exponentials and divisions of the gates, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP, Tile, tile_ops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.int64]

THREADS = 256
BIAS_COLUMNS = BIAS_ROWS = 32  # of a TB of 32 x 32 threads that sums a bias gradient
TURN = 32  # rows and columns of a tile that a warp transposes
SERIAL = 3  # gates of a cell whose loads wait for each other
FILL = 1024  # elements of a TB that clears a tensor: 128 threads of four elements each


@dataclass(frozen=True)
class Cost:
    """What the code costs beside its memory accesses: instructions, and cycles of those that depend.

    ``begin``: instructions of a cell before its loads; ``access``: for each load and store; ``gate``: of
    a gate. They follow from how a cell's time grows with the TBs of an SM (kernel times of the sweep,
    half ``fit``: 178, 340 and 408 a warp of vanilla, GRU and LSTM). ``wait``: cycles of a cell's chain before
    its loads, and for each gate after them, fitted to cells of one TB an SM. ``bias``: of 32 rows of a bias
    gradient, for each load of a row.
    """

    begin: int = 80
    access: int = 6
    gate: int = 22
    wait: tuple[int, int] = (500, 200)
    bias: int = 20


CELL = Cost()


@dataclass(frozen=True, slots=True)
class Field:
    """Columns of a tensor from ``col`` on, of the batch's rows, the first, that a cell reads or writes.

    ``shared``: one row for all the batch.
    """

    tensor: Tensor
    col: int = 0
    shared: bool = False


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the program of a cell depends on; ``fields``: (argument, pitch, item, first byte, shared)."""

    fields: tuple[tuple[int, int, int, int, bool], ...]
    reads: int
    cols: int
    gates: int
    cost: Cost


@lru_cache(maxsize=256)
def _cell_program(shape: _Shape) -> Program:
    warps, last, cost = THREADS // WARP, (shape.cols - 1) % THREADS + 1, shape.cost

    def ops(field: tuple[int, int, int, int, bool], wide: int) -> list[tuple[Pattern, ...]]:
        arg, pitch, item, first, shared = field
        tile = Tile(arg, pitch, item, 1, THREADS, bx=THREADS * item, by=0 if shared else pitch)
        return tile_ops(tile, warps, item, (1, wide), first)

    variants = []
    for number in range(8):
        wide, code = last if number & 1 else THREADS, Code()
        code.compute(int=cost.begin, chain=cost.wait[0])
        for field in shape.fields[: shape.reads]:
            code.compute(int=cost.access)
            for patterns in ops(field, wide):
                code.load(0, *patterns, level=2)
        code.wait(0)
        many = shape.gates
        code.compute(fp32=(cost.gate - 4) * many, sfu=4 * many, chain=cost.wait[1] * many)
        for field in shape.fields[shape.reads :]:
            code.compute(int=cost.access)
            for patterns in ops(field, wide):
                code.store(1, *patterns, level=2)
        code.exit()
        variants.append(tuple(code.ops))
    args = max(arg for arg, *_ in shape.fields) + 1
    return Program("rnn_cell", tuple(variants), warps, 32, 0, args)


def _cell_region(across: int, cols: int, field: Field, tbs: Table) -> Table:
    """Return the elements of a field that each TB touches."""
    row = np.zeros_like(tbs) if field.shared else tbs // across
    col = tbs % across * THREADS
    return np.stack([row, row + 1, field.col + col, field.col + np.minimum(col + THREADS, cols)], 1)


def cell_kernel(
    name: str, reads: Sequence[Field], writes: Sequence[Field], size: tuple[int, int], gates: int, cost: Cost
) -> Kernel:
    """Return a kernel that computes the same element of all fields; ``size``: batch and H."""
    batch, hidden = size
    fields = (*reads, *writes)
    args = tuple(dict.fromkeys(field.tensor for field in fields))
    across = -(-hidden // THREADS)
    layout = tuple(
        (
            args.index(f.tensor),
            f.tensor.pitch,
            f.tensor.item,
            f.col * f.tensor.item,
            f.shared,
        )
        for f in fields
    )
    program = _cell_program(_Shape(layout, len(reads), hidden, gates, cost))
    made = [Access(f.tensor, "read", partial(_cell_region, across, hidden, f)) for f in reads]
    made += [Access(f.tensor, "write", partial(_cell_region, across, hidden, f)) for f in writes]
    return Kernel(name, program, (across, batch, 1), args, tuple(made))


@lru_cache(maxsize=256)
def _bias_program(rows: int, hidden: int, gates: int, item: int, out: int, chain: int) -> Program:
    """Return code where a warp adds every 32nd row of 32 columns of a gate, and the TB the sums of its warps.

    A vanilla cell's takes two rows at once, a GRU's (whose candidate has another bias) one load at a time:
    times of 32 rows in the sweep are as 0.5, 1 and 2.
    """
    deep = BIAS_ROWS * (2 if gates == 1 else 1)  # rows of a step
    pitch, turns, code = gates * hidden * item, rows // deep, Code()
    code.compute(int=40, control=4, chain=200)

    def add(level: int, first: int, many: int) -> None:
        loads = [(first + at, gate) for at in range(0, deep, BIAS_ROWS) for gate in range(gates)]
        for base, gate in loads:
            patterns = [
                Pattern(
                    0, item, base=(base + warp) * pitch + gate * hidden * item, bx=BIAS_COLUMNS * item,
                    step=deep * pitch, s0=item, lanes=0xFFFFFFFF if base - first + warp < many else 0,
                )
                for warp in range(BIAS_ROWS)
            ]  # fmt: skip
            code.load(0, *patterns, level=level)
            if (base, gate) == loads[-1] or gates == SERIAL:
                code.wait(0)
            code.compute(fp32=1, int=10, chain=chain)

    if turns:
        mark = code.loop_begin()
        add(0, 0, deep)
        code.loop_end(mark, turns)
    if rows % deep:
        add(2, turns * deep, rows % deep)
    code.compute(smem=gates, smem_ops=gates, chain=30)
    code.barrier()
    code.compute(smem=gates, smem_ops=gates, fp32=5 * gates, chain=150)
    for gate in range(gates):
        sums = Pattern(1, out, base=gate * hidden * out, bx=BIAS_COLUMNS * out, s0=out)
        none = Pattern(1, out, base=gate * hidden * out, bx=BIAS_COLUMNS * out, s0=out, lanes=0)
        code.store(1, sums, *[none] * (BIAS_ROWS - 1), level=2)
    code.exit()
    smem = gates * BIAS_COLUMNS * BIAS_ROWS * 4
    return Program("bias_gradient", (tuple(code.ops),), BIAS_ROWS, 32, smem, 2)


def _bias_region(rows: int, hidden: int, gate: int, tbs: Table) -> Table:
    zero, first = np.zeros_like(tbs), tbs * BIAS_COLUMNS + gate * hidden
    return np.stack([zero, zero + rows, first, first + BIAS_COLUMNS], 1)


def bias_gradient(name: str, dgates: Tensor, sums: Tensor, gates: int, cost: Cost = CELL) -> Kernel:
    """Return the kernel that adds the rows of ``dgates``, [steps * batch, gates * H], to [1, gates * H].

    H is a multiple of 32. A TB has 32 columns of each gate.
    """
    hidden = dgates.cols // gates
    program = _bias_program(dgates.rows, hidden, gates, dgates.item, sums.item, cost.bias)
    sides: tuple[tuple[Tensor, Mode], ...] = ((dgates, "read"), (sums, "write"))
    accesses = [
        Access(tensor, mode, partial(_bias_region, tensor.rows, hidden, gate))
        for tensor, mode in sides
        for gate in range(gates)
    ]
    return Kernel(name, program, (hidden // BIAS_COLUMNS, 1, 1), (dgates, sums), tuple(accesses))


@lru_cache(maxsize=64)
def _turn_program(rows: int, cols: int, item: int) -> Program:
    """Return code of a warp that reads a tile row by row and writes it column by column."""
    code = Code()
    code.compute(int=60, control=4, chain=60)
    for row in range(TURN):
        code.load(
            0,
            Pattern(0, item, base=row * cols * item, bx=TURN * cols * item, by=TURN * item, s0=item),
            level=2,
        )
    code.wait(0)
    code.compute(smem=2 * TURN, smem_ops=2 * TURN, fp32=TURN, int=2 * TURN, chain=60)
    for col in range(TURN):
        code.store(
            1,
            Pattern(1, item, base=col * rows * item, by=TURN * rows * item, bx=TURN * item, s0=item),
            level=2,
        )
    code.exit()
    return Program("transpose", (tuple(code.ops),), 1, 69, TURN * (TURN + 1) * item, 2)


def _turn_region(down: int, turned: bool, tbs: Table) -> Table:
    row, col = tbs % down * TURN, tbs // down * TURN
    sides = (col, row) if turned else (row, col)
    return np.stack([sides[0], sides[0] + TURN, sides[1], sides[1] + TURN], 1)


def transpose(name: str, source: Tensor, turned: Tensor) -> Kernel:
    """Return the kernel that transposes a matrix, a TB of one warp for each 32 x 32 elements."""
    down, across = source.rows // TURN, source.cols // TURN
    program = _turn_program(source.rows, source.cols, source.item)
    accesses = (
        Access(source, "read", partial(_turn_region, down, False)),
        Access(turned, "write", partial(_turn_region, down, True)),
    )
    return Kernel(name, program, (down, across, 1), (source, turned), accesses)


@lru_cache(maxsize=64)
def _clear_program(count: int, item: int) -> Program:
    each = min(16, 4 * item)
    variants = []
    for number in range(8):
        left = (count - 1) % FILL + 1 if number & 1 else FILL
        code = Code()
        code.compute(int=20, control=2, chain=20)
        lanes = [min(max(-(-(left - 4 * WARP * warp) // 4), 0), WARP) for warp in range(4)]
        code.store(
            0,
            *[
                Pattern(0, each, base=4 * WARP * item * warp, bx=FILL * item, s0=each, lanes=(1 << many) - 1)
                for warp, many in enumerate(lanes)
            ],
            level=2,
        )
        code.exit()
        variants.append(tuple(code.ops))
    return Program("clear", tuple(variants), 4, 16, 0, 1)


def _clear_region(count: int, tbs: Table) -> Table:
    zero = np.zeros_like(tbs)
    return np.stack([zero, zero + 1, tbs * FILL, np.minimum((tbs + 1) * FILL, count)], 1)


def clear(name: str, tensor: Tensor) -> Kernel:
    """Return the kernel that fills a tensor, 1,024 elements a TB; its elements are a multiple of four."""
    count = tensor.rows * tensor.cols
    flat = Tensor(tensor.name, 1, count, tensor.item, tensor.address)
    access = Access(flat, "write", partial(_clear_region, count))
    return Kernel(name, _clear_program(count, tensor.item), (-(-count // FILL), 1, 1), (flat,), (access,))
