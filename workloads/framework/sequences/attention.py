"""Bahdanau's attention with normalised weights, all queries at once, as NVIDIA's GNMT computes it.

Scores are v . tanh(W q + U k + b) for each query and key (arXiv 1409.0473; v normalised: arXiv 1609.08144):
a tensor of [batch * queries * keys, units] that each operation reads and writes. Queries and keys come step
after step and are copied to be sentence after sentence. Element-wise kernels with operands that repeat are
those of ``strided``; sums over one of several dimensions and the product with v stand in. Under autocast the
bias of scores is fp32, so that they, and tanh of them, are fp32 until the product with v converts both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import MIXED, converted_to, narrow, stored_item
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.gemms.launches import gemm
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.broadcast import add_repeated
from pysim.workloads.library.memory.pointwise_costs import ADD, CONVERT, MUL
from pysim.workloads.library.memory.pointwise_flat import CAST_EACH, vectorised
from pysim.workloads.library.memory.pointwise_parts import Work, flat, whole
from pysim.workloads.library.memory.strided import View, dense, strided

from .columns import turned

SUM, DOT, MASK = (
    stand_in(what) for what in ("reduce_kernel over keys or queries", "gemv", "masked_fill_kernel")
)
ODD, UNALIGNED, VECTOR = stand_in("a batched GEMM of unaligned rows"), "a100", 16
TANH_BACK = Work(fp32=3)


@dataclass(frozen=True, slots=True)
class Sizes:
    """``batch`` sentences of ``queries`` and ``keys``; ``units`` of each; ``dtype`` of all."""

    batch: int
    queries: int
    keys: int
    units: int
    dtype: str

    @property
    def scores(self) -> int:
        """Scores of all sentences."""
        return self.batch * self.queries * self.keys

    @property
    def dims(self) -> tuple[int, int, int, int]:
        """Of the tensor in which scores are made, innermost first."""
        return self.units, self.keys, self.queries, self.batch


def attention(tape: Tape, query: Value, keys: Value, s: Sizes) -> Value:
    """Return the attended keys of each query, [queries * batch, units].

    ``query``: [queries * batch, units]; ``keys``: [keys * batch, units], which are values, too.
    """
    item = query.tensor.item
    if (query.tensor.rows, keys.tensor.rows) != (s.queries * s.batch, s.keys * s.batch):
        raise WorkloadError(f"attention: {query.tensor.rows} queries, {keys.tensor.rows} keys of {s}")
    keys_of = turned(tape, keys, s.keys, s.batch)
    query_of = turned(tape, query, s.queries, s.batch)
    stored = stored_item(tape, item)
    weights = [tape.parameter(name, s.units, s.units, stored) for name in ("w_query", "w_key")]
    q = op.linear(tape, query_of, weights[0], None, s.dtype)
    k = op.linear(tape, keys_of, weights[1], None, s.dtype)
    scores = _masked(tape, _scores(tape, q, k, s), s)
    shares = op.softmax(tape, scores)
    sizes = s.queries, s.units, s.keys
    context = _products(tape, shares, keys_of, sizes, s)
    return turned(tape, context, s.batch, s.queries)


def _products(tape: Tape, a: Value, b: Value, sizes: tuple[int, int, int], s: Sizes) -> Value:
    """Return the product of each sentence, ``sizes`` as :func:`operations.bmm` takes them.

    Hopper's batched kernels are known for rows of whole 16 B; else CUTLASS's for an A100 stand in.
    """
    a, b = narrow(tape, a), narrow(tape, b)
    if all(size * a.tensor.item % VECTOR == 0 for size in (a.tensor.cols, b.tensor.cols, sizes[0])):
        return op.bmm(tape, a, b, sizes, s.batch, s.dtype)
    rows, cols, inner = sizes

    def product(m: int, n: int, k: int, trans: str, *operands: Tensor) -> Tensor:
        device = tape.device if tape.device not in HOPPER else UNALIGNED
        kernels, made = gemm(
            m, n, k, memory=tape.memory, trans_a=trans[0], trans_b=trans[1], dtype=tape.amp or s.dtype,
            batch=s.batch, operands=operands, device=device,
        )  # fmt: skip
        tape.launch([replace(k, library=f"{k.library}, {ODD}" if k.library else ODD) for k in kernels])
        tape.work(m, n, k, s.batch)
        return made

    made = product(cols, rows, inner, "NN", b.tensor, a.tensor)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        of_b = product(cols, inner, rows, "NT", gradient, a.tensor)
        return product(inner, rows, cols, "TN", b.tensor, gradient), of_b

    return tape.record((made,), (a, b), backward)[0]


def _scores(tape: Tape, q: Value, k: Value, s: Sizes) -> Value:
    """Return [batch * queries, keys]: sums, the bias, tanh, and the product with v."""
    memory, item = tape.memory, q.tensor.item
    stored = stored_item(tape, item)
    bias = tape.parameter("normalize_bias", 1, s.units, stored)
    v, scalar = tape.parameter("v", 1, s.units, stored), tape.parameter("normalize_scalar", 1, 1, stored)
    summed = memory.tensor("sum_qk", s.scores, s.units, item)
    views = (
        View(flat(q.tensor), (1, 0, s.units, s.queries * s.units)),
        View(flat(k.tensor), (1, s.units, 0, s.keys * s.units)),
    )
    tape.launch([strided("add_qk", s.dims, views, dense(summed, s.dims), ADD, _each(item))])
    biased = memory.tensor("biased", s.scores, s.units, stored)
    tape.launch([_biased(summed, bias.tensor, biased)])
    # v over its norm, times a number: three kernels of one row
    norm = tape.run(memory_ops.sum_rows(memory, v.tensor, cold=True))
    unit = tape.run(memory_ops.mul_scalar(memory, v.tensor))
    scaled = memory.tensor("v_normalised", 1, s.units, stored)
    of_norm = View(norm, (0,))
    sides = dense(unit, (s.units,)), of_norm
    tape.launch([strided("mul", (s.units,), sides, dense(scaled, (s.units,)), MUL, _each(stored))])
    y = tape.run(memory_ops.tanh(memory, biased))
    taken = converted_to(tape, y, item)
    scaled = converted_to(tape, scaled, item)
    made = _dot(tape, taken, scaled, s)

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        outer = memory.tensor("grad_tanh", s.scores, s.units, item)
        sizes = s.units, s.scores
        views = View(flat(gradient), (0, 1)), View(scaled, (1, 0))
        tape.launch([strided("mul_outer", sizes, views, dense(outer, sizes), MUL, _each(item))])
        of_v = converted_to(tape, _turned_dot(tape, taken, gradient, s), stored)
        outer = converted_to(tape, outer, stored)
        back = memory.tensor("grad_sum", s.scores, s.units, stored)
        tape.launch([vectorised("tanh_backward", [outer, y], [back], TANH_BACK)])
        of_bias = tape.run(memory_ops.sum_columns(memory, back, cold=True))
        back = converted_to(tape, back, item)
        of_k, of_q = _sum(tape, back, k.tensor, s.keys), _sum(tape, back, q.tensor, s.queries)
        small = tape.run(memory_ops.mul_scalar(memory, of_v))
        of_scalar = tape.run(memory_ops.sum_rows(memory, small, cold=True))
        return of_q, of_k, of_bias, small, of_scalar

    return tape.record((made,), (q, k, bias, v, scalar), backward)[0]


def _biased(summed: Tensor, bias: Tensor, target: Tensor) -> Kernel:
    """Return the sum of each row and a bias, of one type or, under autocast, a bias and a sum of fp32."""
    if summed.item == bias.item:
        return add_repeated(summed, bias, target)
    sizes = summed.cols, summed.rows
    views = dense(summed, sizes), View(flat(bias), (1, 0))
    work = Work(ADD.fp32, ADD.ints + CONVERT)
    made = strided("add_repeated", sizes, views, dense(target, sizes), work, CAST_EACH)
    return replace(made, library=MIXED)


def _dot(tape: Tape, y: Tensor, v: Tensor, s: Sizes) -> Tensor:
    """Return the product of each row with v: a pass over all rows, here their sums."""
    launched = memory_ops.sum_rows(tape.memory, y, cold=True)
    first, *others = launched.kernels
    reads = replace(first, library=DOT, accesses=(*first.accesses, whole(v)))
    tape.launch([reads, *others])
    tape.work(s.scores, 1, s.units)
    made = launched.outputs[0]
    return Tensor("scores", s.batch * s.queries, s.keys, made.item, made.address)


def _turned_dot(tape: Tape, y: Tensor, gradient: Tensor, s: Sizes) -> Tensor:
    """Return the gradient of v: a pass over all rows, here their sum."""
    launched = memory_ops.sum_columns(tape.memory, y, cold=True)
    first, *others = launched.kernels
    tape.launch([replace(first, library=DOT, accesses=(*first.accesses, whole(gradient))), *others])
    tape.work(s.units, 1, s.scores)
    return launched.outputs[0]


def _masked(tape: Tape, scores: Value, s: Sizes) -> Value:
    """Return the scores, in place, those of padding at the lowest number; backward masks the gradient.

    The mask has 2 B an element here, a byte there: templates load no single bytes at odd addresses.
    """
    memory, t = tape.memory, scores.tensor
    mask = memory.tensor("mask", t.rows, t.cols, 2)

    def launch(tensor: Tensor) -> None:
        kernel = vectorised("masked_fill", [tensor, mask], [tensor], Work(ints=2))
        tape.launch([replace(kernel, library=MASK)])

    launch(t)

    def backward(given: Gradients) -> Gradients:
        launch(one(given))
        return (one(given),)

    return tape.record((t,), (scores,), backward)[0]


def _sum(tape: Tape, wide: Tensor, like: Tensor, kept: int) -> Tensor:
    """Return sums over queries (for keys) or keys (for queries): as many bytes as a sum of all columns.

    ``kept`` rows of each sentence are left; sums of wider rows stand in for sums within a sentence.
    """
    del kept
    many = wide.rows // like.rows
    view = Tensor(wide.name, many, like.rows * like.cols, wide.item, wide.address)
    launched = memory_ops.sum_columns(tape.memory, view, cold=True)
    kernels = [replace(k, library=SUM) for k in launched.kernels]
    tape.launch(kernels)
    return Tensor("summed", like.rows, like.cols, like.item, launched.outputs[0].address)


def _each(item: int) -> int:
    return 2 if item > 2 else 4
