"""A mixture-of-experts block, forward, in the order of Hugging Face's ``MixtralSparseMoeBlock``.

A router scores the experts of each token; the best ``top`` get it. Expert by expert its tokens' rows are
gathered, go through a gated unit of three products, are multiplied by the router's weights and added to the
result. How many tokens an expert gets is drawn by ``seed``. Left out: what finds the tokens of an expert
(``where``), which waits for the host, so that an eager run has gaps there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Job, Memory, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.tape import Tape, Value
from pysim.workloads.library.arguments import check_sizes
from pysim.workloads.library.images.planes import Band, plane_kernel
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.images import INDEX
from pysim.workloads.library.memory.index_add import index_add
from pysim.workloads.library.memory.pointwise_parts import ITEM, Work, item_of
from pysim.workloads.library.memory.row_passes import log_softmax_rows

from .passes import check_dtype, check_pass, device_of, job_of, named
from .shapes import MIXTRAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.workloads.kernels.machine_hints import MachineHints

    Ints = NDArray[np.int64]

BEST, SCALE = Work(fp32=8, ints=20, control=8), Work(fp32=1, ints=20)
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
    hints: MachineHints | None = None,
) -> Job:
    """Make a mixture-of-experts block, by default Mixtral's; ``top`` experts a token, drawn by ``seed``.

    ``hidden``: columns of a token, ``ffn``: of an expert within. Forward alone.
    """
    name = "moe-block"
    check_pass(name, pass_, ("forward",))
    device = device_of(hints, name)
    check_dtype(name, dtype, tuple(ITEM), device)
    sizes = hidden or MIXTRAL.d, ffn or MIXTRAL.ffn, experts or MIXTRAL.experts, top or MIXTRAL.top
    check_sizes(name, batch=batch, seq=seq, hidden=sizes[0], ffn=sizes[1])
    check_sizes(name, most=MOST_EXPERTS, experts=sizes[2])
    check_sizes(name, most=sizes[2], top=sizes[3])
    claim_launches(LAUNCHES * sizes[2], name, 400 * sizes[2])
    tape = Tape(Memory(), training=False, device=device)
    with named(name):
        _Block(tape, dtype, batch * seq, *sizes).run(seed)
        return job_of(name, tape, 1)


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
        self._route(x)
        result = tape.run(memory_ops.fill(tape.memory, self.tokens, self.d, self.dtype))
        for taken in drawn_tokens(self.tokens, self.experts, self.top, seed):
            weights = [tape.parameter(name, self.ffn, self.d, item) for name in ("gate", "up")]
            down = tape.parameter("down", self.d, self.ffn, item)
            if not len(taken):
                continue
            rows = op.embedding(tape, x, taken, self.dtype)
            gate, up = (op.linear(tape, rows, weight, None, self.dtype).tensor for weight in weights)
            wide = tape.run(memory_ops.mul(tape.memory, tape.run(memory_ops.silu(tape.memory, gate)), up))
            made = op.linear(tape, Value(wide), down, None, self.dtype).tensor
            self._add(made, taken, result)
        return Value(result)

    def _route(self, x: Value) -> None:
        """Score the experts, and take the best of each token with their weights."""
        tape, item = self.tape, item_of(self.dtype)
        router = tape.parameter("router", self.experts, self.d, item)
        scores = op.linear(tape, x, router, None, self.dtype).tensor
        shares = tape.memory.tensor("shares", self.tokens, self.experts, item)
        tape.launch([replace(log_softmax_rows(scores, shares), name="softmax")])
        best = tape.memory.tensor("best", self.tokens, self.top, item)
        places = tape.memory.tensor("places", self.tokens, self.top, INDEX)
        kernel = plane_kernel("top", [Band(shares, self.experts)], [], [best, places], self.tokens, BEST)
        tape.launch([replace(kernel, library=stand_in("gatherTopK"))])

    def _add(self, made: Tensor, taken: Ints, result: Tensor) -> None:
        """Multiply an expert's rows by their weights, and add them to the result."""
        tape, item, many = self.tape, made.item, len(taken)
        weights = tape.memory.tensor("weights", many, 1, item)
        scaled = tape.memory.tensor("scaled", many, self.d, item)
        kernel = plane_kernel("mul_rows", [Band(made)], [weights], [scaled], many, SCALE, each=4)
        tape.launch([replace(kernel, library=stand_in("elementwise_kernel (mul)"))])
        index = tape.memory.tensor("index", 1, many, INDEX)
        tape.launch([index_add(scaled, index, result, taken)])
