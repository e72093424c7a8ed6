"""GEMMs that cuBLAS launched on an H200, in SM cycles: kernels as the sweep names them, or predicted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pysim import Config, Job, Memory
from pysim.errors import ConfigError
from pysim.workloads.library.choices.choice import Problem
from pysim.workloads.library.choices.chooser import chosen
from pysim.workloads.library.gemms.launches import Launch, Reduction, launches_of, predicted

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .library_sampling import sampled
from .table import Row

FAMILY = "nvjet"
ITEM = {"fp16": 2, "bf16": 2, "tf32": 4, "fp32": 4}  # bytes of an element
SUM = "execute_split_k"  # kernels that add parts of k: rows that name one do not say what made the parts
CHOICES = TELL, PREDICT = "told", "predicted"
LAUNCHES = 3  # back to back: the period of the last is steady
QUICK_US, QUICK_ONE_IN = 40.0, 12


def _cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row in rows:
        dtype, sizes = row.text("dtype"), [row.amount(name) for name in "mnk"]
        m, n, k = sizes
        if SUM in row.text("kernel"):
            continue
        layout, family = row.text("trans"), row.text("family")
        shape = f"{layout} {m:.0f}x{n:.0f}x{k:.0f}"
        time, clock = row.number("time_us_median"), row.number(CLOCK)
        made.append(
            Case(
                case=f"{row.text('id')}:{dtype} {shape}",
                group=dtype,
                mode="warm",
                key=shape,
                kind=row.text("kernel").split("_")[3] if family == FAMILY else family,
                scheme="graph",
                task=(*(row.text(name) for name in _COLUMNS), TELL),
                part="warm",
                measured_us=time,
                measured_cycles=time * clock,
                flops=2 * m * n * k,
                nbytes=ITEM[dtype] * (m * k + n * k + m * n),
                quick=time < QUICK_US and thinned(shape, QUICK_ONE_IN),
            )
        )
    return unique(made)


_SIZES = (
    *("m", "n", "k", "tile_m", "tile_n", "stages", "cluster_m", "cluster_n", "split_k"),
    *("grid_x", "grid_y", "grid_z", "registers_per_thread", "shared_memory_B"),
)
CLOCK = "sm_clock_mhz_median"
TOLD = (*_SIZES, "dtype", "trans", "kernel", CLOCK)
_COLUMNS = (*TOLD, "reduction", "memory_operations")


def problem_of(told: Mapping[str, str]) -> Problem:
    """Return the GEMM of a row."""
    m, n, k = (int(told[name]) for name in "mnk")
    return Problem(m, n, k, told["trans"][0], told["trans"][1], told["dtype"], int(told.get("batch", "1")))


def clocked(config: Config, told: Mapping[str, str]) -> Config:
    """Return the configuration at the SM clock of a row."""
    share = float(told[CLOCK]) / config.number("gpu.clock")
    return config.replaced({"gpu.clock_tensor": 1.0, "sim.clock_share": min(1.0, share)})


def launch_of(told: Mapping[str, str], problem: Problem) -> Launch:
    """Return the launch that a row names; parts of an ``xmma`` are added in turn where a counter is reset."""
    grid = tuple(int(told[f"grid_{axis}"]) for axis in "xyz")
    staged = told["kernel"].startswith(("sm80", "cutlass"))
    split = grid[2] if staged else int(told["split_k"])
    reduction: Reduction = "serial"
    if told["reduction"] == "kernel" or (
        told["kernel"].startswith("sm80") and told["memory_operations"] == "0"
    ):
        reduction = "kernel"
    return Launch(
        told["kernel"],
        (grid[0], grid[1], grid[2]),
        split,
        reduction if split > 1 else "",
        int(told["registers_per_thread"]),
        int(told["shared_memory_B"]),
    )


def _gemm(config: Config, *values: str) -> Outcome:
    """Simulate launches back to back at the SM clock that the row was measured at."""
    told = dict(zip((*_COLUMNS, "choice"), values, strict=True))
    problem = problem_of(told)
    launch = predicted(chosen(problem), problem) if told["choice"] == PREDICT else launch_of(told, problem)
    at = clocked(config, told)
    last: list[Mapping[str, NDArray[np.void]]] = []

    def time_of(some: Problem) -> float:
        kernels, _ = launches_of(launch, some, Memory())
        tables = tables_of(at, Job("gemm", list(kernels) * LAUNCHES), "graph")
        last[:] = [tables]
        ends = tables["kernels"]["complete_us"]
        return float(ends[-1] - ends[-1 - len(kernels)])

    time, how = sampled(launch, problem, time_of)
    return outcome_of(last[0], {"warm": time}, " ".join(filter(None, (launch.name, how))))


def rooflines(cases: Sequence[Case]) -> list[Baseline]:
    """Return a roofline of three constants for each group."""
    if not cases:
        raise ConfigError("no case")
    return [roofline_by(cases, "roofline", lambda case: case.group)]


GEMM = Suite(
    name="h200-library-gemm",
    doc="GEMMs of cuBLAS on an H200 in fp16, bf16, tf32 and fp32, as the sweep named them or as predicted",
    gpu="h200",
    file="h200_library_gemm.csv",
    columns=("id", "time_us_median", "family", *_COLUMNS),
    cases=_cases,
    run=_gemm,
    baselines=rooflines,
    note="the period of launches in a graph; errors are of SM cycles at the row's own clock; long rows of"
    " kernels for Turing and Ampere are extrapolated from few waves and k-steps (sampled); rows that name"
    " only the kernel of a sum are left out",
    choices=CHOICES,
)
