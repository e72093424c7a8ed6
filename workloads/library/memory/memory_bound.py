"""What PyTorch launches for memory-bound operations on an H200: element-wise, reductions, rows, copies.

A function an operation takes its operands and returns :class:`Launched`: kernels in their order, and outputs.
``launch`` makes the operands, too::

    launched = launch("layer_norm", rows=4096, cols=1024, dtype="bf16", memory=Memory())
    Job("norm", list(launched.kernels))

Grids and TBs follow the rules of PyTorch 2.11, in the modules ``pointwise_*``; tests compare them with all
measured rows. Types: fp32, bf16 and fp16, which takes the kernels of bf16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.workloads.library.arguments import (
    check_elements,
    check_item,
    check_names,
    check_sizes,
    check_type,
    checked_call,
)
from pysim.workloads.library.hopper import SMS

from . import pointwise_costs as costs
from . import pointwise_gather as gathers
from .pointwise_flat import transposed, unrolled_cast, vectorised
from .pointwise_layernorm import gamma_beta, gamma_shape, layer_norm_forward, layer_norm_grad_input
from .pointwise_loops import adamw_kernels, dropout_kernel
from .pointwise_parts import ITEM, Work, item_of
from .pointwise_reduce import reduce_kernels, reduction
from .pointwise_softmax import softmax_backward_rows, softmax_forward

TWO_INPUTS = {
    4: 32,
    2: 40,
}  # registers: 32; 34 (add) and 40 (mul), which take as many (h200_library_pointwise.csv)
GELUS = "none", "tanh"
MOST_ROW = 2**16  # columns of a LayerNorm
MOST_SUMS = 2**28  # columns of a sum of columns, whose footprint is listed by TB
VOCABULARY = 50257  # rows of the table that `launch` makes for an embedding, as measured


@dataclass(frozen=True, slots=True)
class Launched:
    """Kernels in the order of their launches, and the tensors that they make."""

    kernels: tuple[Kernel, ...]
    outputs: tuple[Tensor, ...]


def _like(memory: Memory, name: str, tensor: Tensor, item: int = 0) -> Tensor:
    return memory.tensor(name, tensor.rows, tensor.cols, item or tensor.item)


def converted(work: Work, item: int, operands: int) -> Work:
    """Add the conversions of an element, of as many operands of 2 B."""
    return work if item == 4 else replace(work, ints=work.ints + costs.CONVERT * operands)


def _element_wise(
    name: str, memory: Memory, inputs: tuple[Tensor, ...], work: Work, registers: int = 32
) -> Launched:
    shapes = [(tensor.rows, tensor.cols, tensor.item) for tensor in inputs]
    if any(shape != shapes[0] for shape in shapes):
        raise WorkloadError(f"{name}: operands (rows, columns, bytes) {shapes}: must be equal")
    out = _like(memory, name, inputs[0])
    kernel = vectorised(name, inputs, [out], converted(work, out.item, len(inputs) + 1), registers)
    return Launched((kernel,), (out,))


@checked_call
def add(memory: Memory, a: Tensor, b: Tensor) -> Launched:
    """Return a + b."""
    check_item("add", a=a)
    return _element_wise("add", memory, (a, b), costs.ADD, TWO_INPUTS[a.item])


@checked_call
def mul(memory: Memory, a: Tensor, b: Tensor) -> Launched:
    """Return a x b, element by element."""
    check_item("mul", a=a)
    return _element_wise("mul", memory, (a, b), costs.MUL, TWO_INPUTS[a.item])


@checked_call
def mul_scalar(memory: Memory, a: Tensor) -> Launched:
    """Return a times a number."""
    return _element_wise("mul_scalar", memory, (a,), costs.MUL)


@checked_call
def relu(memory: Memory, a: Tensor) -> Launched:
    """Return max(a, 0)."""
    return _element_wise("relu", memory, (a,), costs.RELU)


@checked_call
def square(memory: Memory, a: Tensor) -> Launched:
    """Return a x a, of one operand (``pow`` with 2)."""
    return _element_wise("square", memory, (a,), costs.MUL)


@checked_call
def add_scalar(memory: Memory, a: Tensor) -> Launched:
    """Return a plus a number."""
    return _element_wise("add_scalar", memory, (a,), costs.ADD)


@checked_call
def rsqrt(memory: Memory, a: Tensor) -> Launched:
    """Return 1 / sqrt(a)."""
    return _element_wise("rsqrt", memory, (a,), costs.RSQRT)


@checked_call
def silu(memory: Memory, a: Tensor) -> Launched:
    """Return a / (1 + exp(-a))."""
    return _element_wise("silu", memory, (a,), costs.SILU)


@checked_call
def tanh(memory: Memory, a: Tensor) -> Launched:
    """Return tanh(a)."""
    return _element_wise("tanh", memory, (a,), costs.TANH)


@checked_call
def is_lowest(memory: Memory, a: Tensor) -> Launched:
    """Return which elements are minus infinity, a byte each."""
    out = _like(memory, "is_lowest", a, 1)
    return Launched((vectorised("is_lowest", [a], [out], costs.ADD),), (out,))


@checked_call
def all_of_rows(memory: Memory, a: Tensor, *, cold: bool = False, sms: int = SMS) -> Launched:
    """Return whether all elements of each row are true; ``a``: a byte each. ``cold``: as of sums."""
    if a.item != 1:
        raise WorkloadError(f"all_of_rows: elements of {a.item} B: must be of 1 B")
    return _sum(memory, a, (a.rows, a.cols), True, cold, sms)


@checked_call
def gelu(memory: Memory, a: Tensor, approximate: str = "none") -> Launched:
    """Return GELU with erf (``none``) or with tanh (``tanh``)."""
    check_names("gelu", GELUS, approximate=approximate)
    work = costs.GELU_ERF if approximate == "none" else costs.GELU_TANH
    return _element_wise("gelu", memory, (a,), work)


@checked_call
def gelu_backward(memory: Memory, gradient: Tensor, a: Tensor, approximate: str = "none") -> Launched:
    """Return the gradient of GELU with erf (``none``) or with tanh (``tanh``)."""
    check_names("gelu_backward", GELUS, approximate=approximate)
    work = costs.GELU_ERF_BACKWARD if approximate == "none" else costs.GELU_TANH_BACKWARD
    return _element_wise("gelu_backward", memory, (gradient, a), work)


@checked_call
def copy(memory: Memory, a: Tensor) -> Launched:
    """Return a copy in the device's memory (cudaMemcpyAsync), by a vectorised kernel: its own is not known.

    Raises WorkloadError from 512 MiB on, which another path takes, at 2.6 TB/s (h200_library_pointwise.csv).
    """
    if a.nbytes >= 1 << 29:
        raise WorkloadError(f"copy of {a.nbytes} B: at most {1 << 29} B, above the driver takes another path")
    out = _like(memory, "copy", a)
    return Launched((vectorised("copy", [a], [out], costs.COPY),), (out,))


@checked_call
def fill(memory: Memory, rows: int, cols: int, dtype: str) -> Launched:
    """Return a new tensor that a kernel fills with a number; not measured."""
    check_sizes("fill", rows=rows, cols=cols)
    check_elements("fill", rows_x_cols=(rows, cols))
    out = memory.tensor("fill", rows, cols, item_of(dtype))
    return Launched((vectorised("fill", [], [out], costs.COPY),), (out,))


@checked_call
def cast(memory: Memory, a: Tensor, source: str, target: str) -> Launched:
    """Return ``a`` in another type: vectorised from fp32, one element at a time from bf16 and fp16."""
    check_names("cast", ITEM, source=source, target=target)
    if item_of(source) != a.item or source == target:
        raise WorkloadError(
            f"cast: {source} of {a.item} B to {target}: must be another type, and the tensor's"
        )
    out = _like(memory, target, a, item_of(target))
    if source == "fp32":
        return Launched((vectorised("cast", [a], [out], Work(ints=costs.CONVERT)),), (out,))
    return Launched((unrolled_cast("cast", a, out, costs.CAST),), (out,))


@checked_call
def transpose_copy(memory: Memory, a: Tensor) -> Launched:
    """Return ``a.t().contiguous()``; with one row nothing is launched."""
    if a.rows == 1:
        return Launched((), (a,))
    out = memory.tensor("transposed", a.cols, a.rows, a.item)
    return Launched((transposed("transpose_copy", a, out, costs.STRIDED),), (out,))


@checked_call
def dropout(memory: Memory, a: Tensor, *, sms: int = SMS) -> Launched:
    """Return ``a`` with some elements dropped, and a mask of a byte an element; ``sms``: SMs of the GPU."""
    check_item("dropout", a=a)
    many = a.rows * a.cols  # of whose bytes the simulator takes pairs
    out, mask = _like(memory, "dropout", a), memory.tensor("mask", 1, many + many % 2, 1)
    mask = Tensor("mask", a.rows, a.cols, 1, mask.address)
    return Launched((dropout_kernel(a, out, mask, costs.DROPOUT, sms),), (out, mask))


@checked_call
def adamw(memory: Memory, parameter: Tensor, gradient: Tensor, moments: tuple[Tensor, Tensor]) -> Launched:
    """Return the fused step of one parameter, in place (``torch._fused_adamw_``)."""
    check_item("adamw", parameter=parameter)
    step = memory.tensor("step", 1, 1, 4)
    kernels = adamw_kernels(parameter, gradient, moments, step, costs.ADAMW[parameter.item])
    return Launched(tuple(kernels), (parameter, *moments))


@checked_call
def embedding(memory: Memory, table: Tensor, taken: NDArray[np.int64]) -> Launched:
    """Return the rows ``taken`` of a table."""
    check_sizes("embedding", most=gathers.MOST_INDICES, **{"length of taken": len(taken)})
    index = memory.tensor("index", 1, len(taken), gathers.INDEX)
    out = memory.tensor("rows", len(taken), table.cols, table.item)
    return Launched((gathers.gather(table, index, out, taken),), (out,))


@checked_call
def softmax(memory: Memory, a: Tensor) -> Launched:
    """Return the softmax of each row of at most 2048."""
    out = _like(memory, "softmax", a)
    return Launched((softmax_forward(a, out, costs.SOFTMAX),), (out,))


@checked_call
def softmax_backward(memory: Memory, gradient: Tensor, output: Tensor) -> Launched:
    """Return the gradient of a softmax: a product, then the kernel of rows."""
    product = mul(memory, gradient, output)
    out = _like(memory, "softmax_grad", output)
    kernel = softmax_backward_rows(product.outputs[0], output, out, costs.SOFTMAX_BACKWARD)
    return Launched((*product.kernels, kernel), (out,))


def _check_row(name: str, a: Tensor) -> None:
    """Refuse rows whose loop of a thread, which is written out, would be too long to make."""
    check_sizes(name, most=MOST_ROW, **{"columns of a": a.cols})


@checked_call
def layer_norm(memory: Memory, a: Tensor, scale: Tensor, shift: Tensor) -> Launched:
    """Return the LayerNorm of each row, its mean and 1 / deviation."""
    check_item("layer_norm", a=a)
    _check_row("layer_norm", a)
    out = _like(memory, "layer_norm", a)
    stats = memory.tensor("mean", a.rows, 1, 4), memory.tensor("deviation", a.rows, 1, 4)
    kernel = layer_norm_forward(a, scale, shift, out, stats, costs.LAYER_NORM[a.item])
    return Launched((kernel,), (out, *stats))


@checked_call
def layer_norm_backward(
    memory: Memory,
    gradient: Tensor,
    a: Tensor,
    scale: Tensor,
    stats: tuple[Tensor, Tensor],
    decided_by: int = 0,
    *,
    sms: int = SMS,
) -> Launched:
    """Return the gradients of input, scale and shift; ``sms``: SMs of the GPU.

    ``decided_by``: choose the kernels as for so many rows (0: the tensor's), for parts of larger ones.
    """
    _check_row("layer_norm_backward", a)
    check_sizes("layer_norm_backward", 0, decided_by=decided_by)
    grad = _like(memory, "grad_input", a)
    cost = costs.LAYER_NORM_BACKWARD
    cost = replace(cost, first=converted(cost.first, a.item, 3), second=converted(cost.second, a.item, 4))
    made = [layer_norm_grad_input(gradient, a, scale, stats, grad, cost)]
    shape = gamma_shape(a.rows, a.cols, decided_by, sms)
    sums = [memory.tensor(name, shape.grid[1], a.cols, a.item) for name in ("grad_scale", "grad_shift")]
    made.append(gamma_beta(gradient, a, stats, (sums[0], sums[1]), shape, costs.GAMMA_BETA))
    if shape.partial:
        totals = [sum_columns(memory, each, sms=sms) for each in sums]
        made += [kernel for total in totals for kernel in total.kernels]
        sums = [total.outputs[0] for total in totals]
    return Launched(tuple(made), (grad, *sums))


def _sum(memory: Memory, a: Tensor, size: tuple[int, int], by_rows: bool, cold: bool, sms: int) -> Launched:
    out = memory.tensor("sums", 1, size[0], a.item)
    plan, cost = reduction(*size, a.item, by_rows, sms), costs.REDUCE_COLD[by_rows] if cold else costs.REDUCE
    return Launched(tuple(reduce_kernels(a, out, plan, cost, memory)), (out,))


@checked_call
def sum_all(memory: Memory, a: Tensor, *, sms: int = SMS) -> Launched:
    """Return the sum of all elements; ``sms``: SMs of the GPU."""
    return _sum(memory, a, (1, a.rows * a.cols), True, False, sms)


@checked_call
def sum_rows(memory: Memory, a: Tensor, *, cold: bool = False, sms: int = SMS) -> Launched:
    """Return the sum of each row; ``cold``: after kernels of other code, as in a network."""
    return _sum(memory, a, (a.rows, a.cols), True, cold, sms)


@checked_call
def sum_columns(memory: Memory, a: Tensor, *, cold: bool = False, sms: int = SMS) -> Launched:
    """Return the sum of each column; ``cold``: after kernels of other code, as in a network."""
    check_sizes("sum_columns", most=MOST_SUMS, **{"columns of a": a.cols})
    return _sum(memory, a, (a.cols, a.rows), False, cold, sms)


def launch(
    op: str, rows: int, cols: int, dtype: str, memory: Memory | None = None, decided_by: int = 0
) -> Launched:
    """Return an operation on new tensors of ``rows`` x ``cols``, operands of its own kind included.

    ``op``: a name of :data:`OPERATIONS`. ``decided_by``: see :func:`layer_norm_backward`.

    Raises WorkloadError for unknown operations and types, and for what a template refuses.
    """
    what = "memory-bound operation"
    check_names(what, sorted(OPERATIONS), op=op)
    check_names(what, ITEM, dtype=dtype)
    check_sizes(what, rows=rows, cols=cols)
    check_sizes(what, 0, decided_by=decided_by)
    check_elements(what, rows_x_cols=(rows, cols))
    memory = Memory() if memory is None else memory
    check_type(what, Memory, memory=memory)
    item = item_of(dtype)

    def new(name: str) -> Tensor:
        return memory.tensor(name, rows, cols, item)

    return OPERATIONS[op](_Operands(memory, new, rows, cols, dtype, decided_by or rows))


@dataclass(frozen=True, slots=True)
class _Operands:
    memory: Memory
    new: Callable[[str], Tensor]
    rows: int
    cols: int
    dtype: str
    decided_by: int

    def vector(self, name: str) -> Tensor:
        return self.memory.tensor(name, 1, self.cols, item_of(self.dtype))

    def stats(self) -> tuple[Tensor, Tensor]:
        return self.memory.tensor("mean", self.rows, 1, 4), self.memory.tensor("deviation", self.rows, 1, 4)


def _embedding(o: _Operands) -> Launched:
    table = o.memory.tensor("table", VOCABULARY, o.cols, item_of(o.dtype))
    return embedding(o.memory, table, gathers.drawn(o.rows, VOCABULARY))


def _layer_norm_backward(o: _Operands) -> Launched:
    gradient, a, scale = o.new("gradient"), o.new("a"), o.vector("scale")
    return layer_norm_backward(o.memory, gradient, a, scale, o.stats(), o.decided_by)


OPERATIONS: dict[str, Callable[[_Operands], Launched]] = {
    "add": lambda o: add(o.memory, o.new("a"), o.new("b")),
    "mul_scalar": lambda o: mul_scalar(o.memory, o.new("a")),
    "relu": lambda o: relu(o.memory, o.new("a")),
    "gelu_tanh": lambda o: gelu(o.memory, o.new("a"), "tanh"),
    "gelu_erf": lambda o: gelu(o.memory, o.new("a")),
    "gelu_erf_backward": lambda o: gelu_backward(o.memory, o.new("gradient"), o.new("a")),
    "layer_norm": lambda o: layer_norm(o.memory, o.new("a"), o.vector("scale"), o.vector("shift")),
    "layer_norm_backward": _layer_norm_backward,
    "softmax": lambda o: softmax(o.memory, o.new("a")),
    "softmax_backward": lambda o: softmax_backward(o.memory, o.new("gradient"), o.new("output")),
    "dropout": lambda o: dropout(o.memory, o.new("a")),
    "adamw": lambda o: adamw(o.memory, o.new("p"), o.new("g"), (o.new("m"), o.new("v"))),
    "embedding": _embedding,
    "sum_all": lambda o: sum_all(o.memory, o.new("a")),
    "sum_rows": lambda o: sum_rows(o.memory, o.new("a")),
    "sum_columns": lambda o: sum_columns(o.memory, o.new("a")),
    "copy": lambda o: copy(o.memory, o.new("a")),
    "fill": lambda o: fill(o.memory, o.rows, o.cols, o.dtype),
    "cast_to_fp16": lambda o: cast(o.memory, o.new("a"), o.dtype, "fp16"),
    "cast_to_fp32": lambda o: cast(o.memory, o.new("a"), o.dtype, "fp32"),
    "transpose_copy": lambda o: transpose_copy(o.memory, o.new("a")),
}
