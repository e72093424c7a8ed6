"""GNMT v2 as NVIDIA and MLPerf train it with PyTorch: LSTMs with residual sums, attention of all targets.

Encoder: an LSTM of both directions, one over both outputs, and more with residual sums. Decoder: an LSTM
whose outputs attend to the encoder's; the others take outputs and context side by side, with residual sums
from the third on. Each LSTM is a call of cuDNN. One table of words serves both sides. Dropout comes before
each LSTM. Loss: cross entropy, whose mean over classes (label smoothing) is a pass of its own forward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pysim.errors import WorkloadError
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import wide
from pysim.workloads.framework.losses import backward_from, cross_entropy
from pysim.workloads.framework.tape import Tape, Value
from pysim.workloads.library.arguments import MOST_STEPS, check_elements, check_sizes
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory.pointwise_gather import drawn
from pysim.workloads.library.recurrences.recurrent import ITEM

from .attention import Sizes, attention
from .columns import side_by_side
from .layer import Layer, recurrent

FEW_WORDS = 128  # whose gradients one kernel adds; of more, sorted indices stand in up to 3,072: see there
LINE = 512  # bytes that a warp copies of a row, in whole
LEAST_LAYERS = 2  # of either side: one of both directions, one over both


@dataclass(frozen=True, slots=True)
class Translation:
    """``layers`` of each side with ``hidden`` units; ``batch`` sentences of so many tokens on either side."""

    hidden: int
    layers: int
    vocabulary: int
    batch: int
    source: int
    target: int
    dtype: str

    def __post_init__(self) -> None:
        """Refuse what is no size, and types that have no recurrent kernels."""
        what = "GNMT"
        check_sizes(what, hidden=self.hidden, vocabulary=self.vocabulary, batch=self.batch)
        check_sizes(what, most=MOST_STEPS, source=self.source, target=self.target)
        check_sizes(what, LEAST_LAYERS, 64, layers=self.layers)
        scores = self.batch, self.source, self.target, self.hidden
        check_elements(what, batch_x_source_x_target_x_hidden=scores)
        check_elements(what, batch_x_target_x_vocabulary=(self.batch, self.target, self.vocabulary))
        if self.dtype not in ITEM:
            raise WorkloadError(f"{what}: dtype = {self.dtype}: must be {', '.join(ITEM)}")
        if self.hidden * ITEM[self.dtype] % LINE:
            least = LINE // ITEM[self.dtype]
            raise WorkloadError(
                f"{what}: hidden = {self.hidden}: must be a multiple of {least} in {self.dtype}"
            )


@dataclass(slots=True)
class _Run:
    net: Translation
    tape: Tape
    table: Value

    def words(self, tokens: int, seed: int) -> Value:
        taken = drawn(tokens, self.net.vocabulary, seed)
        return op.embedding(self.tape, self.table, np.asarray(taken), self.net.dtype, most=FEW_WORDS)

    def lstm(self, x: Value, steps: int, *, both: bool = False) -> tuple[Value, ...]:
        net = self.net
        layer = Layer("lstm", net.hidden, net.batch, steps, net.dtype, both=both)
        return recurrent(self.tape, op.dropout(self.tape, x), layer)

    def encoder(self) -> Value:
        net, tape = self.net, self.tape
        x = self.words(net.source * net.batch, 1)
        x = side_by_side(tape, self.lstm(x, net.source, both=True))
        (x,) = self.lstm(x, net.source)
        for _ in range(net.layers - LEAST_LAYERS):
            (y,) = self.lstm(x, net.source)
            x = op.add(tape, y, x)
        return x

    def decoder(self, context: Value) -> Value:
        net, tape = self.net, self.tape
        (x,) = self.lstm(self.words(net.target * net.batch, 2), net.target)
        sizes = Sizes(net.batch, net.target, net.source, net.hidden, net.dtype)
        attended = attention(tape, x, context, sizes)
        for number in range(net.layers - 1):
            (y,) = self.lstm(side_by_side(tape, (x, attended)), net.target)
            x = op.add(tape, y, x) if number else y
        return x


def translation(net: Translation, tape: Tape) -> None:
    """Launch a forward pass to the words' scores; in training the loss and all gradients, too."""
    item = ITEM[net.dtype]
    run = _Run(net, tape, tape.parameter("words", net.vocabulary, net.hidden, item))
    x = run.decoder(run.encoder())
    weight = tape.parameter("w_classifier", net.vocabulary, net.hidden, item)
    bias = tape.parameter("b_classifier", 1, net.vocabulary, item)
    scores = op.linear(tape, x, weight, bias, net.dtype)
    if tape.training:
        scores = wide(tape, scores)
        loss = cross_entropy(tape, scores)
        tape.run(memory_ops.sum_rows(tape.memory, scores.tensor, cold=True))
        backward_from(tape, loss)
