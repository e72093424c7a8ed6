"""Which kernel of a profile waits for which: what it records, what its order implies, and the two bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..events import Call, Ran, Recording, Wait

_ROUND = 0.002  # us: times of profiles are rounded
Edges = list[set[int]]  # of each kernel: those that it waits for


@dataclass(slots=True)
class Dependences:
    """Edges between what ran, by position in ``order``, the order of launches.

    ``likely``: streams, recorded or inferred waits, synchronizations; ``least``: streams and recorded waits
    alone; ``most``: one kernel after another; ``data``: by tensors, None without an execution trace.
    ``kinds``: how many edges come from where.
    """

    order: list[Ran]
    likely: Edges
    least: Edges
    most: Edges
    data: Edges | None = None
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def streams(self) -> int:
        """Streams that kernels ran in."""
        return len({ran.stream for ran in self.order})


def chain(count: int) -> Edges:
    """Return the edges of kernels one after another."""
    return [{i - 1} if i else set() for i in range(count)]


def in_streams(order: Sequence[Ran]) -> Edges:
    """Return the edges of stream order."""
    last: dict[int, int] = {}
    made: Edges = []
    for i, ran in enumerate(order):
        made.append({last[ran.stream]} if ran.stream in last else set())
        last[ran.stream] = i
    return made


def in_time(order: Sequence[Ran], chosen: Iterable[int]) -> list[tuple[int, int]]:
    """Return edges (before, after) of the order in time: whatever had ended before another started.

    Only those that follow from no other two are returned.
    """
    made: list[tuple[int, int]] = []
    alive: list[int] = []
    for i in sorted(chosen, key=lambda k: order[k].start):
        start = order[i].start
        over = [k for k in alive if order[k].end <= start + _ROUND]
        if over:
            newest = max(order[k].start for k in over)
            made += [(k, i) for k in over if order[k].end > newest]
            alive = [k for k in alive if order[k].end > newest or k not in over]
        alive.append(i)
    return made


def _recorded(order: Sequence[Ran], calls: Sequence[Call], waits: Sequence[Wait]) -> list[tuple[int, int]]:
    """Return the edges of waits that the profile records with their event's record."""
    when = {call.correlation: call.start for call in calls if call.correlation}
    made = []
    for wait in waits:
        recorded, waited = when.get(wait.record), when.get(wait.correlation)
        if recorded is None or waited is None:
            continue
        before = [i for i, r in enumerate(order) if r.stream == wait.producer and _launch(r) < recorded]
        after = next((i for i, r in enumerate(order) if r.stream == wait.stream and _launch(r) > waited), None)
        if before and after is not None and before[-1] < after:
            made.append((before[-1], after))
    return made


def _launch(ran: Ran) -> float:
    return ran.start if ran.launched is None else ran.launched


class _Inferred:
    """Edges of event pairs and synchronizations whose streams the profile does not say.

    A record right after a launch is of that launch's stream, another one of all streams. Waits in a row are
    for all records since the waits before, and the next launch in each stream obeys them.
    """

    def __init__(self) -> None:
        self.waits: list[tuple[int, int]] = []
        self.syncs: list[tuple[int, int]] = []
        self._last: dict[int, int] = {}  # by stream
        self._newest: int | None = None
        self._records: set[int] = set()
        self._groups: list[tuple[set[int], bool]] = []  # what is waited for, and whether by the host
        self._obeyed: dict[int, int] = {}  # groups that a stream has seen
        self._before = ""

    def launch(self, i: int, ran: Ran) -> None:
        for before, host in self._groups[self._obeyed.get(ran.stream, 0) :]:
            (self.syncs if host else self.waits).extend((k, i) for k in before if k != i)
        self._obeyed[ran.stream] = len(self._groups)
        self._last[ran.stream] = self._newest = i
        self._before = "launch"

    def call(self, kind: str) -> None:
        everything = set(self._last.values())
        if kind == "record":
            one = self._before == "launch" and self._newest is not None
            self._records |= {self._newest} if one and self._newest is not None else everything
        elif kind == "wait" and self._before != "wait" and self._records:
            self._groups.append((self._records, False))
            self._records = set()
        elif kind == "sync":
            self._groups.append((everything, True))
            self._records = set()
        self._before = kind


def _pairs(order: Sequence[Ran], calls: Sequence[Call], exact: bool) -> _Inferred:
    """Walk launches and calls in the order of the host."""
    found = _Inferred()
    mine = [call for call in calls if call.kind == "sync" or (not exact and call.kind in ("record", "wait"))]
    k = 0
    for i, ran in enumerate(order):
        while k < len(mine) and mine[k].start < _launch(ran):
            found.call(mine[k].kind)
            k += 1
        found.launch(i, ran)
    return found


def _replays(order: Sequence[Ran]) -> list[list[int]]:
    """Return what each graph launch ran."""
    groups: dict[int, list[int]] = {}
    for i, ran in enumerate(order):
        if ran.replay:
            groups.setdefault(ran.replay, []).append(i)
    return list(groups.values())


def dependences(made: Recording) -> Dependences:
    """Return who waits for whom. A file without launches: streams, and the order in time."""
    order = sorted(made.ran, key=lambda ran: (_launch(ran), ran.start))
    known = any(ran.launched is not None for ran in order)
    least = in_streams(order)
    kinds: Counter[str] = Counter({"stream order": sum(map(len, least))})
    likely = [set(before) for before in least]

    def add(what: str, edges: Iterable[tuple[int, int]], sure: bool = False) -> None:
        for before, after in edges:
            if order[before].stream != order[after].stream and before not in likely[after]:
                kinds[what] += 1
                likely[after].add(before)
                if sure:
                    least[after].add(before)

    if len({ran.stream for ran in order}) > 1:
        if known:
            add("recorded waits", _recorded(order, made.calls, made.waits), sure=True)
            pairs = _pairs(order, made.calls, exact=bool(made.waits))
            add("inferred waits", pairs.waits)
            add("synchronizations of the host", pairs.syncs)
            for group in _replays(order):
                add("order in time inside graph launches", in_time(order, group))
        else:
            add("order in time", in_time(order, range(len(order))))
    # no edge may point back: orders of launches and of starts can disagree by rounding
    for edges in (likely, least):
        for i, before in enumerate(edges):
            edges[i] = {k for k in before if k < i}
    return Dependences(order, likely, least, chain(len(order)), kinds=kinds)
