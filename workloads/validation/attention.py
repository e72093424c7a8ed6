"""Attention that PyTorch launched on an H200 through FlashAttention-2 and cuDNN, in SM cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pysim import Config, Job, Memory
from pysim.workloads.library.attentions.attention import Backend, attention
from pysim.workloads.library.attentions.attention_problem import ITEM, Attention
from pysim.workloads.library.attentions.attention_sampling import sampled
from pysim.workloads.library.memset import WAIT

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, tables_of, thinned, unique
from .table import Row

SHORT_US = 20.0  # below it the period in a graph holds host time, and the sum of the kernels' times counts
LAUNCHES = 3  # of a small call, back to back: the period of the last is steady
# Host time between two replays of a graph, which shows if the GPU has less to do than the host: 7.8 us in
# backward rows with replays below 60 us, -0.5 us above.
REPLAY_US, HIDDEN_US = 7.8, 60.0
QUICK_US, QUICK_BACKWARD_US, QUICK_ONE_IN = 24.0, 60.0, 6
_SIZES = ("batch", "heads", "kv_heads", "q", "k", "head_dim", "causal")
_TIMES = ("time_us_median", "sm_clock_mhz_median", "all_kernels_us", "kernel_sm_clock_mhz")
_TOLD = (*_SIZES, "backend", "pass", "launches_per_repeat")


def told_problem(told: dict[str, str]) -> Attention:
    """Return the problem of a row."""
    batch, heads, kv_heads, q, k, d, causal = (int(told[name]) for name in _SIZES)
    return Attention(batch, heads, kv_heads, q, k, d, bool(causal))


def _cases(rows: Sequence[Row]) -> list[Case]:
    made = []
    for row in rows:
        told = {name: row.text(name) for name in _TOLD}
        problem, backward = told_problem(told), told["pass"] == "backward"
        time, clock, busy, busy_clock = (row.number(name) for name in _TIMES)
        if time < SHORT_US:
            time, clock, told["launches_per_repeat"] = busy, busy_clock, "0"
        shape = ",".join(f"{name}={told[name]}" for name in _SIZES)
        rows_moved = problem.planes * problem.q * 2 + problem.batch * problem.kv_heads * problem.k * 2
        group = f"{told['backend']} {'decode' if problem.q == 1 else told['pass']}"
        made.append(
            Case(
                case=f"{row.text('id')}:{group} {shape} {row.text('dtype')}",
                group=group,
                mode="warm",
                key=shape,
                kind=f"d{problem.d}{' causal' if problem.causal else ''}",
                scheme="graph",
                task=(*told.values(), f"{clock:g}"),
                part="warm",
                measured_us=time,
                measured_cycles=time * clock,
                flops=problem.flops(backward=backward),
                nbytes=rows_moved * problem.d * ITEM * (2.5 if backward else 1.0),
                quick=time < (QUICK_BACKWARD_US if backward else QUICK_US) and thinned(shape, QUICK_ONE_IN),
            )
        )
    return unique(made)


def _attention(config: Config, *values: str) -> Outcome:
    """Simulate launches back to back at the SM clock that the row was measured at."""
    told = dict(zip(_TOLD, values, strict=False))
    share = float(values[-1]) / config.number("gpu.clock")
    config = config.replaced({"gpu.clock_tensor": 1.0, "sim.clock_share": min(1.0, share)})
    backend, backward = cast("Backend", told["backend"]), told["pass"] == "backward"
    sample = sampled(told_problem(told), backend, backward=backward)
    clocks = []

    def simulate(problem: Attention) -> float:
        kernels = attention(problem, Memory(), backend=backend, backward=backward).kernels
        launches = LAUNCHES if sample.small else 1
        tables = tables_of(config, Job("attention", list(kernels) * launches), "graph")
        ends, run = tables["kernels"]["complete_us"], tables["runs"][0]
        clocks.append(float(run["cycles"] / run["time_us"]))
        begin = ends[-1 - len(kernels)] if launches > 1 else tables["kernels"]["first_dispatch_us"][0]
        return float(ends[-1] - begin)

    time, replayed = sample.time(simulate), int(told["launches_per_repeat"])
    if not replayed and backend == "cudnn":
        time -= WAIT / clocks[-1]  # the duration of a memset does not hold what the next kernel waits for
    if 0 < replayed * time < HIDDEN_US:
        time += REPLAY_US / replayed
    detail = "" if sample.whole else f"(sampled) {sample.planes} planes, lengths {sample.lengths}"
    return Outcome({"warm": time}, {"warm": time * clocks[-1]}, detail)


def _baselines(cases: Sequence[Case]) -> list[Baseline]:
    return [roofline_by(cases, "roofline", lambda case: case.group)]


ATTENTION = Suite(
    name="h200-library-attention",
    doc="attention of PyTorch on an H200: FlashAttention-2 and cuDNN, forward and backward; one query",
    gpu="h200",
    file="h200_library_attention.csv",
    columns=("id", "dtype", *_TOLD, *_TIMES),
    cases=_cases,
    run=_attention,
    baselines=_baselines,
    note="below 20 us the sum of the kernels' durations counts, else the period in a graph, to which host"
    " time between replays of less than 60 us is added; errors are of SM cycles at the row's own clock; one"
    " query is FlashAttention-2's alone",
)
