"""Stacked layers as a wavefront: step t of a layer runs beside step t + 1 of the layer before it.

Each layer has a stream of its own. A step waits by an event for what it reads of another layer: forward the
output of the same step of the layer before, backward the gradient that the layer after leaves. So the longest
chain has layers + steps - 1 cells in place of layers x steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pysim.errors import WorkloadError
from pysim.program.job import Kernel
from pysim.workloads.framework.tape import Gradients, Tape, Value, one
from pysim.workloads.library.recurrences.layer import Launched
from pysim.workloads.library.recurrences.recurrent import Recurrent

from .unrolled import Unrolled, Way, taken

MOST = 16  # layers, of which each has a stream


def wavefront(tape: Tape, x: Value, p: Recurrent, layers: int, way: Way) -> Value:
    """Return the outputs of the last of ``layers`` equal layers; ``p``: the pass of each.

    Raises WorkloadError for inputs that are multiplied before all steps of the layer before are done, and for
    more layers than streams.
    """
    if way.input == "hoisted":
        raise WorkloadError("wavefront = 1: input = hoisted: must be per-step or skip")
    if layers > MOST:
        raise WorkloadError(f"wavefront = 1: layers = {layers}: at most {MOST}, a stream each")
    if p.into != p.hidden:
        raise WorkloadError(f"wavefront = 1: {p.into} inputs: must be as many as units, {p.hidden}")
    passes: list[Unrolled] = []
    value = x = taken(tape, x, way)
    for _ in range(layers):
        passes.append(Unrolled(tape, p, value, way))
        value = Value(passes[-1].y)  # whose gradient the layer leaves for the one before it
        tape.held += [made for made in passes[-1].shared if made is not None]
        if tape.amp:  # converted in the main stream
            tape.held += [weight.tensor for weight in passes[-1].weights.values()]
    arranged(tape, [(stream, each.forward()) for stream, each in enumerate(passes)])

    def backward(given: Gradients) -> Gradients:
        calls, dy = [], one(given)
        for stream, each in reversed(list(enumerate(passes))):
            calls.append((stream, each.backward(dy)))
            dy = each.dx or dy
        arranged(tape, calls)
        found = [each.found[name] for each in passes for name in each.weights]
        return passes[0].dx if x.wanted else None, *found

    weights = [weight for each in passes for weight in each.weights.values()]
    return tape.record((passes[-1].y,), (x, *weights), backward)[0]


def arranged(tape: Tape, calls: Sequence[tuple[int, Launched]]) -> None:
    """Launch layers in the order in which they wait for each other, each in a stream of its own.

    ``calls``: of each layer its stream, the same forward and backward, as PyTorch's engine has it: memory of
    a stream's tensors is only used again in that stream. What comes before and after the steps is launched in
    the main stream, 0; what is launched next there waits for all layers.
    """
    for _, call in calls:
        tape.launch(call.before)
    fork, steps = len(tape.kernels) - 1, len(calls[0][1].steps)
    ends: dict[tuple[int, int], int] = {}
    for diagonal in range(len(calls) + steps - 1):
        for at in range(max(0, diagonal - steps + 1), min(len(calls), diagonal + 1)):
            step, (stream, call) = diagonal - at, calls[at]
            if at:
                tape.events.append((ends[at - 1, step], len(tape.kernels)))
            elif not step and fork >= 0 and tape.kernels[fork].stream != stream:
                tape.events.append((fork, len(tape.kernels)))
            tape.launch(_in_stream(call.steps[step], stream))
            ends[at, step] = len(tape.kernels) - 1
    last = [ends[at, steps - 1] for at, (stream, _) in enumerate(calls) if stream]
    tape.events += [(end, len(tape.kernels)) for end in last]
    for _, call in calls:
        tape.launch(call.after)


def _in_stream(kernels: Sequence[Kernel], stream: int) -> list[Kernel]:
    return [replace(kernel, stream=stream) for kernel in kernels]
