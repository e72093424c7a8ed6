"""Losses of PyTorch on a tape, over logits [tokens, classes]."""

from __future__ import annotations

from dataclasses import replace

from pysim.program.job import Kernel, Tensor
from pysim.workloads.library.memory import memory_bound as memory_ops
from pysim.workloads.library.memory import row_passes
from pysim.workloads.library.memory.pointwise_parts import whole

from .autocast import scaled, wide
from .collectives import Links, all_reduce
from .tape import Gradients, Tape, Value, one, operation

LONG, FLOAT = 8, 4  # bytes of a target, and of what shards exchange


@operation
def cross_entropy(tape: Tape, logits: Value, links: Links | None = None) -> Value:
    """Return the mean cross entropy of rows with a target each (``torch.nn.functional.cross_entropy``).

    A log-softmax and the mean of one of its elements a row. Backward: the loss writes into zeros, then the
    gradient of the log-softmax. ``links``: each shard has some of the classes, so that the largest logit, the
    logit of the target and the sum of exponentials of each row are all-reduced (Megatron-LM's cross_entropy).
    """
    logits = wide(tape, logits)
    x, memory = logits.tensor, tape.memory
    shares = memory.tensor("log_softmax", x.rows, x.cols, x.item)
    targets, loss = memory.tensor("targets", 1, x.rows, LONG), memory.tensor("loss", 1, 1, x.item)
    passes, mean = row_passes.log_softmax_rows(x, shares), row_passes.nll_rows(shares, targets, loss)
    if links is None:
        tape.launch([passes, mean])
    else:
        largest, sums, hits = (memory.tensor(name, 1, x.rows, FLOAT) for name in ("largest", "sums", "hits"))
        tape.launch([all_reduce(largest, links, x), _reading(passes, largest)])
        tape.launch([all_reduce(each, links, shares) for each in (hits, sums)])
        tape.launch([_reading(mean, hits, sums)])

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


def _reading(kernel: Kernel, *tensors: Tensor) -> Kernel:
    """Return a kernel that also waits for what ``tensors`` hold."""
    return replace(kernel, accesses=(*kernel.accesses, *(whole(tensor) for tensor in tensors)))


@operation
def backward_from(tape: Tape, loss: Value) -> None:
    """Launch the gradients of a loss of one element, whose own is a one that a kernel writes."""
    loss = scaled(tape, loss)
    dtype = "fp32" if loss.tensor.item == 4 else "fp16"
    tape.backward(loss, tape.run(memory_ops.fill(tape.memory, 1, 1, dtype)))
