"""What each scheme would make of a recorded run: a time, and the range that what is not known leaves."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pysim.profile.events import KERNEL

from . import gaps
from .card import Card, waves
from .dependence import Dependences, Edges, chain
from .gaps import Gaps
from .replay import Plan, replayed
from .sharing import Sharing, works

# Durations of the kernels of a network in an eager run and in its replayed graph differ in sum by 0.8 %, the
# median of 12 networks of one stream on an H200 and an H100, and by less than 5 % in 11 of them (GEMMs that
# run into the power limit: 10 %): other caches, another clock, idle times before them.
_SPREAD = 0.05
# A captured graph takes seed and offset of random numbers from memory, which PyTorch fills before each
# replay: two more kernels, in the recorded graphs of all networks with dropout and of no others, us each
_RANDOM = re.compile(r"dropout|philox|bernoulli|distribution_(?:nullary|elementwise)", re.IGNORECASE)
_FILL = 0.75


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scheme: its time, the range around it (us), and what decides where in the range the truth is."""

    scheme: str
    time_us: float
    low_us: float
    high_us: float
    decides: str


@dataclass(slots=True)
class Run:
    """A recorded run, made ready for replays: rule, and work of each kernel: likely, least and most."""

    card: Card
    edges: Dependences
    waves: list[float]
    rule: Sharing
    work: list[float]
    least: list[float]
    most: list[float]

    @staticmethod
    def of(card: Card, edges: Dependences) -> Run:
        """Make it ready."""
        number = [waves(card, ran) for ran in edges.order]
        rule, work = works(edges.order, number)
        least, most = ([took * (1 + way * _SPREAD) for took in work] for way in (-1, 1))
        return Run(card, edges, number, rule, work, least, most)

    @property
    def area(self) -> float:
        """Time that the slots of all TBs take if none is ever idle, us; the longest kernel takes no less.

        A kernel that each of those beside it slows down by a measured share takes that share of the GPU.
        """
        total = longest = 0.0
        for i, (ran, work) in enumerate(zip(self.edges.order, self.least, strict=True)):
            if ran.kind == KERNEL:
                number, slower = self.waves[i], self.rule.measured[i]
                share = number / math.ceil(number) if number else 1.0
                total += work * (share if slower is None else min(share, slower))
                longest = max(longest, work)
        return max(total, longest)


class _Replays:
    """Replays of a run with one kind of gap.

    ``graph``: memsets take as long as nodes of a graph do; ``first``: us before the first kernel beside its
    launch; ``admit``: us between the admissions of two kernels.
    """

    def __init__(
        self, run: Run, gap: Gaps, *, graph: bool = False, first: float = 0.0, admit: float = 0.0
    ) -> None:
        self.run, self.gap, self.graph, self.admit = run, gap, graph, admit
        self.first = run.card.launch + first

    def _work(self, work: Sequence[float]) -> list[float]:
        if not self.graph:
            return list(work)
        card = self.run.card
        known = (card.memset(ran) for ran in self.run.edges.order)
        return [
            took if special is None else max(took, special) for took, special in zip(work, known, strict=True)
        ]

    def time(self, work: Sequence[float], before: Edges, gap: float, rule: Sharing | None) -> float:
        run = self.run
        between = [0.0 if ran.programmatic else gap for ran in run.edges.order]
        first = [self.first + i * self.admit for i in range(len(work))]
        return replayed(Plan(self._work(work), before, between, first, rule))

    def range(self, scheme: str, before: Edges, least: Edges, decides: str) -> Outcome:
        """Return the outcome between ``least`` edges without slow-down and one kernel after another."""
        run, gap = self.run, self.gap
        time = self.time(run.work, before, gap.likely, run.rule)
        low = self.time(run.least, least, gap.least, None)
        # one after another each kernel runs as long as it did, whatever it shared the GPU with
        alone = [max(work, ran.duration) for work, ran in zip(run.most, run.edges.order, strict=True)]
        most = alone if run.edges.streams > 1 else run.most
        high = self.time(most, chain(len(most)), gap.most, None)
        return Outcome(scheme, time, min(low, time), max(high, time), decides)


def _many(run: Run) -> str:
    return (
        "how far kernels of several streams overlap, and slow each other down"
        if run.edges.streams > 1
        else "durations of kernels that find other caches and clocks; the gap between two kernels"
    )


def _stream(run: Run) -> Outcome:
    edges = run.edges
    return _Replays(run, gaps.stream(run.card)).range("stream", edges.likely, edges.least, _many(run))


def _graph(run: Run) -> Outcome:
    edges = run.edges
    random = any(_RANDOM.search(name) for name in {ran.name for ran in edges.order})
    fills = 2 * (_FILL + run.card.stream_gap) if random else 0.0
    found = _Replays(run, gaps.graph(run.card), graph=True, first=fills)
    return found.range("graph", edges.likely, edges.least, _many(run))


def _pdl(run: Run) -> Outcome:
    edges = run.edges
    decides = "whether kernels trigger early, and how much of a kernel does not wait for the one before"
    return _Replays(run, gaps.early(run.card)).range("pdl", edges.likely, edges.least, decides)


def _pool(run: Run) -> Outcome:
    edges = run.edges
    found = _Replays(run, gaps.table(run.card), admit=run.card.admit)
    known = edges.data
    decides = (
        "overlap of kernels that share no tensor"
        if known
        else "which kernels share tensors: between none and each two"
    )
    made = found.range("pool", known or edges.likely, known or chain(len(edges.order)), decides)
    admitted = run.card.launch + len(edges.order) * run.card.admit
    low = found.time(run.least, known, found.gap.least, None) if known else 0.0
    low = max(low, run.area, admitted)
    return Outcome("pool", made.time_us, min(low, made.time_us), made.high_us, decides)


def _tb_static(run: Run, pool: Outcome) -> Outcome:
    """Between the time of ``pool`` and no idle slot."""
    decides = "which TBs share data, which no profile says: between kernel by kernel and no idle slot"
    admitted = run.card.launch + len(run.edges.order) * run.card.admit
    low = min(pool.time_us, max(run.area, admitted))
    return Outcome("tb_static", pool.time_us, low, pool.high_us, decides)


SCHEMES: dict[str, Callable[[Run], Outcome]] = {
    "stream": _stream,
    "graph": _graph,
    "pdl": _pdl,
    "pool": _pool,
}


def outcomes(run: Run) -> tuple[list[Outcome], dict[str, str]]:
    """Return what each scheme would make of the run, and the schemes left out with the reason."""
    span = max(ran.end for ran in run.edges.order)
    made = [Outcome("recorded", span, span, span, "measured")]
    refused = {}
    for name, make in SCHEMES.items():
        if name == "pdl" and not run.card.early:
            refused[name] = f"{run.card.name} has no programmatic dependent launch"
            continue
        made.append(make(run))
    made.append(_tb_static(run, made[-1]))
    return made, refused
