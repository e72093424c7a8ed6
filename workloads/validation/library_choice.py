"""``python -m pysim.workloads.validation.library_choice [US]``: times of chosen kernels and of launched ones.

For the GEMMs whose alternatives were timed (``h200_gemm_alternatives.csv``) the kernel that cuBLAS launched
on an H200 and the one that is chosen without the rows of the GEMM's fold (``choices/accuracy.py``) are
simulated, both at the SM clock of the launched one. US: leave out GEMMs that take longer (us, default 300),
which are slow to simulate.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean, median

from pysim import Config, Job, Memory
from pysim.errors import WorkloadError
from pysim.machine.devices import device
from pysim.workloads.library.choices.accuracy import alternatives, rule, sweep, without
from pysim.workloads.library.choices.choice import DTYPES, Problem
from pysim.workloads.library.gemms.launches import Launch, launches_of, predicted

from .cases import tables_of
from .library import clocked, launch_of, problem_of
from .library_sampling import sampled
from .table import packaged

LAUNCHES = 3  # back to back: the period of the last is steady
MOST_US = 300.0


@dataclass(frozen=True, slots=True)
class Compared:
    """A GEMM: the kernel that was launched, the chosen one, and by how much the latter is slower (share)."""

    problem: Problem
    real: Launch
    chosen: Launch
    excess: float

    @property
    def same(self) -> bool:
        """Whether both are the same kernel, with the same grid and parts of k."""
        return _kernel(self.real) == _kernel(self.chosen)


def _kernel(launch: Launch) -> tuple[str, tuple[int, int, int], int]:
    return launch.name, launch.grid, launch.split_k


def _time(config: Config, launch: Launch, problem: Problem) -> float:
    """Return the period of launches back to back, us."""

    def time_of(some: Problem) -> float:
        kernels, _ = launches_of(launch, some, Memory())
        job = Job("gemm", list(kernels) * LAUNCHES)
        ends = tables_of(config, job, "graph")["kernels"]["complete_us"]
        return float(ends[-1] - ends[-1 - len(kernels)])

    return sampled(launch, problem, time_of)[0]


def compared(told: Mapping[str, str], config: Config) -> Compared:
    """Return a row of the sweep beside what is chosen for it without its fold."""
    problem = problem_of(told)
    fold = next(row.fold for row in sweep() if row.problem == problem)
    real, chosen = launch_of(told, problem), predicted(rule(problem, without(fold))[0], problem)
    if _kernel(real) == _kernel(chosen):
        return Compared(problem, real, chosen, 0.0)
    at = clocked(config, told)
    return Compared(problem, real, chosen, _time(at, chosen, problem) / _time(at, real, problem) - 1)


def main(most_us: float = MOST_US) -> None:
    """Print a line for each GEMM that gets another kernel, then excess by type (absolute; bias is signed)."""
    config = Config.resolve(device("h200"), {})
    timed = set(alternatives())
    found: list[Compared] = []
    long = 0
    for row in csv.DictReader(io.StringIO(packaged("h200_library_gemm.csv"))):
        problem = problem_of(row)
        if problem not in timed:
            continue
        if float(row["time_us_median"]) > most_us:
            long += 1
            continue
        try:
            it = compared(row, config)
        except WorkloadError as error:
            print(f"row {row['id']}: {error}", file=sys.stderr)
            continue
        found.append(it)
        if not it.same:
            sizes = f"{problem.dtype} {row['trans']} {problem.m} x {problem.n} x {problem.k}"
            print(f"{sizes:<32}{it.excess:+7.1%}  {it.chosen.name[:60]} for {it.real.name[:60]}", flush=True)
    print(f"{'type':<6}{'shapes':>7}{'same':>6}{'median':>8}{'mean':>8}{'worst':>8}{'bias':>8}")
    for name in (*DTYPES, "all"):
        some = [it for it in found if name in (it.problem.dtype, "all")]
        if not some:
            continue
        off = [abs(it.excess) for it in some]
        numbers = (median(off), mean(off), max(off), mean(it.excess for it in some))
        cells = "".join(f"{number:8.1%}" for number in numbers)
        print(f"{name:<6}{len(some):>7}{sum(it.same for it in some):>6}{cells}")
    print(f"{long} of {len(timed)} GEMMs take more than {most_us:g} us and were left out")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
