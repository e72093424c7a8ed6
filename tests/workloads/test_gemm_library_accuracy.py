"""How often the chosen kernel is the one that an H200 ran: the figures that the package states."""

import pytest

from pysim.workloads.library.choices import accuracy
from pysim.workloads.library.choices.choice import DTYPES

ROWS = 532


@pytest.fixture(scope="module")
def rows():
    return accuracy.sweep()


@pytest.fixture(scope="module")
def found(rows):
    answers = accuracy.held_out(rows)
    return {dtype: accuracy.figures(answers, dtype) for dtype in DTYPES}


@pytest.fixture(scope="module")
def baseline(rows):
    answers = accuracy.held_out(rows, baseline=True)
    return {dtype: accuracy.figures(answers, dtype) for dtype in DTYPES}


def test_folds_divide_the_groups(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row.group, set()).add(row.fold)
    assert {fold for folds in groups.values() for fold in folds} == {0, 1, 2}
    assert all(len(folds) == 1 for folds in groups.values())


@pytest.mark.parametrize("dtype", DTYPES)
def test_figures_are_those_stated(dtype, found):
    stated = accuracy.STATED[dtype]
    assert found[dtype]["rows"] == ROWS
    assert {name: round(100 * found[dtype][name], 1) for name in stated} == stated


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_rule_forecasts_better_than_the_nearest_row(dtype, found, baseline):
    for name in ("unit", "family", "tile", "three", "split_k", "grid", "kernel"):
        assert found[dtype][name] > baseline[dtype][name], name


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_rows_measured_later_agree_as_well(dtype):
    answers = [(row, accuracy.rule(row.problem)) for row in accuracy.later()]
    shares = accuracy.figures(answers, dtype)
    assert shares["rows"] > 70
    assert shares["family"] == 1
    assert shares["tile"] > 0.74
    assert shares["three"] > 0.92


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "tf32"])
def test_other_tiles_cost_little_time(dtype, rows):
    shapes, other, timed, excess = accuracy.slowdown(rows)[dtype]
    assert shapes == 15
    assert 0 < timed <= other < shapes
    assert abs(excess) < 0.03
