"""LLaMA as workloads: forward, training step and decode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework.llama import DTYPE, DTYPES, Llama, llama_on
from pysim.workloads.framework.tape import Tape

from .passes import check_dtype, check_optimizer, check_pass, device_of, job_of, layers_of, named
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
        hints: MachineHints | None = None,
    ) -> Job:
        check_pass(name, pass_)
        check_optimizer(name, optimizer)
        device, training = device_of(hints, name), pass_ == "training"
        check_dtype(name, dtype, DTYPES, device)
        if seq > shape.positions:
            raise WorkloadError(f"{name}: seq = {seq}: at most {shape.positions}")
        count = layers_of(name, layers, shape.layers)
        claim_launches(LAUNCHES * count, f"{name}: {count:,} layers", PATTERNS * count)
        tape = Tape(Memory(), training=training, device=device)
        heads = shape.heads, shape.kv_heads or shape.heads
        with named(name):
            tokens, cached = (1, seq) if pass_ == "decode" else (seq, 0)
            sizes = count, batch, tokens, shape.vocabulary, cached
            llama_on(tape, Llama(shape.d, *heads, shape.ffn, *sizes), dtype=dtype)
            return job_of(name, tape, count, optimizer if training else "none")

    made.__doc__ = f"""Make a pass of {name}: {shape.layers} layers, {shape.d} features, {shape.heads} heads.

    ``pass``: forward to the logits of all tokens, as Hugging Face's transformers launch it, a training step,
    or decode, a token of each sequence with ``seq`` keys, its own among them. Weights, activations, gradients
    and moments are of ``dtype``, bf16 or (before Ampere) fp16; norms compute in fp32. On GPUs
    before Hopper attention is by products.
    """
    return made


LLAMAS = {name: _llama(name) for name in LLAMA}
