"""Language models of equal Transformer layers as PyTorch's eager mode runs them: BERT and GPT.

Weights, activations and gradients have one type (pure half precision, or fp32). Embeddings of tokens and
places are gathered for each token and added. A BERT has two heads: tokens, whose last layer shares the table
of words, and whether a sentence follows another, which a gather of each first token stands in for taking as
a view. A GPT's last layer shares that table, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysim.errors import WorkloadError
from pysim.workloads.library.arguments import MOST_LAYERS, check_sizes
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.memory.pointwise_parts import item_of

from . import operations as op
from .collectives import Links, all_reduced, shared
from .layers import Layer, LayerRun
from .losses import backward_from, cross_entropy
from .tape import Tape, Value

EMBEDDINGS, HEAD, LOSS = "embeddings", "head", "loss"  # parts beside the layers, as origins name them
TYPES, FOLLOWS = 2, 2  # kinds of tokens of a BERT, and answers whether a sentence follows


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """``layers`` like ``layer``, a ``vocabulary``, and ``positions`` that have an embedding.

    A layer with LayerNorms before (``Layer.pre``) makes a GPT, else it is a BERT. ``vocabulary`` is that of
    a shard where ``layer.shards`` share it.
    """

    layer: Layer
    layers: int
    vocabulary: int
    positions: int

    def __post_init__(self) -> None:
        """Refuse what is no size, and sequences longer than the positions."""
        check_sizes("language model", most=MOST_LAYERS, layers=self.layers)
        check_sizes("language model", vocabulary=self.vocabulary)
        check_sizes("language model", positions=self.positions)
        longest = max(self.layer.seq, self.layer.cached)
        if longest > self.positions:
            raise WorkloadError(f"seq = {longest}: at most {self.positions}, which have embeddings")


@dataclass(slots=True)
class _Run:
    model: LanguageModel
    tape: Tape
    links: Links | None

    def linear(self, name: str, x: Value, out: int) -> Value:
        tape, layer = self.tape, self.model.layer
        item = item_of(layer.dtype)
        weight = tape.parameter(f"w_{name}", out, x.tensor.cols, item)
        return op.linear(tape, x, weight, tape.parameter(f"b_{name}", 1, out, item), layer.dtype)

    def norm(self, name: str, x: Value) -> Value:
        tape, cols, item = self.tape, x.tensor.cols, item_of(self.model.layer.dtype)
        scale, shift = (tape.parameter(f"{kind}_{name}", 1, cols, item) for kind in ("w", "b"))
        return op.layer_norm(tape, x, scale, shift)

    def embeddings(self) -> tuple[Value, Value]:
        """Return the sum of what tokens get, and the table of words."""
        model, tape, layer = self.model, self.tape, self.model.layer
        item = item_of(layer.dtype)
        words = tape.parameter("words", model.vocabulary, layer.d, item)
        places = tape.parameter("places", model.positions, layer.d, item)
        x = op.embedding(tape, words, drawn(layer.tokens, model.vocabulary), layer.dtype)
        x = all_reduced(tape, x, self.links)
        first = max(layer.cached - 1, 0)
        at = np.tile(np.arange(first, first + layer.seq, dtype=np.int64), layer.batch)
        x = op.add(tape, x, op.embedding(tape, places, at, layer.dtype))
        if not layer.pre:
            kinds = tape.parameter("types", TYPES, layer.d, item)
            half = np.arange(layer.tokens, dtype=np.int64) % layer.seq >= layer.seq // 2
            x = op.add(tape, x, op.embedding(tape, kinds, half.astype(np.int64), layer.dtype))
            x = self.norm("embedded", x)
        return op.dropout(tape, x), words

    def body(self, x: Value) -> Value:
        for number in range(self.model.layers):
            with self.tape.part(f"layer {number}"):
                x = LayerRun.on(self.tape, self.model.layer, self.links).forward(x)
        return self.norm("last", x) if self.model.layer.pre else x

    def words(self, x: Value, table: Value) -> Value:
        """Return the logits of each token."""
        tape, layer = self.tape, self.model.layer
        if layer.pre:
            return op.linear(tape, shared(tape, x, self.links), table, None, layer.dtype)
        y = self.norm("head", op.gelu(tape, self.linear("head", x, layer.d), "none"))
        bias = tape.parameter("b_words", 1, self.model.vocabulary, item_of(layer.dtype))
        return op.linear(tape, y, table, bias, layer.dtype)

    def follows(self, x: Value) -> Value:
        """Return the answers of each sequence's first token."""
        layer = self.model.layer
        taken = np.arange(layer.batch, dtype=np.int64) * layer.seq
        first = op.embedding(self.tape, x, taken, layer.dtype)
        return self.linear("follows", op.tanh(self.tape, self.linear("pooled", first, layer.d)), FOLLOWS)


def language_model(model: LanguageModel, tape: Tape, links: Links | None = None) -> None:
    """Launch a forward pass to the logits, and in training the loss and all gradients.

    ``links``: of the shards of a layer, if there are several.
    """
    run = _Run(model, tape, links)
    with tape.part(EMBEDDINGS):
        x, table = run.embeddings()
    x = run.body(x)
    with tape.part(HEAD):
        logits = run.words(x, table)
        answers = None if model.layer.pre else run.follows(x)
    if not tape.training:
        return
    with tape.part(LOSS):
        loss = cross_entropy(tape, logits, links)
        if answers is not None:
            loss = op.add(tape, loss, cross_entropy(tape, answers))
    backward_from(tape, loss)
