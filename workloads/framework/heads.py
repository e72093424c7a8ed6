"""Attention of PyTorch on a tape: products, softmax and copies of heads, or one fused call.

``qkv`` is [batch * seq, 3 * heads * d]: the heads of Q, then those of K, then those of V, side by side.
"""

from __future__ import annotations

from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.workloads.library.attentions.attention import Places, attention
from pysim.workloads.library.attentions.attention_problem import Attention, Planes
from pysim.workloads.library.choices.chooser import HOPPER
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.cat_copy import cat
from pysim.workloads.library.memory.head_copies import Heads, Way, head_copy
from pysim.workloads.library.moved import Launches

from .autocast import narrow
from .operations import mm
from .tape import Gradients, Tape, Value, one, operation


@operation
def split_heads(tape: Tape, qkv: Value, heads: Heads) -> tuple[Value, Value, Value]:
    """Return Q, K^T and V of each head, contiguous: Q and V [planes * seq, d], K^T [planes * d, seq].

    Q and K^T are copied here, V by :func:`take_v`, as PyTorch copies what a batched product needs. Where
    :func:`keys_turned` says no, K is copied as it is, [planes * seq, d]. Backward: the three gradients are
    stacked, and copied into the columns of ``qkv``.
    """
    h, item, width = heads, qkv.tensor.item, heads.heads * heads.d
    planes, turned = h.batch * h.heads, keys_turned(tape)
    q = tape.memory.tensor("q", planes * h.seq, h.d, item)
    if turned:
        k = tape.memory.tensor("k_turned", planes * h.d, h.seq, item)
    else:
        k = tape.memory.tensor("k", planes * h.seq, h.d, item)
    v = tape.memory.tensor("v", planes * h.seq, h.d, item)
    way: Way = "split_turned" if turned else "split"
    tape.launch([head_copy("split", h, qkv.tensor, q), head_copy(way, h, qkv.tensor, k, width)])

    def backward(given: Gradients) -> Gradients:
        found = [gradient for gradient in given if gradient is not None]
        return (_unsplit(tape, found, qkv, heads),)

    made = tape.record((q, k, v), (qkv,), backward)
    return made[0], made[1], made[2]


def keys_turned(tape: Tape) -> bool:
    """Whether K is turned as it is copied; before Hopper a product of the library takes it as it is."""
    return tape.device in HOPPER


def taken_within(tape: Tape, dtype: str) -> bool:
    """Whether products take heads side by side; Hopper's templates for fp32 do not."""
    return tape.device not in HOPPER or dtype != "fp32"


@operation
def take_v(tape: Tape, qkv: Value, v: Value, heads: Heads) -> None:
    """Copy V of each head out of ``qkv``."""
    tape.launch([head_copy("split", heads, qkv.tensor, v.tensor, 2 * heads.heads * heads.d)])


@operation
def merge_heads(tape: Tape, y: Value, heads: Heads) -> Value:
    """Return [batch * seq, heads * d] of [batch * heads * seq, d]."""
    h, item = heads, y.tensor.item
    made = tape.memory.tensor("merged", h.batch * h.seq, h.heads * h.d, item)
    tape.launch([head_copy("merge", h, made, y.tensor)])

    def backward(given: Gradients) -> Gradients:
        back = tape.memory.tensor("grad_heads", y.tensor.rows, y.tensor.cols, item)
        tape.launch([head_copy("split", h, one(given), back)])
        return (back,)

    return tape.record((made,), (y,), backward)[0]


@operation
def scores_of_one(tape: Tape, qkv: Value, heads: Heads, dtype: str) -> Value:
    """Return Q K^T of one sequence, [heads * seq, seq], from the heads where they are; forward alone.

    Of one sequence the heads are planes of a constant stride, which a batched product takes without copies.
    """
    _require_forward(tape, qkv, heads)
    cols, width = qkv.tensor.cols, heads.heads * heads.d
    within = (cols, width), (cols, 0)
    sizes = heads.seq, heads.seq, heads.d
    made = mm(tape, dtype, sizes, "TN", (qkv.tensor, qkv.tensor), heads.heads, within)
    return tape.record((made,), (qkv,), lambda _: (None,))[0]


@operation
def weighted_of_one(tape: Tape, shares: Value, qkv: Value, heads: Heads, dtype: str) -> Value:
    """Return the shares times V of one sequence, [heads * seq, d]; forward alone, as above."""
    _require_forward(tape, qkv, heads)
    within = (qkv.tensor.cols, 2 * heads.heads * heads.d), (0, 0)
    sizes = heads.d, heads.seq, heads.seq
    shares = narrow(tape, shares)
    made = mm(tape, dtype, sizes, "NN", (qkv.tensor, shares.tensor), heads.heads, within)
    return tape.record((made,), (shares, qkv), lambda _: (None, None))[0]


def _require_forward(tape: Tape, qkv: Value, heads: Heads) -> None:
    if heads.batch != 1 or (tape.training and qkv.wanted):
        raise WorkloadError(f"attention without copies: of one sequence, forward; {heads.batch} are given")


@operation
def fused_attention(tape: Tape, qkv: Value, heads: Heads, *, causal: bool, dropped: bool) -> Value:
    """Return softmax(Q K^T) V of all heads as cuDNN computes it, [batch * seq, heads * d].

    The heads are read where they are, and the result has them side by side, so that nothing is copied.
    ``dropped``: with dropout, before which a kernel of one thread reads the state of the random numbers.
    Backward: the three gradients are stacked, and copied into the columns of ``qkv``.
    """
    if tape.device not in HOPPER:
        raise WorkloadError(f"fused attention on {tape.device}: measured were kernels of {', '.join(HOPPER)}")
    h, memory, width = heads, tape.memory, heads.heads * heads.d
    problem = Attention(h.batch, h.heads, h.heads, h.seq, h.seq, h.d, causal)

    def side_by_side(tensor: Tensor, col0: int = 0) -> Planes:
        return Planes(tensor, h.seq, h.heads, h.d, col0)

    def rows(name: str) -> Tensor:
        return memory.tensor(name, h.batch * h.seq, width, qkv.tensor.item)

    if dropped:
        (state,) = memory_ops.fill(memory, 1, 1, "fp32").kernels
        tape.launch([replace(state, name="philox_state")])
    operands = tuple(side_by_side(qkv.tensor, part * width) for part in range(3))
    o = rows("attended")
    places = Places(operands, (side_by_side(o),))

    def make() -> Launches:
        return attention(problem, memory, backend="cudnn", dropout=dropped, places=places)

    tape.call(("attention", problem, dropped), (qkv.tensor, o), make)
    tape.work(h.seq, h.seq, 2 * h.d, h.batch * h.heads)  # Q K^T, and P V

    def backward(given: Gradients) -> Gradients:
        gradients = [rows(name) for name in ("grad_q", "grad_k", "grad_v")]
        given_and_made = *operands, side_by_side(o), side_by_side(one(given))
        back = Places(given_and_made, tuple(map(side_by_side, gradients)))

        def make_back() -> Launches:
            return attention(problem, memory, backend="cudnn", backward=True, dropout=dropped, places=back)

        touched = qkv.tensor, o, one(given), *gradients
        tape.call(("attention backward", problem, dropped), touched, make_back)
        tape.work(h.seq, h.seq, 4 * h.d, h.batch * h.heads)  # dQ, dK, dV and dP; Q K^T is computed again
        return (_unsplit(tape, gradients, qkv, heads),)

    return tape.record((o,), (qkv,), backward)[0]


def _unsplit(tape: Tape, gradients: list[Tensor], qkv: Value, h: Heads) -> Tensor:
    """Stack the gradients of Q, K and V, and copy them into the columns of that of ``qkv``."""
    item = qkv.tensor.item
    stacked = tape.memory.tensor("stacked", 3 * h.batch * h.heads * h.seq, h.d, item)
    tape.call("cat", (*gradients, stacked), lambda: ([cat(gradients, stacked, tape.sms)], ()))
    made = tape.memory.tensor("grad_qkv", qkv.tensor.rows, qkv.tensor.cols, item)
    tape.launch([head_copy("merge", Heads(h.batch, h.seq, 3 * h.heads, h.d), made, stacked)])
    return made
