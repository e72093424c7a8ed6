"""The error budget: what is switched off, which cases stand for a suite, and the table that is printed."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import Config
from pysim.machine.devices import device
from pysim.machine.mechanisms import MECHANISMS
from pysim.stats import schema
from pysim.stats.studies.budget import format_budget, markdown_budget
from pysim.workloads.validation import budget
from pysim.workloads.validation.suites import SUITES, cases_of

KERNELS = SUITES["h200-kernels"]


def test_each_mechanism_alone_and_each_part_together():
    config = Config.resolve(device("h200"))
    steps = budget.steps_of(tuple(MECHANISMS), config)
    assert steps[0].mechanisms == ()
    alone = [step for step in steps if len(step.mechanisms) == 1]
    # an H200 has no ports that SMs share
    assert "ports" not in {step.off for step in alone}
    assert len(alone) > 10
    parts = {row.part for row in MECHANISMS.values()}
    for step in steps[1 + len(alone) :]:
        assert step.part in parts
        assert set(step.mechanisms) == {one.off for one in alone if one.part == step.part}
    for step in alone:
        changed = step.config(config)
        assert any(changed[path] != config[path] for path, _ in MECHANISMS[step.off].off), step.off


def test_short_cases_are_of_every_class():
    every = cases_of(KERNELS)[0]
    cases = budget.short(every)
    assert {case.kind for case in cases} == {case.kind for case in every}
    assert len(cases) < len(every) / 3
    # all parts of a simulation that is made anyway
    tasks = {case.task for case in cases}
    assert len(cases) == sum(case.task in tasks for case in every)


def test_without_launches_a_small_kernel_is_faster():
    config = Config.resolve(device("h200"))
    case = next(
        case for case in cases_of(KERNELS)[0] if case.case.startswith("0:vecadd") and case.mode == "warm"
    )
    with_, without = (
        budget.timed(KERNELS.name, config, (step, case.task)) for step in budget.steps_of(("launch",), config)
    )
    assert with_.seconds > 0
    assert without.times_us["warm"] < with_.times_us["warm"] - 0.5
    errors = budget.errors([case], {case.task: with_})
    assert errors[0] == pytest.approx(with_.times_us["warm"] / case.measured_us - 1)


def test_the_table_tells_errors_changes_and_cost():
    rows = [
        (0, "s", "none", "", "all", 4, 0.05, -0.01, 0.0, 1.0),
        (0, "s", "none", "", "vecadd", 2, 0.04, -0.01, 0.0, 1.0),
        (0, "s", "none", "", "gemm", 2, 0.06, -0.01, 0.0, 1.0),
        (0, "s", "ports", "NoC", "all", 4, 0.09, -0.08, -0.07, 0.8),
        (0, "s", "ports", "NoC", "vecadd", 2, 0.04, -0.01, 0.0, 0.9),
        (0, "s", "ports", "NoC", "gemm", 2, 0.14, -0.14, -0.14, 0.7),
    ]
    table = np.array(rows, schema.dtype("budget"))
    lines = format_budget(table).splitlines()
    assert lines[0].split() == ["switched", "off", "part", "error", "bias", "cost", "vecadd", "gemm"]
    assert lines[1].split() == ["none", "5.0%", "-1.0%", "4.0%", "6.0%"]
    assert lines[2].split() == ["ports", "NoC", "9.0%", "-8.0%", "1.25x", "-14.0%"]
    assert markdown_budget(table).splitlines()[-1] == "| ports | NoC | 9.0% | -8.0% | 1.25x |  | -14.0% |"
