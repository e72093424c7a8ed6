"""Recurrent modules as one operation: cuDNN's, with all layers, steps and directions.

The nodes are ``pysim.rnn`` and ``pysim.rnn_backward``. Tensors are as cuDNN takes them, time first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pysim.errors import WorkloadError

from .recorder import Recorder

GATES = {"vanilla": 1, "gru": 3, "lstm": 4}
# values of a unit and step that a pass leaves for the way back, as the library's kernels do: outputs, those
# of both directions side by side, and what cells keep (an LSTM's state among it)
KEPT = {"vanilla": 2, "gru": 6, "lstm": 7}
ROWS_BEFORE = 16  # of states before the first step, in a pass of one kernel
EVEN = 256  # bytes
APART = 64  # elements after each part of what is kept, so that the next one begins at a multiple of 256 B


@dataclass(frozen=True, slots=True)
class _Module:
    """What a call is: ``layers`` of ``cell``, one or two ``directions``; ``dropout`` between layers."""

    cell: str
    layers: int
    directions: int
    dropout: float
    train: bool


def recurrent(cell: str) -> Callable[..., Any]:
    """Return what takes the place of ``torch.gru`` and its like."""

    def call(
        recorder: Recorder,
        x: Any,
        state: Any,
        weights: Sequence[Any],
        has_biases: Any,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: Any = None,
        *more: Any,
    ) -> Any:
        if not isinstance(has_biases, bool):
            raise WorkloadError(
                f"from_torch: {cell}: sequences of several lengths (PackedSequence): pad them"
            )
        states = tuple(state) if isinstance(state, tuple | list) else (state,)
        gates = GATES[cell] * states[0].shape[-1]
        if any(w.shape[0] != gates for w in weights):
            raise WorkloadError(f"from_torch: {cell} with projections: no template")
        module = _Module(cell, int(layers), 2 if bidirectional else 1, float(dropout), bool(train))
        inner = x.transpose(0, 1).contiguous() if batch_first else x.contiguous()
        made = _Rnn.apply(recorder, module, inner, *states, *weights)
        out = made[0].transpose(0, 1) if batch_first else made[0]
        return (out, *made[1:])

    return call


class _Rnn(torch.autograd.Function):  # type: ignore[misc]
    """The operation and its gradient; nothing is computed."""

    @staticmethod
    def forward(ctx: Any, recorder: Recorder, module: _Module, x: Any, *others: Any) -> Any:
        many = 2 if module.cell == "lstm" else 1
        states, weights = others[:many], others[many:]
        steps, batch, hidden = x.shape[0], x.shape[1], states[0].shape[-1]
        y = x.new_empty((steps, batch, hidden * module.directions))
        last = [torch.empty_like(state) for state in states]
        wanted = any(ctx.needs_input_grad)
        outputs = [y, *last]
        if wanted:
            # what the way back reads, in the place of cuDNN's reserve space, whose size is not known
            passes = module.layers * module.directions
            rows = (steps + 1) * batch + ROWS_BEFORE
            outputs.append(x.new_empty((passes * KEPT[module.cell], rows * hidden + APART)))
            ctx.save_for_backward(x, y, outputs[-1], *states, *weights)
        ctx.recorder, ctx.module = recorder, module
        recorder.emit("pysim.rnn", _arguments(module, x, states, weights, wanted), outputs)
        return (y, *last)

    @staticmethod
    def backward(ctx: Any, *given: Any) -> Any:
        x, y, kept, *others = ctx.saved_tensors
        many = 2 if ctx.module.cell == "lstm" else 1
        states, weights = others[:many], others[many:]
        of_x = torch.empty_like(x) if ctx.needs_input_grad[2] else None
        of_states = [torch.empty_like(state) for state in states]
        of_weights = flattened(weights, torch.empty(0, dtype=x.dtype, device=x.device))
        arguments = _arguments(ctx.module, x, states, weights, True) | {"y": y, "kept": kept}
        arguments["given"] = tuple(each for each in given if each is not None)
        outputs = [each for each in (of_x, *of_states, *of_weights) if each is not None]
        ctx.recorder.emit("pysim.rnn_backward", arguments | {"of_x": of_x is not None}, outputs)
        return None, None, of_x, *of_states, *of_weights


def _arguments(
    module: _Module, x: Any, states: Sequence[Any], weights: Sequence[Any], training: bool
) -> dict[str, Any]:
    return {
        "x": x, "states": tuple(states), "weights": tuple(weights), "cell": module.cell,
        "layers": module.layers, "directions": module.directions, "training": training,
        "dropout": module.dropout if module.train else 0.0,
    }  # fmt: skip


def flattened(weights: Sequence[Any], like: Any) -> list[Any]:
    """Return new tensors of the shapes of a module's weights, one behind another in one storage.

    So cuDNN takes them (``flatten_parameters``) and gives their gradients: all matrices, then all biases.
    Here each matrix begins at a multiple of 256 B, as templates of GEMMs want it.
    """
    order = sorted(range(len(weights)), key=lambda at: (weights[at].ndim == 1, at))
    each, begins, end = EVEN // like.element_size(), {}, 0
    for at in order:
        begins[at] = end
        end += weights[at].numel() if weights[at].ndim == 1 else -(-weights[at].numel() // each) * each
    buffer = like.new_empty(end)
    return [
        buffer[begins[at] : begins[at] + weight.numel()].view(weight.shape)
        for at, weight in enumerate(weights)
    ]
