"""A Transformer layer as PyTorch runs it, with plain or fused attention, forward and backward."""

from __future__ import annotations

from dataclasses import dataclass

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
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
from .collectives import Links, all_reduced, shared
from .decode import Cached, attend
from .tape import Tape, Value


@dataclass(frozen=True, slots=True)
class Layer:
    """A Transformer layer: ``d`` features, ``heads``, ``ffn`` features in between.

    ``batch`` sequences of ``seq`` tokens. ``pre``: LayerNorms come before attention and feed-forward, GELU
    is that with tanh (GPT); else behind the sums, and with erf (BERT). ``causal``: scores get a mask.
    ``fused``: attention is one call of cuDNN. ``training``: with dropout and backward. ``shards``: GPUs that
    share heads and ``ffn`` as Megatron-LM does (Shoeybi et al. 2019), of which this is one.
    ``cached``: keys that attention has, the new token's among them; ``seq`` is that token (0: no cache).
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
    shards: int = 1
    cached: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no size, flag or type, and features that heads do not share evenly."""
        what = "Transformer layer"
        check_sizes(what, d=self.d, heads=self.heads, ffn=self.ffn, batch=self.batch, seq=self.seq)
        check_sizes(what, shards=self.shards)
        check_sizes(what, 0, cached=self.cached)
        if self.cached and (self.seq != 1 or self.training):
            raise WorkloadError(f"{what}: cached = {self.cached}: must be a forward pass of one token")
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
        if self.heads % self.shards or self.ffn % self.shards:
            raise WorkloadError(
                f"Transformer layer: shards = {self.shards}: must divide heads = {self.heads} and"
                f" ffn = {self.ffn}"
            )

    @property
    def own(self) -> Heads:
        """The heads of a shard."""
        return Heads(self.batch, self.seq, self.heads // self.shards, self.d // self.heads)

    @property
    def tokens(self) -> int:
        """Rows of an activation."""
        return self.batch * self.seq


@dataclass(slots=True)
class LayerRun:
    """A layer with weights of its own on a tape; ``links``: of its shards, if there are several."""

    layer: Layer
    tape: Tape
    weights: dict[str, tuple[Value, Value]]
    links: Links | None = None

    @classmethod
    def on(cls, tape: Tape, layer: Layer, links: Links | None = None) -> LayerRun:
        """Return a layer with new parameters."""
        return cls(layer, tape, _weights(layer, tape, item_of(layer.dtype)), links)

    def linear(self, name: str, x: Value) -> Value:
        """Return a linear layer; of several shards each has columns of the results."""
        x = shared(self.tape, x, self.links)
        with self.tape.part(name):
            return op.linear(self.tape, x, *self.weights[name], self.layer.dtype)

    def narrowing(self, name: str, x: Value) -> Value:
        """Return a linear layer; of several shards each has parts of the sums, and the bias comes after."""
        weight, bias = self.weights[name]
        with self.tape.part(name):
            own = bias if self.links is None else None
            y = op.linear(self.tape, x, weight, own, self.layer.dtype)
        if self.links is None:
            return y
        return op.add_bias(self.tape, all_reduced(self.tape, y, self.links), bias)

    def norm(self, name: str, x: Value) -> Value:
        """Return a LayerNorm."""
        return op.layer_norm(self.tape, x, *self.weights[name])

    def attention(self, x: Value) -> Value:
        """Return attention, with the layers before and after it."""
        layer, tape, heads = self.layer, self.tape, self.layer.own
        planes, seq, d = heads.batch * heads.heads, layer.seq, heads.d
        qkv = self.linear("qkv", x)
        if layer.cached:
            return self.narrowing("o", self.decoded(qkv))
        if layer.fused:
            y = split.fused_attention(tape, qkv, heads, causal=layer.causal, dropped=layer.training)
            return op.dropout(tape, self.narrowing("o", y))
        one = layer.batch == 1 and not layer.training and split.taken_within(tape, tape.amp or layer.dtype)
        if one:
            scores = split.scores_of_one(tape, qkv, heads, layer.dtype)
        else:
            q, k, v = split.split_heads(tape, qkv, heads)
            sizes, turned = (seq, seq, d), not split.keys_turned(tape)
            scores = op.bmm(tape, q, k, sizes, planes, layer.dtype, turned=turned)
        scores = op.scale(tape, scores)
        if layer.causal:
            mask = tape.value("mask", seq, seq, scores.tensor.item, wanted=False)
            scores = op.add_mask(tape, scores, mask)
        shares = op.dropout(tape, op.softmax(tape, scores))
        if one:
            y = split.weighted_of_one(tape, shares, qkv, heads, layer.dtype)
        else:
            split.take_v(tape, qkv, v, heads)
            y = op.bmm(tape, shares, v, (seq, d, seq), planes, layer.dtype)
        return op.dropout(tape, self.narrowing("o", split.merge_heads(tape, y, heads)))

    def decoded(self, qkv: Value) -> Value:
        """Return attention of one token over cached keys, [batch, heads * d]."""
        layer, h = self.layer, self.layer.own
        width = h.heads * h.d
        new = (qkv.tensor, width), (qkv.tensor, 2 * width)
        problem = Cached(h.batch, h.heads, h.heads, layer.cached, h.d)
        y = attend(self.tape, problem, qkv.tensor, new, layer.dtype)
        return Value(Tensor("attended", h.batch, width, y.item, y.address))

    def feed_forward(self, x: Value) -> Value:
        """Return the two layers with a GELU between."""
        tape = self.tape
        wide = op.gelu(tape, self.linear("f1", x), "tanh" if self.layer.pre else "none")
        return op.dropout(tape, self.narrowing("f2", wide))

    def forward(self, x: Value) -> Value:
        """Return the layer's result."""
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
    runs = [LayerRun.on(tape, layer) for _ in range(count)]
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
    width, ffn = layer.d // layer.shards, layer.ffn // layer.shards
    sizes = {"qkv": (3 * width, layer.d), "o": (layer.d, width)}
    sizes |= {"f1": (ffn, layer.d), "f2": (layer.d, ffn)}
    return {
        name: (tape.parameter(f"w_{name}", out, into, item), tape.parameter(f"b_{name}", 1, out, item))
        for name, (out, into) in sizes.items()
    } | {
        name: (tape.parameter(f"w_{name}", 1, layer.d, item), tape.parameter(f"b_{name}", 1, layer.d, item))
        for name in ("n1", "n2")
    }
