"""Recurrent passes of cuDNN on an H200: kernels as the sweep names them, time of a replayed CUDA graph.

The parts of a pass (``rnn_parts``) are simulated one by one; of its steps, which are alike, ``SHOWN`` forward
and backward. The others are added at the period of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from pysim import Config, Job
from pysim.errors import ConfigError, WorkloadError
from pysim.workloads.library.gemms.told import told_of
from pysim.workloads.library.recurrences.recurrent import ITEM, ROLES, Pass, Recurrent
from pysim.workloads.library.recurrences.rnn import check_pass, rnn_parts

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .library import CHOICES, PREDICT
from .table import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHOWN = 4
MOST_FLOPS = {"fp32": 60e9, "fp16": 500e9}  # of GEMMs of all steps: about 20 s
QUICK_US, QUICK_ONE_IN = 900.0, 6
_SHAPE = ("cell", "hidden", "batch", "timesteps", "dtype", "pass")
_TOLD = tuple(f"{role}_kernel" for role in ROLES)


def _cases(rows: Sequence[Row]) -> list[Case]:
    """Return the rows whose kernels have templates."""
    made = []
    for row in rows:
        told = tuple(row.text(name) for name in (*_SHAPE, *_TOLD))
        cell, dtype, direction = row.text("cell"), row.text("dtype"), row.text("pass")
        key = f"{cell} {row.text('hidden')} batch {row.text('batch')} x {row.text('timesteps')}"
        p = pass_of(told)
        try:
            check_pass(p)
        except WorkloadError:
            continue
        time = row.number("iter_us_graph_median")
        passes = 3 if direction == "forward_backward" else 1
        made.append(
            Case(
                case=f"{row.text('id')}:{dtype} {direction} {key}",
                group=dtype,
                mode=direction,
                key=key,
                kind=f"{dtype} {direction.partition('_')[2]} {cell}",
                scheme="graph",
                task=(*told, CHOICES[0]),
                part="pass",
                measured_us=time,
                flops=p.flops / p.steps,
                nbytes=passes * float(ITEM[dtype]) * (p.wide * p.hidden + 2 * p.batch * (p.hidden + p.wide)),
                steps=p.steps,
                quick=time < QUICK_US and thinned(key, QUICK_ONE_IN),
            )
        )
    return unique(made)


def pass_of(told: Sequence[str]) -> Recurrent:
    """Return the pass of a row: its shape, then the kernel of each role, empty where it has none."""
    cell, hidden, batch, steps, dtype, direction, *kernels = told
    if direction not in get_args(Pass):
        raise ConfigError(f"pass {direction[:40]!r}: must be one of {', '.join(get_args(Pass))}")
    roles = {role: told_of(text) for role, text in zip(ROLES, kernels, strict=True) if text}
    return Recurrent(cell, int(hidden), int(batch), int(steps), dtype, direction, roles)  # type: ignore[arg-type]


def _rnn(config: Config, *told: str) -> Outcome:
    """Simulate the parts of a pass: of its steps, and of what grows with their number, only some."""
    p = pass_of(told[:-1])
    if told[-1] == PREDICT:
        p = replace(p, kernels={})
    return simulated(config, p, "pass")


def simulated(config: Config, p: Recurrent, name_of: str) -> Outcome:
    """Simulate a pass, whose time is the part ``name_of`` of the outcome."""
    long, shown = _sampled(p)
    gap, total, tables = config.number("gpu.cp.graph_gap") / 1e3, 0.0, {}
    for name, part in rnn_parts(replace(p, steps=long), shown).items():
        tables = tables_of(config, part, "graph")
        time = part_us(tables["kernels"], part, p.steps)
        if name in ("begin", "end"):
            time *= p.steps / long
        total += time + (gap if total else 0.0)
    total += float(tables["kernels"]["ready_us"].min())  # the launch of the graph
    detail = f"{shown} steps of {p.steps}, GEMMs of all steps as long as of {long} (sampled)"
    return outcome_of(tables, {name_of: total}, "" if p.persistent else detail)


def _sampled(p: Recurrent) -> tuple[int, int]:
    """Return of how many steps a pass is made, and how many of them are shown."""
    if p.persistent:
        return p.steps, 0
    each, most = p.flops / 2 / p.steps, MOST_FLOPS[p.dtype]
    return min(p.steps, max(2, int(most / each))), SHOWN if SHOWN * each < most else 2


def _baselines(cases: Sequence[Case]) -> list[Baseline]:
    if not cases:
        raise ConfigError("no case")
    return [roofline_by(cases, "roofline", lambda case: case.group)]


def part_us(kernels: NDArray[np.void], part: Job, steps: int) -> float:
    """Return the time (us) of a part from its first kernel on; steps left out are added."""
    end, first = kernels["complete_us"], kernels["ready_us"].min()
    if part.name not in ("rnn_forward", "rnn_backward") or part.steps >= steps:
        return float(end.max() - first)
    each = len(end) // part.steps
    last = end.reshape(part.steps, each).max(1)
    return float(last[-1] - first + (steps - part.steps) * (last[-1] - last[-2]))


RNN = Suite(
    name="h200-library-rnn",
    doc="recurrent passes of cuDNN on an H200, kernels as the sweep named them",
    gpu="h200",
    file="h200_library_rnn.csv",
    columns=("id", *_SHAPE, "iter_us_graph_median", *_TOLD),
    cases=_cases,
    run=_rnn,
    baselines=_baselines,
    choices=CHOICES,
    note="the period of a graph that holds the pass; no clock was noted: errors are of us. Rows with a kernel"
    " that has no template are left out",
)
