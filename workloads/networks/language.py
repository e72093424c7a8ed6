"""BERT and GPT as workloads: forward and training step, on one GPU or as one of several shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.program.memory_budget import claim_launches
from pysim.workloads.framework.autocast import AMP, stored
from pysim.workloads.framework.collectives import Links
from pysim.workloads.framework.language import LanguageModel, language_model
from pysim.workloads.framework.layers import Layer
from pysim.workloads.framework.tape import Tape
from pysim.workloads.library.choices.by_cost import hints_of
from pysim.workloads.library.choices.chooser import HOPPER
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
from .shapes import BERT, GPT, Transformer

if TYPE_CHECKING:
    from pysim.workloads.kernels.machine_hints import MachineHints

ATTENTIONS = ("auto", "fused", "products")
PADDED = 128  # Megatron-LM pads a vocabulary to a multiple for each shard
ALIGNED = 8  # NVIDIA's BERT pads it to a multiple, for tensor cores
TILE = 128  # queries of a TB of fused attention, of which it takes whole ones
FUSED_HEADS = (64, 128)  # columns of a head that it takes
# All-reduces among 8 V100: 274, 502 and 994 us for 512, 1,024 and 2,048 tokens of 12,288 columns of fp16 of
# GPT-3 175B. Least squares: 28.3 us and 52.2 GB/s, which give 269, 510 and 992 us
LATENCY_US, GBS = 28.3, 52.2
TYPES = """

    ``dtype``: fp32, fp16 or bf16, the one type of parameters, activations, gradients and moments (LAMB has
    fp32 masters and moments); amp or amp-bf16: autocast as PyTorch's, with fp32 parameters, gradients and
    moments, and in fp16 a loss scale."""
LAUNCHES, PATTERNS = 90, 400  # of a layer's training step, to claim memory by


def padded(size: int, multiple: int) -> int:
    """Return a vocabulary of ``size`` up to a multiple."""
    return -(-size // multiple) * multiple


def _fused(where: str, attention: str, layer: Layer, device: str, dtype: str) -> bool:
    """Whether attention is one kernel; ``auto``: for a GPT where there is a template."""
    if attention not in ATTENTIONS:
        raise WorkloadError(f"{where}: attention = {attention}: must be {', '.join(ATTENTIONS)}")
    d = layer.d // layer.heads
    whole = layer.cached > 0 or layer.seq % TILE == 0
    taken = ITEM[dtype] == 2 and d in FUSED_HEADS
    if attention == "fused" and device in HOPPER and not (whole and taken):
        raise WorkloadError(
            f"{where}: attention = fused: seq = {layer.seq}, heads of {d} columns of {dtype}: must be a"
            f" multiple of {TILE}, of {' or '.join(map(str, FUSED_HEADS))} columns of 16 bits"
        )
    if attention != "auto":
        return attention == "fused"
    return layer.pre and device in HOPPER and whole and taken


def _job(
    name: str,
    shape: Transformer,
    layer: Layer,
    layers: int,
    attention: str,
    optimizer: str,
    vocabulary: int,
    device: str,
    simulated: int,
    links: Links | None = None,
    amp: str = "",
) -> Job:
    where, count = name, layers_of(name, layers, shape.layers)
    fused = _fused(where, attention, layer, device, amp or layer.dtype)
    held = min(simulated, count) or count
    claim_launches(LAUNCHES * held, f"{where}: {held:,} layers", PATTERNS * held)

    def built(number: int) -> Tape:
        tape = Tape(Memory(), training=layer.training, device=device, amp=amp)
        made = LanguageModel(replace(layer, fused=fused), number, vocabulary, shape.positions)
        language_model(made, tape, links)
        return tape

    with named(where):
        return layers_job(name, built, count, simulated, optimizer if layer.training else "none")


def _bert(name: str) -> Callable[..., Job]:
    shape = BERT[name]

    def made(
        batch: int = 8,
        seq: int = 128,
        pass_: str = "forward",
        dtype: str = "fp16",
        layers: int = 0,
        optimizer: str = "lamb",
        attention: str = "auto",
        simulated: int = 0,
        hints: MachineHints | None = None,
    ) -> Job:
        check_pass(name, pass_, ("forward", "training"))
        check_optimizer(name, optimizer)
        device, training = device_of(hints, name), pass_ == "training"
        check_dtype(name, dtype, (*ITEM, *AMP), device)
        check_positions(name, seq, shape.positions)
        with named(name):
            layer = Layer(shape.d, shape.heads, shape.ffn, batch, seq, training=training, dtype=stored(dtype))
        vocabulary = padded(shape.vocabulary, ALIGNED)
        amp = AMP.get(dtype, "")
        return _job(name, shape, layer, layers, attention, optimizer, vocabulary, device, simulated, amp=amp)

    made.__doc__ = f"""Make a pass of {name}: {shape.layers} layers, {shape.d} features, {shape.heads} heads.

    Both heads of pre-training. ``pass``: forward to the logits, or a training step, whose ``optimizer`` is
    LAMB as in NVIDIA's BERT, or AdamW. ``attention``: products, or fused (cuDNN's).{TYPES} ``simulated``:
    layers that stand for all; 0: all are simulated.
    """
    return made


def _gpt(name: str) -> Callable[..., Job]:
    shape = GPT[name]
    megatron = name.startswith("gpt3")

    def made(
        batch: int = 1,
        seq: int = 1024,
        pass_: str = "forward",
        dtype: str = "fp16",
        layers: int = 0,
        optimizer: str = "adamw",
        attention: str = "auto",
        shards: int = 1,
        simulated: int = 0,
        hints: MachineHints | None = None,
    ) -> Job:
        check_pass(name, pass_)
        check_optimizer(name, optimizer)
        device, training, decode = device_of(hints, name), pass_ == "training", pass_ == "decode"
        check_dtype(name, dtype, (*ITEM, *AMP), device)
        check_positions(name, seq, shape.positions)
        if shards < 1:
            raise WorkloadError(f"{name}: shards = {shards}: must be positive")
        if dtype in AMP and shards > 1:
            raise WorkloadError(f"{name}: shards = {shards}: dtype = {dtype}: must be {', '.join(ITEM)}")
        with named(name):
            layer = Layer(
                shape.d,
                shape.heads,
                shape.ffn,
                batch,
                1 if decode else seq,
                pre=True,
                causal=not decode,
                training=training,
                dtype=stored(dtype),
                shards=shards,
                cached=seq if decode else 0,
            )
        vocabulary = shape.vocabulary
        if megatron or shards > 1:
            vocabulary = padded(vocabulary, PADDED * shards) // shards
        links = Links(LATENCY_US, GBS, (hints or hints_of(device)).sm_mhz) if shards > 1 else None
        amp = AMP.get(dtype, "")
        return _job(
            name, shape, layer, layers, attention, optimizer, vocabulary, device, simulated, links, amp
        )

    made.__doc__ = f"""Make a pass of {name}: {shape.layers} layers, {shape.d} features, {shape.heads} heads.

    ``pass``: forward to the logits, a training step, or decode, a token of each sequence with ``seq`` keys,
    its own among them. ``attention``: products, or fused (cuDNN's); auto:
    fused where there is a template. ``shards``: GPUs that share each layer as in Megatron-LM, of which this
    is one; all-reduces are delays, those of 8 V100.{TYPES} ``simulated``: layers that stand for all; 0: all
    are simulated.
    """
    return made


LANGUAGE = {name: _bert(name) for name in BERT} | {name: _gpt(name) for name in GPT}
