"""What all networks of the zoo share: passes, the GPU that their kernels are made for, and their jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pysim.errors import WorkloadError
from pysim.program.job import Job, Kernel
from pysim.program.library_kernels import stand_in
from pysim.program.periods.shorten import inserted, shortened, with_launches
from pysim.program.periods.shortened import LEAST_KEPT
from pysim.workloads.framework.autocast import stepped
from pysim.workloads.framework.caching import reused
from pysim.workloads.framework.optimizers import OPTIMIZERS, optimizer
from pysim.workloads.library.choices.by_cost import has_bf16
from pysim.workloads.library.choices.chooser import DEVICES, HOPPER, MEASURED
from pysim.workloads.library.hopper import SMS

if TYPE_CHECKING:
    from pysim.program.job import Memory, Tensor
    from pysim.workloads.framework.tape import Tape, Value
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
    """Let errors of what is built begin with the network's name, once."""
    try:
        yield
    except WorkloadError as error:
        if str(error).startswith(f"{network}: "):
            raise
        raise WorkloadError(f"{network}: {error}") from error


def check_pass(where: str, which: str, known: Sequence[str] = PASSES) -> None:
    """Refuse a pass that a network does not have."""
    if which not in known:
        raise WorkloadError(f"{where}: pass = {which}: must be {', '.join(known)}")


def check_positions(where: str, seq: int, most: int) -> None:
    """Refuse sequences, of a decode the keys, that are longer than those a network was trained for.

    Positions of BERT and GPT have embeddings that were learned; those of LLaMA are turned by angles.
    """
    if seq > most:
        raise WorkloadError(f"{where}: seq = {seq}: at most {most}, the positions that it was trained for")


def check_dtype(where: str, dtype: str, known: Sequence[str], device: str) -> None:
    """Refuse a type that a network does not have, and bf16 on GPUs before Ampere."""
    taken = [name for name in known if not name.endswith("bf16") or device in HOPPER or has_bf16(device)]
    if dtype not in taken:
        raise WorkloadError(f"{where}: dtype = {dtype}: must be {' or '.join(taken)} on {device}")


def as_known(dtype: str) -> str:
    """Return the type whose kernels are taken where those of bf16 are not known."""
    return "fp16" if dtype == "bf16" else dtype


def marked_as(job: Job, dtype: str) -> Job:
    """Return a job whose kernels, those of :func:`as_known`, say so."""
    if as_known(dtype) == dtype:
        return job
    said = stand_in(f"of {as_known(dtype)}, for {dtype}", measured=False)
    kernels = [replace(k, library=f"{k.library}, {said}" if k.library else said) for k in job.kernels]
    return replace(job, kernels=kernels)


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
    kernels: list[Kernel] = reused(tape.kernels, tape.memory, tape.held)
    kernels += _step(tape, tape.weights, optimized_by)
    events = [(before, after) for before, after in tape.events if after < len(kernels)]
    return Job(name, kernels, events, steps=steps, totals=tape.totals)


def layers_job(
    name: str, built: Callable[[int], Tape], layers: int, simulated: int = 0, optimized_by: str = "none"
) -> Job:
    """Return the job of a network of equal layers; ``built``: the tape of one of so many.

    ``simulated``: the job holds so many of the layers, and the engine extrapolates to all; 0: all. The
    optimiser's step is that of all parameters, of which launches that are alike are held as many times.
    """
    if simulated < 0 or 0 < simulated < LEAST_KEPT:
        raise WorkloadError(
            f"{name}: simulated = {simulated}: must be 0 (all layers), or {LEAST_KEPT} or more"
        )
    if not simulated or simulated >= layers:
        return job_of(name, built(layers), layers, optimized_by)
    tape, fewer = built(simulated), built(simulated - 1)
    job = shortened(job_of(name, tape, simulated), job_of(name, fewer, simulated - 1), layers)
    weights = _all_weights(name, tape, fewer, layers - simulated)
    return with_launches(job, _step(tape, weights, optimized_by), simulated)


def _step(tape: Tape, weights: Sequence[Value], optimized_by: str) -> list[Kernel]:
    """Return an optimiser's step of parameters, with what mixed precision launches around it."""
    return tape.marked(stepped(tape, weights, optimizer(optimized_by, weights, tape.memory)))


def _all_weights(name: str, tape: Tape, fewer: Tape, more: int) -> list[Value]:
    """Return the parameters of a tape, and those of ``more`` layers like its last one."""
    sizes = [[(w.tensor.rows, w.tensor.cols, w.tensor.item) for w in t.weights] for t in (tape, fewer)]
    layer = inserted(*sizes)
    if layer is None or len(layer) != 1:
        raise WorkloadError(f"{name}: parameters of layers are not alike: simulated = 0 takes all layers")
    place, count = layer[0]
    copies = [_like(tape.memory, w) for _ in range(more) for w in tape.weights[place : place + count]]
    return [*tape.weights[:place], *copies, *tape.weights[place:]]


def _like(memory: Memory, weight: Value) -> Value:
    """Return a parameter as large as another one, with a gradient where that has one."""

    def copied(tensor: Tensor) -> Tensor:
        return memory.tensor(tensor.name, tensor.rows, tensor.cols, tensor.item)

    gradient = None if weight.gradient is None else copied(weight.gradient)
    return replace(weight, tensor=copied(weight.tensor), gradient=gradient)
