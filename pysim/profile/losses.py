"""What was left out of a profile, or read in another way than it was written: one counter a reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """One reason: how often it was met, and the first case."""

    what: str
    count: int
    detail: str


class Losses:
    """Counts reasons; nothing that a reader changes or leaves out is silent."""

    def __init__(self) -> None:
        self._rows: dict[str, list[int | str]] = {}

    def add(self, what: str, detail: str = "", count: int = 1) -> None:
        """Count a reason; the detail of its first case is kept."""
        if not count:
            return
        row = self._rows.setdefault(what, [0, detail])
        row[0] = int(row[0]) + count

    def rows(self) -> list[Loss]:
        """Return the reasons in the order in which they were met."""
        return [Loss(what, int(row[0]), str(row[1])) for what, row in self._rows.items()]
