"""What the study of dynamic schemes simulates: groups of workloads, and `tb_auto` with one thing changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pysim.sweep.point import Point
from pysim.units import Value
from pysim.workloads.applications.acs import GRAPHS
from pysim.workloads.applications.blockmaestro import APPS
from pysim.workloads.library.choices.by_cost import has_bf16

PLAIN, AUTO = "-", "tb_auto"  # the variant without a change; the scheme that variants change


class Group(NamedTuple):
    """Workloads by name, and those of a run of moments."""

    title: str
    workloads: Mapping[str, str]
    quick: Mapping[str, str]


class Variant(NamedTuple):
    """``tb_auto`` with one thing changed: its options, and parameters by path."""

    kind: str
    scheme: str
    settings: Mapping[str, Value]


# small networks, stencils, wavefronts and a CNN: docs/dynamic.md says where they come from
MIXED = {
    "gru512": "gru:hidden=512,batch=16,timesteps=6,layers=3",
    "gru256": "gru:hidden=256,batch=8,timesteps=10,layers=3",
    "lstm": "lstm:hidden=512,batch=16,timesteps=6,layers=3,input=per-step",
    "transformer 2x512": "transformer:layers=2,hidden=512,heads=8,sequence=128,batch=2",
    "transformer 1x1024": "transformer:layers=1,hidden=1024,heads=16,sequence=512,batch=1",
    "fdtd2d": "fdtd2d",
    "nw": "nw",
    "lud": "lud",
    "hotspot": "hotspot",
    "3mm": "3mm",
    "alexnet": "alexnet",
}
# one or two layers of each network of the zoo
_BERT, _GPT = "batch=1,seq=64,layers=1", "batch=1,seq=128,layers=1"
ZOO = {
    "bert-base forward": f"bert-base:{_BERT},pass=forward",
    "bert-base training": f"bert-base:{_BERT},pass=training",
    "bert-large training": f"bert-large:{_BERT},pass=training",
    "gpt2 forward": f"gpt2:{_GPT},pass=forward",
    "gpt2 training": f"gpt2:{_GPT},pass=training",
    "gpt2 decode": f"gpt2:{_GPT},pass=decode",
    "gpt2-xl decode": "gpt2-xl:batch=8,seq=512,layers=1,pass=decode",
    "llama-7b decode": "llama-7b:batch=1,seq=128,layers=1,pass=decode",
    "lenet forward": "lenet:batch=64,pass=forward",
    "lenet training": "lenet:batch=64,pass=training",
    "alexnet-torch forward": "alexnet-torch:batch=1,pass=forward",
    "resnet18 forward": "resnet18:batch=1,side=64,pass=forward",
    "resnet18 training": "resnet18:batch=1,side=64,pass=training",
    "nasnet-a forward": "nasnet-a:batch=1,side=64,layers=1,pass=forward",
    "randwire forward": "randwire:batch=1,side=64,layers=8,pass=forward",
    "moe-block forward": "moe-block:seq=64,hidden=256,ffn=512,pass=forward",
    "moe-block training": "moe-block:seq=64,hidden=256,ffn=512,pass=training",
    "gnmt forward": "gnmt:batch=8,source=4,target=4,layers=2,hidden=512,vocabulary=512,pass=forward",
    "gnmt training": "gnmt:batch=8,source=4,target=4,layers=2,hidden=512,vocabulary=512,pass=training",
    "deepspeech2 forward": "deepspeech2:batch=4,steps=8,layers=1,pass=forward",
    "deepspeech2 training": "deepspeech2:batch=4,steps=8,layers=1,pass=training",
}
GROUPS = {
    "mixed": Group("networks, stencils and wavefronts", MIXED, {"fdtd2d": "fdtd2d:n=64,steps=2"}),
    "blockmaestro": Group(
        "applications of BlockMaestro",
        {name: name for name in APPS},
        {name: f"{name}:{APPS[name].small}" for name in ("3mm", "fft")},
    ),
    "acs": Group(
        "graphs of ACS",
        {name: graph.make for name, graph in GRAPHS.items()},
        {"squeezenet": GRAPHS["squeezenet"].small},
    ),
    "zoo": Group("networks of the zoo", ZOO, {"lenet forward": "lenet:batch=8,pass=forward"}),
}
BFLOAT = ("llama-7b",)  # of bf16, and of fp16 on GPUs without

_AUTO = "scheme.auto."


def _changed(kind: str, **settings: Value) -> Variant:
    return Variant(kind, AUTO, {_AUTO + name: value for name, value in settings.items()})


# one ingredient off at a time
ABLATION = {
    "kernel edges alone": _changed("ablation", share=0.0, waiting=0.0),
    "edges between TBs wherever hints tell TBs apart": _changed("ablation", share=1.0),
    "implied edges kept": _changed("ablation", reduce=0),
    "no TB ahead of its gate": Variant("ablation", f"{AUTO}:held", {}),
    "TBs ahead in any slot": Variant("ablation", f"{AUTO}:crowded", {}),
    "all admitted at once": _changed("ablation", ahead=0),
    "loads past L1": Variant("ablation", f"{AUTO}:bypass", {}),
    "hints at no cost": _changed("ablation", compare=0.0, rule=0.0, evaluate=0.0, latency=0.0),
}


def _sweep(label: str, path: str, values: Sequence[Value]) -> dict[str, Variant]:
    return {f"{label} {value}": Variant("sensitivity", AUTO, {path: value}) for value in values}


SENSITIVITY = (
    _sweep("window", "scheme.window", (8, 16, 128))
    | _sweep("words of hints", f"{_AUTO}store", (128, 256, 1024))
    | _sweep("rules", f"{_AUTO}rules", (16, 128))
    | _sweep("counters", f"{_AUTO}counters", (256, 1024))
    | _sweep("states of TBs", f"{_AUTO}tbs", (1024, 4096))
    | _sweep("ns a comparison", f"{_AUTO}compare", (0.25, 1.0))
    | _sweep("ns an evaluation", f"{_AUTO}evaluate", (0.25, 1.0))
    | _sweep("ns of latency", f"{_AUTO}latency", (1000.0,))
    | _sweep("share of TBs needed", f"{_AUTO}share", (0.1, 0.5))
    | _sweep("share of TBs that wait", f"{_AUTO}waiting", (0.25, 0.75))
    | _sweep("share of hints missing", f"{_AUTO}missing", (0.01, 0.05, 0.2, 0.5))
    | _sweep("hints of so many percent", f"{_AUTO}widen", (150, 200, 400, 800))
)
VARIANTS = ABLATION | SENSITIVITY


def half_of(workload: str, gpu: str) -> str:
    """Return the half of the cases that a case is in, by hash: tuning or apart."""
    return ("tuning", "apart")[hashlib.sha256(f"{workload} {gpu}".encode()).digest()[0] % 2]


def points(
    groups: Sequence[str],
    variants: Sequence[str],
    gpus: Sequence[str],
    schemes: Sequence[str],
    settings: Mapping[str, Value],
    quick: bool,
) -> list[Point]:
    """Return a point of a sweep for each workload on each GPU, and one of the first group a variant."""
    made = []
    for name in groups:
        group = GROUPS[name]
        for case, workload in (group.quick if quick else group.workloads).items():
            for gpu in gpus:
                text = workload
                if text.startswith(BFLOAT) and not has_bf16(gpu):
                    text += ",dtype=fp16"
                place = (name, case, gpu)
                made.append(Point(text, gpu, tuple(schemes), settings, ("chosen",), False, (*place, PLAIN)))
                for label in variants if name == groups[0] else ():
                    variant = VARIANTS[label]
                    own = {**settings, **variant.settings}
                    made.append(Point(text, gpu, (variant.scheme,), own, ("chosen",), False, (*place, label)))
    return made
