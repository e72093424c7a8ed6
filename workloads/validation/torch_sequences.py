"""Sequences that PyTorch launched on an H200 as CUDA graphs: span, and time by class of kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from pysim import Config, Job, Kernel, Memory
from pysim.workloads.framework.layers import Layer, transformer_layer
from pysim.workloads.library.captured import captured

from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, unique
from .library import CLOCK, clocked
from .table import Row
from .torch_classes import SPAN, UNTIMED, class_times

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
WORKLOADS: dict[str, Callable[[Memory], list[Kernel]]] = {
    name: partial(transformer_layer, layer) for name, layer in LAYERS.items()
}


def _cases(rows: Sequence[Row]) -> list[Case]:
    spans = {row.text("workload"): row for row in rows if row.text("part") == SPAN}
    made = []
    for row in rows:
        name, part, time = row.text("workload"), row.text("part"), row.number("time_us")
        if name not in WORKLOADS or part == UNTIMED:
            continue
        clock, known = spans[name].number("sm_clock_mhz"), row.text("eager_us")
        made.append(
            Case(
                case=f"{name}:{part}",
                group=SPAN if part == SPAN else "class",
                mode="graph",
                key=name,
                kind=part,
                scheme="graph",
                task=(name, f"{clock:.0f}"),
                part=part,
                measured_us=time,
                measured_cycles=time * clock if part == SPAN else math.nan,
                flops=float(known) if known else math.nan,  # what the baseline model answers
                quick=spans[name].number("time_us") < QUICK_US,
            )
        )
    return unique(made)


def _sequence(config: Config, name: str, clock: str) -> Outcome:
    """Simulate two replays at a clock in MHz; the second finds what the first left in L2."""
    kernels = captured(WORKLOADS[name](Memory()) * 2)
    tables = tables_of(clocked(config, {CLOCK: clock}), Job(name, kernels), "graph")
    ran, half = tables["kernels"], len(kernels) // 2
    begin = float(ran["complete_us"][half - 1])
    times = class_times(kernels[half:], ran[half:], begin, [1] * half)
    return outcome_of(tables, times, f"{half} kernels")


def _eager(cases: Sequence[Case]) -> list[Baseline]:
    """Return what a profile of the eager run says: the time in which kernels ran."""
    return [Baseline("a profile of the same network run eagerly", np.array([case.flops for case in cases]))]


SEQUENCES = Suite(
    name="h200-torch",
    doc="layers that PyTorch launched as CUDA graphs on an H200: span, and time by class of kernel",
    gpu="h200",
    file="h200_torch.csv",
    columns=("workload", "part", "time_us", "sm_clock_mhz", "eager_us"),
    cases=_cases,
    run=_sequence,
    baselines=_eager,
    note="kernels and their choice are predicted from the layer alone; a class is measured by durations in a"
    " profile of unknown clock, simulated from one completion to the next; errors of spans are of SM cycles",
)
