"""Equal periods of a job, such as the layers of a network, of which it holds only some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pysim.errors import WorkloadError

T = TypeVar("T")

LEAST_KEPT = 3  # a first one, one in steady state, and one after those that are left out


@dataclass(frozen=True, slots=True)
class Periods:
    """A run of ``whole`` equal periods: from kernel ``first`` on a job holds ``kept`` of ``period`` kernels.

    The periods left out come before the last one; the one before them stands for them. ``same_code``: their
    kernels run the same programs; else they have only names, grids and resources in common, as launches over
    lists of tensors have. Raises WorkloadError for fewer than ``LEAST_KEPT`` periods.
    """

    first: int
    period: int
    kept: int
    whole: int
    same_code: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no run of equal periods."""
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
    def left_out(self) -> int:
        """Kernels left out."""
        return self.skipped * self.period

    @property
    def cut(self) -> int:
        """Kernel before which periods are left out, in the job that is held."""
        return self.first + (self.kept - 1) * self.period

    @property
    def end(self) -> int:
        """The kernel after the last period, in the job that is held."""
        return self.first + self.kept * self.period

    def holds(self, kernel: int) -> bool:
        """Whether a kernel of the job that is held is in one of the periods."""
        return self.first <= kernel < self.end


@dataclass(frozen=True, slots=True)
class Shortened:
    """The runs of equal periods of which a job holds only some, in launch order.

    The engine extrapolates to the whole job (``pysim.engine.lengthened``). Raises WorkloadError for none, and
    for runs that overlap.
    """

    runs: tuple[Periods, ...]

    def __post_init__(self) -> None:
        """Refuse runs out of order."""
        apart = all(a.end <= b.first for a, b in zip(self.runs, self.runs[1:], strict=False))
        if not self.runs or not apart:
            raise WorkloadError("shortened job: runs of periods: must be one or more, and not overlap")

    @property
    def left_out(self) -> int:
        """Kernels left out."""
        return sum(run.left_out for run in self.runs)

    def whole(self, held: Sequence[T]) -> list[T]:
        """Return what belongs to each kernel of the whole job, from what does to each that is held.

        Kernels that are left out are those of the period before them.
        """
        made: list[T] = []
        at = 0
        for run in self.runs:
            made += held[at : run.cut]
            made += list(held[run.cut - run.period : run.cut]) * run.skipped
            at = run.cut
        return [*made, *held[at:]]

    def number(self, kernel: int) -> int:
        """Return the number in the whole job of a kernel of the job that is held."""
        return kernel + sum(run.left_out for run in self.runs if kernel >= run.cut)

    def run_of(self, kernel: int) -> Periods | None:
        """Return the run that a kernel of the job that is held is in."""
        return next((run for run in self.runs if run.holds(kernel)), None)
