"""Networks that PyTorch launched on an H100 as CUDA graphs: time of a replay, and time by class of kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pysim import Config, Job, Memory
from pysim.workloads.framework.bert import Bert, bert_network
from pysim.workloads.framework.llama import Llama, llama_network
from pysim.workloads.framework.network import Network
from pysim.workloads.framework.recurrent import Stack, recurrent_network
from pysim.workloads.framework.resnet import ResNet, resnet_network
from pysim.workloads.library.captured import captured

from .baselines import eager_profile
from .cases import Case, Outcome, Suite, outcome_of, tables_of, unique
from .table import Row
from .torch_classes import SPAN, UNTIMED, class_times
from .torch_kernels import convolutions_of, gemms_of

QUICK_US = 2000.0  # of a replay
SHOWN = 2  # of equal layers: the second finds what the first left in L2
STEPS = 4  # of a recurrent layer
RESNET = "resnet18_b32_fp32_fwd"
DEEP_SPEECH = "gru_ds2_h800_bi5_b16_t75_fp32_fwd"


def _deep_speech(memory: Memory) -> Network:
    """Return the recurrent layers of DeepSpeech2 and a linear one."""
    stack = Stack("gru", 1312, 800, 5, 16, 75, both=True, out=1024, kernels=gemms_of(DEEP_SPEECH))
    return recurrent_network(stack, memory, STEPS)


def _resnet(memory: Memory) -> Network:
    return resnet_network(ResNet(32, (2, 2, 2, 2)), memory, convolutions_of(RESNET))


NETWORKS: dict[str, Callable[[Memory], Network]] = {
    "bert_base_b8_s128_fp16_fwd": partial(bert_network, Bert(768, 12, 3072, 12, 8, 128), shown=SHOWN),
    "llama_like_1b_b4_s1024_bf16_fwd": partial(
        llama_network, Llama(2048, 32, 8, 5632, 8, 4, 1024), shown=SHOWN
    ),
    DEEP_SPEECH: _deep_speech,
    RESNET: _resnet,
}


def _cases(rows: Sequence[Row]) -> list[Case]:
    replays = {row.text("workload"): row.number("time_us") for row in rows if row.text("part") == SPAN}
    made = []
    for row in rows:
        name, part, known = row.text("workload"), row.text("part"), row.text("eager_us")
        if name not in NETWORKS or part == UNTIMED:
            continue
        made.append(
            Case(
                case=f"{name}:{part}",
                group=SPAN if part == SPAN else "class",
                mode="graph",
                key=name,
                kind=part,
                scheme="graph",
                task=(name,),
                part=part,
                measured_us=row.number("time_us"),
                eager_us=float(known) if known else math.nan,
                quick=replays[name] < QUICK_US,
            )
        )
    return unique(made)


def _network(config: Config, name: str) -> Outcome:
    """Simulate a pass, piece by piece; layers and steps stand for those that are like them."""
    return network_outcome(config, name, NETWORKS[name](Memory()))


def network_outcome(config: Config, name: str, network: Network) -> Outcome:
    """Simulate a network piece by piece."""
    times, tables = dict[str, float](), dict[str, NDArray[np.void]]()
    for piece in network.pieces:
        kernels = captured(piece.kernels) if piece.chained else piece.kernels
        tables = tables_of(config, Job(name, kernels), "graph")
        ran = tables["kernels"]
        begin = float(ran["first_dispatch_us"].min()) - config.number("gpu.cp.graph_gap") / 1e3
        found = class_times(kernels, ran, begin, piece.counts, chained=piece.chained)
        times = {part: times.get(part, 0.0) + found.get(part, 0.0) for part in (*times, *found)}
    shown = len(network.kernels)
    detail = f"{shown} of {network.launches} kernels" + (" (sampled)" if shown < network.launches else "")
    return outcome_of(tables, times, detail)


NETWORK = Suite(
    name="h100-networks",
    doc="networks that PyTorch launched as CUDA graphs on an H100: a replay, and time by class of kernel",
    gpu="h100",
    file="h100_networks.csv",
    columns=("workload", "part", "kernels", "time_us", "eager_us"),
    cases=_cases,
    run=_network,
    baselines=eager_profile,
    note="kernels are predicted from the network alone, by what was learned on an H200, but for those of"
    " convolutions and of recurrent GEMMs, which the profile names; no clock was noted:"
    " errors are of us; a class is measured by durations in a profile, simulated from one completion to the"
    " next (several streams: by the kernels' own times); networks without templates are left out",
)
