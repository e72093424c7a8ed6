"""Recurrent modules of PyTorch as cuDNN runs them: stacked layers of one or two directions, forward.

Both directions of a layer run at the same time, on streams of their own: kernels wait for what they read. The
next layer multiplies all outputs of both by its weights, so it begins when both are done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.workloads.library.gemms.told import Told
from pysim.workloads.library.recurrences.recurrent import ITEM, Recurrent
from pysim.workloads.library.recurrences.rnn import Place, rnn_forward

from . import operations as op
from .network import Network, Piece, shown_of
from .tape import Tape, Value


@dataclass(frozen=True)
class Stack:
    """``layers`` of ``cell`` (gru, lstm, vanilla) with ``hidden`` units, of one or both directions.

    ``batch`` sequences of ``steps`` inputs of ``inputs`` features; ``out``: of a linear layer behind them (0:
    none). ``kernels``: of GEMMs by role, as ``Recurrent`` takes them.
    """

    cell: str
    inputs: int
    hidden: int
    layers: int
    batch: int
    steps: int
    both: bool = False
    out: int = 0
    dtype: str = "fp32"
    kernels: Mapping[str, Told] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse sizes that are not positive."""
        if min(self.inputs, self.layers) < 1 or self.out < 0:
            raise WorkloadError(
                f"recurrent module of {self.layers} layers, {self.inputs} inputs, {self.out} out"
            )

    @property
    def directions(self) -> int:
        """1, or 2 where each layer runs forth and back."""
        return 2 if self.both else 1

    def passed(self, layer: int) -> Recurrent:
        """Return a direction's pass of a layer."""
        into = self.inputs if layer == 0 else self.hidden * self.directions
        sizes = self.cell, self.hidden, self.batch, self.steps, self.dtype
        return Recurrent(*sizes, "forward_inference", self.kernels, inputs=into)


def recurrent_network(stack: Stack, memory: Memory, shown: int = 0) -> Network:
    """Return the kernels of a forward pass.

    ``shown``: steps that stand for all of all layers; what comes before steps is of the first two layers
    (0: all steps of all layers, in one piece).
    """
    layers = _layers(stack, memory, shown_of(stack.steps, shown))
    pieces = [_whole(layers)] if not shown else _shown(layers, stack, shown_of(stack.steps, shown))
    if stack.out:
        tape, x = Tape(memory, training=False), layers[-1].y
        weight = tape.parameter("w", stack.out, x.cols, x.item)
        bias = tape.parameter("b", 1, stack.out, x.item)
        op.linear(tape, Value(x), weight, bias, stack.dtype)
        pieces.append(Piece(tape.kernels, [1] * len(tape.kernels)))
    return Network(pieces)


@dataclass(slots=True)
class _Layer:
    """Kernels before the steps of a layer, and of its steps, both directions in turn; its outputs."""

    before: list[Kernel]
    steps: list[Kernel]
    y: Tensor


def _layers(stack: Stack, memory: Memory, many: int) -> list[_Layer]:
    item, rows = ITEM[stack.dtype], stack.batch * stack.steps
    x = memory.tensor("x", rows, stack.inputs, item)
    made = []
    for layer in range(stack.layers):
        p, y = stack.passed(layer), memory.tensor("y", rows, stack.hidden * stack.directions, item)
        passes = [
            rnn_forward(p, memory, Place(x, y, number * stack.hidden, number == 1), many)
            for number in range(stack.directions)
        ]
        each = len(passes[0][1]) // many
        steps = [k for at in range(many) for _, step in passes for k in step[at * each : (at + 1) * each]]
        made.append(_Layer([kernel for begin, _ in passes for kernel in begin], steps, y))
        x = y
    return made


def _whole(layers: list[_Layer]) -> Piece:
    kernels = [kernel for layer in layers for kernel in (*layer.before, *layer.steps)]
    return Piece(kernels, [1] * len(kernels), chained=False)


def _shown(layers: list[_Layer], stack: Stack, many: int) -> list[Piece]:
    pieces = []
    for layer, times in zip(layers[:2], (1, stack.layers - 1), strict=False):
        pieces.append(Piece(layer.before, [times] * len(layer.before), chained=False))
    each = len(layers[0].steps) // many
    last = stack.layers * (stack.steps - many + 1)
    counts = [stack.layers] * (each * (many - 1)) + [last] * each
    return [*pieces, Piece(layers[0].steps, counts, chained=False)]
