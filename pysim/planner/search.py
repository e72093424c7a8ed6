"""A search without a model: all first plans, then coordinate descent from the best few, then restarts.

Which plans are asked for together does not depend on how many are simulated at a time, and every choice by
chance is drawn from the seed: the same arguments try the same plans in the same order.
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .space import Plan, Space

FEW = 4  # schemes whose best plans are descended from, at the same time
RESTARTS = 24  # descents from changed plans, one after another, that find nothing better: the search ends
CHANGES = 3  # parameters that a restart changes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a plan; ``status`` other than ok: it has no time, for ``reason``."""

    status: str
    reason: str = ""
    time_us: float = math.nan
    estimate_us: float = math.nan
    bound_us: float = math.nan

    @property
    def ran(self) -> bool:
        """Whether it has a time."""
        return self.status == "ok"


class Simulate(Protocol):
    """What simulates plans, in any order."""

    def __call__(self, plans: Sequence[Plan]) -> Iterator[tuple[int, Outcome]]:
        """Yield the number of a plan and its outcome, as they end."""


Descent = Generator[list["Plan"], None, "Plan"]


@dataclass(slots=True)
class Search:
    """A search and what it has tried so far, in order.

    ``budget``: the most plans that are simulated; ``ended``: why the search is over, empty before.
    """

    space: Space
    simulate: Simulate
    budget: int
    seed: int = 0
    tried: dict[Plan, Outcome] = field(default_factory=dict)
    ended: str = ""
    # parameters that have changed a time, of each scheme that was descended from
    felt: dict[str, set[str]] = field(default_factory=dict)

    def best(self) -> Plan | None:
        """Return the fastest plan: of equally fast ones that with the fewest settings, then the first."""
        ran = [plan for plan, outcome in self.tried.items() if outcome.ran]
        return min(ran, key=self.rank, default=None)

    def rank(self, plan: Plan) -> tuple[float, int]:
        """Return what plans are sorted by: time, then number of settings; a plan without a time is last."""
        outcome = self.tried.get(plan)
        return (outcome.time_us if outcome and outcome.ran else math.inf, len(plan.values))

    def run(self) -> None:
        """Search until the budget is spent or no neighbour of the best plans is better."""
        if not self._try(list(dict.fromkeys(self.space.first()))):
            return
        live = [self._descend(start, self._draw(number)) for number, start in enumerate(self._starts())]
        number, fruitless = len(live), 0
        while fruitless < RESTARTS:
            if not live:
                changed = self._changed(self._draw(number))
                if changed is None:
                    break
                live = [self._descend(changed, self._draw(number + 1))]
                number, fruitless = number + 2, fruitless + 1
            before = self.best()
            asked = {descent: plans for descent in live if (plans := next(descent, None)) is not None}
            live = list(asked)
            if not self._try(list(dict.fromkeys(plan for plans in asked.values() for plan in plans))):
                return
            fruitless = 0 if self.best() != before else fruitless
        self.ended = "no neighbour of the best plans is better"

    def _draw(self, number: int) -> random.Random:
        return random.Random(f"{self.seed}:{number}")

    def _try(self, plans: Sequence[Plan]) -> bool:
        """Simulate those of the plans that are new; return whether the budget had room for all."""
        new = [plan for plan in plans if plan not in self.tried]
        room = self.budget - len(self.tried)
        found: dict[int, Outcome] = {}
        try:
            for number, outcome in self.simulate(new[:room]):
                found[number] = outcome
        finally:  # what was found before Ctrl-C counts; the order is not that in which runs ended
            self.tried.update((plan, found[number]) for number, plan in enumerate(new) if number in found)
        if len(new) > room:
            self.ended = "the budget is spent"
        return len(new) <= room

    def _starts(self) -> list[Plan]:
        """Return the best plan of each of the best few schemes."""
        best: dict[str, Plan] = {}
        for plan in sorted((p for p, o in self.tried.items() if o.ran), key=self.rank):
            best.setdefault(plan.base, plan)
        return list(best.values())[:FEW]

    def _descend(self, here: Plan, draw: random.Random) -> Descent:
        """Yield plans to try, a parameter at a time, and move to the best; end where none is better.

        Later descents of a scheme leave out the parameters that have changed no time in earlier ones.
        """
        yield [here]
        paths, moved = self.space.paths(here), True
        if here.base in self.felt:
            paths = [path for path in paths if path in self.felt[here.base]]
        felt = self.felt.setdefault(here.base, set())
        while moved:
            moved = False
            for path in draw.sample(paths, len(paths)):
                around = self.space.around(here, path)
                yield around
                if len({self.tried[plan].time_us for plan in (here, *around) if self.tried[plan].ran}) > 1:
                    felt.add(path)
                nearest = min((here, *around), key=self.rank)
                if self.rank(nearest) < self.rank(here):
                    here, moved = nearest, True
        return here

    def _changed(self, draw: random.Random) -> Plan | None:
        """Return a start with some parameters changed by chance, one that is new.

        None: a number of draws has found none.
        """
        starts = self._starts()
        for _ in range(100 if starts else 0):
            made = draw.choice(starts)
            for path in draw.sample(paths := self.space.paths(made), min(CHANGES, len(paths))):
                made = draw.choice(self.space.around(made, path) or [made])
            if made not in self.tried:
                return made
        return None
