"""Sequences that PyTorch launched on an H200 as CUDA graphs: span, and time by class of kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from pysim import Config, Job, Kernel, Memory
from pysim.workloads.framework.layers import Layer, transformer_layer
from pysim.workloads.framework.network import Network
from pysim.workloads.framework.resnet import ResNet, resnet_network
from pysim.workloads.library.captured import captured
from pysim.workloads.library.recurrences.recurrent import Recurrent

from .baselines import eager_profile
from .cases import Case, Outcome, Suite, outcome_of, tables_of, unique
from .library import CLOCK, clocked
from .library_rnn import simulated
from .networks import network_outcome
from .table import Row
from .torch_classes import SPAN, UNTIMED, class_times
from .torch_kernels import convolutions_of, gemms_of

QUICK_US = 500.0  # of a span
BERT = Layer(1024, 16, 4096, 8, 128)
GPT = Layer(1600, 25, 6400, 4, 1024, pre=True, causal=True)
GPT3 = Layer(5120, 40, 20480, 1, 2048, pre=True, causal=True, training=False)
LAYERS = {
    "bert_large_layer_b8_s128_fp16_fwdbwd": BERT,
    "bert_large_layer_b8_s512_fp16_fwdbwd": replace(BERT, seq=512),
    "bert_large_layer_b32_s128_fp16_fwdbwd": replace(BERT, batch=32),
    "bert_large_layer_b8_s128_fp16_fwd": replace(BERT, training=False),
    "bert_base_layer_b16_s128_fp16_fwdbwd": Layer(768, 12, 3072, 16, 128),
    "bert_large_layer_b8_s512_fp16_fwdbwd_sdpa": replace(BERT, seq=512, fused=True),
    "gpt2xl_layer_b4_s1024_fp16_fwdbwd_sdpa": replace(GPT, fused=True),
    "gpt3_13b_layer_b1_s2048_fp16_fwd": GPT3,
    "gpt3_13b_layer_b1_s2048_fp16_fwd_sdpa": replace(GPT3, fused=True),
}
RESNET = "resnet50_stages1to3_b32_fp32_fwd"


def _resnet(memory: Memory) -> Network:
    """Return the first three stages of a ResNet-50; of blocks that are alike one."""
    resnet = ResNet(32, (3, 4, 6), bottleneck=True, classes=0)
    return resnet_network(resnet, memory, convolutions_of(RESNET), shown=2)


WORKLOADS: dict[str, Callable[[Memory], list[Kernel]]] = {
    name: partial(transformer_layer, layer) for name, layer in LAYERS.items()
}


RECURRENT: dict[str, tuple[str, int, int, int]] = {
    "gru_h512_b32_t25_fp32_fwdbwd": ("gru", 512, 32, 25),
    "gru_h1536_b32_t50_fp32_fwdbwd": ("gru", 1536, 32, 50),
    "lstm_h512_b16_t25_fp32_fwdbwd": ("lstm", 512, 16, 25),
    "lstm_h2048_b128_t25_fp32_fwdbwd": ("lstm", 2048, 128, 25),
    "vanilla_h2560_b64_t50_fp32_fwdbwd": ("vanilla", 2560, 64, 50),
}


def _cases(rows: Sequence[Row]) -> list[Case]:
    spans = {row.text("workload"): row for row in rows if row.text("part") == SPAN}
    made = []
    for row in rows:
        name, part, time = row.text("workload"), row.text("part"), row.number("time_us")
        known_part = name in (*WORKLOADS, RESNET) or (name in RECURRENT and part == SPAN)
        if not known_part or part == UNTIMED:
            continue
        known = row.text("eager_us")
        clock = f"{spans[name].number('sm_clock_mhz'):.0f}" if name in spans else ""
        made.append(
            Case(
                case=f"{name}:{part}",
                group=SPAN if part == SPAN else "class",
                mode="graph",
                key=name,
                kind=part,
                scheme="graph",
                task=(name, clock),
                part=part,
                measured_us=time,
                measured_cycles=time * float(clock) if part == SPAN else math.nan,
                eager_us=float(known) if known else math.nan,
                quick=name in spans and spans[name].number("time_us") < QUICK_US,
            )
        )
    return unique(made)


def _sequence(config: Config, name: str, clock: str) -> Outcome:
    """Simulate two replays at a clock in MHz, if one was noted; the second finds what the first left in L2.

    A recurrent module is one pass of cuDNN, of which some steps are simulated.
    """
    at = clocked(config, {CLOCK: clock}) if clock else config
    if name in RECURRENT:
        p = Recurrent(*RECURRENT[name], "fp32", "forward_backward", gemms_of(name))
        return simulated(at, p, SPAN)
    if name == RESNET:
        return network_outcome(at, name, _resnet(Memory()))
    kernels = captured(WORKLOADS[name](Memory()) * 2)
    tables = tables_of(at, Job(name, kernels), "graph")
    ran, half = tables["kernels"], len(kernels) // 2
    begin = float(ran["complete_us"][half - 1])
    times = class_times(kernels[half:], ran[half:], begin, [1] * half)
    return outcome_of(tables, times, f"{half} kernels")


SEQUENCES = Suite(
    name="h200-torch",
    doc="layers that PyTorch launched as CUDA graphs on an H200: span, and time by class of kernel",
    gpu="h200",
    file="h200_torch.csv",
    columns=("workload", "part", "time_us", "sm_clock_mhz", "eager_us"),
    cases=_cases,
    run=_sequence,
    baselines=eager_profile,
    note="kernels and their choice are predicted from the layer alone, but for GEMMs of recurrent modules, of"
    " which the profile names them and the span alone is a case; a class is measured by durations in a"
    " profile of unknown clock, simulated from one completion to the next; errors of spans are of SM cycles",
)
