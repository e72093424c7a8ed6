"""From a convolutional network on a tape to a job: forward alone, or a step of training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pysim.program.job import Job, Memory
from pysim.workloads.framework.autocast import AMP, stored
from pysim.workloads.framework.losses import backward_from, cross_entropy
from pysim.workloads.framework.tape import Tape, Value
from pysim.workloads.library.arguments import check_sizes
from pysim.workloads.library.memory.images import Images
from pysim.workloads.library.memory.pointwise_parts import ITEM, item_of
from pysim.workloads.networks.passes import check_dtype, check_pass, device_of, job_of, named

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

MOST_IMAGES, MOST_SIDE = 2**12, 2**12


@dataclass(slots=True)
class Pictures:
    """A network that is being built: its tape, the images that it reads, and their type."""

    tape: Tape
    x: Value
    images: Images
    dtype: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asks of a network: images of ``side`` x ``side``, the pass, the type, the machine."""

    batch: int
    side: int
    passes: str
    dtype: str
    hints: MachineHints | None
    channels: int = 3


def network_job(name: str, build: Callable[[Pictures], Value], asked: Asked, steps: int) -> Job:
    """Return the job of a network; ``build`` makes logits [images, classes] of the images.

    A pass is ``forward`` as in evaluation, or ``training``: forward, cross entropy, backward, and a step of
    SGD with momentum. Raises WorkloadError for sizes that leave no pixels, and for what has no kernel on the
    device.
    """
    check_sizes(name, most=MOST_IMAGES, batch=asked.batch)
    check_sizes(name, most=MOST_SIDE, side=asked.side)
    check_pass(name, asked.passes, ("forward", "training"))
    device = device_of(asked.hints, name)
    check_dtype(name, asked.dtype, (*ITEM, *AMP), device)
    tape = Tape(Memory(), training=asked.passes == "training", device=device)
    tape.amp, dtype = AMP.get(asked.dtype, ""), stored(asked.dtype)
    images = Images(asked.batch, asked.channels, asked.side, asked.side)
    x = tape.value("images", images.count * images.channels, images.pixels, item_of(dtype), wanted=False)
    with named(name):
        logits = build(Pictures(tape, x, images, dtype))
        if tape.training:
            backward_from(tape, cross_entropy(tape, logits))
        return job_of(name, tape, steps, "sgd" if tape.training else "none")
