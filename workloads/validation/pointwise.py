"""Memory-bound operations that PyTorch launched on an H200, in SM cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysim import Config, Job, Memory
from pysim.errors import ConfigError
from pysim.workloads.library.captured import captured
from pysim.workloads.library.memory.memory_bound import launch
from pysim.workloads.library.memory.pointwise_loops import CHUNK, CHUNKS

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .table import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

# names of the table, where the functions have others
NAMES = {
    "layernorm": "layer_norm",
    "layernorm_backward": "layer_norm_backward",
    "dropout_p0.1": "dropout",
    "adamw_fused_step": "adamw",
}
# rows, and calls back to back of so many, of which the last is steady: up to 4096 rows some of the data
# stays in L2; above 8192 the second call is within 0.4 % of the fourth
CALLS = ((4096, 5), (8192, 3), (1 << 62, 2))
# of more elements a part and half of it are simulated; the half moves so many bytes, 1.6 times the L2, but
# has at most so many rows of the slow ones
EXACT, HALF_BYTES = 1 << 24, 96 << 20
SLOW = {("transpose_copy", "fp32"): 8192, ("transpose_copy", "bf16"): 8192, ("embedding", "fp32"): 8192}
COPY_LIMIT = 1 << 29  # bytes from which a copy takes a path that has no template
QUICK_ROWS, QUICK_ONE_IN = 1024, 3
SIZES = ((1 << 16, "to 2^16"), (1 << 19, "to 2^19"), (1 << 22, "to 2^22"), (1 << 62, "above"))


def _cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row in rows:
        op, dtype = row.text("op"), row.text("dtype")
        high, wide = (int(row.amount(name)) for name in ("rows", "cols"))
        moved = row.amount("bytes_counted")
        if (op == "transpose_copy" and high == 1) or (op == "copy" and moved >= 2 * COPY_LIMIT):
            continue
        shape = f"{op} {high}x{wide}"
        time, clock = row.number("time_us_median"), row.number("sm_clock_mhz_median")
        made.append(
            Case(
                case=f"{dtype} {shape}",
                group=op,
                mode="warm",
                key=shape,
                kind=next(name for most, name in SIZES if high * wide <= most),
                scheme="graph",
                task=(op, str(high), str(wide), dtype, row.text("sm_clock_mhz_median"), f"{moved:.0f}"),
                part="warm",
                measured_us=time,
                measured_cycles=time * clock,
                nbytes=moved,
                quick=high <= QUICK_ROWS and thinned(shape, QUICK_ONE_IN),
            )
        )
    return unique(made)


def _run(config: Config, op: str, rows: str, cols: str, dtype: str, clock: str, moved: str) -> Outcome:
    """Simulate calls back to back on the same buffers, at the SM clock that the row was measured at."""
    share = float(clock) / config.number("gpu.clock")
    config = config.replaced({"sim.clock_share": min(1.0, share)})
    name, high, wide = NAMES.get(op, op), int(rows), int(cols)
    if name == "adamw" and high * wide > CHUNK * CHUNKS:
        return _batches(config, high * wide, dtype)
    half = 1 << (HALF_BYTES * high // int(moved) - 1).bit_length()  # rows, a power of two as the rows are
    half = min(half, SLOW.get((op, dtype), half))
    if high * wide <= EXACT or high <= 2 * half:
        return _period(config, name, high, wide, dtype, high)[0]
    whole, times = _period(config, name, 2 * half, wide, dtype, high)
    _, less = _period(config, name, half, wide, dtype, high)
    # kernels after the second add partial sums, whose number does not follow the rows
    grown = (high - 2 * half) / half * float((times[:2] - less[:2]).sum())
    return _at(whole, whole.times_us["warm"] + grown, f"(sampled) {2 * half} and {half} rows")


def _at(outcome: Outcome, time_us: float, detail: str) -> Outcome:
    """Return the outcome of a part as that of the whole, which takes ``time_us``."""
    cycles = outcome.cycles["warm"] / outcome.times_us["warm"] * time_us
    return Outcome({"warm": time_us}, {"warm": cycles}, detail)


def _period(
    config: Config, op: str, rows: int, cols: int, dtype: str, decided_by: int
) -> tuple[Outcome, NDArray[np.float64]]:
    """Return the outcome of an operation on ``rows``, and the time (us) of each kernel of its period.

    Kernels are those that ``decided_by`` rows take.
    """
    kernels = launch(op, rows, cols, dtype, Memory(), decided_by).kernels
    calls = next(calls for most, calls in CALLS if rows <= most)
    tables = tables_of(config, Job(op, captured(list(kernels) * calls)), "graph")
    ends = np.asarray(tables["kernels"]["complete_us"], np.float64)
    times = np.diff(ends[-1 - len(kernels) :])
    outcome = outcome_of(tables, {"warm": float(times.sum())})
    return outcome, times


def _batches(config: Config, elements: int, dtype: str) -> Outcome:
    """Return the time of a fused optimiser step of many launches: of one full launch and of the last one."""
    full = CHUNK * CHUNKS
    more, rest = divmod(elements, full)
    kernels = launch("adamw", 1, full + rest, dtype, Memory()).kernels
    tables = tables_of(config, Job("adamw", captured(list(kernels) * 2)), "graph")
    ends = tables["kernels"]["complete_us"]
    steps = [float(ends[i] - ends[i - 1]) for i in range(len(kernels), 2 * len(kernels))]
    time = sum(steps) + (more - 1) * steps[0]
    return _at(outcome_of(tables, {"warm": time}), time, f"(sampled) {len(kernels)} of {more + 1} launches")


def _baselines(cases: Sequence[Case]) -> list[Baseline]:
    if not cases:
        raise ConfigError("no case")
    one = roofline_by(cases, "roofline", lambda case: "all")
    return [one, roofline_by(cases, "a roofline an operation", lambda case: case.group)]


POINTWISE = Suite(
    name="h200-library-pointwise",
    doc="element-wise operations, reductions, softmax, LayerNorm, AdamW and copies of PyTorch on an H200",
    gpu="h200",
    file="h200_library_pointwise.csv",
    columns=("op", "rows", "cols", "dtype", "bytes_counted", "time_us_median", "sm_clock_mhz_median"),
    cases=_cases,
    run=_run,
    baselines=_baselines,
    note="the period of calls in a graph on the same buffers, so that L2 holds what fits; above 2^24 elements"
    " parts are simulated; transposes of one row (no kernel) and copies from 512 MiB on are left out; errors"
    " are of SM cycles at the row's own clock",
)
