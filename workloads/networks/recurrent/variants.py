"""Ways to launch stacked recurrent layers: what cuDNN and frameworks do with the same network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.autocast import AMP, stored
from pysim.workloads.framework.sequences.layer import Layer, recurrent
from pysim.workloads.framework.sequences.unrolled import Way
from pysim.workloads.framework.sequences.wavefront import wavefront as waves
from pysim.workloads.framework.tape import Tape, Value
from pysim.workloads.library.arguments import check_sizes
from pysim.workloads.library.recurrences.recurrent import ITEM
from pysim.workloads.networks.passes import (
    as_known,
    check_dtype,
    check_pass,
    device_of,
    job_of,
    marked_as,
    named,
)

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

Cell = Literal["lstm", "gru", "vanilla"]
Input = Literal["hoisted", "per-step", "skip"]
Pointwise = Literal["cudnn", "fused", "unfused"]
POINTWISE = "cudnn", "fused", "unfused"
MOST = 1 << 12
LAUNCHES, PATTERNS = 40, 48  # of a step of a layer there and back, to claim memory by


def rnn_net(
    cell: Cell = "lstm",
    hidden: int = 512,
    batch: int = 64,
    steps: int = 25,
    layers: int = 1,
    pass_: str = "forward",
    dtype: str = "fp16",
    both: bool = False,
    streams: int = 2,
    persistent: bool = True,
    input: Input = "hoisted",
    pointwise: Pointwise = "cudnn",
    wavefront: bool = False,
    hints: MachineHints | None = None,
) -> Job:
    """Make stacked recurrent layers as PyTorch calls cuDNN for them, or as loops over their cells.

    ``both``: of both directions, whose outputs are added, in ``streams`` (1 or 2). ``persistent``: one kernel
    for all steps where cuDNN has it (Hopper; LSTMs in fp16, at most 1,024 units and 64 sequences); 0: a GEMM
    and a cell a step. ``pass``: forward, or training with all gradients.

    ``pointwise``: cudnn; fused: PyTorch's loop over nn.LSTMCell and nn.GRUCell, a kernel a cell; unfused:
    each operation of a gate its own kernel. ``input``: hoisted, one GEMM of all inputs; loops also take
    per-step, a GEMM a step, and skip, inputs are added to each gate. ``wavefront``: of loops without a
    hoisted GEMM: each layer in its stream, a step beside the next one of the layer before. Workloads
    ``gru``, ``lstm`` and ``vanilla`` have kernels of this project, ``persistent_rnn`` weights that stay in
    registers. ``dtype``: fp32, fp16, bf16, or amp or amp-bf16: autocast as PyTorch's, of inputs and
    parameters of fp32; cuDNN's layers are fp16 then.
    """
    check_pass("rnn-net", pass_, ("forward", "training"))
    sizes = {"hidden": hidden, "batch": batch, "steps": steps, "layers": layers}
    check_sizes("rnn-net", most=MOST, **sizes)
    device, known = device_of(hints, "rnn-net"), as_known(stored(dtype))
    check_dtype("rnn-net", dtype, (*ITEM, "bf16", *AMP), device)
    claim_launches(
        LAUNCHES * steps * layers, f"rnn-net: {layers:,} layers of {steps:,} steps", PATTERNS * layers
    )
    tape = Tape(Memory(), training=pass_ == "training", device=device, amp=AMP.get(dtype, ""))
    way = _way(input, pointwise, wavefront=wavefront, both=both)
    layer = Layer(cell, hidden, batch, steps, known, both, streams, stepwise=not persistent, loop=way)
    x: Value = tape.value("x", batch * steps, hidden, ITEM[known], wanted=False)
    with named("rnn-net"):
        if way is not None and wavefront:
            x = waves(tape, x, layer.passed(tape, hidden), layers, way)
        for _ in range(0 if wavefront else layers):
            made = recurrent(tape, x, layer)
            x = op.add(tape, *made) if both else made[0]
    if tape.training:
        tape.backward(x, tape.memory.tensor("gradient", x.tensor.rows, x.tensor.cols, x.tensor.item))
    name = f"rnn-net:cell={cell},hidden={hidden},batch={batch}"
    return marked_as(job_of(name, tape, steps), dtype)


def _way(inputs: str, pointwise: str, *, wavefront: bool, both: bool) -> Way | None:
    """Return how a loop over cells runs, or nothing where cuDNN is called."""
    if pointwise not in POINTWISE:
        raise WorkloadError(f"rnn-net: pointwise = {pointwise}: must be {', '.join(POINTWISE)}")
    with named("rnn-net"):
        way = Way(inputs, pointwise == "fused")
    if pointwise == "cudnn":
        if inputs != "hoisted" or wavefront:
            raise WorkloadError(
                f"rnn-net: pointwise = cudnn: input = {inputs}, wavefront = {int(wavefront)}: must be"
                " hoisted and 0"
            )
        return None
    if wavefront and both:
        raise WorkloadError("rnn-net: wavefront = 1: both = 1: must be 0, a layer begins when both are done")
    return way
