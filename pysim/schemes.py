"""Ways of ordering work: one registry entry each, and how it fills the core's ordering tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .copies import rewritten
from .dependences import reduced
from .errors import ConfigError
from .params import PARAMS
from .regions import union

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .dependences import Dependences
    from .job import Job

COHERENCE = next(p for p in PARAMS["scheme"] if p.name == "coherence").choices
CARVEOUT = next(p for p in PARAMS["scheme"] if p.name == "carveout").choices
PRIORITY = next(p for p in PARAMS["scheme"] if p.name == "priority").choices
EVERYTHING = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a scheme: parameters that it pins for its run."""

    doc: str
    pins: tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way of ordering work.

    ``edges``: chain, stream, kernel (the DAG), ranges (kernels compared by addresses), tb,
    packets (of queues), adjacent (tb between neighbours) or levels (tb through a buffer); ``gap``: what is
    paid behind a barrier; ``window``: kernels are admitted to a window
    though they wait for whole kernels.
    """

    name: str
    doc: str
    edges: str
    gap: str = ""
    window: bool = False
    infinite: bool = False
    finds: str = ""  # how it comes to know the edges of TBs: learned, bloom; "": they are given
    waits: str = ""  # how it waits inside the program: pdl, semaphores, fused; "": it does not
    pins: tuple[tuple[str, int | str], ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)

    @property
    def table(self) -> bool:
        """Whether kernels are admitted to a window, and the dependence table hands over."""
        return self.window or self.edges == "tb"

    @property
    def barriers(self) -> bool:
        """Whether kernels, not TBs, wait for each other."""
        return self.edges not in ("tb", "adjacent", "levels")


_PRIORITIES = {
    word: Option(f"scheme.priority = {word}", (("scheme.priority", word),))
    for word in ("newest", "critical", "round_robin", "consumer")
}
_PLACEMENT = {
    word: Option(f"scheme.placement = {word}", (("scheme.placement", word),))
    for word in ("balanced", "affinity")
}
_LAUNCH = {
    "pdl": Option("programmatic dependent launch", (("scheme.sync.launch", "pdl"),)),
    "graph": Option("programmatic edges of a graph", (("scheme.sync.launch", "graph"),)),
    "streams": Option("two streams with gate kernels", (("scheme.sync.launch", "streams"),)),
}
_LATE = {"late": Option("trigger after the main loop", (("scheme.sync.trigger", "late"),))}
_POLICY = {
    word: Option(f"a semaphore a {what}", (("scheme.sync.policy", word),))
    for word, what in (
        ("tile", "tile"),
        ("row", "row of tiles"),
        ("strided", "set of tiles that are read together"),
        ("conv", "tile, which a convolution waits for once a chunk of channels"),
    )
}
_CUSYNC = {
    "gate_first": Option("gates wait for the first TB before", (("scheme.sync.gate", "first"),)),
    "no_gate": Option("no gates (cuSync's W: AvoidWaitKernel)", (("scheme.sync.gate", "none"),)),
    "tile_order": Option("TBs look their tile up (cuSync without its T)", (("scheme.sync.order", 1),)),
    "wait_early": Option("wait before any load (cuSync without its R)", (("scheme.sync.wait", "early"),)),
    "poll_each": Option("poll each semaphore, known or not", (("scheme.sync.poll", "each"),)),
    "fence_system": Option("fence the system before a post", (("scheme.sync.fence", "system"),)),
}
_SPREAD = {"spread": Option("an even share of TBs an SM, by padding", (("scheme.sync.spread", 1),))}
_FUSED = {
    word: Option(f"{what} between stages", (("scheme.sync.fused", word),))
    for word, what in (("grid", "a grid barrier"), ("tile", "semaphores of tiles"))
}
_CODE = {"sync_code": Option("poll and post as cusync does", (("scheme.sync.code", 1),))}
_ACS_WINDOW = {
    f"window{n}": Option(f"scheme.acs.window = {n}", (("scheme.acs.window", n),)) for n in (16, 32, 64)
}
_ACS_THREADS = {
    f"threads{n}": Option(f"scheme.acs.threads = {n}", (("scheme.acs.threads", n),)) for n in (1, 4, 16)
}
_QUEUES = {
    "stream": Option("a queue a stream", (("scheme.queues.map", "stream"),)),
    "oversubscribed": Option("four times as many queues", (("scheme.queues.count", 40),)),
    "aware": Option("queues that can go on first", (("scheme.queues.aware", 1),)),
    "kaveri": Option("4.4 us a packet", (("scheme.queues.packet", "4400ns"),)),
}
_BLOCKMAESTRO = {
    "consumer": Option("TBs of newer kernels first", (("scheme.blockmaestro.priority", "consumer"),))
} | {
    f"kernels{n}": Option(f"{n} kernels at once, with running ones", (("scheme.blockmaestro.kernels", n),))
    for n in (3, 4)
}
_WIREFRAME = {
    f"nodes{n}": Option(f"room for {n} TBs", (("scheme.wireframe.nodes", n),)) for n in (1024, 4096)
}
_COHERENCE = {
    word: Option(f"scheme.coherence = {word}", (("scheme.coherence", word),)) for word in ("bypass", "tb")
}
_BUILT = {
    "built": Option("the host makes the graph first, as it depends on the input", (("scheme.build", 1),))
}

_EXACT = {"exact": Option("signatures without false answers", (("scheme.bloom.signature", "exact"),))}

_FETCH = {
    "fetch": Option("entries are brought in when producers are dispatched", (("scheme.table.fetch", 1),))
}

_PROLOGUE = {"prologue": Option("scheme.prologue = 1", (("scheme.prologue", 1),))}

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme(
            "host",
            "Every kernel waits for the one before and for the host's round trip.",
            "chain",
            "host.roundtrip",
        ),
        Scheme(
            "stream",
            "Kernels of a stream run one after another; events order streams. The baseline of speedup.",
            "stream",
            "gpu.cp.stream_gap",
            options=_CODE,
        ),
        Scheme(
            "graph",
            "A kernel waits for the kernels whose data it needs.",
            "kernel",
            "gpu.cp.graph_gap",
            options=_COHERENCE | _BUILT,
        ),
        Scheme(
            "pool",
            "tb_static with edges between whole kernels: what the pool gives without finer edges.",
            "kernel",
            window=True,
            options=_PRIORITIES | _COHERENCE | _PLACEMENT,
        ),
        Scheme(
            "acs_hw",
            "A window of kernels in the command processor, compared by the addresses that they touch.",
            "ranges",
            window=True,
            options=_PRIORITIES | _PLACEMENT | _ACS_WINDOW,
        ),
        Scheme(
            "acs_sw",
            "The same window on the host, whose threads launch a kernel each and wait for its end.",
            "ranges",
            window=True,
            options=_ACS_WINDOW | _ACS_THREADS,
        ),
        Scheme(
            "queues",
            "Kernels are packets of hardware queues, with barrier packets between them.",
            "packets",
            "gpu.cp.stream_gap",
            options=_COHERENCE | _QUEUES,
        ),
        Scheme(
            "blockmaestro",
            "Kernels are launched ahead and end in order; TBs wait for those of the kernel before.",
            "adjacent",
            window=True,
            options=_COHERENCE | _PLACEMENT | _BLOCKMAESTRO,
        ),
        Scheme(
            "wireframe",
            "All TBs are one kernel, launched once; its graph of TBs passes through a small buffer.",
            "levels",
            window=True,
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _WIREFRAME,
        ),
        Scheme(
            "tb_static",
            "A TB waits for the TBs whose data it needs, from computed footprints, in a finite table.",
            "tb",
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _PROLOGUE | _FETCH,
        ),
        Scheme(
            "tb_learned",
            "tb_static with footprints learned at each kernel's first launch, which runs behind barriers.",
            "tb",
            "gpu.cp.stream_gap",
            finds="learned",
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _PROLOGUE | _FETCH,
        ),
        Scheme(
            "tb_bloom",
            "A TB waits for those in whose Bloom signatures its hinted addresses are found.",
            "tb",
            "gpu.cp.stream_gap",
            finds="bloom",
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _PROLOGUE | _EXACT,
        ),
        Scheme(
            "tb_ideal",
            "tb_static with all kernels admitted at once and a table without limit and cost.",
            "tb",
            infinite=True,
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _PROLOGUE,
        ),
        Scheme(
            "pdl",
            "Programmatic dependent launch: a kernel starts when the TBs before have triggered, and waits.",
            "stream",
            "gpu.cp.stream_gap",
            waits="pdl",
            pins=(("scheme.sync.launch", "pdl"),),
            options=_LATE | {"graph": _LAUNCH["graph"]},
        ),
        Scheme(
            "cusync",
            "Kernels overlap, and their TBs wait for the tiles that they read by semaphores.",
            "stream",
            "gpu.cp.stream_gap",
            waits="semaphores",
            options=_POLICY | _LAUNCH | _LATE | _SPREAD | _CUSYNC,
        ),
        Scheme(
            "fused",
            "Kernels are stages of one persistent kernel, with a grid barrier or semaphores between them.",
            "stream",
            "gpu.cp.stream_gap",
            waits="fused",
            options=_FUSED,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Choice:
    """A scheme with options, as a user wrote it (``tb_static:newest+tb``)."""

    scheme: Scheme
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name in result tables."""
        return self.scheme.name + (":" + "+".join(self.options) if self.options else "")

    @property
    def waits(self) -> str:
        """How the program waits inside: pdl, semaphores, fused or code; empty: it does not."""
        return self.scheme.waits or ("code" if "sync_code" in self.options else "")

    @property
    def pins(self) -> dict[str, int | str]:
        """Parameters that the scheme and its options fix."""
        made = dict(self.scheme.pins)
        for option in self.options:
            made.update(self.scheme.options[option].pins)
        return made


def _unknown(what: str, name: str, known: Sequence[str]) -> ConfigError:
    import difflib  # for errors alone

    close = difflib.get_close_matches(name, known, 1)
    hint = f": did you mean {close[0]!r}?" if close else f": there are {', '.join(known) or 'none'}"
    return ConfigError(f"{what} {name!r}{hint}")


def parse_scheme(text: str) -> Choice:
    """Return the scheme that ``name`` or ``name:option+option`` stands for."""
    name, colon, rest = text.strip().partition(":")
    if name not in SCHEMES:
        raise _unknown("no scheme", name, list(SCHEMES))
    scheme = SCHEMES[name]
    options = tuple(rest.split("+")) if colon else ()
    fixed: dict[str, str] = {}
    for option in options:
        if option not in scheme.options:
            raise _unknown(f"scheme {name} has no option", option, list(scheme.options))
        for path, _ in scheme.options[option].pins:
            if path in fixed:
                raise ConfigError(
                    f"scheme {text.strip()}: options {fixed[path]} and {option} both set {path}"
                )
            fixed[path] = option
    return Choice(scheme, options)


def parse_schemes(text: str | Sequence[str]) -> list[Choice]:
    """Return the schemes of a comma-separated list; a repeated one counts once."""
    words = text.split(",") if isinstance(text, str) else list(text)
    made: dict[str, Choice] = {}
    for word in words:
        if word.strip():
            choice = parse_scheme(word)
            made.setdefault(choice.name, choice)
    if not made:
        raise ConfigError("no scheme given")
    return list(made.values())


def preds_of(scheme: Scheme, job: Job, deps: Dependences) -> list[tuple[int, ...]]:
    """Return the kernels that each kernel waits for (tb schemes: if the table overflows)."""
    count = len(job.kernels)
    if scheme.edges == "chain":
        return [(k - 1,) if k else () for k in range(count)]
    if scheme.edges == "stream":
        waits: list[set[int]] = [set() for _ in range(count)]
        for before, after in job.events:
            waits[after].add(before)
        last: dict[int, int] = {}
        for index, kernel in enumerate(job.kernels):
            if kernel.stream in last:
                waits[index].add(last[kernel.stream])
            last[kernel.stream] = index
        return [tuple(sorted(w)) for w in waits]
    return reduced(deps.preds) if scheme.edges == "kernel" else list(deps.preds)


def coherence_of(scheme: Scheme, values: Mapping[str, int]) -> str:
    """Return kernel, bypass or tb: 'auto' is kernel where only whole kernels are waited for, else bypass."""
    word = COHERENCE[values["scheme.coherence"]]
    if word == "auto":
        return "kernel" if scheme.barriers and not scheme.waits else "bypass"
    return word


def carveout_mode(scheme: Scheme, values: Mapping[str, int]) -> str:
    """Return kernel or job: 'auto' is kernel where no kernels overlap or the GPU is known to, else job."""
    word = CARVEOUT[values["scheme.carveout"]]
    if word == "auto":
        own = not scheme.waits or values["gpu.sm.own_carveout"]
        return "kernel" if not scheme.table and own else "job"
    return word


def order_of(scheme: Scheme, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of ``gs_order``."""
    everything = max(1, len(job.kernels))
    table = scheme.table
    return {
        "tb_edges": int(table),
        "window": everything if scheme.infinite or not table else min(everything, values["scheme.window"]),
        "infinite": int(scheme.infinite),
        "bloom": int(scheme.finds == "bloom"),
        "bypass": values["scheme.bypass"] if table else 0,
        "invalidate": {"kernel": 1, "bypass": 0, "tb": 2}[coherence_of(scheme, values)],
        "in_flight": 0,
        "early": 0,
        "prepare": values["gpu.cp.graph_prepare"] if scheme.gap == "gpu.cp.graph_gap" else 0,
        "beside": values["gpu.cp.beside"] if scheme.edges == "stream" else 0,
        "launch": values["gpu.cp.launch"],
        "gap": values[scheme.gap] if scheme.gap else 0,
        "admit": values["gpu.cp.admit"] if table and not scheme.infinite else 0,
        "rotate": int(PRIORITY[values["scheme.priority"]] == "round_robin"),
        "placement": values["scheme.placement"] if table else 0,
        "affinity": values["scheme.affinity"],
        "reserve": values["scheme.reserve"] if table else 0,
        "entries": values["scheme.table.entries"],
        "share": values["scheme.table.share"],
        "fetch": int(
            scheme.edges == "tb"
            and scheme.finds != "bloom"
            and not scheme.infinite
            and not values["scheme.prologue"]
            and values["scheme.table.fetch"]
        ),
        "spill": values["gpu.l2.latency"] * values["gpu.clock"],
        "update": values["scheme.table.update"],
        "latency": values["scheme.table.latency"],
    }


def _tensors_written(job: Job) -> NDArray[np.int64]:
    spans = {
        (a.tensor.address, a.tensor.address + a.tensor.nbytes)
        for k in job.kernels
        for a in k.accesses
        if a.mode != "read"
    }
    return np.array(list(spans), np.int64).reshape(-1, 2)


def written_by_job(job: Job) -> NDArray[np.int64]:
    """Return the merged address ranges that kernels and copies write or update: sorted, (n, 2)."""
    recorded = [k.footprint.written(k.tbs, k.name) for k in job.kernels if k.footprint is not None]
    return union(np.concatenate([_tensors_written(job), *recorded]))


def rewritten_by_job(job: Job) -> NDArray[np.int64]:
    """Return those of them that an L1 may hold as they were before (``copies.rewritten``)."""
    return union(np.concatenate([_tensors_written(job), rewritten(job.kernels)]))


def ranks(priority: str, preds: Sequence[Sequence[int]], times: Sequence[float]) -> list[int]:
    """Return unique ranks, lowest first to dispatch. ``times``: what each kernel takes alone."""
    count = len(preds)
    if priority in ("oldest", "round_robin"):
        return list(range(count))
    if priority == "newest":
        return [count - 1 - k for k in range(count)]
    if priority == "consumer":
        return _places(_depths(preds))
    left = [float(t) for t in times]
    for index in range(count - 1, -1, -1):
        # preds are earlier kernels, so left[index] is final here
        for before in preds[index]:
            left[before] = max(left[before], times[before] + left[index])
    return _places(left)


def _depths(preds: Sequence[Sequence[int]]) -> list[int]:
    made: list[int] = []
    for sources in preds:
        made.append(max((made[p] + 1 for p in sources), default=0))
    return made


def _places(values: Sequence[float]) -> list[int]:
    """Return the place of each kernel: largest value first, then oldest."""
    made = [0] * len(values)
    for rank, index in enumerate(sorted(range(len(values)), key=lambda k: (-values[k], k))):
        made[index] = rank
    return made
