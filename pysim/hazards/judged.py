"""The verdict on a placement of a user's: each pair of launches, and what the oracle says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .pdl import MOST_HAZARDS
from .places import AHEAD, LATEST

if TYPE_CHECKING:
    from .pdl import Hazard, PdlCheck
    from .plan import Row
    from .simulated import Simulated, Violation


@dataclass(slots=True)
class JudgedPair:
    """Two launches, of which the second may start before the first has ended.

    ``wait``, ``trigger``: where the second waits and the kernel before it triggers. ``proof``: what the
    oracle says, if it was ``asked``.
    """

    before: int
    after: int
    wait: str
    trigger: str
    hazards: list[Hazard] = field(default_factory=list)
    proof: Violation | None = None
    asked: bool = False


@dataclass(slots=True)
class Judged:
    """All neighbouring pairs that overlap, and other pairs with hazards; times in us.

    ``unforeseen``: what the oracle reports of a placement without hazards; ``clean``: it reports nothing.
    """

    pairs: list[JudgedPair]
    plain_us: float | None = None
    us: float | None = None
    unforeseen: str = ""
    clean: bool = False

    @property
    def cut(self) -> bool:
        """Whether there were so many hazards that those of later kernels were not looked for."""
        return len(self.hazards) >= MOST_HAZARDS

    @property
    def hazards(self) -> list[Hazard]:
        """All hazards, those of neighbours first."""
        return [hazard for pair in self.pairs for hazard in pair.hazards]


def judge(
    check: PdlCheck, rows: Sequence[Row], simulated: Simulated | None, most: int, prove: bool
) -> Judged:
    """Return the verdict on a placement.

    ``simulated``: what times it, if ``most`` is not 0, and what the oracle is asked with (``prove``), of
    ``most`` different pairs.
    """
    placed, places = check.placed(rows), check.rows_of(rows)
    found: dict[tuple[int, int], JudgedPair] = {}

    def pair(before: int, after: int) -> JudgedPair:
        wait = places[after].wait
        text = check.place_of(after, placed[after].waits) if wait in (LATEST, AHEAD) else str(wait)
        trigger = str(places[after - 1].trigger) if before == after - 1 else "(chain)"
        return found.setdefault((before, after), JudgedPair(before, after, text, trigger))

    for number, launch in enumerate(placed):
        if launch.early:
            pair(number - 1, number)
    for hazard in check.hazards(placed):
        pair(hazard.before, hazard.after).hazards.append(hazard)
    made = Judged(sorted(found.values(), key=lambda one: (one.after - one.before, one.after)))
    if simulated is None:
        return made
    if most:
        made.plain_us, made.us = simulated.plain_us(), simulated.time_us(placed)
    if prove and not made.hazards:
        violation = simulated.violation(placed)
        made.unforeseen, made.clean = (violation.text, False) if violation else ("", True)
    if prove:
        names = [kernel.name for kernel in check.job.kernels]
        first: dict[object, JudgedPair] = {}
        for one in made.pairs:
            if one.hazards:
                key = names[one.before], names[one.after], one.after - one.before
                first.setdefault(key, one)
        for one in list(first.values())[: most or 1]:
            one.proof = simulated.proof(check.only(placed, one.hazards[0]), one.before)
            one.asked = True
    return made
