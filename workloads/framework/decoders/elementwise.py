"""Element-wise operations of PyTorch on a tape that Hugging Face's LLaMA composes its layers of.

A norm and a gate are several kernels each, forward as recorded on an H100. Backward they are those of the
operations' gradients (torch/csrc/autograd, tools/autograd/derivatives.yaml, 2.11), which were not recorded.
"""

from __future__ import annotations

from dataclasses import replace

from pysim.program.job import Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework.autocast import cast
from pysim.workloads.framework.math_attention import FLOAT, FP32_EACH
from pysim.workloads.framework.operations import column_sums
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import pointwise_costs as costs
from pysim.workloads.library.memory.pointwise_flat import strided_each, vectorised
from pysim.workloads.library.memory.pointwise_parts import Work, flat
from pysim.workloads.library.memory.strided import View, dense, strided

NOT_MEASURED = stand_in("its bytes and instructions", measured=False)
SILU_BACKWARD = Work(fp32=8, ints=2, sfu=2)  # exp, 1 / x, and x * (1 - s) as the source has it


def rms_norm(tape: Tape, x: Value, weight: Value, dtype: str) -> Value:
    """Return the RMSNorm of each row: in fp32, then times ``weight``, [1, columns], in ``dtype``."""
    narrow = x.tensor.item < FLOAT
    wide = cast(tape, x, dtype, "fp32") if narrow else x
    means = _means(tape, _square(tape, wide))
    scaled = _mul_rows(tape, wide, _rsqrt(tape, _add_scalar(tape, means)))
    return _mul_columns(tape, weight, cast(tape, scaled, "fp32", dtype) if narrow else scaled)


def silu(tape: Tape, a: Value) -> Value:
    """Return a / (1 + exp(-a))."""
    made, memory = tape.run(memory_ops.silu(tape.memory, a.tensor)), tape.memory

    def backward(given: Gradients) -> Gradients:
        gradient, back = one(given), memory.tensor("grad_silu", a.tensor.rows, a.tensor.cols, a.tensor.item)
        work = memory_ops.converted(SILU_BACKWARD, back.item, 3)
        kernel = vectorised("silu_backward", [gradient, a.tensor], [back], work)
        tape.launch([replace(kernel, library=NOT_MEASURED)])
        return (back,)

    return tape.record((made,), (a,), backward)[0]


def mul(tape: Tape, a: Value, b: Value) -> Value:
    """Return a x b; backward: the gradient of ``a``, then that of ``b``."""
    made = tape.run(memory_ops.mul(tape.memory, a.tensor, b.tensor))

    def backward(given: Gradients) -> Gradients:
        both = (memory_ops.mul(tape.memory, one(given), other.tensor) for other in (b, a))
        return tuple(tape.run(each) for each in both)

    return tape.record((made,), (a, b), backward)[0]


def _square(tape: Tape, a: Value) -> Value:
    """Return a x a; backward: the gradient times twice what ``pow`` with 1 copies."""
    made, memory = tape.run(memory_ops.square(tape.memory, a.tensor)), tape.memory

    def backward(given: Gradients) -> Gradients:
        twice = tape.run(memory_ops.mul_scalar(memory, tape.run(memory_ops.copy(memory, a.tensor))))
        return (tape.run(memory_ops.mul(memory, one(given), twice)),)

    return tape.record((made,), (a,), backward)[0]


def _means(tape: Tape, a: Value) -> Value:
    """Return the mean of each row, [1, rows]; backward: divided for each element of a row."""
    (rows, d), memory = (a.tensor.rows, a.tensor.cols), tape.memory
    made = tape.run(memory_ops.sum_rows(memory, a.tensor, cold=True, sms=tape.sms))

    def backward(given: Gradients) -> Gradients:
        back = memory.tensor("grad_means", rows, d, a.tensor.item)
        source = View(flat(one(given)), (0, 1))
        kernel = strided("div_rows", (d, rows), [source], dense(back, (d, rows)), costs.MUL, FP32_EACH)
        tape.launch([kernel])
        return (back,)

    return tape.record((made,), (a,), backward)[0]


def _add_scalar(tape: Tape, a: Value) -> Value:
    made = tape.run(memory_ops.add_scalar(tape.memory, a.tensor))
    return tape.record((made,), (a,), lambda given: (given[0],))[0]


def _rsqrt(tape: Tape, a: Value) -> Value:
    """Return 1 / sqrt(a); backward: the gradient times a number, times the result to the third."""
    made, memory = tape.run(memory_ops.rsqrt(tape.memory, a.tensor)), tape.memory

    def backward(given: Gradients) -> Gradients:
        scaled = tape.run(memory_ops.mul_scalar(memory, one(given)))
        cubes = tape.run(memory_ops.square(memory, made))  # stands for pow with 3
        return (tape.run(memory_ops.mul(memory, scaled, cubes)),)

    return tape.record((made,), (a,), backward)[0]


def _mul_rows(tape: Tape, a: Value, scale: Value) -> Value:
    """Return each row of ``a`` times a number of its own, of fp32."""
    (rows, d), memory = (a.tensor.rows, a.tensor.cols), tape.memory

    def times(source: Tensor, name: str) -> Tensor:
        made = memory.tensor(name, rows, d, source.item)
        inputs = dense(source, (d, rows)), View(flat(scale.tensor), (0, 1))
        tape.launch([strided("mul_rows", (d, rows), inputs, dense(made, (d, rows)), costs.MUL, FP32_EACH)])
        return made

    def backward(given: Gradients) -> Gradients:
        of_a = times(one(given), "grad_scaled")
        both = tape.run(memory_ops.mul(memory, one(given), a.tensor))
        return of_a, tape.run(memory_ops.sum_rows(memory, both, cold=True, sms=tape.sms))

    return tape.record((times(a.tensor, "scaled"),), (a, scale), backward)[0]


def _mul_columns(tape: Tape, weight: Value, a: Value) -> Value:
    """Return each column of ``a`` times a weight; backward: of the weight, then of ``a``."""
    (rows, d), memory = (a.tensor.rows, a.tensor.cols), tape.memory

    def times(source: Tensor, name: str) -> Tensor:
        made = memory.tensor(name, rows, d, source.item)
        inputs = View(flat(weight.tensor), (1, 0)), dense(source, (d, rows))
        each = strided_each(source.item)
        tape.launch([strided("mul_columns", (d, rows), inputs, dense(made, (d, rows)), costs.MUL, each)])
        return made

    def backward(given: Gradients) -> Gradients:
        both = tape.run(memory_ops.mul(memory, one(given), a.tensor))
        return column_sums(tape, both), times(one(given), "grad_narrow")

    return tape.record((times(a.tensor, "normed"),), (weight, a), backward)[0]
