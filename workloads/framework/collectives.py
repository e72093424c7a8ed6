"""All-reduces among the shards of a network on a tape: a delay for latency and bandwidth.

The other GPUs, links and the traffic in memory are not simulated: one thread waits for all that it adds up,
then as long as the all-reduce takes. It writes over what it read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pysim.program.job import Kernel, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.warp_program import Code, Program
from pysim.workloads.library.memory.pointwise_parts import whole

from .tape import Gradients, Tape, Value, one, operation

LIBRARY = stand_in("ncclAllReduce as a delay")
MOST_DELAY = 1 << 29  # cycles of one instruction


@dataclass(frozen=True, slots=True)
class Links:
    """What an all-reduce takes among the GPUs of a machine: ``latency_us`` and its bytes at ``gbs``.

    ``mhz``: clock of an SM, which counts the delay.
    """

    latency_us: float
    gbs: float
    mhz: float

    def time_us(self, nbytes: int) -> float:
        """Return the time of an all-reduce of so many bytes."""
        return self.latency_us + nbytes / self.gbs * 1e-3

    def cycles(self, nbytes: int) -> int:
        """Return the same in cycles."""
        return round(self.time_us(nbytes) * self.mhz)


@operation
def all_reduced(tape: Tape, x: Value, links: Links | None) -> Value:
    """Return the sums over shards of ``x``, in its place; the gradient of each is that of the sum.

    ``links`` None: there is one shard, and nothing to do.
    """
    if links is None:
        return x
    tape.launch([all_reduce(x.tensor, links)])
    return tape.record((x.tensor,), (x,), lambda given: (given[0],))[0]


@operation
def shared(tape: Tape, x: Value, links: Links | None) -> Value:
    """Return ``x``, which all shards have; backward adds up what they make of it."""
    if links is None:
        return x

    def backward(given: Gradients) -> Gradients:
        gradient = one(given)
        tape.launch([all_reduce(gradient, links)])
        return (gradient,)

    return tape.record((x.tensor,), (x,), backward)[0]


def all_reduce(tensor: Tensor, links: Links, source: Tensor | None = None) -> Kernel:
    """Return the kernel of an all-reduce in place, or of what is computed from ``source``."""
    program = _program(links.cycles(tensor.nbytes))
    accesses = whole(source or tensor, "read"), whole(tensor, "write")
    return Kernel("all_reduce", program, (1, 1, 1), (tensor,), accesses, library=LIBRARY)


@lru_cache(maxsize=64)
def _program(cycles: int) -> Program:
    code = Code()
    while cycles > 0:
        code.delay(min(cycles, MOST_DELAY))
        cycles -= MOST_DELAY
    code.exit()
    return Program("all_reduce", (tuple(code.ops),), 1, 16, 0, 1)
