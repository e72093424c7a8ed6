"""Equal periods of a job, such as the layers of a network, of which it holds only some."""

from __future__ import annotations

from dataclasses import dataclass

from pysim.errors import WorkloadError

LEAST_KEPT = 3  # a first one, one in steady state, and one after those that are left out


@dataclass(frozen=True, slots=True)
class Shortened:
    """What a job holds of ``whole`` equal periods: from kernel ``first`` on ``kept`` of ``period`` kernels.

    The periods left out come before the last one. The others stand for them: the engine extrapolates
    (``pysim.engine.lengthened``). Raises WorkloadError for fewer than ``LEAST_KEPT`` periods.
    """

    first: int
    period: int
    kept: int
    whole: int

    def __post_init__(self) -> None:
        """Refuse what is no job of equal periods."""
        if self.first < 0 or self.period < 1 or not LEAST_KEPT <= self.kept < self.whole:
            raise WorkloadError(
                f"shortened job: {self.kept} of {self.whole} periods of {self.period} kernels from kernel"
                f" {self.first} on: must be at least {LEAST_KEPT}, and fewer than all"
            )

    @property
    def skipped(self) -> int:
        """Periods left out."""
        return self.whole - self.kept

    @property
    def cut(self) -> int:
        """Kernel before which periods are left out, in the job that is held."""
        return self.first + (self.kept - 1) * self.period

    def number(self, kernel: int) -> int:
        """Return the number in the whole job of a kernel of the job that is held."""
        return kernel + (self.skipped * self.period if kernel >= self.cut else 0)

    def inside(self, kernel: int) -> bool:
        """Whether a kernel of the job that is held is in one of the periods."""
        return self.first <= kernel < self.first + self.kept * self.period
