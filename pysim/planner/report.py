"""What a search has found, as text and as JSON."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .choices import BASE, COMPARED

if TYPE_CHECKING:
    from pysim.program.job import Job

    from .runs import Case
    from .search import Outcome, Search
    from .space import Plan

_HEADS = ("plan", "time", "speedup", "of the gap", "over bound", "as fast")


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else math.nan


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Report:
    """A search of a case; ``given``: the options that make the machine, as words of a command line."""

    case: Case
    job: Job
    search: Search
    given: tuple[str, ...]

    @property
    def stream_us(self) -> float:
        """Time of stream order."""
        return self.search.tried[self.search.space.plan(BASE, {})].time_us

    def command(self, plan: Plan) -> str:
        """Return the command line that simulates a plan."""
        words = ["pysim", "run", self.case.workload, *self.given, "--schemes", plan.scheme, *plan.words()]
        return shlex.join(words)

    def ranked(self) -> list[Plan]:
        """Return the plans that ran, the fastest first."""
        return sorted((p for p, o in self.search.tried.items() if o.ran), key=self.search.rank)

    def refused(self) -> dict[str, list[Plan]]:
        """Return the plans that did not run, by reason."""
        made: dict[str, list[Plan]] = {}
        for plan, outcome in self.search.tried.items():
            if not outcome.ran:
                made.setdefault(outcome.reason, []).append(plan)
        return made

    def _row(self, plan: Plan, outcome: Outcome) -> dict[str, Any]:
        """Return the figures of a plan; gap and bound are those of its own run."""
        time, stream = outcome.time_us, self.stream_us
        return {
            "plan": str(plan),
            "scheme": plan.scheme,
            "settings": plan.settings,
            "status": outcome.status,
            "reason": outcome.reason,
            "time_us": _finite(time),
            "speedup": _finite(_share(stream, time)),
            "gap_won": _finite(_share(stream - time, stream - outcome.estimate_us)),
            "estimate_us": _finite(outcome.estimate_us),
            "bound_us": _finite(outcome.bound_us),
            "over_bound": _finite(_share(time, outcome.bound_us)),
        }

    def distance(self) -> dict[str, dict[str, Any]]:
        """Return how far schemes are from the best plan: as they are, and with what the search chose."""
        best = self.search.best()
        made: dict[str, dict[str, Any]] = {}
        if best is None:
            return made
        least = self.search.tried[best].time_us
        for name in COMPARED:
            mine = [plan for plan in self.ranked() if plan.base == name]
            if not mine:
                continue
            plain = self.search.tried.get(self.search.space.plan(name, {}))
            times = {"": plain.time_us if plain else math.nan, "chosen_": self.search.tried[mine[0]].time_us}
            made[name] = {f"{key}time_us": _finite(time) for key, time in times.items()}
            made[name] |= {f"{key}slower": _finite(time / least - 1) for key, time in times.items()}
            made[name]["chosen"] = str(mine[0])
        return made

    def as_dict(self) -> dict[str, Any]:
        """Return everything, for ``--json``."""
        best, tried = self.search.best(), self.search.tried
        lost = sum(not outcome.ran for outcome in tried.values())
        return {
            "workload": self.case.workload,
            "gpu": self.case.gpu,
            "kernels": len(self.job.kernels),
            "tbs": sum(kernel.tbs for kernel in self.job.kernels),
            "budget": self.search.budget,
            "seed": self.search.seed,
            "stream_us": self.stream_us,
            "simulated": len(tried) - lost,
            "refused": lost,
            "ended": self.search.ended,
            "best": None if best is None else self._row(best, tried[best]) | {"command": self.command(best)},
            "distance": self.distance(),
            "tried": [self._row(plan, outcome) for plan, outcome in tried.items()],
        }

    def text(self, rows: int) -> str:
        """Return the report; ``rows``: of the fastest plans. Schemes as they are have a row in any case."""
        lost = sum(map(len, self.refused().values()))
        tbs = sum(kernel.tbs for kernel in self.job.kernels)
        size = f"{len(self.job.kernels)} kernels, {tbs:,} TBs"
        lines = [
            f"workload  {self.case.workload}: {size}, on {self.case.gpu}",
            f"search    {len(self.search.tried) - lost} plans simulated, {lost} refused; budget"
            f" {self.search.budget}, seed {self.search.seed}; {self.search.ended}",
            "",
            *self._table(rows),
            *self._refusals(),
            *self._ending(),
        ]
        return "\n".join(lines)

    def _table(self, rows: int) -> list[str]:
        alike: dict[tuple[str, float], list[Plan]] = {}
        for plan in self.ranked():
            alike.setdefault((plan.base, self.search.tried[plan].time_us), []).append(plan)
        shown = [plans for at, plans in enumerate(alike.values()) if at < rows or not plans[0].values]
        cells = [_HEADS, *(self._cells(plans) for plans in shown)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADS))]
        lines = []
        for row in cells:
            rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
            lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
        if left := sum(map(len, alike.values())) - sum(map(len, shown)):
            lines.append(f"... and {left} slower plans (--rows N, --json)")
        return lines

    def _cells(self, plans: Sequence[Plan]) -> tuple[str, ...]:
        """Return the cells of plans of one scheme and time: of the one with the fewest settings."""
        row = self._row(plans[0], self.search.tried[plans[0]])
        gap = "" if row["gap_won"] is None else f"{row['gap_won']:.3f}"
        over = "" if row["over_bound"] is None else f"{row['over_bound']:.2f}x"
        more = f"+{len(plans) - 1}" if len(plans) > 1 else ""
        return (str(plans[0]), f"{row['time_us']:,.2f} us", f"{row['speedup']:.2f}x", gap, over, more)

    def _refusals(self) -> list[str]:
        found = self.refused()
        lines = ["", "refused"] if found else []
        for reason, plans in found.items():
            more = f" and {len(plans) - 3} more" if len(plans) > 3 else ""
            lines.append(f"  {', '.join(map(str, plans[:3]))}{more}: {reason}")
        return lines

    def _ending(self) -> list[str]:
        best = self.search.best()
        if best is None:
            return []
        found = self.search.tried[best]
        lines = [
            "",
            f"best      {best}: {found.time_us:,.2f} us; estimate {found.estimate_us:,.2f} us, bound"
            f" {found.bound_us:,.2f} us",
            f"again     {self.command(best)}",
        ]
        for name, row in self.distance().items():
            slower, chosen = row["slower"], row["chosen"]
            said = "not tried" if slower is None else f"{slower:.1%} slower than the best plan"
            if chosen == str(best):
                said += ", which is of this scheme" if slower else ""
            elif chosen != name:
                said += f"; {chosen}: {row['chosen_slower']:.1%}"
            lines.append(f"{name:<10}{'is the best plan' if slower == 0 else said}")
        return lines
