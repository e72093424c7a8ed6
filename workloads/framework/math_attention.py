"""Attention that PyTorch computes by products in fp32, where no fused kernel fits into a captured graph.

``_scaled_dot_product_attention_math`` (ATen/native/transformers/attention.cpp, 2.11) with operands of fp16:
they are converted to fp32 and scaled, the mask becomes a bias, and rows without any key are set to zero. The
weights are converted back to fp16 as a second result, which nobody reads. Forward alone. Order and grids
are those of a BERT model on an H100.
"""

from __future__ import annotations

from pysim.errors import WorkloadError
from pysim.program.job import Tensor
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.head_copies import Heads
from pysim.workloads.library.memory.pointwise_costs import CAST
from pysim.workloads.library.memory.pointwise_parts import Work, flat
from pysim.workloads.library.memory.strided import View, dense, strided

from .operations import mm
from .tape import Tape, Value

CHOOSE = Work(ints=2)  # a test and a choice
FLOAT, HALF = 4, 2
FP16_EACH, FP32_EACH = 4, 2  # elements of a thread of ``elementwise_kernel``


def math_attention(tape: Tape, operands: tuple[Value, Value, Value], mask: Tensor, heads: Heads) -> Value:
    """Return softmax(Q K^T + bias) V of all heads, [batch * heads * seq, d] in fp16.

    ``operands``: Q, K and V, [batch * seq, heads * d] in fp16; ``mask``: a byte for each key, [batch, seq].
    Raises WorkloadError where gradients are wanted, and for other types.
    """
    h, memory = heads, tape.memory
    if tape.training or any(value.tensor.item != HALF for value in operands) or mask.item != 1:
        raise WorkloadError("attention by products in fp32: forward, of fp16 with a mask of bytes")
    planes, rows = h.batch * h.heads, h.batch * h.heads * h.seq
    bias = _bias(tape, mask, h)
    wide = [tape.run(memory_ops.cast(memory, value.tensor, "fp16", "fp32")) for value in operands]
    q, k = (tape.run(memory_ops.mul_scalar(memory, each)) for each in wide[:2])
    q = _contiguous(tape, q, h, turned=False)
    k = _contiguous(tape, k, h, turned=True)
    scores = mm(tape, "fp32", (h.seq, h.seq, h.d), "NN", (k, q), planes)
    scores = _add_bias(tape, scores, bias, h)
    shares = tape.run(memory_ops.softmax(memory, scores))
    shares = _without_empty(tape, scores, shares)
    tape.run(memory_ops.cast(memory, shares, "fp32", "fp16"))
    v = _contiguous(tape, wide[2], h, turned=False)
    y = mm(tape, "fp32", (h.d, h.seq, h.seq), "NN", (v, shares), planes)
    y = tape.run(memory_ops.cast(memory, y, "fp32", "fp16"))
    made = Tensor("attended", rows, h.d, HALF, y.address)
    return tape.record((made,), operands, lambda _: (None, None, None))[0]


def _scalar(tape: Tape, name: str) -> Tensor:
    """Return a number that a kernel puts into memory."""
    launched = memory_ops.fill(tape.memory, 1, 1, name)
    return tape.run(launched)


def _bias(tape: Tape, mask: Tensor, h: Heads) -> Tensor:
    """Return 0 or minus infinity for each query and key, [batch * seq, seq]."""
    low, zero = _scalar(tape, "fp16"), _scalar(tape, "fp16")
    made = tape.memory.tensor("bias", h.batch * h.seq, h.seq, HALF)
    sizes = h.seq, h.seq, h.batch
    inputs = View(mask, (1, 0, h.seq)), View(zero, (0, 0, 0)), View(low, (0, 0, 0))
    tape.launch([strided("where", sizes, inputs, dense(made, sizes), CHOOSE, FP16_EACH)])
    return made


def _contiguous(tape: Tape, wide: Tensor, h: Heads, *, turned: bool) -> Tensor:
    """Return heads one below the other, [batch * heads * seq, d], or ``turned``, [batch * heads * d, seq]."""
    planes, pitch = h.batch * h.heads, wide.cols
    shape = (planes * h.d, h.seq) if turned else (planes * h.seq, h.d)
    made = tape.memory.tensor("heads", *shape, FLOAT)
    inner, strides = ((h.seq, h.d), (pitch, 1)) if turned else ((h.d, h.seq), (1, pitch))
    sizes = *inner, h.heads, h.batch
    source = View(wide, (*strides, h.d, h.seq * pitch))
    tape.launch([strided("copy_heads", sizes, [source], dense(made, sizes), Work(), FP32_EACH)])
    return made


def _add_bias(tape: Tape, scores: Tensor, bias: Tensor, h: Heads) -> Tensor:
    """Return the scores and the bias of 2 B, which all heads share; a branch on the type loads each."""
    made = tape.memory.tensor("biased", scores.rows, scores.cols, FLOAT)
    sizes = h.seq, h.seq, h.heads, h.batch
    inputs = dense(scores, sizes), View(flat(bias), (1, h.seq, 0, h.seq * h.seq))
    work = CAST.times(3)
    tape.launch([strided("add_bias", sizes, inputs, dense(made, sizes), work, FP16_EACH)])
    return made


def _without_empty(tape: Tape, scores: Tensor, shares: Tensor) -> Tensor:
    """Return the shares, zero in rows in which each score is minus infinity."""
    memory = tape.memory
    lowest = tape.run(memory_ops.is_lowest(memory, scores))
    empty = tape.run(memory_ops.all_of_rows(memory, lowest, cold=True, sms=tape.sms))
    zero = _scalar(tape, "fp32")
    made = memory.tensor("shares", shares.rows, shares.cols, FLOAT)
    sizes = shares.cols, shares.rows
    inputs = View(empty, (0, 1)), View(zero, (0, 0)), dense(shares, sizes)
    tape.launch([strided("where", sizes, inputs, dense(made, sizes), CHOOSE, FP32_EACH)])
    return made
