"""A mixture-of-experts block in the order of Hugging Face's ``MixtralSparseMoeBlock``, forward and training.

A router scores the experts of each token; the best ``top`` get it. Expert by expert its tokens' rows are
gathered, go through a gated unit of three products, are multiplied by the router's weights and added to the
result. How many tokens an expert gets is drawn by ``seed``. Left out: what finds the tokens of an expert
(``where``), which waits for the host, so that an eager run has gaps there, and what gathers and normalises
the router's weights. Backward, which was not recorded, the gradient of the block's result is given; kernels
that put gradients of weights back into their places stand in. Under autocast the router's shares, what
experts return times them, and the block's result are fp32; each of an expert's first two products converts
the rows that it takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import AMP, converted_to, mixed_mul, stored, wide
from pysim.workloads.framework.decoders.elementwise import mul, silu
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.library.arguments import check_sizes
from pysim.workloads.library.images.planes import Band, plane_kernel
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.images import INDEX
from pysim.workloads.library.memory.index_add import index_add
from pysim.workloads.library.memory.pointwise_flat import vectorised
from pysim.workloads.library.memory.pointwise_parts import ITEM, Work, item_of, whole
from pysim.workloads.library.memory.row_passes import log_softmax_backward_rows, log_softmax_rows

from .passes import check_dtype, check_optimizer, check_pass, device_of, job_of, named
from .shapes import MIXTRAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.workloads.kernels.machine_hints import MachineHints

    Ints = NDArray[np.int64]

BEST, SCALE, PUT = Work(fp32=8, ints=20, control=8), Work(fp32=1, ints=20), Work(ints=20)
SUM = Work(fp32=8, ints=4)
SCATTER = stand_in("scatter and index_put kernels", measured=False)
MOST_EXPERTS, LAUNCHES = 256, 12  # launches of an expert


def moe_block(
    batch: int = 1,
    seq: int = 512,
    hidden: int = 0,
    ffn: int = 0,
    experts: int = 0,
    top: int = 0,
    pass_: str = "forward",
    dtype: str = "fp16",
    seed: int = 1,
    optimizer: str = "adamw",
    hints: MachineHints | None = None,
) -> Job:
    """Make a mixture-of-experts block, by default Mixtral's; ``top`` experts a token, drawn by ``seed``.

    ``hidden``: columns of a token, ``ffn``: of an expert within. ``pass``: forward, or training: all
    gradients, and a step of the ``optimizer``. ``dtype``: fp32, fp16 or bf16, one type of all, or amp or
    amp-bf16: autocast as PyTorch's, with fp32 parameters, gradients and moments, and in fp16 a loss scale.
    """
    name = "moe-block"
    check_pass(name, pass_, ("forward", "training"))
    check_optimizer(name, optimizer)
    training = pass_ == "training"
    device = device_of(hints, name)
    check_dtype(name, dtype, (*ITEM, *AMP), device)
    sizes = hidden or MIXTRAL.d, ffn or MIXTRAL.ffn, experts or MIXTRAL.experts, top or MIXTRAL.top
    check_sizes(name, batch=batch, seq=seq, hidden=sizes[0], ffn=sizes[1])
    check_sizes(name, most=MOST_EXPERTS, experts=sizes[2])
    check_sizes(name, most=sizes[2], top=sizes[3])
    claim_launches((1 + 3 * training) * LAUNCHES * sizes[2], name, 400 * sizes[2])
    tape = Tape(Memory(), training=training, device=device, amp=AMP.get(dtype, ""))
    with named(name):
        made = _Block(tape, stored(dtype), batch * seq, *sizes).run(seed)
        if training:
            t = made.tensor
            tape.backward(made, tape.memory.tensor("gradient", t.rows, t.cols, t.item))
        return job_of(name, tape, 1, optimizer if training else "none")


def drawn_tokens(tokens: int, experts: int, top: int, seed: int) -> list[Ints]:
    """Return the tokens of each expert: each token has ``top`` different ones, all equally likely."""
    random = np.random.default_rng(seed)
    chosen = np.argsort(random.random((tokens, experts)), axis=1, kind="stable")[:, :top]
    return [np.flatnonzero((chosen == expert).any(axis=1)) for expert in range(experts)]


@dataclass(slots=True)
class _Block:
    tape: Tape
    dtype: str
    tokens: int
    d: int
    ffn: int
    experts: int
    top: int

    def run(self, seed: int) -> Value:
        """Launch the block; return its result, [tokens, d]."""
        tape, item = self.tape, item_of(self.dtype)
        x = tape.value("tokens", self.tokens, self.d, item)
        best = self._route(x)
        zeros = tape.run(memory_ops.fill(tape.memory, self.tokens, self.d, self.dtype))
        result = Value(zeros, wanted=False)
        for taken in drawn_tokens(self.tokens, self.experts, self.top, seed):
            weights = [tape.parameter(name, self.ffn, self.d, item) for name in ("gate", "up")]
            down = tape.parameter("down", self.d, self.ffn, item)
            if not len(taken):
                continue
            rows = op.embedding(tape, x, taken, self.dtype)
            gate, up = (op.linear(tape, rows, weight, None, self.dtype) for weight in weights)
            made = op.linear(tape, mul(tape, silu(tape, gate), up), down, None, self.dtype)
            result = self._add(made, taken, result, best)
        return result

    def _route(self, x: Value) -> Value:
        """Score the experts; return the weights of the best of each token, [tokens, top]."""
        tape, item = self.tape, item_of(self.dtype)
        router = tape.parameter("router", self.experts, self.d, item)
        scores = wide(tape, op.linear(tape, x, router, None, self.dtype))
        shares = tape.memory.tensor("shares", self.tokens, self.experts, item)
        tape.launch([replace(log_softmax_rows(scores.tensor, shares), name="softmax")])
        best = tape.memory.tensor("best", self.tokens, self.top, item)
        places = tape.memory.tensor("places", self.tokens, self.top, INDEX)
        kernel = plane_kernel("top", [Band(shares, self.experts)], [], [best, places], self.tokens, BEST)
        tape.launch([replace(kernel, library=stand_in("gatherTopK"))])

        def backward(given: Gradients) -> Gradients:
            of_shares = self._put(one(given), self.tokens, self.experts)
            back = tape.memory.tensor("grad_scores", self.tokens, self.experts, item)
            kernel = log_softmax_backward_rows(of_shares, shares, back)
            tape.launch([replace(kernel, name="softmax_backward")])
            return (back,)

        return tape.record((best,), (scores,), backward)[0]

    def _put(self, source: Tensor, rows: int, cols: int) -> Tensor:
        """Return zeros, [rows, cols], into which each element of a gradient is put at its place."""
        tape = self.tape
        made = tape.run(memory_ops.fill(tape.memory, rows, cols, self.dtype))
        view = Tensor(made.name, source.rows, source.cols, made.item, made.address)
        kernel = vectorised("scatter", [source], [view], PUT)
        accesses = *(a for a in kernel.accesses if a.mode == "read"), whole(made, "update")
        tape.launch([replace(kernel, accesses=accesses, library=SCATTER)])
        return made

    def _sums(self, rows: Tensor) -> Tensor:
        """Return the sum of each row, [rows, 1]."""
        tape = self.tape
        try:
            made = tape.run(memory_ops.sum_rows(tape.memory, rows, cold=True, sms=tape.sms))
        except WorkloadError:  # of some columns the sum has no template
            made = tape.memory.tensor("sums", rows.rows, 1, rows.item)
            kernel = plane_kernel("sum_rows", [Band(rows, rows.cols)], [], [made], rows.rows, SUM)
            tape.launch([replace(kernel, library=stand_in("reduce_kernel", measured=False))])
        return Tensor(made.name, rows.rows, 1, made.item, made.address)

    def _mul_rows(self, rows: Tensor, weights: Tensor, name: str) -> Tensor:
        """Return each row times its weight, in the wider type of both."""
        made = self.tape.memory.tensor(name, rows.rows, self.d, max(rows.item, weights.item))
        kernel = plane_kernel("mul_rows", [Band(rows)], [weights], [made], rows.rows, SCALE, each=4)
        self.tape.launch([replace(kernel, library=stand_in("elementwise_kernel (mul)"))])
        return made

    def _add(self, made: Value, taken: Ints, result: Value, best: Value) -> Value:
        """Multiply an expert's rows by their weights, and add them to the result, in place."""
        tape, item, many = self.tape, best.tensor.item, len(taken)
        weights = tape.memory.tensor("weights", many, 1, item)
        scaled = self._mul_rows(made.tensor, weights, "scaled")
        index = tape.memory.tensor("index", 1, many, INDEX)
        tape.launch([index_add(scaled, index, result.tensor, taken)])

        def backward(given: Gradients) -> Gradients:
            rows = tape.run(memory_ops.embedding(tape.memory, one(given), taken))
            of_made = converted_to(tape, self._mul_rows(rows, weights, "grad_made"), made.tensor.item)
            both = mixed_mul(tape, rows, made.tensor)
            return of_made, self._put(self._sums(both), self.tokens, self.top), one(given)

        return tape.record((result.tensor,), (made, best, result), backward)[0]
