"""Operations of PyTorch on a tape: what each launches forward, and what backward.

Tensors are row-major: activations [tokens, features], heads [batch * heads * seq, d]. Orders of kernels are
those that PyTorch 2.11 launched on an H200 in captured graphs.
"""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.broadcast import add_repeated, masked_scale
from pysim.workloads.library.memory.cat_copy import cat
from pysim.workloads.library.memory.head_copies import Heads, head_copy

from .tape import Gradients, Tape, Value


def _mm(
    tape: Tape,
    dtype: str,
    sizes: tuple[int, int, int],
    trans: str,
    operands: tuple[Tensor, ...],
    batch: int = 1,
) -> Tensor:
    """Launch a product in BLAS terms: ``sizes`` m, n, k; A and B, with a bias if there is a third."""
    m, n, k = sizes
    kernels, made = gemm(
        m,
        n,
        k,
        memory=tape.memory,
        trans_a=trans[0],
        trans_b=trans[1],
        dtype=dtype,
        batch=batch,
        epilogue="bias" if len(operands) > 2 else "none",
        operands=operands,
    )
    tape.launch(kernels)
    return made


def linear(tape: Tape, x: Value, weight: Value, bias: Value, dtype: str) -> Value:
    """Return x W^T + b: ``x`` [tokens, in], ``weight`` [out, in], ``bias`` [1, out].

    Backward: the gradient of x, of the weight, and the sum of the columns for the bias.
    """
    (tokens, into), out = (x.tensor.rows, x.tensor.cols), weight.tensor.rows
    if weight.tensor.cols != into or bias.tensor.cols != out:
        raise WorkloadError(
            f"linear: {weight.tensor.name} is {out} x {weight.tensor.cols}, the input has {into}"
        )
    made = _mm(tape, dtype, (out, tokens, into), "TN", (weight.tensor, x.tensor, bias.tensor))

    def backward(given: Gradients) -> Gradients:
        gradient = _one(given)
        of_x = None
        if x.wanted:
            of_x = _mm(tape, dtype, (into, tokens, out), "NN", (weight.tensor, gradient))
        of_weight = _mm(tape, dtype, (into, out, tokens), "NT", (x.tensor, gradient))
        of_bias = tape.run(memory_ops.sum_columns(tape.memory, gradient))
        return of_x, of_weight, of_bias

    return tape.record((made,), (x, weight, bias), backward)[0]


def bmm(tape: Tape, a: Value, b: Value, sizes: tuple[int, int, int], batch: int, dtype: str) -> Value:
    """Return ``batch`` products A B; ``sizes``: rows of A, columns of B, and what is between.

    ``a``: [batch * rows, inner]; ``b``: [batch * inner, cols].
    Backward: the gradient of B, then that of A.
    """
    rows, cols, inner = sizes
    made = _mm(tape, dtype, (cols, rows, inner), "NN", (b.tensor, a.tensor), batch)

    def backward(given: Gradients) -> Gradients:
        gradient = _one(given)
        of_b = _mm(tape, dtype, (cols, inner, rows), "NT", (gradient, a.tensor), batch)
        of_a = _mm(tape, dtype, (inner, rows, cols), "TN", (b.tensor, gradient), batch)
        return of_a, of_b

    return tape.record((made,), (a, b), backward)[0]


def add(tape: Tape, a: Value, b: Value) -> Value:
    """Return a + b; both get the gradient as it is."""
    made = tape.run(memory_ops.add(tape.memory, a.tensor, b.tensor))
    return tape.record((made,), (a, b), lambda given: (given[0], given[0]))[0]


def add_mask(tape: Tape, a: Value, mask: Value) -> Value:
    """Return a + mask, which all planes share; forward alone."""
    if a.wanted and tape.training:
        raise WorkloadError("add_mask: backward is not known")
    made = tape.memory.tensor("masked", a.tensor.rows, a.tensor.cols, a.tensor.item)
    tape.launch([add_repeated(a.tensor, mask.tensor, made)])
    return tape.record((made,), (a, mask), lambda given: (given[0], None))[0]


def scale(tape: Tape, a: Value) -> Value:
    """Return a times a number."""
    made = tape.run(memory_ops.mul_scalar(tape.memory, a.tensor))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.mul_scalar(tape.memory, _one(given))),)

    return tape.record((made,), (a,), backward)[0]


def gelu(tape: Tape, a: Value, approximate: str) -> Value:
    """Return GELU of ``a``; ``approximate``: none or tanh, whose gradient is not known."""
    if approximate == "tanh" and tape.training and a.wanted:
        raise WorkloadError("gelu: the gradient of the tanh form has no template")
    made = tape.run(memory_ops.gelu(tape.memory, a.tensor, approximate))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.gelu_backward(tape.memory, _one(given), a.tensor)),)

    return tape.record((made,), (a,), backward)[0]


def dropout(tape: Tape, a: Value) -> Value:
    """Return ``a`` with some elements dropped; in evaluation ``a`` itself."""
    if not tape.training:
        return a
    launched = memory_ops.dropout(tape.memory, a.tensor)
    tape.launch(launched.kernels)
    made, mask = launched.outputs

    def backward(given: Gradients) -> Gradients:
        back = tape.memory.tensor("grad_dropout", made.rows, made.cols, made.item)
        tape.launch([masked_scale(_one(given), mask, back)])
        return (back,)

    return tape.record((made,), (a,), backward)[0]


def layer_norm(tape: Tape, a: Value, weight: Value, bias: Value) -> Value:
    """Return the LayerNorm of each row."""
    launched = memory_ops.layer_norm(tape.memory, a.tensor, weight.tensor, bias.tensor)
    tape.launch(launched.kernels)
    made, mean, deviation = launched.outputs

    def backward(given: Gradients) -> Gradients:
        back = memory_ops.layer_norm_backward(
            tape.memory, _one(given), a.tensor, weight.tensor, (mean, deviation)
        )
        tape.launch(back.kernels)
        return back.outputs

    return tape.record((made,), (a, weight, bias), backward)[0]


def softmax(tape: Tape, a: Value) -> Value:
    """Return the softmax of each row."""
    made = tape.run(memory_ops.softmax(tape.memory, a.tensor))

    def backward(given: Gradients) -> Gradients:
        return (tape.run(memory_ops.softmax_backward(tape.memory, _one(given), made)),)

    return tape.record((made,), (a,), backward)[0]


def split_heads(tape: Tape, qkv: Value, heads: Heads) -> tuple[Value, Value, Value]:
    """Return Q, K^T and V of each head, contiguous: Q and V [planes * seq, d], K^T [planes * d, seq].

    Q and K^T are copied here, V by :func:`take_v`, as PyTorch copies what a batched product needs. Backward:
    the three gradients are stacked, and copied into the columns of ``qkv``.
    """
    h, item, width = heads, qkv.tensor.item, heads.heads * heads.d
    planes = h.batch * h.heads
    q = tape.memory.tensor("q", planes * h.seq, h.d, item)
    k = tape.memory.tensor("k_turned", planes * h.d, h.seq, item)
    v = tape.memory.tensor("v", planes * h.seq, h.d, item)
    tape.launch([head_copy("split", h, qkv.tensor, q), head_copy("split_turned", h, qkv.tensor, k, width)])

    def backward(given: Gradients) -> Gradients:
        stacked = tape.memory.tensor("stacked", 3 * planes * h.seq, h.d, item)
        found = [gradient for gradient in given if gradient is not None]
        tape.launch([cat(found, stacked)])
        made = tape.memory.tensor("grad_qkv", qkv.tensor.rows, qkv.tensor.cols, item)
        tape.launch([head_copy("merge", Heads(h.batch, h.seq, 3 * h.heads, h.d), made, stacked)])
        return (made,)

    made = tape.record((q, k, v), (qkv,), backward)
    return made[0], made[1], made[2]


def take_v(tape: Tape, qkv: Value, v: Value, heads: Heads) -> None:
    """Copy V of each head out of ``qkv``."""
    tape.launch([head_copy("split", heads, qkv.tensor, v.tensor, 2 * heads.heads * heads.d)])


def merge_heads(tape: Tape, y: Value, heads: Heads) -> Value:
    """Return [batch * seq, heads * d] of [batch * heads * seq, d]."""
    h, item = heads, y.tensor.item
    made = tape.memory.tensor("merged", h.batch * h.seq, h.heads * h.d, item)
    tape.launch([head_copy("merge", h, made, y.tensor)])

    def backward(given: Gradients) -> Gradients:
        back = tape.memory.tensor("grad_heads", y.tensor.rows, y.tensor.cols, item)
        tape.launch([head_copy("split", h, _one(given), back)])
        return (back,)

    return tape.record((made,), (y,), backward)[0]


def _one(given: Gradients) -> Tensor:
    """Return the gradient of an operation's only result."""
    (gradient,) = given
    if gradient is None:
        raise WorkloadError("backward: a result has no gradient")
    return gradient
