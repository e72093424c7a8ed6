"""Recurrent passes of cuDNN on an H200: kernels as the sweep names them, time of a replayed CUDA graph.

The parts of a pass (``rnn_parts``) are simulated one by one; of its steps, which are alike, ``SHOWN`` forward
and backward. The others are added at the period of the last. In long passes the GEMMs of all steps, each of
which fills the GPU, are simulated alone (``library_sampling``), and their times added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from pysim import Config, Job, Memory
from pysim.errors import ConfigError, WorkloadError
from pysim.workloads.library.choices.chooser import chosen
from pysim.workloads.library.gemms.launches import launches_of, predicted
from pysim.workloads.library.gemms.told import told_of
from pysim.workloads.library.recurrences.recurrent import ITEM, ROLES, Pass, Recurrent
from pysim.workloads.library.recurrences.rnn import check_pass, rnn_parts

from .baselines import roofline_by
from .cases import Baseline, Case, Outcome, Suite, outcome_of, tables_of, thinned, unique
from .library import CHOICES, PREDICT
from .library_sampling import sampled
from .table import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pysim.workloads.library.choices.choice import Problem

SHOWN = 4
MOST_FLOPS = {"fp32": 60e9, "fp16": 500e9}  # of GEMMs of all steps: about 20 s
QUICK_US, QUICK_ONE_IN = 900.0, 6
# GEMMs of parts around the steps
AROUND = {"begin": ("input",), "end": ("input_back", "weights", "weights_first", "weights_hidden")}
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
        roles = AROUND.get(name, ()) if long < p.steps else ()
        left = replace(part, kernels=[kernel for kernel in part.kernels if not (roles and kernel.library)])
        tables = tables_of(config, left, "graph")
        time = part_us(tables["kernels"], left, p.steps)
        time += sum(_alone_us(config, p, role) + gap for role in roles)
        total += time + (gap if total else 0.0)
    total += float(tables["kernels"]["ready_us"].min())  # the launch of the graph
    apart = ", GEMMs of all steps one by one" if long < p.steps else ""
    detail = f"{shown} steps of {p.steps}{apart} (sampled)" if shown else ""
    return outcome_of(tables, {name_of: total}, detail)


def _alone_us(config: Config, p: Recurrent, role: str) -> float:
    """Return the time (us) of a role's GEMM without others beside it."""
    problem = p.problem(role)
    launch = p.kernels[role].launch if role in p.kernels else predicted(chosen(problem), problem)

    def time_of(some: Problem) -> float:
        kernels, _ = launches_of(launch, some, Memory())
        ran = tables_of(config, Job(role, kernels), "graph")["kernels"]
        return float(ran["complete_us"].max() - ran["ready_us"].min())

    return sampled(launch, problem, time_of)[0]


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
