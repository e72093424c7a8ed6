"""DeepSpeech2 and GNMT as workloads: forward and training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework.autocast import AMP, stored
from pysim.workloads.framework.sequences.speech import Speech, speech
from pysim.workloads.framework.sequences.translation import Translation, translation
from pysim.workloads.framework.tape import Tape
from pysim.workloads.networks import shapes
from pysim.workloads.networks.passes import (
    as_known,
    check_dtype,
    check_optimizer,
    check_pass,
    device_of,
    job_of,
    layers_of,
    marked_as,
    named,
)

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

PASSES = ("forward", "training")
DTYPES = ("fp32", "fp16", "bf16")
AUTOCAST = (
    "autocast as PyTorch's, with fp32 parameters, gradients and moments, recurrent layers in fp16, and for"
    " fp16 a loss scale."
)
BRAIN = "amp-bf16"
# at::autocast::prioritize refuses to promote two types of 16 bits (ATen/autocast_mode.h)
NO_CAT = "under autocast of bf16 PyTorch refuses torch.cat of what cuDNN's LSTMs return, which is fp16"
STEP, CELLS = 8, 16  # launches of a step of both directions there and back; patterns: to claim memory by


def _speech(name: str) -> Callable[..., Job]:
    shape = shapes.SPEECH[name]

    def made(
        batch: int = 16,
        steps: int = 75,
        pass_: str = "forward",
        dtype: str = "fp16",
        layers: int = 0,
        hidden: int = shape.hidden,
        cell: str = shape.cell,
        streams: int = 2,
        optimizer: str = "sgd",
        hints: MachineHints | None = None,
    ) -> Job:
        check_pass(name, pass_, PASSES)
        check_optimizer(name, optimizer)
        device = device_of(hints, name)
        check_dtype(name, dtype, (*DTYPES, *AMP), device)
        count, training = layers_of(name, layers, shape.layers), pass_ == "training"
        claim_launches(STEP * steps * count, f"{name}: {count:,} layers of {steps:,} steps", CELLS * count)
        tape = Tape(Memory(), training=training, device=device, amp=AMP.get(dtype, ""))
        held = as_known(stored(dtype))
        with named(name):
            speech(Speech(cell, hidden, count, shape.labels, batch, steps, held, streams), tape)
            return marked_as(job_of(name, tape, steps, optimizer if training else "none"), dtype)

    made.__doc__ = f"""Make a pass of DeepSpeech2: {shape.layers} {shape.cell} layers of {shape.hidden} units.

    ``steps``: time steps of the recurrent layers, of two spectrogram frames (20 ms) each. ``pass``: forward
    to the labels' scores, or a training step with CTC and SGD. ``dtype``: fp32, fp16 or bf16, one type of
    all, or amp or amp-bf16: {AUTOCAST} Both directions run in ``streams`` (1 or 2).
    """
    return made


def _translation(name: str) -> Callable[..., Job]:
    shape = shapes.TRANSLATION[name]

    def made(
        batch: int = 64,
        source: int = 25,
        target: int = 25,
        pass_: str = "forward",
        dtype: str = "fp16",
        layers: int = 0,
        hidden: int = shape.hidden,
        vocabulary: int = shape.vocabulary,
        optimizer: str = "adamw",
        hints: MachineHints | None = None,
    ) -> Job:
        check_pass(name, pass_, PASSES)
        check_optimizer(name, optimizer)
        device = device_of(hints, name)
        if dtype == BRAIN:
            raise WorkloadError(f"{name}: dtype = {BRAIN}: must be amp: {NO_CAT}")
        check_dtype(name, dtype, (*DTYPES, "amp"), device)
        count, training = layers_of(name, layers, shape.layers), pass_ == "training"
        steps = max(source, target, 1)
        claim_launches(
            STEP * steps * 2 * count, f"{name}: {count:,} layers of {steps:,} steps", CELLS * count
        )
        tape = Tape(Memory(), training=training, device=device, amp=AMP.get(dtype, ""))
        held = as_known(stored(dtype))
        with named(name):
            translation(Translation(hidden, count, vocabulary, batch, source, target, held), tape)
            return marked_as(job_of(name, tape, steps, optimizer if training else "none"), dtype)

    made.__doc__ = f"""Make a pass of GNMT v2: {shape.layers} LSTM layers of {shape.hidden} units a side.

    ``source`` and ``target``: tokens of each sentence; ``layers``: of each side, at least 2. ``pass``:
    forward to the words' scores with known targets, or a training step with Adam (AdamW's kernels).
    ``dtype``: fp32, fp16 or bf16, one type of all, or amp: {AUTOCAST}
    """
    return made


SEQUENCES = {name: _speech(name) for name in shapes.SPEECH}
SEQUENCES |= {name: _translation(name) for name in shapes.TRANSLATION}
