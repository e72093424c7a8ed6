"""Operations of a model and their gradients, in the order in which PyTorch's eager mode launches kernels.

Forward, an operation launches its kernels and is recorded. Backward, a recorded operation runs when the
gradients of all that used its results are there; of those that could run, the one recorded last runs first.
A second gradient of one value is added to the first by a kernel, as soon as it is there. So does PyTorch's
engine (torch/csrc/autograd/engine.cpp, input_buffer.cpp, 2.11).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from pysim.errors import WorkloadError
from pysim.program.job import Kernel, Memory, Tensor
from pysim.program.library_kernels import stand_in
from pysim.program.totals import Totals
from pysim.workloads.library.choices.by_cost import hints_of
from pysim.workloads.library.choices.chooser import HOPPER, MEASURED
from pysim.workloads.library.hopper import SMS
from pysim.workloads.library.memory import memory_bound
from pysim.workloads.library.moved import Launches, Made, Repeats

Gradients = Sequence["Tensor | None"]
P = ParamSpec("P")
R = TypeVar("R")
ACCUMULATED = "accumulate"  # operation of a kernel that adds a gradient to another
OTHER = stand_in("a kernel of PyTorch as measured on an H200")  # on another GPU


class Origin(NamedTuple):
    """What launched a kernel: parts of the network from the outside in, an operation, and on which way."""

    parts: tuple[str, ...] = ()
    operation: str = ""
    backward: bool = False


NOWHERE = Origin()


@dataclass(eq=False, slots=True)
class Value:
    """A tensor, and the operation that made it (None: an input or a parameter).

    ``place``: which of the operation's results; ``wanted``: whether its gradient is; ``gradient``: that of an
    input or parameter, after :meth:`Tape.backward`.
    """

    tensor: Tensor
    operation: Operation | None = None
    place: int = 0
    wanted: bool = True
    gradient: Tensor | None = None


@dataclass(eq=False, slots=True)
class Operation:
    """A recorded operation; ``backward`` turns gradients of its results into gradients of its inputs.

    ``origin``: of its kernels on the way back.
    """

    number: int
    inputs: tuple[Value, ...]
    results: int
    backward: Callable[[Gradients], Gradients]
    origin: Origin


@dataclass(slots=True)
class Tape:
    """Kernels in the order of their launches, and what was recorded for the way back.

    ``training``: whether operations are recorded. ``device``: whose kernels libraries launch, one of
    ``workloads.library.choices.chooser.DEVICES``. ``weights``: the parameters in the order in which they were
    made. ``flops``: floating-point operations of GEMMs, convolutions, attention and recurrent cells, as
    :meth:`work` counts them. ``events``: pairs of kernels, the later of which waits in another stream;
    ``gemms``: GEMMs of recurrent passes that were made. ``amp``: the type of 16 bits under autocast (none: no
    autocast); ``narrowed``: parameters that were converted to it. ``held``: tensors whose memory
    is not used again. ``origins``: of each kernel; ``worked``: ``flops`` by
    origin.
    """

    memory: Memory
    training: bool = True
    kernels: list[Kernel] = field(default_factory=list)
    recorded: int = 0
    device: str = MEASURED
    weights: list[Value] = field(default_factory=list)
    flops: int = 0
    events: list[tuple[int, int]] = field(default_factory=list)
    gemms: dict[Hashable, Made] = field(default_factory=dict)
    amp: str = ""
    narrowed: dict[Value, Value] = field(default_factory=dict)
    held: list[Tensor] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)
    worked: Counter[Origin] = field(default_factory=Counter)
    origin: Origin = NOWHERE
    _repeated: Repeats = field(init=False)

    def __post_init__(self) -> None:
        """Begin without calls."""
        self._repeated = Repeats(self.memory)

    @property
    def sms(self) -> int:
        """SMs of the device, which decide grids of kernels whose TBs take several pieces in turn."""
        return SMS if self.device in HOPPER else hints_of(self.device).sms

    @property
    def parameters(self) -> int:
        """Elements of all parameters."""
        return sum(weight.tensor.rows * weight.tensor.cols for weight in self.weights)

    @property
    def totals(self) -> Totals:
        """What the network has and computes, for its job."""
        return Totals(self.parameters, self.flops)

    def work(self, m: int, n: int, k: int, batch: int = 1) -> None:
        """Count ``batch`` products of m x k by k x n: 2 m n k each, a multiplication and an addition.

        What an algorithm computes again or pads is not counted; a masked score is.
        """
        flops = 2 * m * n * k * batch
        self.flops += flops
        self.worked[self.origin] += flops

    @contextmanager
    def launching(self, origin: Origin) -> Iterator[None]:
        """Let kernels that are launched inside have this origin."""
        before, self.origin = self.origin, origin
        try:
            yield
        finally:
            self.origin = before

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Let what is launched inside belong to a part of the network, and its gradients."""
        with self.launching(self.origin._replace(parts=(*self.origin.parts, name))):
            yield

    def launch(self, kernels: Iterable[Kernel]) -> None:
        """Add kernels behind those that are there."""
        self.kernels += self.marked(kernels)
        self.origins += [self.origin] * (len(self.kernels) - len(self.origins))

    def marked(self, kernels: Iterable[Kernel]) -> list[Kernel]:
        """Return kernels; those without a library's name stand in where the device is not of Hopper."""
        known = self.device in HOPPER
        return [k if known or k.library else replace(k, library=OTHER) for k in kernels]

    def call(
        self, key: Hashable, operands: Sequence[Tensor], make: Callable[[], Launches]
    ) -> tuple[Tensor, ...]:
        """Launch what ``make`` returns, or what it returned for operands that are alike; return its results.

        ``key``: all that the kernels depend on beside the operands' shapes.
        """
        kernels, outputs = self._repeated.call(key, operands, make)
        self.launch(kernels)
        return outputs

    def run(self, launched: memory_bound.Launched) -> Tensor:
        """Add an operation's kernels; return its first result."""
        self.launch(launched.kernels)
        return launched.outputs[0]

    def value(self, name: str, rows: int, cols: int, item: int, *, wanted: bool = True) -> Value:
        """Return a new input; ``item``: bytes of an element."""
        return Value(self.memory.tensor(name, rows, cols, item), wanted=wanted)

    def parameter(self, name: str, rows: int, cols: int, item: int) -> Value:
        """Return a new parameter, which optimisers step; ``item``: bytes of an element."""
        made = self.value(name, rows, cols, item)
        self.weights.append(made)
        return made

    def record(
        self, results: Sequence[Tensor], inputs: Sequence[Value], backward: Callable[[Gradients], Gradients]
    ) -> tuple[Value, ...]:
        """Return the results as values; ``backward`` takes a gradient a result, gives one an input."""
        wanted = self.training and any(value.wanted for value in inputs)
        origin = self.origin._replace(backward=True)
        operation = (
            Operation(self.recorded, tuple(inputs), len(results), backward, origin) if wanted else None
        )
        self.recorded += 1
        return tuple(Value(tensor, operation, i, wanted) for i, tensor in enumerate(results))

    def backward(self, of: Value, gradient: Tensor) -> None:
        """Launch the gradients of all that ``of`` was computed from, given its own.

        Raises WorkloadError where nothing was recorded, and for a gradient of another shape.
        """
        shapes = [(tensor.rows, tensor.cols, tensor.item) for tensor in (of.tensor, gradient)]
        if shapes[0] != shapes[1]:
            raise WorkloadError(f"backward from {of.tensor.name}: {shapes[0]}, its gradient is {shapes[1]}")
        if of.operation is None:
            raise WorkloadError(f"backward from {of.tensor.name}: nothing was recorded")
        _Way(self, _uses(of.operation)).run(of, gradient)


def operation(made: Callable[Concatenate[Tape, P], R]) -> Callable[Concatenate[Tape, P], R]:
    """Let a function that launches an operation give its kernels its name; inner operations keep theirs."""

    @wraps(made)
    def launched(tape: Tape, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with tape.launching(tape.origin._replace(operation=made.__name__)):
            return made(tape, *args, **kwargs)

    return launched


def _uses(last: Operation) -> dict[Operation, int]:
    """Return how many inputs of others, back from ``last``, each operation made."""
    uses = {last: 0}
    left = [last]
    while left:
        for value in left.pop().inputs:
            made = value.operation
            if made is not None and value.wanted:
                if made not in uses:
                    left.append(made)
                uses[made] = uses.get(made, 0) + 1
    return uses


@dataclass(slots=True)
class _Way:
    """One way back: ``uses`` counts the gradients that each operation still waits for."""

    tape: Tape
    uses: dict[Operation, int]
    arrived: dict[tuple[Operation, int], Tensor] = field(default_factory=dict)

    def run(self, of: Value, gradient: Tensor) -> None:
        last = of.operation
        if last is None:
            return
        self.arrived[last, of.place] = gradient
        ready = [(-last.number, last)]
        while ready:
            operation = heapq.heappop(ready)[1]
            given = [self.arrived.pop((operation, i), None) for i in range(operation.results)]
            with self.tape.launching(operation.origin):
                made = operation.backward(given)
            # its kernels are launched before any of its results is added to another gradient
            for value, found in zip(operation.inputs, made, strict=True):
                free = self.arrive(value, found) if value.wanted else None
                if free is not None:
                    heapq.heappush(ready, (-free.number, free))

    def arrive(self, value: Value, found: Tensor | None) -> Operation | None:
        """Take a gradient of a value; return the operation that made it if it can run now."""
        made = value.operation
        before = value.gradient if made is None else self.arrived.get((made, value.place))
        if found is not None and before is not None:
            with self.tape.launching(Origin(operation=ACCUMULATED, backward=True)):
                found = self.tape.run(memory_bound.add(self.tape.memory, before, found))
        if made is None:
            value.gradient = found if found is not None else before
            return None
        if found is not None:
            self.arrived[made, value.place] = found
        self.uses[made] -= 1
        return made if self.uses[made] == 0 else None


def one(given: Gradients) -> Tensor:
    """Return the gradient of an operation's only result."""
    (gradient,) = given
    if gradient is None:
        raise WorkloadError("backward: a result has no gradient")
    return gradient
