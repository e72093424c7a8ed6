"""Which networks the study of all schemes simulates, at which sizes, and how much of their time stands in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.program.library_kernels import stands_in
from pysim.results.schema import KERNELS
from pysim.schemes.registry import SCHEMES, Choice
from pysim.sweep.point import Point
from pysim.units import Value
from pysim.workloads.library.choices.by_cost import has_bf16
from pysim.workloads.networks.passes import PASSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel

TABLES = ("kernels",)  # that each point keeps: how long each launch takes
IDEAL = "tb_ideal"  # its table costs nothing: nobody can build it
LIBRARY = (
    "kernels=library"  # of networks that take the kernels of this project, or on these GPUs measured ones
)
HOPPER = ("h100", "h200")


class Network(NamedTuple):
    """A network of the study: keys for each of its passes, and for a run of moments (empty: not in it).

    ``library``: on an H100 or H200 it needs ``kernels=library`` to have the kernels that libraries launch.
    ``bf16``: it is one of bf16, and of fp16 on GPUs without.
    """

    sizes: Mapping[str, str]
    quick: Mapping[str, str]
    library: bool = False
    bf16: bool = False


def _network(size: str, passes: Sequence[str], quick: str = "", quick_passes: Sequence[str] = ()) -> Network:
    """Return a network whose passes have one size."""
    return Network(dict.fromkeys(passes, size), dict.fromkeys(quick_passes, quick))


def _language(
    forward: str, training: str, decode: str = "", quick: str = "", quick_passes: Sequence[str] = ()
) -> Network:
    """Return a language model; passes without a size are not in the study."""
    sizes = {"forward": forward, "training": training, "decode": decode}
    sizes = {name: size for name, size in sizes.items() if size}
    return Network(sizes, dict.fromkeys(quick_passes, quick))


BOTH, GENERATIVE = ("forward", "training"), PASSES
# Layers are alike, so three stand for all. Of training steps one or two are all that there are: launches of
# an optimiser overlap where TBs wait, so that few show too little (docs/long_runs.md). Sizes keep a run of
# one scheme within minutes.
_BERT, _BERT_STEP = "batch=4,seq=128,simulated=3", "batch=8,seq=128,layers=2"
_GPT, _LARGE = "batch=1,seq=256,simulated=3", "batch=1,seq=128,simulated=3"
_GPT_STEP, _LARGE_STEP = "batch=1,seq=512,layers=2", "batch=1,seq=512,layers=1"
_DECODE = "batch=8,seq=512,simulated=3"

NETWORKS: dict[str, Network] = {
    "gru": Network(
        {"forward": "hidden=1024,batch=32,timesteps=8,layers=2"},
        {"forward": "hidden=256,batch=8,timesteps=4,layers=2"},
        True,
    ),
    "lstm": Network(
        {"forward": "hidden=512,batch=16,timesteps=8,layers=3,input=per-step"},
        {"forward": "hidden=256,batch=8,timesteps=4,layers=2,input=per-step"},
        True,
    ),
    "mlp": Network({"forward": "layers=8,width=1024,batch=128"}, {}, True),
    "transformer": Network({"forward": "layers=2,hidden=512,sequence=128,batch=4"}, {}, True),
    "bert-base": _language(_BERT, _BERT_STEP, "", "batch=1,seq=128,layers=1", ("forward",)),
    "bert-large": _language(_BERT, _BERT_STEP),
    "gpt2": _language(_GPT, _GPT_STEP, _DECODE, "batch=1,seq=128,layers=1", GENERATIVE),
    **{
        name: _language(_GPT, _GPT_STEP, _DECODE)
        for name in ("gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-125m", "gpt3-350m")
    },
    **{
        name: _language(_GPT, _LARGE_STEP, _DECODE)
        for name in ("gpt3-760m", "gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b")
    },
    "gpt3-175b": _language(f"{_LARGE},shards=8", "", f"{_DECODE},shards=8"),
    "llama-7b": _language(_GPT, _LARGE_STEP, _DECODE, "batch=1,seq=128,layers=1", ("decode",))._replace(
        bf16=True
    ),
    **{name: _language(_LARGE, "", _DECODE)._replace(bf16=True) for name in ("llama-65b", "llama-70b")},
    "lenet": _network("batch=64", BOTH, "batch=8", BOTH),
    "alexnet-torch": _network("batch=4", BOTH, "batch=1", ("forward",)),
    "vgg19": _network("batch=1", BOTH),
    "resnet18": _network("batch=4", BOTH, "batch=1,side=64", ("forward",)),
    "resnet34": _network("batch=2", BOTH),
    "resnet38": _network("batch=2", BOTH),
    "resnet50": _network("batch=2", BOTH),
    "nasnet-a": _network("batch=1", BOTH, "batch=1,side=64,layers=1", ("forward",)),
    "amoebanet-a": _network("batch=1", BOTH),
    "randwire": _network("batch=1", BOTH, "batch=1,side=64,layers=8", ("forward",)),
    "moe-block": _network("seq=128,hidden=1024,ffn=3584", BOTH, "seq=64,hidden=256,ffn=512", ("forward",)),
    "gnmt": _network(
        "batch=32,source=10,target=10",
        BOTH,
        "batch=8,source=4,target=4,layers=2,hidden=512,vocabulary=512",
        BOTH,
    ),
    "deepspeech2": _network("batch=8,steps=20,layers=2", BOTH, "batch=4,steps=8,layers=1", ("forward",)),
}


def cases(names: Sequence[str], passes: Sequence[str], quick: bool) -> list[tuple[str, str, str]]:
    """Return network, pass and keys of what is simulated, passes apart; ``quick``: of moments alone."""
    made = []
    for which in passes:
        for name in names:
            sizes = NETWORKS[name].quick if quick else NETWORKS[name].sizes
            if which in sizes:
                made.append((name, which, sizes[which]))
    return made


def points(
    chosen: Sequence[tuple[str, str, str]],
    gpus: Sequence[str],
    schemes: Sequence[str],
    settings: Mapping[str, Value],
    rename: bool = False,
) -> list[Point]:
    """Return a point of a sweep for each case on each GPU."""
    made = []
    for name, which, keys in chosen:
        for gpu in gpus:
            text = f"{name}:{keys}" if NETWORKS[name].library else f"{name}:{keys},pass={which}"
            if NETWORKS[name].library and gpu in HOPPER:
                text += f",{LIBRARY}"
            if NETWORKS[name].bf16 and not has_bf16(gpu):
                text += ",dtype=fp16"
            place = (name, which, gpu)
            made.append(Point(text, gpu, tuple(schemes), settings, TABLES, rename, place))
    return made


def is_finer(choice: Choice) -> bool:
    """Whether TBs wait for TBs under a scheme, not kernels for kernels, in hardware that can be built.

    Programmatic dependent launch waits inside TBs, but for whole kernels.
    """
    scheme = choice.scheme
    inside = scheme.waits_inside and not scheme.waits_for_kernels
    return (not scheme.kernels_wait or inside or scheme.fuses) and scheme is not SCHEMES[IDEAL]


def launches_of(job: Job) -> Sequence[Kernel]:
    """Return the kernels of all layers of a job that may hold only some."""
    return job.kernels if job.shortened is None else job.shortened.whole(job.kernels)


def share_standing_in(job: Job, kernels: NDArray[np.void]) -> float:
    """Return the share of the time of a job's launches that kernels take which stand in for a library's.

    ``kernels``: rows of the table ``kernels`` of one run in stream order, where launches do not overlap.
    """
    launches = launches_of(job)
    if len(kernels) != len(launches):
        raise ValueError(f"{len(kernels)} rows of {KERNELS[1].name} for {len(launches)} launches")
    times = kernels["last_end_us"] - kernels["first_dispatch_us"]
    numbers = kernels["kernel"].tolist()
    mine = np.array([stands_in(launches[number]) for number in numbers])
    return float(times[mine].sum() / times.sum()) if times.sum() > 0 else 0.0
