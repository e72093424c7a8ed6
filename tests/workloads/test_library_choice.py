"""Simulated times of chosen GEMM kernels beside those that were launched."""

import csv
import io

import pytest

from pysim.machine.system import resolve
from pysim.workloads.library.choices.accuracy import alternatives
from pysim.workloads.validation.library import problem_of
from pysim.workloads.validation.library_choice import compared
from pysim.workloads.validation.table import packaged


@pytest.fixture(scope="module")
def timed():
    rows = csv.DictReader(io.StringIO(packaged("h200_library_gemm.csv")))
    known = alternatives()
    return {row["id"] + row["dtype"]: row for row in rows if problem_of(row) in known}


def test_the_timed_shapes_are_in_the_sweep(timed):
    assert len(timed) == 60


def test_another_kernel_is_simulated_and_the_same_is_not(timed):
    found = [compared(row, resolve("h200")) for row in timed.values() if float(row["time_us_median"]) < 3.5]
    assert {it.same for it in found} == {True}
    assert all(it.excess == 0 for it in found)
    row = next(row for row in timed.values() if (row["m"], row["n"], row["dtype"]) == ("1024", "2", "tf32"))
    other = compared(row, resolve("h200"))
    assert not other.same
    assert 0 < abs(other.excess) < 0.1
