"""From a convolutional network on a tape to a job: forward alone, or a step of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.workloads.framework.caching import reused
from pysim.workloads.framework.losses import backward_from, cross_entropy
from pysim.workloads.framework.optimizers import optimizer
from pysim.workloads.framework.tape import Tape, Value
from pysim.workloads.library.arguments import check_names, check_sizes
from pysim.workloads.library.choices.chooser import DEVICES, MEASURED
from pysim.workloads.library.memory.images import Images
from pysim.workloads.library.memory.pointwise_parts import item_of

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

PASSES = "forward", "training"
DTYPES = "fp32", "fp16"
MOST_IMAGES, MOST_SIDE = 2**12, 2**12


@dataclass(slots=True)
class Pictures:
    """A network that is being built: its tape, the images that the last layer made, and their type."""

    tape: Tape
    x: Value
    images: Images
    dtype: str


def network_job(
    name: str,
    build: Callable[[Pictures], Value],
    *,
    batch: int,
    side: int,
    passes: str,
    dtype: str,
    hints: MachineHints | None,
    channels: int = 3,
) -> Job:
    """Return the job of a network; ``build`` makes logits [images, classes] of the images.

    ``passes``: ``forward`` as in evaluation, or ``training``: forward, cross entropy, backward, and a step of
    SGD with momentum. Addresses are those of PyTorch's caching allocator. Raises WorkloadError for sizes that
    leave no pixels, and for what has no kernel on the device.
    """
    check_sizes(name, most=MOST_IMAGES, batch=batch)
    check_sizes(name, most=MOST_SIDE, side=side)
    check_names(name, PASSES, **{"pass": passes})
    check_names(name, DTYPES, dtype=dtype)
    device = hints.name if hints is not None else MEASURED
    if device not in DEVICES:
        raise WorkloadError(f"{name}: GPU {device}: there are kernels for {', '.join(DEVICES)}")
    memory = Memory()
    tape = Tape(memory, training=passes == "training", device=device)
    images = Images(batch, channels, side, side)
    x = tape.value("images", batch * channels, images.pixels, item_of(dtype), wanted=False)
    logits = build(Pictures(tape, x, images, dtype))
    if tape.training:
        backward_from(tape, cross_entropy(tape, logits))
    kernels = reused(tape.kernels, memory)
    if tape.training:
        kernels += optimizer("sgd", tape.weights, memory)
    return Job(f"{name}:batch={batch},side={side},pass={passes}", kernels, totals=tape.totals)
