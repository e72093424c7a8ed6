"""Communication in tensor-parallel Transformers: a simulated layer, and projections of others from it.

The method is that of Pati et al., "Tale of Two Cs" (arXiv 2302.02825): times of one baseline layer are scaled
by the work of each operator, and compute times are divided by how much more compute than bandwidth has grown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from pysim.errors import WorkloadError
from pysim.program.job import Job, Memory
from pysim.workloads.framework import operations as op
from pysim.workloads.framework.caching import reused
from pysim.workloads.framework.collectives import Links
from pysim.workloads.framework.layers import Layer, LayerRun
from pysim.workloads.framework.tape import ACCUMULATED, Origin, Tape
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.library.arguments import check_sizes
from pysim.workloads.networks.passes import device_of

from .spans import stream_spans

HEAD = 128  # features of a head, which fused attention takes
TILE = 128  # tokens of a TB of fused attention, of which it takes whole ones
ITEM = 2  # B of an element of fp16
BEFORE = "before"  # the part of what is launched before the layer

GEMM, ATTENTION, NORM, POINTWISE, ALL_REDUCE = "gemm", "attention", "norm", "pointwise", "all_reduce"
COMPUTE = (GEMM, ATTENTION, NORM, POINTWISE)
KINDS = (*COMPUTE, ALL_REDUCE)
KIND_OF: Mapping[str, str] = {
    "linear": GEMM,
    "fused_attention": ATTENTION,
    "layer_norm": NORM,
    "add": POINTWISE,
    "add_bias": POINTWISE,
    "column_sums": POINTWISE,
    "dropout": POINTWISE,
    "gelu": POINTWISE,
    ACCUMULATED: POINTWISE,
    "all_reduced": ALL_REDUCE,
    "shared": ALL_REDUCE,
}

# Bandwidth of a GPU's NVLink 4 each way that NCCL's rings reach within a node of H100; the line rate is 450.
# NVLink SHARP, which NCCL prefers there and no ring uses, is as good as rings at about 480
# (NVIDIA, https://github.com/NVIDIA/nccl-tests/issues/212; #272 has 475 of 8 H200)
GBS = 370.0
# A step of a ring over NVLink in NCCL's own cost model (protocol LL128, hwLat in src/graph/tuning.cc)
LATENCY_US = 1.9

PUBLISHED_SHARE = (0.40, 0.75)
PUBLISHED_ERRORS: Mapping[str, float] = {GEMM: 0.15, NORM: 0.07, ALL_REDUCE: 0.11}  # of operator models

# the sweep of the publication
HIDDEN = tuple(1024 << n for n in range(7))
SEQ = (1024, 2048, 4096, 8192)
BATCH = (1, 2, 4)
SHARDS = (4, 8, 16, 32, 64, 128, 256)
RATIOS = (1, 2, 4)
# features a shard under the rule of the picture: the publication's 256 shards at 65,536 features
FEATURES_A_SHARD = 256
# factors of the baseline's hidden, seq and shards at the points that are simulated, too
CHECKED = ((0.25, 1, 1), (2, 1, 1), (1, 0.25, 1), (1, 2, 1), (1, 1, 0.5), (1, 1, 2))


@dataclass(frozen=True, slots=True)
class Shape:
    """A layer of ``hidden`` features, ``batch`` sequences of ``seq`` tokens, and the GPUs that share it."""

    hidden: int
    seq: int
    batch: int
    shards: int

    def __post_init__(self) -> None:
        """Refuse what is no size, one shard, and what shards do not share evenly."""
        check_sizes("layer", hidden=self.hidden, seq=self.seq, batch=self.batch, shards=self.shards)
        if self.shards < 2:
            raise WorkloadError("layer: shards = 1: must be 2 or more, which communicate")
        if self.hidden % (HEAD * self.shards):
            raise WorkloadError(
                f"layer: hidden = {self.hidden}: must be a multiple of {HEAD} features a head times"
                f" shards = {self.shards}"
            )
        if self.seq % TILE:
            raise WorkloadError(f"layer: seq = {self.seq}: must be a multiple of {TILE}")

    @property
    def tokens(self) -> int:
        """Rows of an activation."""
        return self.batch * self.seq

    @property
    def weights(self) -> int:
        """Elements of a shard's matrices; biases and LayerNorms are left out."""
        return 12 * self.hidden * self.hidden // self.shards


@dataclass(frozen=True, slots=True)
class Ring:
    """All-reduces of rings: a GPU sends at ``gbs``, and each step of a ring takes ``latency_us`` more."""

    gbs: float = GBS
    latency_us: float = LATENCY_US

    def links(self, shards: int, mhz: float) -> Links:
        """Return the delay of an all-reduce among GPUs whose SMs have a clock of ``mhz``."""
        steps = 2 * (shards - 1)
        return Links(steps * self.latency_us, self.gbs * shards / steps, mhz)

    def layer_us(self, shape: Shape) -> float:
        """Return the delays of the four all-reduces of a layer's training step."""
        nbytes = shape.tokens * shape.hidden * ITEM
        return 4 * self.links(shape.shards, 1.0).time_us(nbytes)

    def gradients_us(self, shape: Shape) -> float:
        """Return the time of the all-reduce of a shard's gradients among many replicas, without latency."""
        return 2 * shape.weights * ITEM / self.gbs * 1e-3


class Part(NamedTuple):
    """Kernels that scale alike.

    ``shared``: shards share their work; else each shard does all of it. ``backward``: on the way back.
    """

    kind: str
    shared: bool
    backward: bool


Times = Mapping[Part, float]  # us


def part_of(origin: Origin) -> Part:
    """Return what a kernel of the layer belongs to; raises WorkloadError for an unknown operation."""
    kind = KIND_OF.get(origin.operation)
    if kind is None:
        raise WorkloadError(f"operation {origin.operation!r}: belongs to none of {', '.join(KINDS)}")
    # shards share the features between two GEMMs; bias sums inside a linear layer are of its own columns
    shared = kind in (GEMM, ATTENTION) or origin.operation == "gelu" or bool(origin.parts)
    return Part(kind, shared and kind != ALL_REDUCE, origin.backward)


def layer_step(shape: Shape, ring: Ring, hints: MachineHints) -> tuple[Job, Sequence[Origin]]:
    """Return forward and backward of a pre-LN GPT layer, as one of its shards, and each kernel's origin.

    A kernel of the layer before comes first, so that no kernel of this one waits for the program's start.
    Weights, activations and gradients are fp16; attention is fused and causal. Raises WorkloadError for GPUs
    other than Hopper's, for whose fused attention there is no template.
    """
    layer = Layer(
        shape.hidden,
        shape.hidden // HEAD,
        4 * shape.hidden,
        shape.batch,
        shape.seq,
        pre=True,
        causal=True,
        fused=True,
        shards=shape.shards,
    )
    tape = Tape(Memory(), device=device_of(hints, "layer"))

    def activation(name: str) -> tuple[str, int, int, int]:
        return name, layer.tokens, layer.d, ITEM

    with tape.part(BEFORE):
        x = op.add(tape, tape.value(*activation("residual")), tape.value(*activation("branch")))
    y = LayerRun.on(tape, layer, ring.links(shape.shards, hints.sm_mhz)).forward(x)
    tape.backward(y, tape.memory.tensor(*activation("grad_y")))
    name = f"layer of {shape.hidden}, seq {shape.seq}, batch {shape.batch}, {shape.shards} shards"
    return Job(name, reused(tape.kernels, tape.memory, tape.held), totals=tape.totals), tape.origins


def part_times(kernels: NDArray[Any], origins: Sequence[Origin]) -> dict[Part, float]:
    """Return the times of the parts from the table ``kernels`` of a run in stream order.

    Raises ValueError as :func:`~pysim.workloads.studies.spans.stream_spans` does.
    """
    made: dict[Part, float] = {}
    for origin, span in zip(origins, stream_spans(kernels, len(origins)).tolist(), strict=True):
        if origin.parts[:1] != (BEFORE,):
            part = part_of(origin)
            made[part] = made.get(part, 0.0) + span
    return made


def _work(part: Part, shape: Shape) -> float:
    """Return the work of a part, up to a factor: of all-reduces the bytes that a GPU sends."""
    rows, shards = shape.tokens * shape.hidden, shape.shards
    if part.kind == ALL_REDUCE:
        return rows * (shards - 1) / shards
    more = {GEMM: shape.hidden, ATTENTION: shape.seq}.get(part.kind, 1)
    return rows * more / (shards if part.shared else 1)


def project(times: Times, baseline: Shape, shape: Shape) -> dict[Part, float]:
    """Return the times of another shape from those of the baseline, each scaled by its work."""
    return {part: time * (_work(part, shape) / _work(part, baseline)) for part, time in times.items()}


@dataclass(frozen=True, slots=True)
class Layered:
    """Times of a layer on hardware whose compute has grown ``ratio`` times as much as its bandwidth."""

    times: Times
    ratio: float = 1.0

    def us(self, kind: str) -> float:
        """Return the time of a kind."""
        spent = sum(time for part, time in self.times.items() if part.kind == kind)
        return spent if kind == ALL_REDUCE else spent / self.ratio

    @property
    def compute_us(self) -> float:
        """Time of all kinds but all-reduces."""
        return sum(self.us(kind) for kind in COMPUTE)

    @property
    def backward_us(self) -> float:
        """Time of computation on the way back."""
        found = (t for part, t in self.times.items() if part.backward and part.kind != ALL_REDUCE)
        return sum(found) / self.ratio

    @property
    def share(self) -> float:
        """All-reduces' share of the time."""
        spent = self.us(ALL_REDUCE)
        return spent / (spent + self.compute_us)


def shapes() -> Iterator[Shape]:
    """Return all shapes of the sweep; a shard has a head or more."""
    for hidden in HIDDEN:
        for seq in SEQ:
            for batch in BATCH:
                for shards in SHARDS:
                    if shards * HEAD <= hidden:
                        yield Shape(hidden, seq, batch, shards)


def checked_shapes(baseline: Shape) -> list[Shape]:
    """Return the shapes near the baseline that are simulated, too, those left out that cannot be."""
    made = []
    for factors in CHECKED:
        sizes = baseline.hidden, baseline.seq, baseline.shards
        hidden, seq, shards = (int(size * factor) for size, factor in zip(sizes, factors, strict=True))
        if shards >= 2 and hidden >= HEAD * shards and seq >= TILE:
            try:
                made.append(Shape(hidden, seq, baseline.batch, shards))
            except WorkloadError:  # no whole heads or tiles
                continue
    return made


def sweep_rows(times: Times, baseline: Shape, ring: Ring) -> list[dict[str, float]]:
    """Return the rows of the table ``communication``."""
    made = []
    for shape in shapes():
        projected, gradients = project(times, baseline, shape), ring.gradients_us(shape)
        for ratio in RATIOS:
            at = Layered(projected, ratio)
            row: dict[str, float] = {
                "hidden": shape.hidden,
                "seq": shape.seq,
                "batch": shape.batch,
                "shards": shape.shards,
                "ratio": ratio,
            }
            row |= {f"{kind}_us": at.us(kind) for kind in KINDS}
            row |= {"compute_us": at.compute_us, "share": at.share, "delay_us": ring.layer_us(shape)}
            row |= {"backward_us": at.backward_us, "gradients_us": gradients}
            made.append(row | {"overlapped": min(1.0, at.backward_us / gradients)})
    return made


def check_rows(times: Times, baseline: Shape, shape: Shape, simulated: Times) -> list[dict[str, float | str]]:
    """Return the rows of the table ``checks`` of a shape that was simulated."""
    real, guess = Layered(simulated), Layered(project(times, baseline, shape))
    pairs = [(kind, "us", real.us(kind), guess.us(kind)) for kind in KINDS]
    whole = [each.compute_us + each.us(ALL_REDUCE) for each in (real, guess)]
    pairs += [("layer", "us", whole[0], whole[1]), ("share", "share", real.share, guess.share)]
    sizes: dict[str, float | str] = {
        "hidden": shape.hidden,
        "seq": shape.seq,
        "batch": shape.batch,
        "shards": shape.shards,
    }
    return [
        sizes | {"kind": kind, "unit": unit, "simulated": was, "projected": said, "error": said / was - 1}
        for kind, unit, was, said in pairs
    ]
