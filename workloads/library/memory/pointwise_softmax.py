"""Softmax of rows up to 2048, its backward pass up to 1024, as PyTorch does: a row a warp, in registers.

``softmax_warp_forward``, ``softmax_warp_backward`` (ATen/native/cuda/PersistentSoftmax, 2.11): TBs of
four warps; rows of up to 128 take two a warp. A lane holds every 32nd element of a row, one load each. Rows
above 1024 go to ``cunn_SoftMaxForward``, which was not measured and has no template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels.tiles import WARP

from .pointwise_parts import LAST_X, Work, rows, shuffles

WARPS = 4
TWO_ROWS = 128  # columns up to which a warp takes two rows
# Loads of 2 B and operand under way: two share a register, and a merge waits for both; fitted. Rows above
# 1024 leave few registers beside their elements: fitted to 2048 x 2048, 10.5 us (h200_cold_code.csv)
HALVES, HALVES_LONG, LONG = 6, 3, 1024
# of a thread, by elements of a row at most. Rows of 1024: h200_library_pointwise.csv; others: kernels of
# PyTorch's BERT and GPT-3 layers
REGISTERS = {"softmax": {256: 30, 1024: 48, 2048: 80}, "softmax_backward": {256: 32, 1024: 96}}


@dataclass(frozen=True, slots=True)
class SoftmaxCost:
    """Instructions of a lane for each element: as it comes, and until its result is stored.

    ``row``: of a row; its ``wait`` are dependences that a warp alone cannot hide.
    """

    before: Work
    after: Work
    row: Work
    reductions: int


@dataclass(frozen=True, slots=True)
class _Rows:
    name: str
    cols: int
    item: int
    inputs: int
    last: int  # rows of the last TB
    registers: int
    cost: SoftmaxCost


def softmax_grid(rows: int, cols: int) -> int:
    """Return the TBs."""
    return -(-rows // _rows_of_tb(cols))


def _rows_of_tb(cols: int) -> int:
    return WARPS * (2 if _padded(cols) <= TWO_ROWS else 1)


def _padded(cols: int) -> int:
    return 1 << max(0, cols - 1).bit_length()


@lru_cache(maxsize=128)
def _program(shape: _Rows) -> Program:
    each = max(1, _padded(shape.cols) // WARP)  # elements of a lane and row
    many = _rows_of_tb(shape.cols) // WARPS
    pitch = shape.cols * shape.item

    def ops(arg: int, last: bool) -> list[tuple[Pattern, ...]]:
        made = []
        for row in range(many):
            for turn in range(each):
                lanes = min(max(shape.cols - turn * WARP, 0), WARP)
                patterns = []
                for warp in range(WARPS):
                    there = lanes and (not last or warp * many + row < shape.last)
                    patterns.append(
                        Pattern(
                            arg,
                            shape.item,
                            base=(warp * many + row) * pitch + turn * WARP * shape.item,
                            bx=WARPS * many * pitch,
                            s0=shape.item,
                            lanes=(1 << lanes) - 1 if there else 0,
                        )
                    )
                if any(pattern.lanes for pattern in patterns):
                    made.append(tuple(patterns))
        return made

    variants = []
    for number in range(8):
        last = bool(number & LAST_X)
        code = Code()
        code.compute(int=16, control=3)
        under_way, most = 0, (HALVES if shape.cols <= LONG else HALVES_LONG) * shape.inputs
        for patterns in (each for arg in range(shape.inputs) for each in ops(arg, last)):
            if shape.item == 2 and under_way == most:
                code.wait(0)
                under_way = 0
            code.load(0, *patterns, level=2)
            under_way += 1
        code.wait(0)
        shape.cost.before.times(each * many).emit(code)
        for _ in range(shape.cost.reductions):
            shuffles(code, many, fp32=many)
        shape.cost.row.times(many).emit(code)
        for patterns in ops(shape.inputs, last):
            shape.cost.after.emit(code)
            code.store(1, *patterns, level=2)
        code.exit()
        variants.append(tuple(code.ops))
    return Program(shape.name, tuple(variants), WARPS, shape.registers, 0, shape.inputs + 1)


def _registers(name: str, cols: int) -> int:
    """Return registers of a thread; raise WorkloadError for rows that no kernel is known for."""
    for longest, registers in REGISTERS[name].items():
        if 0 < cols <= longest:
            return registers
    raise WorkloadError(
        f"{name}: rows of {cols}: at most {max(REGISTERS[name])}; what PyTorch launches above is not known"
    )


def _kernel(name: str, inputs: Sequence[Tensor], target: Tensor, cost: SoftmaxCost) -> Kernel:
    if any((t.rows, t.cols, t.item) != (target.rows, target.cols, target.item) for t in inputs):
        raise WorkloadError(f"{name}: operands must all be {target.rows} x {target.cols}")
    registers = _registers(name, target.cols)
    grid, deep = softmax_grid(target.rows, target.cols), _rows_of_tb(target.cols)
    last = (target.rows - 1) % deep + 1
    shape = _Rows(name, target.cols, target.item, len(inputs), last, registers, cost)
    accesses = (*(rows(t, "read", deep) for t in inputs), rows(target, "write", deep))
    return Kernel(name, _program(shape), (grid, 1, 1), (*inputs, target), accesses)


def softmax_forward(source: Tensor, target: Tensor, cost: SoftmaxCost) -> Kernel:
    """Return the softmax of each row; raise WorkloadError for rows above 2048 and unequal shapes."""
    return _kernel("softmax", [source], target, cost)


def softmax_backward_rows(product: Tensor, output: Tensor, target: Tensor, cost: SoftmaxCost) -> Kernel:
    """Return the kernel that takes gradient x output, and output; the product is a kernel before it."""
    return _kernel("softmax_backward", [product, output], target, cost)
