"""Attention of a LLaMA on a tape: cuDNN's kernel with a mask of scores, or causal with a backward pass.

Where neither was measured (before Hopper, other than whole tiles of queries) it is computed by batched
products, as Hugging Face's ``eager`` attention is; a softmax of 16 bits stands in for one whose results are
fp32 and are then converted. In training the mask is implied (``is_causal``), so that none is added.
"""

from __future__ import annotations

from pysim.program.job import Tensor
from pysim.workloads.framework import heads as split
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import narrow
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.library.attentions.attention import Places, attention
from pysim.workloads.library.attentions.attention_problem import WIDTHS, Attention, Planes
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.memory.head_copies import Heads, head_copy

TILE = 128  # queries of a thread block of cuDNN's kernels, of which they take whole ones


def fits(tape: Tape, seq: int, d: int, dtype: str) -> bool:
    """Whether there is a fused kernel for sequences and heads of such sizes, and for products of a type."""
    return tape.device in HOPPER and seq % TILE == 0 and d in WIDTHS and (tape.amp or dtype) != "fp32"


def masked(tape: Tape, q: Value, keys: Value, values: Value, bias: Tensor, heads: Heads) -> Value:
    """Return cuDNN's attention with ``bias``, [batch * seq, seq], added to the scores; forward alone.

    ``q``: [batch * seq, heads * d]; ``keys``, ``values``: [batch * heads * seq, d]; the result is as ``q``.
    """
    h, memory = heads, tape.memory
    q, keys, values = (narrow(tape, each) for each in (q, keys, values))
    problem = Attention(h.batch, h.heads, h.heads, h.seq, h.seq, h.d)
    places = _places(problem, h, (q.tensor, keys.tensor, values.tensor), memory.tensor(*_like(q.tensor)))
    o = places.results[0].tensor
    tape.call(
        ("attention", problem),
        (q.tensor, keys.tensor, values.tensor, bias, o),
        lambda: attention(problem, memory, backend="cudnn", bias=bias, places=places),
    )
    tape.work(h.seq, h.seq, 2 * h.d, h.batch * h.heads)
    return tape.record((o,), (q, keys, values), lambda _: (None, None, None))[0]


def causal(tape: Tape, q: Value, keys: Value, values: Value, heads: Heads) -> Value:
    """Return cuDNN's causal attention, with its backward pass; operands and result as of :func:`masked`."""
    h, memory = heads, tape.memory
    q, keys, values = (narrow(tape, each) for each in (q, keys, values))
    problem = Attention(h.batch, h.heads, h.heads, h.seq, h.seq, h.d, True)
    given = q.tensor, keys.tensor, values.tensor
    places = _places(problem, h, given, memory.tensor(*_like(q.tensor)))
    o = places.results[0].tensor
    tape.call(
        ("causal attention", problem),
        (*given, o),
        lambda: attention(problem, memory, backend="cudnn", places=places),
    )
    tape.work(h.seq, h.seq, 2 * h.d, h.batch * h.heads)

    def backward(arrived: Gradients) -> Gradients:
        do = one(arrived)
        made = [memory.tensor(f"grad_{t.name}", t.rows, t.cols, t.item) for t in given]
        of_q, others = Planes(made[0], h.seq, h.heads, h.d), (problem.stacked(t, keys=True) for t in made[1:])
        operands = *places.operands, places.results[0], Planes(do, h.seq, h.heads, h.d)
        back = Places(operands, (of_q, *others))
        tape.call(
            ("causal attention backward", problem),
            (*given, o, do, *made),
            lambda: attention(problem, memory, backend="cudnn", backward=True, places=back),
        )
        tape.work(h.seq, h.seq, 4 * h.d, h.batch * h.heads)  # dQ, dK, dV and dP
        return tuple(made)

    return tape.record((o,), (q, keys, values), backward)[0]


def by_products(
    tape: Tape, q: Value, keys: Value, values: Value, mask: Value, heads: Heads, dtype: str
) -> Value:
    """Return attention by batched products; ``mask``: of scores, [seq, seq]."""
    h, planes = heads, heads.batch * heads.heads
    scores = op.bmm(tape, _stacked(tape, q, h), keys, (h.seq, h.seq, h.d), planes, dtype, turned=True)
    scores = op.add_mask(tape, op.scale(tape, scores), mask)
    shares = op.softmax(tape, scores)
    y = op.bmm(tape, shares, values, (h.seq, h.d, h.seq), planes, dtype)
    return split.merge_heads(tape, y, h)


def _stacked(tape: Tape, q: Value, h: Heads) -> Value:
    """Return heads one below the other, as a batched product needs them."""
    made = tape.memory.tensor("q", h.batch * h.heads * h.seq, h.d, q.tensor.item)
    tape.launch([head_copy("split", h, q.tensor, made)])

    def backward(given: Gradients) -> Gradients:
        back = tape.memory.tensor("grad_q", q.tensor.rows, q.tensor.cols, q.tensor.item)
        tape.launch([head_copy("merge", h, back, one(given))])
        return (back,)

    return tape.record((made,), (q,), backward)[0]


def _like(q: Tensor) -> tuple[str, int, int, int]:
    return "attended", q.rows, q.cols, q.item


def _places(problem: Attention, h: Heads, given: tuple[Tensor, Tensor, Tensor], o: Tensor) -> Places:
    q, keys, values = given
    operands = (
        Planes(q, h.seq, h.heads, h.d),
        problem.stacked(keys, keys=True),
        problem.stacked(values, keys=True),
    )
    return Places(operands, (Planes(o, h.seq, h.heads, h.d),))
