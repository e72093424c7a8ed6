"""LLaMA as workloads: forward, training step and decode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pysim.program.job import Job, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework.autocast import AMP, stored
from pysim.workloads.framework.llama import DTYPE, Llama, llama_on
from pysim.workloads.framework.tape import Tape
from pysim.workloads.library.memory.pointwise_parts import ITEM

from .passes import (
    check_dtype,
    check_optimizer,
    check_pass,
    check_positions,
    device_of,
    layers_job,
    layers_of,
    named,
)
from .shapes import LLAMA

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

LAUNCHES, PATTERNS = 250, 600  # of a layer's training step, to claim memory by


def _llama(name: str) -> Callable[..., Job]:
    shape = LLAMA[name]

    def made(
        batch: int = 1,
        seq: int = 1024,
        pass_: str = "forward",
        dtype: str = DTYPE,
        layers: int = 0,
        optimizer: str = "adamw",
        simulated: int = 0,
        hints: MachineHints | None = None,
    ) -> Job:
        check_pass(name, pass_)
        check_optimizer(name, optimizer)
        device, training = device_of(hints, name), pass_ == "training"
        check_dtype(name, dtype, (*ITEM, *AMP), device)
        check_positions(name, seq, shape.positions)
        count = layers_of(name, layers, shape.layers)
        held = min(simulated, count) or count
        claim_launches(LAUNCHES * held, f"{name}: {held:,} layers", PATTERNS * held)
        heads = shape.heads, shape.kv_heads or shape.heads
        tokens, cached = (1, seq) if pass_ == "decode" else (seq, 0)

        def built(number: int) -> Tape:
            tape = Tape(Memory(), training=training, device=device, amp=AMP.get(dtype, ""))
            sizes = number, batch, tokens, shape.vocabulary, cached
            llama_on(tape, Llama(shape.d, *heads, shape.ffn, *sizes), dtype=stored(dtype))
            return tape

        with named(name):
            return layers_job(name, built, count, simulated, optimizer if training else "none")

    made.__doc__ = f"""Make a pass of {name}: {shape.layers} layers, {shape.d} features, {shape.heads} heads.

    ``pass``: forward to the logits of all tokens, as Hugging Face's transformers launch it, a training step,
    or decode, a token of each sequence with ``seq`` keys, its own among them. Weights, activations, gradients
    and moments are of ``dtype``, bf16 (from Ampere on), fp16 or fp32; norms compute in fp32. amp or amp-bf16:
    autocast as PyTorch's, with fp32 parameters, gradients and moments, and in fp16 a loss scale. On GPUs
    before Hopper, and in fp32, attention is by products. ``simulated``: layers that stand for all; 0: all are
    simulated.
    """
    return made


LLAMAS = {name: _llama(name) for name in LLAMA}
