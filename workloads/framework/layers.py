"""A Transformer layer as PyTorch runs it, with plain attention, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory
from pysim.workloads.library.arguments import (
    MOST_LAYERS,
    check_elements,
    check_flags,
    check_names,
    check_sizes,
    check_type,
)
from pysim.workloads.library.memory import memory_bound
from pysim.workloads.library.memory.head_copies import Heads
from pysim.workloads.library.memory.pointwise_parts import ITEM, item_of

from . import heads as split
from . import operations as op
from .tape import Tape, Value


@dataclass(frozen=True, slots=True)
class Layer:
    """A Transformer layer: ``d`` features, ``heads``, ``ffn`` features in between.

    ``batch`` sequences of ``seq`` tokens. ``pre``: LayerNorms come before attention and feed-forward, GELU
    is that with tanh (GPT); else behind the sums, and with erf (BERT). ``causal``: scores get a mask.
    ``fused``: attention is one call of cuDNN. ``training``: with dropout and backward.
    """

    d: int
    heads: int
    ffn: int
    batch: int
    seq: int
    pre: bool = False
    causal: bool = False
    fused: bool = False
    training: bool = True
    dtype: str = "fp16"

    def __post_init__(self) -> None:
        """Refuse what is no size, flag or type, and features that heads do not share evenly."""
        what = "Transformer layer"
        check_sizes(what, d=self.d, heads=self.heads, ffn=self.ffn, batch=self.batch, seq=self.seq)
        check_flags(what, pre=self.pre, causal=self.causal, fused=self.fused, training=self.training)
        check_names(what, ITEM, dtype=self.dtype)
        check_elements(what, batch_x_seq_x_features=(self.batch, self.seq, max(3 * self.d, self.ffn)))
        check_elements(what, d_x_features=(self.d, max(3 * self.d, self.ffn)))
        if not self.fused:
            check_elements(what, batch_x_heads_x_seq_x_seq=(self.batch, self.heads, self.seq, self.seq))
        if self.d % self.heads:
            raise WorkloadError(
                f"Transformer layer: d = {self.d}: must be a multiple of heads = {self.heads}"
            )

    @property
    def tokens(self) -> int:
        """Rows of an activation."""
        return self.batch * self.seq


@dataclass(slots=True)
class _Run:
    layer: Layer
    tape: Tape
    weights: dict[str, tuple[Value, Value]]

    def linear(self, name: str, x: Value) -> Value:
        return op.linear(self.tape, x, *self.weights[name], self.layer.dtype)

    def norm(self, name: str, x: Value) -> Value:
        return op.layer_norm(self.tape, x, *self.weights[name])

    def attention(self, x: Value) -> Value:
        layer, tape = self.layer, self.tape
        heads = Heads(layer.batch, layer.seq, layer.heads, layer.d // layer.heads)
        planes, seq, d = layer.batch * layer.heads, layer.seq, heads.d
        qkv = self.linear("qkv", x)
        if layer.fused:
            y = split.fused_attention(tape, qkv, heads, causal=layer.causal, dropped=layer.training)
            return op.dropout(tape, self.linear("o", y))
        one = layer.batch == 1 and not layer.training
        if one:
            scores = split.scores_of_one(tape, qkv, heads, layer.dtype)
        else:
            q, k, v = split.split_heads(tape, qkv, heads)
            scores = op.bmm(tape, q, k, (seq, seq, d), planes, layer.dtype)
        scores = op.scale(tape, scores)
        if layer.causal:
            mask = tape.value("mask", seq, seq, item_of(layer.dtype), wanted=False)
            scores = op.add_mask(tape, scores, mask)
        shares = op.dropout(tape, op.softmax(tape, scores))
        if one:
            y = split.weighted_of_one(tape, shares, qkv, heads, layer.dtype)
        else:
            split.take_v(tape, qkv, v, heads)
            y = op.bmm(tape, shares, v, (seq, d, seq), planes, layer.dtype)
        return op.dropout(tape, self.linear("o", split.merge_heads(tape, y, heads)))

    def feed_forward(self, x: Value) -> Value:
        tape = self.tape
        wide = op.gelu(tape, self.linear("f1", x), "tanh" if self.layer.pre else "none")
        return op.dropout(tape, self.linear("f2", wide))

    def forward(self, x: Value) -> Value:
        tape = self.tape
        if self.layer.pre:
            x = op.add(tape, x, self.attention(self.norm("n1", x)))
            return op.add(tape, x, self.feed_forward(self.norm("n2", x)))
        x = self.norm("n1", op.add(tape, x, self.attention(x)))
        return self.norm("n2", op.add(tape, x, self.feed_forward(x)))


def transformer_layer(layer: Layer, memory: Memory) -> list[Kernel]:
    """Return the kernels of a layer in the order of their launches."""
    return transformer_layers(layer, 1, memory)


def transformer_layers(layer: Layer, count: int, memory: Memory) -> list[Kernel]:
    """Return the kernels of ``count`` layers, each with weights of its own."""
    check_type("Transformer layer", Layer, layer=layer)
    check_sizes("Transformer layer", most=MOST_LAYERS, count=count)
    check_type("Transformer layer", Memory, memory=memory)
    tape, item = Tape(memory, layer.training), item_of(layer.dtype)
    runs = [_Run(layer, tape, _weights(layer, tape, item)) for _ in range(count)]
    if layer.training:
        # seed and offset of the random numbers, set before each replay of a captured graph
        for _ in ("seed", "offset"):
            tape.run(memory_bound.fill(memory, 1, 1, "fp32"))
    y = tape.value("x", layer.tokens, layer.d, item)
    for run in runs:
        y = run.forward(y)
    if layer.training:
        tape.backward(y, memory.tensor("grad_y", layer.tokens, layer.d, item))
    return tape.kernels


def _weights(layer: Layer, tape: Tape, item: int) -> dict[str, tuple[Value, Value]]:
    """Return weight and bias of each linear layer and LayerNorm, by name."""
    sizes = {"qkv": (3 * layer.d, layer.d), "o": (layer.d, layer.d)}
    sizes |= {"f1": (layer.ffn, layer.d), "f2": (layer.d, layer.ffn)}
    return {
        name: (tape.parameter(f"w_{name}", out, into, item), tape.parameter(f"b_{name}", 1, out, item))
        for name, (out, into) in sizes.items()
    } | {
        name: (tape.parameter(f"w_{name}", 1, layer.d, item), tape.parameter(f"b_{name}", 1, layer.d, item))
        for name in ("n1", "n2")
    }
