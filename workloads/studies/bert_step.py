"""Where the time of a training step of BERT goes: each kernel's class, and what the classes take.

The question is that of Pati et al., "Demystifying BERT" (arXiv 2104.08335). The step is the zoo's: attention
by products, LAMB, and the head of masked tokens over all tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from pysim.errors import WorkloadError, brief
from pysim.program.job import Job, Memory
from pysim.workloads.framework.autocast import AMP, stored
from pysim.workloads.framework.language import HEAD, LOSS, LanguageModel, language_model
from pysim.workloads.framework.layers import Layer
from pysim.workloads.framework.tape import ACCUMULATED, Origin, Tape
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.library.memory.pointwise_parts import ITEM
from pysim.workloads.networks.language import ALIGNED, padded
from pysim.workloads.networks.passes import check_dtype, device_of, layers_job, named
from pysim.workloads.networks.shapes import BERT, Transformer
from pysim.workloads.registry import read_arguments

from .spans import stream_spans

NAME = "bert-large"
NETWORK = BERT[NAME]

PROJECTIONS, FC, HEADS, ATTENTION = "qkv_o", "fc", "head", "attention"
SOFTMAX, NORM, GELU, DROPOUT = "softmax", "norm", "gelu", "dropout"
POINTWISE, EMBEDDING, LOSSES, OPTIMIZER = "pointwise", "embedding", "loss", "optimizer"
PRODUCTS = (PROJECTIONS, FC, HEADS, ATTENTION)
CLASSES = (*PRODUCTS, SOFTMAX, NORM, GELU, DROPOUT, POINTWISE, EMBEDDING, LOSSES, OPTIMIZER)
LINEAR: Mapping[str, str] = {"qkv": PROJECTIONS, "o": PROJECTIONS, "f1": FC, "f2": FC, HEAD: HEADS}
CLASS_OF: Mapping[str, str] = {
    "bmm": ATTENTION,
    "fused_attention": ATTENTION,
    "scale": SOFTMAX,
    "add_mask": SOFTMAX,
    "softmax": SOFTMAX,
    "layer_norm": NORM,
    "gelu": GELU,
    "dropout": DROPOUT,
    "add": POINTWISE,
    "add_bias": POINTWISE,
    "column_sums": POINTWISE,
    "tanh": POINTWISE,
    "cast": POINTWISE,
    "split_heads": POINTWISE,
    "take_v": POINTWISE,
    "merge_heads": POINTWISE,
    ACCUMULATED: POINTWISE,
    "embedding": EMBEDDING,
    "backward_from": LOSSES,
}


@dataclass(frozen=True, slots=True)
class Case:
    """A training step of ``batch`` sequences of ``seq`` tokens; ``dtype``: as the zoo's networks take it."""

    batch: int
    seq: int
    dtype: str

    @classmethod
    def of(cls, text: str) -> Case:
        """Return the case that ``batch=4,seq=128,dtype=fp16`` names; what is left out is as in this one.

        Raises WorkloadError for an unknown key, one that is given twice, and a value that is not of its type.
        """
        default = DEFAULT
        known: dict[str, object] = {"batch": default.batch, "seq": default.seq, "dtype": default.dtype}
        given: dict[str, Any] = known | read_arguments("case", NAME, text, known)
        return cls(**given)


DEFAULT = Case(4, 128, "fp16")


def cases_of(texts: Sequence[str]) -> list[Case]:
    """Return the cases of texts as ``Case.of`` takes them; raises WorkloadError for a case given twice."""
    given: dict[Case, str] = {}
    for text in texts:
        case = Case.of(text)
        if case in given:
            raise WorkloadError(f"case {brief(text)}: the same as {brief(given[case])}: give each case once")
        given[case] = text
    return [*given]


@dataclass(frozen=True, slots=True)
class Step:
    """A job, the class of each kernel of the whole one, and FLOPs of its products by class."""

    case: Case
    job: Job
    classes: Sequence[str]
    flops: Mapping[str, int]


def class_of(origin: Origin) -> str:
    """Return the class of a kernel of the tape; raises WorkloadError for an unknown operation."""
    if LOSS in origin.parts:
        return LOSSES
    found = CLASS_OF.get(origin.operation)
    if origin.operation == "linear":
        found = next((LINEAR[part] for part in origin.parts if part in LINEAR), None)
    if found is None:
        where = f" in {'/'.join(origin.parts)}" if origin.parts else ""
        raise WorkloadError(f"operation {origin.operation!r}{where}: belongs to none of {', '.join(CLASSES)}")
    return found


def bert_step(case: Case, hints: MachineHints, simulated: int = 0, shape: Transformer | None = None) -> Step:
    """Return the training step of a case as the zoo has it.

    ``simulated``: the job holds so many layers, which stand for all; 0: all. ``shape``: None: BERT large.
    Raises WorkloadError for sizes and types that the network does not have.
    """
    shape = shape or NETWORK
    device = device_of(hints, NAME)
    check_dtype(NAME, case.dtype, (*ITEM, *AMP), device)
    tapes: dict[int, Tape] = {}

    def built(layers: int) -> Tape:
        layer = Layer(shape.d, shape.heads, shape.ffn, case.batch, case.seq, dtype=stored(case.dtype))
        tapes[layers] = tape = Tape(Memory(), device=device, amp=AMP.get(case.dtype, ""))
        vocabulary = padded(shape.vocabulary, ALIGNED)
        language_model(LanguageModel(layer, layers, vocabulary, shape.positions), tape)
        return tape

    with named(NAME):
        job = layers_job(NAME, built, shape.layers, simulated, "lamb")
    held = max(tapes)
    classes = [class_of(origin) for origin in tapes[held].origins]
    classes += [OPTIMIZER] * (len(job.kernels) - len(classes))
    flops = _flops(tapes[held])
    if job.shortened is not None:
        fewer, classes = _flops(tapes[held - 1]), job.shortened.whole(classes)
        flops = Counter({kind: n + (shape.layers - held) * (n - fewer[kind]) for kind, n in flops.items()})
    return Step(case, job, classes, flops)


def _flops(tape: Tape) -> Counter[str]:
    made: Counter[str] = Counter()
    for origin, flops in tape.worked.items():
        made[class_of(origin)] += flops
    return made


def breakdown_rows(step: Step, kernels: NDArray[Any]) -> list[dict[str, float | str]]:
    """Return a row a class, from the table ``kernels`` of a run of the step in stream order.

    Raises ValueError as :func:`~pysim.workloads.studies.spans.stream_spans` does.
    """
    spans = stream_spans(kernels, len(step.classes)).tolist()
    by_number = kernels[kernels["kernel"].argsort(kind="stable")]
    moved = (by_number["load_bytes"] + by_number["store_bytes"]).tolist()
    count, nbytes = Counter[str](), Counter[str]()
    times: dict[str, float] = dict.fromkeys(CLASSES, 0.0)
    for kind, span, each in zip(step.classes, spans, moved, strict=True):
        count[kind] += 1
        times[kind] += span
        nbytes[kind] += each
    whole, case = sum(times.values()), step.case
    about: dict[str, float | str] = {"batch": case.batch, "seq": case.seq, "dtype": case.dtype}
    return [
        about
        | {"kind": kind, "kernels": count[kind], "time_us": times[kind], "share": times[kind] / whole}
        | {"flops": step.flops.get(kind, 0), "l2_bytes": nbytes[kind]}
        | {"flops_per_byte": step.flops.get(kind, 0) / nbytes[kind] if nbytes[kind] else 0.0}
        for kind in CLASSES
    ]
