"""Where the time of a process goes: for the table ``host``, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PHASES = ("setup", "convert", "load", "simulate", "write")


def since_start() -> float:
    """Return the seconds since this process began; 0 where the system does not tell."""
    try:
        # fields of /proc/self/stat after the name, which may hold blanks: the 20th is the start in ticks
        ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / 100)
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


class Clock:
    """Counts seconds by phase; what is in no phase is ``setup``.

    >>> clock = Clock()
    >>> with clock.phase("load"):
    ...     pass
    >>> sorted(clock.lap()) == sorted(f"{phase}_seconds" for phase in PHASES)
    True
    """

    def __init__(self, before: float = 0.0) -> None:
        """``before``: seconds that were spent already (:func:`since_start`)."""
        self._lap = time.perf_counter() - before
        self._spent = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what happens inside; phases do not hold each other."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._spent[name] += time.perf_counter() - begin

    def count(self, name: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self._spent[name] += seconds

    def lap(self, rest: str = "setup") -> dict[str, float]:
        """Return the seconds of each phase since the last lap; they add up to the time that has passed."""
        now = time.perf_counter()
        spent, self._spent = self._spent, dict.fromkeys(PHASES, 0.0)
        spent[rest] += now - self._lap - sum(spent.values())
        self._lap = now
        return {f"{name}_seconds": seconds for name, seconds in spent.items()}
