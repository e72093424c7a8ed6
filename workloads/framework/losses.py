"""Losses of PyTorch on a tape, over logits [tokens, classes]."""

from __future__ import annotations

from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import row_passes

from .operations import one
from .tape import Gradients, Tape, Value

LONG = 8  # bytes of a target


def cross_entropy(tape: Tape, logits: Value) -> Value:
    """Return the mean cross entropy of rows with a target each (``torch.nn.functional.cross_entropy``).

    A log-softmax and the mean of one of its elements a row. Backward: the loss writes into zeros, then the
    gradient of the log-softmax.
    """
    x, memory = logits.tensor, tape.memory
    shares = memory.tensor("log_softmax", x.rows, x.cols, x.item)
    targets, loss = memory.tensor("targets", 1, x.rows, LONG), memory.tensor("loss", 1, 1, x.item)
    tape.launch([row_passes.log_softmax_rows(x, shares), row_passes.nll_rows(shares, targets, loss)])

    def backward(given: Gradients) -> Gradients:
        dtype = "fp32" if x.item == 4 else "fp16"
        zeros = tape.run(memory_ops.fill(memory, x.rows, x.cols, dtype))
        back = memory.tensor("grad_logits", x.rows, x.cols, x.item)
        tape.launch(
            [
                row_passes.nll_backward_rows(one(given), targets, zeros),
                row_passes.log_softmax_backward_rows(zeros, shares, back),
            ]
        )
        return (back,)

    return tape.record((loss,), (logits,), backward)[0]


def backward_from(tape: Tape, loss: Value) -> None:
    """Launch the gradients of a loss of one element, whose own is a one that a kernel writes."""
    dtype = "fp32" if loss.tensor.item == 4 else "fp16"
    tape.backward(loss, tape.run(memory_ops.fill(tape.memory, 1, 1, dtype)))
