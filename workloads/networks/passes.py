"""What all networks of the zoo share: passes, the GPU that their kernels are made for, and their jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel
from pysim.workloads.framework.caching import reused
from pysim.workloads.framework.optimizers import OPTIMIZERS, optimizer
from pysim.workloads.library.choices.chooser import DEVICES, HOPPER, MEASURED
from pysim.workloads.library.hopper import SMS

if TYPE_CHECKING:
    from pysim.workloads.framework.tape import Tape
    from pysim.workloads.kernels.machine_hints import MachineHints

Pass = Literal["forward", "training", "decode"]
PASSES: tuple[Pass, ...] = ("forward", "training", "decode")


def device_of(hints: MachineHints | None, where: str) -> str:
    """Return the GPU whose kernels libraries launch; without a machine those of an H200.

    Raises WorkloadError for a GPU whose libraries are not known.
    """
    if hints is None:
        return MEASURED
    if hints.name not in DEVICES:
        raise WorkloadError(f"{where}: GPU {hints.name}: there are kernels for {', '.join(DEVICES)}")
    if hints.name in HOPPER and hints.sms != SMS:
        raise WorkloadError(f"{where}: gpu.sms = {hints.sms}: libraries were measured on {SMS} SMs")
    return hints.name


@contextmanager
def named(network: str) -> Iterator[None]:
    """Let errors of what is built begin with the network's name."""
    try:
        yield
    except WorkloadError as error:
        raise WorkloadError(f"{network}: {error}") from error


def check_pass(where: str, which: str, known: Sequence[str] = PASSES) -> None:
    """Refuse a pass that a network does not have."""
    if which not in known:
        raise WorkloadError(f"{where}: pass = {which}: must be {', '.join(known)}")


def layers_of(where: str, layers: int, published: int) -> int:
    """Return how many layers a network has; 0: as many as were published."""
    if layers < 0:
        raise WorkloadError(f"{where}: layers = {layers}: must be 0 (the published {published}) or more")
    return layers or published


def check_optimizer(where: str, name: str) -> None:
    """Refuse an optimiser that is not known."""
    if name not in OPTIMIZERS:
        raise WorkloadError(f"{where}: optimizer = {name}: must be {', '.join(OPTIMIZERS)}")


def job_of(name: str, tape: Tape, steps: int, optimized_by: str = "none") -> Job:
    """Return the job of a tape: tensors where PyTorch's allocator puts them, then the optimiser's step.

    Gradients of parameters stay where they are until the step, as ``zero_grad(set_to_none=False)`` has it.
    """
    kernels: list[Kernel] = reused(tape.kernels, tape.memory)
    kernels += optimizer(optimized_by, tape.weights, tape.memory)
    events = [(before, after) for before, after in tape.events if after < len(kernels)]
    return Job(name, kernels, events, steps=steps, totals=tape.totals)
