"""Linear layers and batched GEMMs that cuBLAS launched on an H200, in SM cycles, with the kernel told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from pysim import Config, Job, Memory
from pysim.errors import ConfigError
from pysim.workloads.library.gemms.gemm_launches import gemm_launches
from pysim.workloads.library.gemms.hopper_epilogue import Epilogue
from pysim.workloads.library.gemms.nvjet_gemm import nvjet_gemm

from .cases import Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .library import ITEM, LAUNCHES, TOLD, clocked, problem_of, rooflines
from .table import Row

QUICK_US, QUICK_ONE_IN = 40.0, 12
EPILOGUES: tuple[Epilogue, ...] = get_args(Epilogue)
_TOLD = (*TOLD, "batch", "kind")


def _cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row in rows:
        dtype, kind, layout = row.text("dtype"), row.text("kind"), row.text("trans")
        m, n, k = (row.amount(name) for name in "mnk")
        batch = row.amount("batch")
        shape = f"{layout} {m:.0f}x{n:.0f}x{k:.0f}" + (f" of {batch:.0f}" if batch > 1 else "")
        time, clock = row.number("time_us_median"), row.number("sm_clock_mhz_median")
        made.append(
            Case(
                case=f"{row.text('id')}:{kind} {dtype} {shape}",
                group=kind,
                mode="warm",
                key=shape,
                kind=row.text("kernel").split("_")[3],
                scheme="graph",
                task=tuple(row.text(name) for name in _TOLD),
                part="warm",
                measured_us=time,
                measured_cycles=time * clock,
                flops=2 * batch * m * n * k,
                nbytes=ITEM[dtype] * batch * (m * k + n * k + m * n),
                quick=time < QUICK_US and thinned(shape, QUICK_ONE_IN),
            )
        )
    return unique(made)


def _epilogue(kind: str) -> Epilogue:
    """Return the epilogue of a row; of a batched product none."""
    if kind == "bmm":
        return "none"
    for known in EPILOGUES:
        if kind == known:
            return known
    raise ConfigError(f"epilogue {kind}: there are {', '.join(EPILOGUES)}")


def _linear(config: Config, *values: str) -> Outcome:
    """Simulate launches back to back at the SM clock that the row was measured at."""
    told = dict(zip(_TOLD, values, strict=True))
    tbs = math.prod(int(told[f"grid_{axis}"]) for axis in "xyz")
    resources = int(told["registers_per_thread"]), int(told["shared_memory_B"])
    gemm = nvjet_gemm(told["kernel"], problem_of(told), tbs, *resources)
    kernels, _ = gemm_launches(replace(gemm, epilogue=_epilogue(told["kind"])), Memory())
    tables = tables_of(clocked(config, told), Job("linear", list(kernels) * LAUNCHES), "graph")
    ends = tables["kernels"]["complete_us"]
    return outcome_of(tables, {"warm": float(ends[-1] - ends[-1 - len(kernels)])})


LINEAR = Suite(
    name="h200-library-linear",
    doc="linear layers (bias, ReLU, GELU) and batched GEMMs of cuBLAS on an H200, as the sweep named them",
    gpu="h200",
    file="h200_library_linear.csv",
    columns=("id", "time_us_median", *_TOLD),
    cases=_cases,
    run=_linear,
    baselines=rooflines,
    note="the period of launches in a graph; a quarter of the measured shapes; rows of other kernels than"
    " nvjet are left out; errors are of SM cycles at the row's own clock",
)
