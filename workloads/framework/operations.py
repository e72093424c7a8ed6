"""Operations of PyTorch on a tape: what each launches forward, and what backward.

Tensors are row-major: activations [tokens, features], heads [batch * heads * seq, d]. Orders of kernels are
those that PyTorch 2.11 launched on an H200 in captured graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.library.choices.choice import checked
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.gemm_by_cost import gemm_by_cost
from pysim.workloads.library.gemms.hopper_gemm import NOT_WITHIN, Within
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.images.windows import bias_gradient
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import pointwise_gather as gathers
from pysim.workloads.library.memory.broadcast import add_repeated, masked_scale
from pysim.workloads.library.memory.embedding_backward import MOST, SIDE, embedding_backward
from pysim.workloads.library.memory.embedding_sorted import embedding_backward_sorted
from pysim.workloads.library.memory.row_passes import few_columns_sum
from pysim.workloads.library.moved import Launches

from .autocast import mixed_add, narrow, wide
from .tape import Gradients, Tape, Value, one, operation

if TYPE_CHECKING:
    from pysim.workloads.library.gemms.hopper_epilogue import Epilogue

AMPERE = "a100"  # whose tiles stand in
FEW = 32  # columns up to which one warp adds them up


def mm(
    tape: Tape,
    dtype: str,
    sizes: tuple[int, int, int],
    trans: str,
    operands: tuple[Tensor, ...],
    batch: int = 1,
    within: Within = NOT_WITHIN,
) -> Tensor:
    """Launch a product in BLAS terms: ``sizes`` m, n, k; A and B, with a bias if there is a third.

    ``within``: as :func:`~pysim.workloads.library.gemms.launches.gemm` takes it. Where no template
    adds a bias, the product alone stands in; where none takes a batch, tiles of CUTLASS for Ampere do.
    """
    m, n, k = sizes
    dtype = tape.amp or dtype

    def launched(given: Sequence[Tensor], epilogue: Epilogue) -> tuple[tuple[Kernel, ...], Tensor]:
        try:
            return gemm(
                m,
                n,
                k,
                memory=tape.memory,
                trans_a=trans[0],
                trans_b=trans[1],
                dtype=dtype,
                batch=batch,
                epilogue=epilogue,
                operands=given,
                within=within,
                device=tape.device,
            )
        except WorkloadError:
            if tape.device not in HOPPER or epilogue != "none" or (batch == 1 and within == NOT_WITHIN):
                raise
        # batches of rows that TMA does not take were not recorded; single ones have kernels for Ampere, too
        problem = checked(m, n, k, trans[0], trans[1], dtype, batch)
        kernels, made = gemm_by_cost(problem, AMPERE, tape.memory, given, within=within)
        said = stand_in("batches of such rows were not recorded", measured=False)
        return tuple(replace(kernel, library=f"{kernel.library}, {said}") for kernel in kernels), made

    def make() -> Launches:
        if len(operands) > 2:
            try:
                kernels, made = launched(operands, "bias")
                return kernels, (made,)
            except WorkloadError:  # kernels for few columns have no template with a bias
                pass
        kernels, made = launched(operands[:2], "none")
        if len(operands) > 2:
            kernels = tuple(replace(k, library=f"{k.library}, {stand_in('without a bias')}") for k in kernels)
        return kernels, (made,)

    (made,) = tape.call(("gemm", dtype, sizes, trans, batch, within), operands, make)
    tape.work(m, n, k, batch)
    return made


@operation
def linear(tape: Tape, x: Value, weight: Value, bias: Value | None, dtype: str) -> Value:
    """Return x W^T + b: ``x`` [tokens, in], ``weight`` [out, in], ``bias`` [1, out] or none.

    Backward: the gradient of x, of the weight, and the sum of the columns for the bias.
    """
    x, weight, bias = narrow(tape, x), narrow(tape, weight), bias and narrow(tape, bias)
    (tokens, into), out = (x.tensor.rows, x.tensor.cols), weight.tensor.rows
    biases = (bias,) if bias else ()
    if weight.tensor.cols != into or any(each.tensor.cols != out for each in biases):
        raise WorkloadError(
            f"linear: {weight.tensor.name} is {out} x {weight.tensor.cols}, the input has {into}"
        )
    operands = (weight.tensor, x.tensor, *(each.tensor for each in biases))
    made = mm(tape, dtype, (out, tokens, into), "TN", operands)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        of_x = None
        if x.wanted:
            of_x = mm(tape, dtype, (into, tokens, out), "NN", (weight.tensor, gradient))
        of_weight = mm(tape, dtype, (into, out, tokens), "NT", (x.tensor, gradient))
        sums = [column_sums(tape, gradient) for _ in biases]
        return of_x, of_weight, *sums

    return tape.record((made,), (x, weight, *biases), backward)[0]


@operation
def column_sums(tape: Tape, gradient: Tensor) -> Tensor:
    """Return the sum of each column, the gradient of a bias."""
    if gradient.cols >= FEW:

        def make() -> Launches:
            launched = memory_ops.sum_columns(tape.memory, gradient, cold=True, sms=tape.sms)
            return launched.kernels, launched.outputs

        try:
            return tape.call("sum_columns", (gradient,), make)[0]
        except WorkloadError:
            pass  # of few rows there is no template
    sums = tape.memory.tensor("sums", 1, gradient.cols, gradient.item)
    if gradient.cols <= FEW:
        tape.launch([few_columns_sum(gradient, sums)])
    else:  # columns are as channels of images of a pixel
        view = Tensor(gradient.name, gradient.rows * gradient.cols, 1, gradient.item, gradient.address)
        tape.launch([bias_gradient(view, sums, gradient.cols)])
    return sums


@operation
def bmm(
    tape: Tape,
    a: Value,
    b: Value,
    sizes: tuple[int, int, int],
    batch: int,
    dtype: str,
    *,
    turned: bool = False,
) -> Value:
    """Return ``batch`` products A B; ``sizes``: rows of A, columns of B, and what is between.

    ``a``: [batch * rows, inner]; ``b``: [batch * inner, cols], ``turned``: [batch * cols, inner].
    Backward: the gradient of B, then that of A.
    """
    a, b = narrow(tape, a), narrow(tape, b)
    rows, cols, inner = sizes
    made = mm(tape, dtype, (cols, rows, inner), "TN" if turned else "NN", (b.tensor, a.tensor), batch)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        if turned:
            of_b = mm(tape, dtype, (inner, cols, rows), "NT", (a.tensor, gradient), batch)
            of_a = mm(tape, dtype, (inner, rows, cols), "NN", (b.tensor, gradient), batch)
        else:
            of_b = mm(tape, dtype, (cols, inner, rows), "NT", (gradient, a.tensor), batch)
            of_a = mm(tape, dtype, (inner, rows, cols), "TN", (b.tensor, gradient), batch)
        return of_a, of_b

    return tape.record((made,), (a, b), backward)[0]


@operation
def embedding(tape: Tape, table: Value, taken: NDArray[np.int64], dtype: str, most: int = MOST) -> Value:
    """Return the rows ``taken`` of a table; backward: zeros, to which the gradients of rows are added.

    ``most``: rows up to which one kernel goes through all indices; it is simulated in quadratic time.
    """
    launched = memory_ops.embedding(tape.memory, table.tensor, taken)
    tape.launch(launched.kernels)
    (index,) = (each for each in launched.kernels[0].args if each.item == gathers.INDEX)

    def backward(given: Gradients) -> Gradients:
        rows, cols = table.tensor.rows, table.tensor.cols
        made = tape.run(memory_ops.fill(tape.memory, rows, cols, dtype))
        if len(taken) > most or len(taken) % SIDE:
            tape.launch(embedding_backward_sorted(one(given), made, taken, tape.memory))
        else:
            tape.launch([embedding_backward(one(given), index, made, taken)])
        return (made,)

    return tape.record(launched.outputs, (table,), backward)[0]


@operation
def add(tape: Tape, a: Value, b: Value) -> Value:
    """Return a + b; both get the gradient as it is."""
    if a.tensor.item != b.tensor.item and tape.amp:
        return mixed_add(tape, a, b)
    made = tape.run(memory_ops.add(tape.memory, a.tensor, b.tensor))
    return tape.record((made,), (a, b), lambda given: (given[0], given[0]))[0]


@operation
def add_mask(tape: Tape, a: Value, mask: Value) -> Value:
    """Return a + mask, which all planes share; the gradient of ``a`` is that of the result."""
    made = tape.memory.tensor("masked", a.tensor.rows, a.tensor.cols, a.tensor.item)
    tape.launch([add_repeated(a.tensor, mask.tensor, made)])
    return tape.record((made,), (a, mask), lambda given: (given[0], None))[0]


@operation
def add_bias(tape: Tape, a: Value, bias: Value) -> Value:
    """Return each row of ``a`` plus ``bias``, [1, columns], whose gradient is the sum of the rows."""
    made = tape.memory.tensor("biased", a.tensor.rows, a.tensor.cols, a.tensor.item)
    tape.launch([add_repeated(a.tensor, bias.tensor, made)])

    def backward(given: Gradients) -> Gradients:
        return given[0], column_sums(tape, one(given))

    return tape.record((made,), (a, bias), backward)[0]


@operation
def scale(tape: Tape, a: Value) -> Value:
    """Return a times a number."""
    made = tape.run(memory_ops.mul_scalar(tape.memory, a.tensor))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.mul_scalar(tape.memory, one(given))),)

    return tape.record((made,), (a,), backward)[0]


@operation
def gelu(tape: Tape, a: Value, approximate: str) -> Value:
    """Return GELU of ``a``; ``approximate``: none or tanh."""
    made = tape.run(memory_ops.gelu(tape.memory, a.tensor, approximate))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.gelu_backward(tape.memory, one(given), a.tensor, approximate)),)

    return tape.record((made,), (a,), backward)[0]


@operation
def tanh(tape: Tape, a: Value) -> Value:
    """Return tanh of ``a``; backward: a product of the gradient and the result stands in."""
    made = tape.run(memory_ops.tanh(tape.memory, a.tensor))

    def backward(given: Gradients) -> Gradients:
        launched = memory_ops.mul(tape.memory, one(given), made)
        (kernel,) = launched.kernels
        tape.launch([replace(kernel, name="tanh_backward", library=stand_in("a product"))])
        return launched.outputs

    return tape.record((made,), (a,), backward)[0]


@operation
def dropout(tape: Tape, a: Value) -> Value:
    """Return ``a`` with some elements dropped; in evaluation ``a`` itself."""
    if not tape.training:
        return a

    def make() -> Launches:
        launched = memory_ops.dropout(tape.memory, a.tensor, sms=tape.sms)
        return launched.kernels, launched.outputs

    made, mask = tape.call("dropout", (a.tensor,), make)

    def backward(given: Gradients) -> Gradients:
        back = tape.memory.tensor("grad_dropout", made.rows, made.cols, made.item)
        tape.launch([masked_scale(one(given), mask, back)])
        return (back,)

    return tape.record((made,), (a,), backward)[0]


@operation
def layer_norm(tape: Tape, a: Value, weight: Value, bias: Value) -> Value:
    """Return the LayerNorm of each row."""
    a = wide(tape, a)
    operands = a.tensor, weight.tensor, bias.tensor

    def make() -> Launches:
        launched = memory_ops.layer_norm(tape.memory, *operands)
        return launched.kernels, launched.outputs

    made, mean, deviation = tape.call("layer_norm", operands, make)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)

        def back() -> Launches:
            stats = mean, deviation
            launched = memory_ops.layer_norm_backward(
                tape.memory, gradient, *operands[:2], stats, sms=tape.sms
            )
            return launched.kernels, launched.outputs

        return tape.call("layer_norm_backward", (gradient, *operands[:2], mean, deviation), back)

    return tape.record((made,), (a, weight, bias), backward)[0]


@operation
def softmax(tape: Tape, a: Value) -> Value:
    """Return the softmax of each row."""
    a = wide(tape, a)
    made = tape.run(memory_ops.softmax(tape.memory, a.tensor))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.softmax_backward(tape.memory, one(given), made)),)

    return tape.record((made,), (a,), backward)[0]
