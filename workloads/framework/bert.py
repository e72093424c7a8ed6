"""BERT as PyTorch and Hugging Face's transformers run it in a captured graph, forward, in fp16.

Q, K and V are layers of their own, and attention is computed by products in fp32 (``math_attention``), as
was recorded on an H100. Fills stand in for kernels of a few elements, which prepare indices and masks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.job import Memory, Tensor
from pysim.workloads.library.arguments import MOST_LAYERS, check_elements, check_sizes, check_type
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.head_copies import Heads
from pysim.workloads.library.memory.pointwise_costs import ADD
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.memory.pointwise_parts import flat
from pysim.workloads.library.memory.strided import View, dense, strided

from . import heads as split
from . import operations as op
from .math_attention import FP16_EACH, HALF, math_attention
from .network import Counter, Network, shown_of
from .tape import Tape, Value

DTYPE = "fp16"
MOST_SEQ = 2**16  # tokens of a sequence, whose scores are a tensor: kernels of more take a minute to make
BEFORE_MASK = 7  # kernels of a few elements between embeddings and first layer


@dataclass(frozen=True, slots=True)
class Bert:
    """``layers`` of ``d`` features, ``heads`` and ``ffn``; ``batch`` sequences of ``seq`` tokens."""

    d: int
    heads: int
    ffn: int
    layers: int
    batch: int
    seq: int
    vocabulary: int = 30522

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive, and features that heads do not share evenly."""
        check_sizes("BERT", d=self.d, heads=self.heads, ffn=self.ffn, batch=self.batch)
        check_sizes("BERT", vocabulary=self.vocabulary)
        check_sizes("BERT", most=MOST_LAYERS, layers=self.layers)
        check_sizes("BERT", most=MOST_SEQ, seq=self.seq)
        check_elements("BERT", batch_x_seq_x_features=(self.batch, self.seq, max(self.d, self.ffn)))
        check_elements("BERT", batch_x_heads_x_seq_x_seq=(self.batch, self.heads, self.seq, self.seq))
        check_elements("BERT", d_x_features=(self.d, max(self.d, self.ffn)))
        check_elements("BERT", vocabulary_x_d=(self.vocabulary, self.d))
        if self.d % self.heads:
            raise WorkloadError(f"BERT: d = {self.d}: must be a multiple of heads = {self.heads}")


@dataclass(slots=True)
class _Run:
    bert: Bert
    tape: Tape

    def linear(self, x: Value, out: int) -> Value:
        tape, into = self.tape, x.tensor.cols
        weight, bias = tape.parameter("w", out, into, HALF), tape.parameter("b", 1, out, HALF)
        return op.linear(tape, x, weight, bias, DTYPE)

    def norm(self, x: Value) -> Value:
        tape, d = self.tape, self.bert.d
        scale, shift = tape.parameter("scale", 1, d, HALF), tape.parameter("shift", 1, d, HALF)
        return op.layer_norm(tape, x, scale, shift)

    def small(self, count: int = 1) -> None:
        """Launch kernels of a few elements."""
        for _ in range(count):
            self.tape.run(memory_ops.fill(self.tape.memory, 1, 1, "fp32"))

    def embeddings(self) -> Value:
        """Return the sum of what tokens, their types and their places get, normalised."""
        b, tape, memory = self.bert, self.tape, self.tape.memory
        tokens = b.batch * b.seq

        def rows(name: str, many: int, taken: np.ndarray) -> Tensor:
            table = tape.parameter(name, many, b.d, HALF).tensor
            return tape.run(memory_ops.embedding(memory, table, taken))

        self.small()
        words = rows("words", b.vocabulary, drawn(tokens, b.vocabulary))
        self.small()
        types = rows("types", 2, np.zeros(tokens, np.int64))
        words = tape.run(memory_ops.add(memory, words, types))
        places = rows("places", max(512, b.seq), np.arange(b.seq))
        made = memory.tensor("embedded", tokens, b.d, HALF)
        sizes = b.d, b.seq, b.batch
        inputs = dense(words, sizes), View(flat(places), (1, b.d, 0))
        tape.launch([strided("add_places", sizes, inputs, dense(made, sizes), ADD, FP16_EACH)])
        return self.norm(Value(made))

    def layer(self, x: Value, mask: Tensor) -> Value:
        b, tape = self.bert, self.tape
        heads = Heads(b.batch, b.seq, b.heads, b.d // b.heads)
        q, k, v = (self.linear(x, b.d) for _ in range(3))
        y = split.merge_heads(tape, math_attention(tape, (q, k, v), mask, heads), heads)
        x = self.norm(op.add(tape, self.linear(y, b.d), x))
        wide = op.gelu(tape, self.linear(x, b.ffn), "none")
        return self.norm(op.add(tape, self.linear(wide, b.d), x))

    def pooled(self, x: Value) -> Tensor:
        """Return tanh of a layer of each sequence's first token, which is read where it is."""
        b, tape, wide = self.bert, self.tape, self.bert.seq * self.bert.d
        first = Tensor("first", b.batch, wide, HALF, x.tensor.address)
        weight, bias = tape.parameter("w", b.d, b.d, HALF).tensor, tape.parameter("b", 1, b.d, HALF).tensor
        sizes = b.d, b.batch, b.d
        y = op.mm(tape, DTYPE, sizes, "TN", (weight, first, bias), within=((0, 0), (wide, 0)))
        return tape.run(memory_ops.tanh(tape.memory, y))


def bert_network(bert: Bert, memory: Memory, shown: int = 0) -> Network:
    """Return the kernels of a forward pass, of ``shown`` layers at most (0: all)."""
    check_type("BERT", Bert, bert=bert)
    check_type("BERT", Memory, memory=memory)
    check_sizes("BERT", 0, shown=shown)
    tape = Tape(memory, training=False)
    run, counter, many = _Run(bert, tape), Counter(tape), shown_of(bert.layers, shown)
    x = run.embeddings()
    run.small(BEFORE_MASK)
    mask = memory.tensor("mask", bert.batch, bert.seq, 1)
    counter.mark()
    for number in range(many):
        x = run.layer(x, mask)
        counter.mark(1 if number + 1 < many else bert.layers - many + 1)
    run.pooled(x)
    return counter.network()
