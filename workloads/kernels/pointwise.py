"""Element-wise (pointwise) kernels: generic ones, and those of recurrent cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Mode, Tensor
from pysim.program.warp_program import Affine, Code, Pattern, Program, TensorTile

from .tiles import WARP, Tile, emit_loads, tile_ops

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_ARGS = 8
# instructions an element: a sigmoid is EX2 and RCP with two FFMA/FADD, a tanh one more of each kind
GRU_CELL = {"fp32": 20, "sfu": 6, "int": 14, "control": 1}
LSTM_CELL = {"fp32": 24, "sfu": 10, "int": 16, "control": 1}
RELU_CELL = {"fp32": 3, "int": 6, "control": 1}


@dataclass(frozen=True, slots=True)
class Field:
    """Columns of a tensor from ``col0`` on: one operand of an elementwise kernel.

    ``repeated``: the tensor has one row, which goes with each row of the others.
    """

    tensor: Tensor
    col0: int = 0
    repeated: bool = False

    @property
    def pitch(self) -> int:
        """Bytes from what goes with a row to what goes with the next."""
        return 0 if self.repeated else self.tensor.pitch


def flat(tensor: Tensor) -> Tensor:
    """See a tensor as one row (the same memory): dependences go by address."""
    return Tensor(tensor.name, 1, tensor.rows * tensor.cols, tensor.item, tensor.address)


def _vector(fields: Sequence[Field], rows: int, cols: int, widest: int) -> int:
    """Elements a lane takes at once: what the alignment of every operand allows."""
    for vector in (8, 4, 2):
        if cols % vector == 0 and all(
            vector * f.tensor.item <= widest
            and f.col0 % vector == 0
            and (rows == 1 or f.pitch % (vector * f.tensor.item) == 0)
            for f in fields
        ):
            return vector
    return 1


@dataclass(frozen=True, slots=True)
class _Shape:
    """What an elementwise program depends on; ``fields`` are (arg, pitch, item, col0), the reads first."""

    name: str
    fields: tuple[tuple[int, int, int, int], ...]
    reads: int
    rows: int
    cols: int
    vector: int
    warps: int
    unroll: int
    rows_per_tb: int
    registers: int
    per_element: tuple[tuple[str, int], ...]

    @property
    def chunk(self) -> int:
        """Columns of a TB."""
        return self.warps * WARP * self.vector * self.unroll


def _parts(
    shape: _Shape, fields: Sequence[tuple[int, int, int, int]], rows: int, cols: int
) -> Iterator[TensorTile]:
    """Yield what a TB touches of each argument; columns at one distance, such as gates, are one part."""
    starts: dict[int, list[int]] = {}
    repeated = {arg for arg, pitch, *_ in fields if pitch == 0}
    for arg, _, _, col0 in fields:
        starts.setdefault(arg, []).append(col0)
    for arg, found in starts.items():
        found.sort()
        apart = found[1] - found[0] if len(found) > 1 else 0
        even = all(b - a == apart for a, b in pairwise(found))
        for group in [found] if even else [[col] for col in found]:
            row, col = Affine(by=shape.rows_per_tb), Affine(base=group[0], bx=shape.chunk)
            high = rows
            if arg in repeated:
                row, high = Affine(), 1
            yield TensorTile(arg, row, high, col, cols, len(group), apart if even else 0)


@lru_cache(maxsize=4096)
def _program(shape: _Shape) -> Program:
    """Build a program once: the steps of a network share it."""
    chunk = shape.chunk
    last_cols = (shape.cols - 1) % chunk + 1
    last_rows = (shape.rows - 1) % shape.rows_per_tb + 1

    def ops(field: tuple[int, int, int, int], wide: int) -> list[tuple[Pattern, ...]]:
        arg, pitch, item, col0 = field
        down = shape.rows_per_tb * pitch
        tile = Tile(arg, pitch, item, 1, chunk, bx=chunk * item, by=down, step=pitch)
        return tile_ops(tile, shape.warps, shape.vector * item, (1, wide), col0 * item)

    variants = []
    for number in range(8):
        wide = last_cols if number & 1 else chunk
        high = last_rows if number & 2 else shape.rows_per_tb
        code = Code()
        code.compute(int=12, control=1)
        code.mark_loads()
        for part in _parts(shape, shape.fields[: shape.reads], high, wide):
            code.mark_input(part, level=2)
        code.mark_main_loop_end()
        mark = code.loop_begin()
        for field in shape.fields[: shape.reads]:
            emit_loads(code, 0, ops(field, wide), level=0)
        if shape.reads:
            code.wait(0)
        code.compute(**{pipe: count * shape.vector * shape.unroll for pipe, count in shape.per_element})
        for field in shape.fields[shape.reads :]:
            for patterns in ops(field, wide):
                code.store(1, *patterns, level=0)
        if high > 1:
            code.loop_end(mark, high)
        for part in _parts(shape, shape.fields[shape.reads :], high, wide):
            code.mark_output(part, level=2)
        code.exit()
        variants.append(tuple(code.ops))
    args = max(arg for arg, *_ in shape.fields) + 1
    return Program(shape.name, tuple(variants), shape.warps, shape.registers, 0, args)


def elementwise(
    name: str,
    reads: Sequence[Field],
    writes: Sequence[Field],
    *,
    cols: int,
    per_element: Mapping[str, int],
    threads: int = 256,
    widest: int = 16,
    unroll: int = 1,
    rows_per_tb: int = 1,
    registers: int = 32,
    stream: int = 0,
) -> Kernel:
    """Make a kernel that works on the same element of all fields: all their rows, ``cols`` columns.

    The grid's x runs over chunks of ``threads * vector * unroll`` columns, y over blocks of
    ``rows_per_tb`` rows. ``widest`` is the largest access of a lane in bytes; ``per_element`` counts
    instructions an element and pipe. The footprint of a TB is exact to the element.
    """
    fields = (*reads, *writes)
    if not fields:
        raise WorkloadError(f"kernel {name}: no operands")
    rows = writes[0].tensor.rows if writes else fields[0].tensor.rows
    for f in fields:
        if f.tensor.rows != (1 if f.repeated else rows) or f.col0 < 0 or f.col0 + cols > f.tensor.cols:
            where = f"{rows} x {cols} at column {f.col0}"
            raise WorkloadError(f"kernel {name}: {where} is outside of {f.tensor.name}")
    args = tuple(dict.fromkeys(f.tensor for f in fields))
    if len(args) > MAX_ARGS:
        raise WorkloadError(f"kernel {name}: {len(args)} tensors: at most {MAX_ARGS}")
    vector = _vector(fields, rows, cols, widest)
    threads = min(threads, -(-cols // (vector * WARP)) * WARP)
    warps = threads // WARP
    chunk = threads * vector * unroll
    grid = (-(-cols // chunk), -(-rows // rows_per_tb), 1)

    each = tuple(per_element.items())
    layout = tuple((args.index(f.tensor), f.pitch, f.tensor.item, f.col0) for f in fields)
    shape = _Shape(
        name, layout, len(reads), rows, cols, vector, warps, unroll, rows_per_tb, registers, each
    )  # fmt: skip

    def access(f: Field, mode: Mode) -> Access:
        def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
            tbs = np.asarray(tbs, dtype=np.int64)
            col = tbs % grid[0] * chunk
            row = tbs // grid[0] * rows_per_tb
            if f.repeated:
                row = np.zeros_like(col)
                ends = row + 1, f.col0 + col, f.col0 + np.minimum(col + chunk, cols)
                return np.stack([row, *ends], axis=1)
            edges = np.minimum(row + rows_per_tb, rows), f.col0 + col, f.col0 + np.minimum(col + chunk, cols)
            return np.stack([row, *edges], axis=1)

        return Access(f.tensor, mode, regions)

    accesses = [access(f, "read") for f in reads] + [access(f, "write") for f in writes]

    def sized(number: int) -> Kernel:
        return elementwise(
            name, reads, writes, cols=cols, per_element=per_element, threads=number * WARP, widest=widest,
            unroll=unroll, rows_per_tb=rows_per_tb, registers=registers, stream=stream,
        )  # fmt: skip

    return Kernel(name, _program(shape), grid, args, tuple(accesses), stream, with_warps=sized)


def pointwise(
    name: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    *,
    per_element: Mapping[str, int] | None = None,
    threads: int = 256,
    stream: int = 0,
) -> Kernel:
    """Make an elementwise kernel over whole tensors of one size, seen as one long row each."""
    views = {t: flat(t) for t in (*inputs, *outputs)}
    count = (*inputs, *outputs)[0].rows * (*inputs, *outputs)[0].cols
    return elementwise(
        name,
        [Field(views[t]) for t in inputs],
        [Field(views[t]) for t in outputs],
        cols=count,
        per_element=per_element or {"fp32": 1, "int": 2},
        threads=threads,
        stream=stream,
    )


def cell(
    name: str,
    hidden: Tensor,
    inputs: Tensor,
    h_prev: Tensor,
    h_next: Tensor,
    *,
    gates: int,
    per_element: Mapping[str, int],
    state: Tensor | None = None,
    stream: int = 0,
) -> Kernel:
    """Make the pointwise kernel of a recurrent step: one thread an element of [batch, H], 256 threads a TB.

    Parameters
    ----------
    hidden : [batch, gates * H], the GEMM of the hidden state.
    inputs : [batch, gates * H], the GEMM of the input, or [batch, H]: an input that is added to each gate.
    h_prev, h_next : [batch, H]; h_prev is read by a GRU (3 gates) only.
    state : [batch, H], the cell state of an LSTM, updated in place.

    Shape of the launch: NVIDIA's LSTM.cu (elementWise_fp) and PyTorch's fused cells, one element a thread.
    """
    h = h_next.cols
    reads = [Field(hidden, g * h) for g in range(gates)]
    reads += [Field(inputs, g * h) for g in range(inputs.cols // h)]
    if gates == 3:
        reads.append(Field(h_prev))
    writes = [Field(h_next)]
    if state is not None:
        reads.append(Field(state))
        writes.append(Field(state))
    return elementwise(
        name, reads, writes, cols=h, per_element=per_element, widest=h_next.item, registers=40, stream=stream
    )
