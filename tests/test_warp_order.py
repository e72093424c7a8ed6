"""Warps of an H200 are served oldest first: TBs that do the same on one SM end one after another."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from pysim.job import Job
from workloads.microbench.kernels import arithmetic, write

from .core.harness import config, execute

ROWS = Path(__file__).parents[1] / "workloads" / "measured" / "h200_order.csv"
TBS = 8


def measured(kind):
    """Return what the TBs of one SM took, oldest first, as shares of the last."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["kind"] == kind and int(r["tbs_an_sm"]) == TBS]
    cycles = np.array([float(row["cycles_median"]) for row in sorted(rows, key=lambda r: int(r["age"]))])
    return cycles / cycles.max()


def simulated(kernel, order):
    conf = config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order=order)
    tbs = execute(Job("order", [kernel]), "stream", conf).tbs
    assert len(tbs) == TBS
    tbs = np.sort(tbs, order="tb")
    took = tbs["end"] - tbs["start"].min()
    return took / took.max()


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [("mufu", arithmetic("sfu", TBS, 128, 64, 40)), ("stg", write(TBS, 16, threads=128))],
)
def test_the_oldest_first(kind, kernel):
    """Measured: the oldest of eight ends its special functions after an eighth, its stores after 0.58."""
    made, seen = simulated(kernel, "oldest"), measured(kind)
    assert (np.diff(made) > -0.01).all()
    if kind == "mufu":
        assert abs(made - seen).max() < 0.03
    assert made[0] < 0.7


def test_all_at_once_where_order_is_of_arrival():
    """In round robin the same TBs end together, and the last of them no later or earlier."""
    kernel = arithmetic("sfu", TBS, 128, 64, 40)
    assert simulated(kernel, "round_robin")[0] > 0.95
    ends = [
        execute(
            Job("order", [kernel]), "stream", config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order=o)
        )
        .tbs["end"]
        .max()
        for o in ("round_robin", "oldest")
    ]
    assert abs(ends[1] / ends[0] - 1) < 0.02


def test_any_number_of_threads():
    """Whole chains give the same TBs on one thread and on two, and in quanta of any length."""
    kernel = write(132 * 4, 8, threads=256)
    outcomes = [
        execute(Job("order", [kernel]), "stream", config("h200"), threads=t).tbs for t in ((1,), (2,))
    ]
    assert (outcomes[0] == outcomes[1]).all()
