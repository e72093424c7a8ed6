"""GEMMs that cuBLAS launched on an H200, in SM cycles, with the kernel told as the sweep names it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pysim import Config, Job, Memory
from pysim.errors import ConfigError
from pysim.workloads.library.gemm_launches import gemm_launches
from pysim.workloads.library.hopper_gemm import HopperGemm, Split

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .table import Row

FAMILY = "nvjet"  # the one with a template so far
ITEM = {"fp16": 2, "bf16": 2}  # bytes of an element, of the types with a template so far
LAUNCHES = 3  # back to back: the period of the last is steady
QUICK_US, QUICK_ONE_IN = 40.0, 12
SPLITS: dict[str, Split] = {"coopA": "m", "coopB": "n"}


def _cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row in rows:
        dtype, sizes = row.text("dtype"), [row.amount(name) for name in "mnk"]
        if row.text("family") != FAMILY or dtype not in ITEM:
            continue
        m, n, k = sizes
        layout = row.text("trans")
        shape = f"{layout} {m:.0f}x{n:.0f}x{k:.0f}"
        time, clock = row.number("time_us_median"), row.number("sm_clock_mhz_median")
        made.append(
            Case(
                case=f"{row.text('id')}:{dtype} {shape}",
                group=dtype,
                mode="warm",
                key=shape,
                kind=row.text("kernel").split("_")[3],
                scheme="graph",
                task=tuple(row.text(name) for name in TOLD),
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
TOLD = (*_SIZES, "dtype", "trans", "kernel", "sm_clock_mhz_median")


def told_gemm(told: Mapping[str, str]) -> HopperGemm:
    """Return the GEMM of a row of the sweep, its kernel as the row names it."""
    size = {name: int(told[name]) for name in _SIZES}
    words = told["kernel"].split("_")
    return HopperGemm(
        m=size["m"],
        n=size["n"],
        k=size["k"],
        tile=(size["tile_m"], size["tile_n"]),
        stages=size["stages"],
        cluster=(size["cluster_m"], size["cluster_n"]),
        tbs=size["grid_x"] * size["grid_y"] * size["grid_z"],
        split_k=size["split_k"],
        split=next((SPLITS[word] for word in words if word in SPLITS), "none"),
        n_fast="h" in words,
        item=ITEM[told["dtype"]],
        smem=size["shared_memory_B"],
        registers=size["registers_per_thread"],
        trans_a=told["trans"][0] == "T",
        trans_b=told["trans"][1] == "T",
    )


def clocked(config: Config, told: Mapping[str, str]) -> Config:
    """Return the configuration at the SM clock of a row."""
    share = float(told["sm_clock_mhz_median"]) / config.number("gpu.clock")
    return config.replaced({"gpu.clock_tensor": 1.0, "sim.clock_share": min(1.0, share)})


def _gemm(config: Config, *values: str) -> Outcome:
    """Simulate launches back to back at the SM clock that the row was measured at."""
    told = dict(zip(TOLD, values, strict=True))
    kernels, _ = gemm_launches(told_gemm(told), Memory())
    tables = tables_of(clocked(config, told), Job("gemm", list(kernels) * LAUNCHES), "graph")
    ends = tables["kernels"]["complete_us"]
    return outcome_of(tables, {"warm": float(ends[-1] - ends[-1 - len(kernels)])})


def rooflines(cases: Sequence[Case]) -> list[Baseline]:
    """Return a roofline of three constants for each group."""
    if not cases:
        raise ConfigError("no case")
    return [roofline_by(cases, "roofline", lambda case: case.group)]


GEMM = Suite(
    name="h200-library-gemm",
    doc="GEMMs of cuBLAS on an H200, fp16 and bf16 kernels of Hopper, as the sweep named them",
    gpu="h200",
    file="h200_library_gemm.csv",
    columns=("id", "time_us_median", *TOLD),
    cases=_cases,
    run=_gemm,
    baselines=rooflines,
    note="the period of launches in a graph; rows of other kernels than nvjet, and of tf32 and fp32, are left"
    " out; errors are of SM cycles at the row's own clock",
)
