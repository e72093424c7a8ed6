"""Which kernel of a profile waits for which: what it records, what its order implies, and the two bounds."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pysim.profile.events import Call, Ran, Recording, Wait

_ROUND = 0.002  # us: times of profiles are rounded
_QUEUED = 5.0  # us on the GPU beyond the way from the host: a kernel has waited for more than its launch
_GAP = 2.5  # us: the longest from an end to the start that it releases, in a stream or between two
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
        after = next(
            (i for i, r in enumerate(order) if r.stream == wait.stream and _launch(r) > waited), None
        )
        if before and after is not None and before[-1] < after:
            made.append((before[-1], after))
    return made


def _launch(ran: Ran) -> float:
    return ran.start if ran.launched is None else ran.launched


@dataclass(slots=True)
class _Group:
    """Waits in a row: what they wait for, and how many streams more they may belong to; -1: to all."""

    before: set[int]
    left: int
    takers: set[int] = field(default_factory=set)


class _Inferred:
    """Edges of event pairs and synchronizations whose streams the profile does not say.

    The first record after launches is of the newest launch's stream, the next one of the newest in another
    stream; a record after a wait is of all streams. Waits in a row are for all records since the waits before
    them; as many streams obey them, those of the next launches. They are over when later waits begin.
    """

    def __init__(self) -> None:
        self.waits: list[tuple[int, int]] = []
        self.syncs: list[tuple[int, int]] = []
        self._last: dict[int, int] = {}  # newest launch by stream, in the order of launches
        self._records: set[int] = set()
        self._recorded = 0  # in a row, since a launch; -1: since a wait
        self._groups: list[_Group] = []
        self._waiting = False

    def launch(self, i: int, ran: Ran) -> None:
        """Take a launch."""
        for group in self._groups:
            if group.left and ran.stream not in group.takers:
                group.takers.add(ran.stream)
                group.left -= 1
                (self.waits if group.left >= 0 else self.syncs).extend((k, i) for k in group.before)
        self._last.pop(ran.stream, None)
        self._last[ran.stream] = i
        self._recorded, self._waiting = 0, False

    def call(self, kind: str) -> None:
        """Take a record, a wait or a synchronization."""
        newest = list(reversed(self._last.values()))
        if kind == "record":
            row = self._recorded
            self._records |= {newest[row]} if 0 <= row < len(newest) else set(newest)
            self._recorded = row + (row >= 0)
            self._waiting = False
        elif kind == "wait":
            if self._waiting and self._groups:
                self._groups[-1].left += 1
            elif self._records:
                self._groups = [g for g in self._groups if not g.takers]
                self._groups.append(_Group(self._records, 1))
                self._records = set()
                self._waiting = True
            self._recorded = -1
        else:
            self._groups = [_Group(set(newest), -1)]
            self._records, self._waiting = set(), False


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


def _released(order: Sequence[Ran]) -> list[tuple[int, int]]:
    """Return edges to kernels that had long been launched, and started when one in another stream ended.

    What kept them is a dependence, or slots that only then came free; either keeps them in a replay, too.
    """
    took = sorted(r.start - r.launched for r in order if r.launched is not None and r.start > r.launched)
    if not took:
        return []
    way = took[len(took) // 20]
    ends = sorted((ran.end, i) for i, ran in enumerate(order))
    made = []
    for i, ran in enumerate(order):
        if ran.launched is None or ran.replay or ran.start - ran.launched < way + _QUEUED:
            continue
        k = bisect_right(ends, (ran.start + _ROUND, len(order))) - 1
        while k >= 0 and ends[k][0] > ran.start - _GAP:
            if ends[k][1] < i and order[ends[k][1]].stream != ran.stream:
                made.append((ends[k][1], i))
                break
            k -= 1
    return made


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
            # what had started before the other ended did not wait for it
            if order[before].end > order[after].start + _ROUND:
                continue
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
            add("starts that an end released", _released(order))
            for group in _replays(order):
                add("order in time inside graph launches", in_time(order, group))
        else:
            add("order in time", in_time(order, range(len(order))))
    # no edge may point back: orders of launches and of starts can disagree by rounding
    for edges in (likely, least):
        for i, before in enumerate(edges):
            edges[i] = {k for k in before if k < i}
    return Dependences(order, likely, least, chain(len(order)), kinds=kinds)
