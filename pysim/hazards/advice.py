"""What each pair of neighbouring kernels may gain by programmatic dependent launch, and where it is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pysim.program.warp_program import OP

from .pdl import Hazard, PdlCheck
from .places import AHEAD, LATEST, LOADS, START, STORES, Cuts, Moved, Place, op_lists
from .plan import NORMAL, Placed, Row, trigger_cuts
from .room import has_free_slots

if TYPE_CHECKING:
    from pysim.program.job import Kernel

    from .simulated import Simulated

LOADS_FIRST = "independent loads first"
_TRIGGERS = ("start", "loop end", "none")  # from the earliest on
_SAME = 0.005  # of a gain: what is less is no difference
_LEAST_US = 0.05  # a smaller gain is none


@dataclass(slots=True)
class Pair:
    """Two neighbouring launches, of which the second may start before the first has ended.

    ``latest``: the latest safe wait if only this pair overlaps, or if each kernel triggers behind its own
    wait; ``in_chain``: the latest one if each triggers at its start; ``first``: what makes a later wait
    unsafe; ``chain_first``: the same in a chain. ``gains``: us that the job gains by this pair alone, by
    (wait, trigger); ``reason``: why it gains nothing, or is no pair.
    """

    before: int
    after: int
    latest: str = ""
    in_chain: str = ""
    first: Hazard | None = None
    chain_first: Hazard | None = None
    gains: dict[tuple[str, str], float] = field(default_factory=dict)
    reason: str = ""
    like: int | None = None  # the kernel of an equal pair, whose gains these are

    @property
    def gain_us(self) -> float | None:
        """Return the most that the job gains by the pair alone; None: it was not simulated."""
        return max(self.gains.values(), default=None)

    @property
    def best(self) -> tuple[str, str]:
        """Return the (wait, trigger) of the best time; of equal ones the latest trigger, the first wait."""
        most = max(self.gains.values())
        even = [key for key, gain in self.gains.items() if gain >= most - abs(most) * _SAME]
        return max(even, key=lambda key: (_TRIGGERS.index(key[1]), -list(self.gains).index(key)))


@dataclass(slots=True)
class Advice:
    """All pairs of a job, and what the job takes: ``plain_us`` without, ``together`` with all safe pairs."""

    pairs: list[Pair]
    plain_us: float | None = None
    together: dict[str, float] = field(default_factory=dict)


TOGETHER: Mapping[str, Row] = {
    "waits at the start": Row(),
    "latest waits, triggers at the start": Row(wait=LATEST),
    "latest waits, triggers behind them": Row(wait=LATEST, trigger=Place("wait")),
    "independent loads moved ahead of latest waits": Row(wait=AHEAD),
}


def has_prologue(kernel: Kernel, waits: Cuts) -> bool:
    """Whether any op list loads, stores or spends time before it waits."""
    busy = (*LOADS, *STORES, OP["DELAY"])
    return any(op.kind in busy for ops in op_lists(kernel) for op in ops[: waits.get(id(ops)) or 0])


class PdlAdvice:
    """Finds the latest safe waits of a job, and times them."""

    def __init__(self, check: PdlCheck) -> None:
        self.check, self.job = check, check.job
        self.waits: dict[int, Cuts] = {}  # of each pair alone
        self.chain: list[Placed] = []  # all pairs, with triggers at the start

    def pairs(self) -> list[Pair]:
        """Return all pairs with their latest safe waits."""
        chain = self.chain = self.check.placed([Row(wait=LATEST)])
        ended = self.check.ended(chain)
        made: list[Pair] = []
        for after in range(1, len(self.job.kernels)):
            pair = Pair(after - 1, after)
            made.append(pair)
            if not self.check.able[after]:
                pair.reason = self._why_not(after)
                continue
            alone = 1 << (after - 1)
            self.waits[after] = self.check.latest(after, alone)[0]
            pair.latest = self.check.place_of(after, self.waits[after])
            pair.in_chain = self.check.place_of(after, chain[after].waits)
            everything = (1 << after) - 1
            pair.first = self.check.first_hazard(after, alone)
            pair.chain_first = self.check.first_hazard(after, everything & ~ended[after].start)
        return made

    def _why_not(self, after: int) -> str:
        kernels = self.job.kernels
        if any(end == after for _, end in self.job.events):
            return "waits for an event"
        which = next(n for n in (after, after - 1) if kernels[n].copy is not None or not _asks(kernels[n]))
        what = "is a copy" if kernels[which].copy is not None else "is not launched so"
        return f"{kernels[which].name} {what}"

    def _alone(
        self, after: int, waits: Cuts, trigger: Place, moved: Moved | None = None
    ) -> list[Placed] | None:
        """Return the placement in which only one pair overlaps; None: there is no such trigger."""
        from pysim.errors import InputError

        try:
            behind = {id(ops): 0 for ops in op_lists(self.job.kernels[after - 1])}
            triggers, first = trigger_cuts(self.job, after - 1, trigger, behind)
        except InputError:
            return None
        made = [NORMAL] * len(self.job.kernels)
        made[after - 1] = Placed(False, {}, triggers, first)
        made[after] = Placed(True, waits, {}, moved=moved or {})
        return made

    def placements(self, pair: Pair) -> dict[tuple[str, str], list[Placed]]:
        """Return the placements of one pair alone that are timed, by (wait, trigger)."""
        from .places import cuts_of

        kernel, made = self.job.kernels[pair.after], dict[tuple[str, str], list[Placed]]()
        waits = {"start": cuts_of(kernel, START, ""), pair.latest: self.waits[pair.after]}
        for trigger in _TRIGGERS:
            for wait, cuts in waits.items():
                placed = self._alone(pair.after, cuts, Place(trigger))
                if placed is not None and (trigger == "start" or wait == pair.latest):
                    made[wait, trigger] = placed
        latest = self.waits[pair.after]
        moved = self.check.ahead(pair.after, 1 << pair.before, latest)
        placed = self._alone(pair.after, latest, START, moved) if moved else None
        if placed is not None:
            made[f"{pair.latest}, {LOADS_FIRST}", "start"] = placed
        return made

    def later(self, pairs: Sequence[Pair], most: int) -> list[Pair]:
        """Return the first different pairs of which a kernel needs its wait."""
        first: dict[object, Pair] = {}
        for pair in pairs:
            if pair.first is not None:
                first.setdefault(self.key(pair), pair)
        return list(first.values())[:most]

    def too_late(self, pair: Pair) -> tuple[list[Placed], Hazard]:
        """Return the placement of one pair alone whose kernel never waits, and its first hazard."""
        placed = self._alone(pair.after, {}, START)
        assert placed is not None
        assert pair.first is not None
        return placed, pair.first

    def key(self, pair: Pair) -> tuple[object, ...]:
        """Return what pairs of equal gain have in common."""
        kernels = self.job.kernels[pair.before], self.job.kernels[pair.after]
        waits = self.waits.get(pair.after, {}), self.chain[pair.after].waits
        same = pair.in_chain == pair.latest
        return (*((k.name, k.grid, k.library) for k in kernels), *(tuple(w.values()) for w in waits), same)

    def advice(
        self, simulated: Simulated | None, most: int, progress: Callable[[str], None] = lambda said: None
    ) -> Advice:
        """Return the pairs; with ``simulated``, gains of the first ``most`` different ones, and of all.

        ``progress`` is told what is timed next.
        """
        made = Advice(self.pairs())
        if simulated is None:
            return made
        values = simulated.config.encoded()
        made.plain_us = simulated.plain_us()
        seen: dict[tuple[object, ...], Pair] = {}
        for pair in made.pairs:
            if pair.reason:
                continue
            same = seen.get(self.key(pair))
            if same is not None:
                pair.gains, pair.reason, pair.like = same.gains, same.reason, same.after
            elif len(seen) < most:
                seen[self.key(pair)] = pair
                progress(f"kernels {pair.before} and {pair.after}")
                for key, placed in self.placements(pair).items():
                    pair.gains[key] = made.plain_us - simulated.time_us(placed)
                pair.reason = self._useless(pair, values)
        for name, row in TOGETHER.items():
            progress(name)
            made.together[name] = simulated.time_us(self.check.placed([row]))
        return made

    def _useless(self, pair: Pair, values: Mapping[str, int]) -> str:
        """Return why a pair gains nothing, or nothing where it gains."""
        assert pair.gain_us is not None
        if pair.gain_us >= _LEAST_US:
            return ""
        first, second = self.job.kernels[pair.before], self.job.kernels[pair.after]
        if not has_free_slots(first, second, values):
            return "no free slots"
        if not has_prologue(second, self.waits[pair.after]):
            return "nothing independent before the wait"
        return "nothing gained"


def _asks(kernel: Kernel) -> bool:
    return kernel.programmatic
