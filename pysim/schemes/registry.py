"""Ways of ordering work: one registry entry each, and how a user names them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pysim.errors import ConfigError
from pysim.params import PARAMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PRIORITY = next(p for p in PARAMS["scheme"] if p.name == "priority").choices


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

_FETCHED = ("scheme.table.fetch", 1)
_FETCH = {
    "fetch": Option(
        "entries and lists of counters are brought in when producers are dispatched",
        (_FETCHED, ("scheme.table.fetch_lists", 1)),
    )
}
_FETCH_LEARNED = {"fetch": Option("entries are brought in when producers are dispatched", (_FETCHED,))}

_REDUCED = {"reduced": Option("edges that others imply are left out", (("scheme.table.reduce", 1),))}

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
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _PROLOGUE | _FETCH | _REDUCED,
        ),
        Scheme(
            "tb_learned",
            "tb_static with footprints learned at each kernel's first launch, which runs behind barriers.",
            "tb",
            "gpu.cp.stream_gap",
            finds="learned",
            options=_PRIORITIES | _COHERENCE | _PLACEMENT | _PROLOGUE | _FETCH_LEARNED,
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
