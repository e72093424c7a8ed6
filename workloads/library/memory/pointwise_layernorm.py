"""LayerNorm and its backward pass, as PyTorch launches them for rows of whole vectors of four elements.

``vectorized_layer_norm_kernel``: a TB of 128 threads a row, which it reads twice: for its moments (Welford,
a division an element), and for its result. ``layer_norm_grad_input_kernel_vectorized``: the same for the
gradient, two sums instead of the moments. ``GammaBetaBackwardCUDAKernelTemplate``: 32 columns a TB, all rows;
with very many rows the TBs of y share them, and the partial sums are added by two reductions. Shapes follow
ATen/native/cuda/layer_norm_kernel of PyTorch 2.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Access, Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP
from pysim.workloads.library.hopper import SMS

from .pointwise_parts import Work, line, loads, rows, shuffles, stores, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

THREADS, VECTOR = 128, 4
FORWARD_REGISTERS, INPUT_REGISTERS = {4: 39, 2: 32}, 32  # h200_library_pointwise.csv
FORWARD_SMEM, INPUT_SMEM = 24, 16
WIDE = 32  # columns of a TB of the third kernel
ROWS_EACH = 8  # rows of a thread at a time
# rows below which a TB has so many warps: LaunchGammaBetaBackwardCUDAKernel
WARPS_BELOW = ((64, 1), (128, 8), (256, 16))
MOST_WARPS = 32
MANY_ROWS, SPLIT_ROWS, SPLIT_TBS = 64 * 1024, 32, 32768


@dataclass(frozen=True, slots=True)
class LayerNormCost:
    """Instructions of a thread: ``element`` of each pass, ``step`` of a reduction among lanes or warps.

    ``row``: once; ``shuffle``: values that a step exchanges.
    """

    first: Work
    second: Work
    step: Work
    row: Work
    shuffle: int


@dataclass(frozen=True, slots=True)
class GammaCost:
    """Instructions of a thread for each row, of a turn, and of the sum over warps.

    ``at_once``: rows whose loads are under way in kernels of 32 registers; those of one warp hold eight,
    and those that take a part of the rows, of 64 registers, 16.
    """

    row: Work
    turn: Work
    end: Work
    at_once: int


def _vectors(tensor: Tensor, arg: int, by_row: bool) -> list[tuple[Pattern, ...]]:
    """Return the vectors that a TB takes of a row."""
    wide, pitch = VECTOR * tensor.item, tensor.cols * tensor.item
    count = tensor.cols // VECTOR
    return [
        line(arg, wide, THREADS, base=at * wide, bx=pitch if by_row else 0, active=count - at)
        for at in range(0, count, THREADS)
    ]


def _checked(name: str, matrices: tuple[Tensor, ...], vectors: tuple[Tensor, ...]) -> None:
    rows, cols, item = matrices[0].rows, matrices[0].cols, matrices[0].item
    if cols % VECTOR:
        raise WorkloadError(f"{name}: rows of {cols}: must be a multiple of {VECTOR}")
    if any((t.rows, t.cols, t.item) != (rows, cols, item) for t in matrices):
        raise WorkloadError(f"{name}: matrices must all be {rows} x {cols} of {item} B")
    if any(t.rows * t.cols != cols for t in vectors):
        raise WorkloadError(f"{name}: scale and shift must have {cols} elements")


def layer_norm_forward(
    source: Tensor,
    scale: Tensor,
    shift: Tensor,
    target: Tensor,
    stats: tuple[Tensor, Tensor],
    cost: LayerNormCost,
) -> Kernel:
    """Return the LayerNorm of each row; ``stats``: mean and 1 / deviation, fp32, a row each."""
    _checked("layer norm", (source, target), (scale, shift))
    args = (source, scale, shift, target, *stats)
    code = Code()
    code.compute(int=14, control=2)
    for patterns in _vectors(source, 0, True):
        loads(code, 0, [patterns])
        code.wait(0)
        cost.first.times(VECTOR).emit(code)
    _reduce(code, cost, pairs=True)
    cost.row.emit(code)
    for at, patterns in enumerate(_vectors(source, 0, True)):
        loads(code, 0, [patterns, *(_vectors(t, 1 + i, False)[at] for i, t in enumerate((scale, shift)))])
    code.wait(0)
    for patterns in _vectors(target, 3, True):
        cost.second.times(VECTOR).emit(code)
        stores(code, 1, [patterns])
    stores(code, 1, [line(arg, 4, THREADS, bx=4, active=1) for arg in (4, 5)])
    code.exit()
    registers = FORWARD_REGISTERS[source.item]
    program = Program("layer_norm", (tuple(code.ops),), THREADS // WARP, registers, FORWARD_SMEM, 6)
    accesses = [rows(source, "read"), whole(scale), whole(shift), rows(target, "write")]
    accesses += [rows(t, "write") for t in stats]
    return Kernel("layer_norm", program, (source.rows, 1, 1), args, tuple(accesses))


def _reduce(code: Code, cost: LayerNormCost, pairs: bool) -> None:
    """Reduce among lanes, then among the warps of a TB: by halves (``pairs``), or all by the first warp."""
    for _ in range(5):
        code.compute(smem=cost.shuffle, smem_ops=cost.shuffle, chain=23)
        cost.step.emit(code)
    for _ in range(2 if pairs else cost.shuffle):
        code.compute(smem=cost.shuffle, smem_ops=cost.shuffle, control=1, chain=4)
        code.barrier()
        code.compute(smem=cost.shuffle, smem_ops=cost.shuffle, chain=23)
        if pairs:
            cost.step.emit(code)
        else:
            shuffles(code, 1)
    code.barrier()
    code.compute(smem=2, smem_ops=2, chain=23)


def layer_norm_grad_input(
    gradient: Tensor,
    source: Tensor,
    scale: Tensor,
    stats: tuple[Tensor, Tensor],
    target: Tensor,
    cost: LayerNormCost,
) -> Kernel:
    """Return the kernel of the gradient of LayerNorm's input."""
    _checked("layer norm backward", (gradient, source, target), (scale,))
    args = (gradient, source, scale, *stats, target)
    code = Code()
    code.compute(int=14, control=2)
    loads(code, 0, [line(arg, 4, THREADS, bx=4, apart=4, active=1) for arg in (3, 4)])
    inputs = tuple(
        zip(_vectors(gradient, 0, True), _vectors(source, 1, True), _vectors(scale, 2, False), strict=True)
    )
    for ops in inputs:
        loads(code, 0, ops)
        code.wait(0)
        cost.first.times(VECTOR).emit(code)
    _reduce(code, cost, pairs=False)
    cost.row.emit(code)
    for ops, patterns in zip(inputs, _vectors(target, 5, True), strict=True):
        loads(code, 0, ops)
        code.wait(0)
        cost.second.times(VECTOR).emit(code)
        stores(code, 1, [patterns])
    code.exit()
    program = Program(
        "layer_norm_grad_input", (tuple(code.ops),), THREADS // WARP, INPUT_REGISTERS, INPUT_SMEM, 6
    )
    accesses = [rows(gradient, "read"), rows(source, "read"), whole(scale)]
    accesses += [rows(t, "read") for t in stats]
    accesses.append(rows(target, "write"))
    return Kernel("layer_norm_grad_input", program, (source.rows, 1, 1), args, tuple(accesses))


@dataclass(frozen=True, slots=True)
class GammaShape:
    """Launch of the kernel of the scale's and the shift's gradients: TBs in x and y, warps, registers."""

    grid: tuple[int, int]
    warps: int
    registers: int
    smem: int

    @property
    def partial(self) -> bool:
        """Whether reductions follow."""
        return self.registers == 64

    @property
    def high(self) -> int:
        """Rows of a TB at a time."""
        return SPLIT_ROWS if self.partial else ROWS_EACH * self.warps


def gamma_shape(rows: int, cols: int, decided_by: int = 0, sms: int = SMS) -> GammaShape:
    """Return the launch for so many rows; ``decided_by``: rows that the rule sees instead (0: ``rows``)."""
    seen, wide = decided_by or rows, -(-cols // WIDE)
    if seen > MANY_ROWS and wide < sms // 2:
        return GammaShape((wide, min(SPLIT_TBS // wide, -(-rows // SPLIT_ROWS))), 1, 64, 0)
    warps = next((n for below, n in WARPS_BELOW if seen < below), MOST_WARPS)
    smem = 264 * warps if warps > 1 else 264
    return GammaShape((wide, 1), warps, 52 if warps == 1 else 32, smem)


def gamma_beta(
    gradient: Tensor,
    source: Tensor,
    stats: tuple[Tensor, Tensor],
    targets: tuple[Tensor, Tensor],
    shape: GammaShape,
    cost: GammaCost,
) -> Kernel:
    """Return the kernel that sums over rows; ``targets``: a row for each TB of y. Columns: whole warps."""
    if source.cols % WIDE or any((t.rows, t.cols) != (shape.grid[1], source.cols) for t in targets):
        raise WorkloadError(f"layer norm backward: {source.cols} columns: must be a multiple of {WIDE}")
    grid_x, grid_y = shape.grid
    if grid_y > 1 and source.rows % (shape.high * grid_y):
        many = f"must be a multiple of {shape.high * grid_y}"
        raise WorkloadError(f"layer norm backward: {source.rows} rows: {many}")
    program = _gamma_program(source.rows, source.cols, source.item, targets[0].item, shape, cost)

    def block(turn: int, high: int, of_columns: bool, tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of a TB in a turn of the grid; of a vector of rows, its one column."""
        at = np.asarray(tbs, np.int64)
        first = at // grid_x * high + turn * high * grid_y
        col = at % grid_x * WIDE if of_columns else np.zeros_like(at)
        wide = WIDE if of_columns else 1
        last = np.minimum(first + high, max(source.rows, grid_y))
        return np.stack([first, last, col, col + wide], axis=1)

    # one TB in y has all rows; else its turns lie a grid apart
    turns, high = (1, source.rows) if grid_y == 1 else (source.rows // shape.high // grid_y, shape.high)
    accesses = []
    for turn in range(turns):
        accesses += [Access(t, "read", partial(block, turn, high, True)) for t in (gradient, source)]
        accesses += [Access(t, "read", partial(block, turn, high, False)) for t in stats]
    accesses += [Access(t, "write", partial(block, 0, 1, True)) for t in targets]
    return Kernel(
        "gamma_beta", program, (grid_x, grid_y, 1), (gradient, source, *stats, *targets), tuple(accesses)
    )


@lru_cache(maxsize=64)
def _gamma_program(rows: int, cols: int, item: int, out: int, shape: GammaShape, cost: GammaCost) -> Program:
    pitch, high, (_, grid_y) = cols * item, shape.high, shape.grid
    each = high // shape.warps
    at_once = 2 * ROWS_EACH if shape.partial else ROWS_EACH if shape.warps == 1 else cost.at_once
    turns, rest = divmod(rows, high * grid_y)
    code = Code()
    code.compute(int=20, control=3)

    def turn(limit: int, after: int) -> None:
        """Add a turn in which the TB has ``limit`` rows, after so many whole ones."""

        def of_row(arg: int, row: int) -> tuple[Pattern, ...]:
            made = []
            for warp in range(shape.warps):
                there = warp * each + row < limit
                made.append(
                    Pattern(
                        arg,
                        item,
                        base=(warp * each + row + after * high * grid_y) * pitch,
                        bx=WIDE * item,
                        by=high * pitch,
                        step=high * grid_y * pitch,
                        s0=item,
                        lanes=0xFFFFFFFF if there else 0,
                    )
                )
            return tuple(made) if any(p.lanes for p in made) else ()

        def of_stat(arg: int) -> tuple[Pattern, ...]:
            return tuple(
                Pattern(
                    arg,
                    4,
                    base=(warp * each + after * high * grid_y) * 4,
                    by=high * 4,
                    step=high * grid_y * 4,
                    s0=4,
                    lanes=(1 << min(max(limit - warp * each, 0), each, 32)) - 1,
                )
                for warp in range(shape.warps)
            )

        loads(code, 0, [of_stat(2), of_stat(3)], level=0)
        code.wait(0)
        for first in range(0, min(each, limit), at_once):
            for row in range(first, min(first + at_once, each)):
                loads(code, 0, [of_row(0, row), of_row(1, row)], level=0)
            code.wait(0)
            code.compute(smem=2 * at_once, smem_ops=2 * at_once, chain=4)
            cost.row.times(at_once).emit(code)
        cost.turn.emit(code)

    if turns:
        mark = code.loop_begin()
        turn(high, 0)
        code.loop_end(mark, turns)
    if rest:
        turn(rest // grid_y, turns)
    # sums of warps: columns to shared memory, rows of it back, shuffles
    code.compute(smem=2, smem_ops=2, chain=4)
    if shape.warps > 1:
        code.barrier()
        code.compute(smem=2, smem_ops=2, chain=23)
        shuffles(code, 2, fp32=2)
        cost.end.emit(code)
    per_warp = WIDE if shape.warps == 1 else 0
    for arg in (4, 5):
        if per_warp:
            patterns = line(arg, out, WARP, bx=WIDE * out, by=cols * out)
        else:
            patterns = line(arg, out, WARP * shape.warps, bx=WIDE * out, active=WIDE)
        code.store(1, *patterns, level=2)
    code.exit()
    return Program("gamma_beta", (tuple(code.ops),), shape.warps, shape.registers, shape.smem, 6)
