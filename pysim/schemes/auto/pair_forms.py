"""The form of the edge between two kernels: none of its own, a kernel edge, or edges between TBs.

An edge between TBs pays where a TB needs few TBs of the kernel before and can start early. All others are
kernel edges, one counter for all. ``choose`` decides it from what the admission of a kernel knows: hints,
grids, and which kernels in the window wait for which.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pysim.dependence.graph import build_graph
from pysim.dependence.groups import Groups, assemble
from pysim.dependence.kernel_order import implied_kernels, reduce_preds
from pysim.dependence.patterns import pair_patterns
from pysim.dependence.transitive_reduction import reduce_transitively
from pysim.program.marks import has_tb_waits
from pysim.program.regions import csr_offsets, expand_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pysim.dependence.groups import Dependences
    from pysim.program.job import Job

    from .hints import LaunchHints


class Reason(NamedTuple):
    """The form that a reason leads to, and what it says of the later kernel; ``ruled``: of its rules."""

    form: str
    text: str
    ruled: bool = False


# why a pair of kernels has its form: the first that holds
REASONS = {
    "no hints": Reason("kernel", "no hints tell the TBs of one of them apart"),
    "covered": Reason("none", "edges to and from another kernel imply each of its edges"),
    "implied": Reason("kernel", "a path of other edges leads to it, which need not imply each edge"),
    "no data": Reason("kernel", "it only overwrites what the other has read or written"),
    "turns": Reason("kernel", "its TBs wait for each other"),
    "most": Reason("kernel", "most of its TBs wait, and one needs many of the other's", True),
    "no room": Reason("kernel", "the scheduler has no room for its rules or the states of its TBs", True),
    "few": Reason("tb", "each TB needs few of the other's, or few TBs wait", True),
}


@dataclass(frozen=True, slots=True)
class PairForm:
    """How kernel ``kernel`` waits for kernel ``producer``, and why (``REASONS``).

    ``share``: of the producer's TBs, the most that a TB needs; ``rules``: rules that its edges between TBs
    take; ``kept``: whether the edge is enforced, not implied by other kernel edges.
    """

    kernel: int
    producer: int
    reason: str
    share: float
    rules: int
    kept: bool

    @property
    def form(self) -> str:
        """The form: "tb", "kernel", or "none"."""
        return REASONS[self.reason].form if self.kept else "none"


@dataclass(frozen=True, slots=True)
class Forms:
    """The forms of all pairs, by (kernel, producer), and the edges that they make.

    ``deps``: edges between TBs alone; ``whole``: kernels that each kernel waits for as a whole;
    ``computed``: rules that the admission of each kernel computes or composes; ``peak_rules``,
    ``peak_tbs``: most that the kernels of a window take.
    """

    pairs: list[PairForm]
    deps: Dependences
    whole: list[tuple[int, ...]]
    computed: list[int]
    peak_rules: int
    peak_tbs: int


class _Room:
    """Rules, and states of TBs, that the last kernels of a window take in the scheduler."""

    def __init__(self, tbs: Sequence[int], values: Mapping[str, int]) -> None:
        self.tbs, self.window = tbs, values["scheme.window"]
        self.most_rules, self.most_tbs = values["scheme.auto.rules"], values["scheme.auto.tbs"]
        self.rules: deque[tuple[int, int]] = deque()  # (kernel, its rules)
        self.states: set[int] = set()  # kernels whose TBs have states
        self.peak_rules = self.peak_tbs = 0

    def take(self, kernel: int, rules: int, producers: Sequence[int]) -> bool:
        """Take room for a kernel that waits by TB for some others, if there is enough."""
        oldest = kernel - self.window + 1
        while self.rules and self.rules[0][0] < oldest:
            self.rules.popleft()
        self.states = {each for each in self.states if each >= oldest}
        states = self.states | {kernel, *(each for each in producers if each >= oldest)}
        held = sum(each for _, each in self.rules) + rules
        tbs = sum(self.tbs[each] for each in states)
        if held > self.most_rules or tbs > self.most_tbs:
            return False
        self.rules.append((kernel, rules))
        self.states = states
        self.peak_rules, self.peak_tbs = max(self.peak_rules, held), max(self.peak_tbs, tbs)
        return True


class _Found(NamedTuple):
    """A pair of kernels with edges, and its reason; see ``PairForm``."""

    kernel: int
    producer: int
    reason: str
    share: float
    rules: int


def choose(job: Job, deps: Dependences, hints: LaunchHints, values: Mapping[str, int]) -> Forms:
    """Return the forms of all pairs of kernels with edges.

    ``deps``: the edges that ``hints`` give.
    """
    rows = pair_patterns(build_graph(deps), [kernel.grid for kernel in job.kernels])
    reduced = [{*sources} for sources in reduce_transitively(deps).preds]
    asked = [min(sources, default=kernel) for kernel, sources in enumerate(deps.preds)]
    room = _Room([kernel.tbs for kernel in job.kernels], values)
    share_limit, waiting_limit = values["scheme.auto.share"] / 65536, values["scheme.auto.waiting"] / 65536
    reduce = bool(values["scheme.auto.reduce"])
    cuts = np.searchsorted(rows["kernel"], np.arange(len(job.kernels) + 1)).tolist()
    found: list[_Found] = []
    rules: list[dict[int, int]] = []  # of each kernel, by producer
    computed: list[int] = []
    # rules are composed while the launch before is admitted, as long as that takes
    spare = (
        values["gpu.cp.admit"] // values["scheme.auto.rule"] if values["scheme.auto.rule"] else sys.maxsize
    )
    for kernel, implied in enumerate(implied_kernels(deps.preds, asked)):
        turns, left = has_tb_waits(job.kernels[kernel]), spare
        mine = rows[cuts[kernel] : cuts[kernel + 1]]
        rules.append({each: hints.rules(kernel, each) for each in mine["producer_kernel"].tolist()})
        made: list[_Found] = []
        for row in mine:
            producer, share = int(row["producer_kernel"]), float(row["most"] / row["producer_tbs"])
            follows = reduce and implied(producer)
            composed = _composed(rules, producer) if follows else 0
            looked = follows and composed <= left
            left -= composed if looked else 0
            tests = {
                "no hints": not (hints.by_tb[kernel] and hints.by_tb[producer]),
                "covered": looked and producer not in reduced[kernel],
                "implied": follows,
                "no data": not row["raw"],
                "turns": turns,
                "most": share >= share_limit and row["waiting"] >= waiting_limit * row["tbs"],
                "few": True,
            }
            reason = next(name for name, holds in tests.items() if holds)
            made.append(_Found(kernel, producer, reason, share, rules[kernel][producer]))
        few = [pair for pair in made if pair.reason == "few"]
        if few and not room.take(kernel, sum(p.rules for p in few), [p.producer for p in few]):
            made = [pair._replace(reason="no room") if pair.reason == "few" else pair for pair in made]
        found += made
        computed.append(spare - left + sum(pair.rules for pair in made if REASONS[pair.reason].ruled))
    return _made(found, deps, computed, room, reduce)


def _composed(rules: Sequence[Mapping[int, int]], producer: int) -> int:
    """Return how many pairs of rules say which TBs of the last kernel wait in two steps for those of another.

    ``rules``: of each kernel so far, by producer.
    """
    return sum(each * rules[between].get(producer, 0) for between, each in rules[-1].items())


def _made(
    found: Sequence[_Found], deps: Dependences, computed: list[int], room: _Room, reduce: bool
) -> Forms:
    """Return the forms with the edges that they make; ``reduce``: without implied kernel edges."""
    count = len(deps.preds)
    whole: list[list[int]] = [[] for _ in range(count)]
    for pair in found:
        if REASONS[pair.reason].form == "kernel":
            whole[pair.kernel].append(pair.producer)
    kept = [tuple(sorted(each)) for each in whole]
    kept = reduce_preds(kept) if reduce else kept
    held = [set(each) for each in kept]
    pairs = [
        PairForm(*pair, REASONS[pair.reason].form == "tb" or pair.producer in held[pair.kernel])
        for pair in found
    ]
    drop = {(pair.producer, pair.kernel) for pair in found if REASONS[pair.reason].form != "tb"}
    return Forms(pairs, _without_pairs(deps, drop), kept, computed, room.peak_rules, room.peak_tbs)


def _without_pairs(deps: Dependences, drop: set[tuple[int, int]]) -> Dependences:
    """Return the edges without those of some pairs (producer kernel, consumer kernel)."""
    if not drop:
        return deps
    groups, count = deps.groups, len(deps.preds)
    owner = np.searchsorted(deps.offsets, groups.producers, side="right") - 1
    sizes, used = np.diff(groups.producer_ptr), np.diff(groups.consumer_ptr)
    node = np.repeat(np.arange(len(groups), dtype=np.int64), sizes)
    gone = np.array([producer * count + consumer for producer, consumer in drop], np.int64)
    keep = ~np.isin(owner * count + groups.kernel[node], gone)
    left = np.bincount(node[keep], minlength=len(groups)).astype(np.int64)
    some = left > 0
    made = Groups(
        groups.kernel[some],
        csr_offsets(left[some]),
        groups.producers[keep],
        groups.kinds[keep],
        csr_offsets(used[some]),
        groups.consumers[expand_ranges(groups.consumer_ptr[:-1][some], used[some])],
    )
    return assemble(made, deps.offsets, races=deps.races)
