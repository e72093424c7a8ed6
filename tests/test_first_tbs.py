"""Where the TBs of a kernel go that finds an H200 empty, against measured grids (h200_first.csv)."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from pysim.job import Job, Kernel, Memory
from pysim.program import Program

from .core.harness import config, execute
from .test_ordering import LATE, kernel

ROWS = Path(__file__).parents[1] / "workloads" / "measured" / "h200_first.csv"
SMS = 132


def measured(grid):
    """SM, GPC and half of each TB."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [
            (int(row["sm"]), int(row["gpc"]), int(row["half"]))
            for row in csv.DictReader(file)
            if int(row["grid"]) == grid
        ]


def simulated(tbs):
    memory = Memory()
    made = kernel("first", "store", memory.tensor("first", tbs, 32, 4), tbs=tbs, delay=LATE)
    program = Program("first", made.program.variants, 4, 32, 0, 1)
    job = Job("first", [Kernel("first", program, made.grid, made.args, made.accesses)])
    rows = execute(job, "stream", config("h200")).tbs
    sms = [int(row["sm"]) for row in sorted(rows, key=lambda row: int(row["tb"]))]
    # GPCs of the device: two of 18 SMs, then six of 16
    return [(sm, sm // 18 if sm < 36 else 2 + (sm - 36) // 16, int(sm >= SMS // 2)) for sm in sms]


def shape(places):
    """What a grid's TBs look like, however SMs and GPCs are numbered: how many in a row are of one GPC and on
    how many TPCs, whole rounds and the rest each in any order but for the first."""
    whole = len(places) // SMS * SMS
    found = []
    for part in (places[:whole], places[whole:]):
        runs = [list(same) for _, same in groupby(part, key=lambda place: place[1])]
        sizes = [(len(run), len({sm // 2 for sm, _, _ in run})) for run in runs]
        found.append((sizes[:1], sorted(sizes[1:])))
    return found


@pytest.mark.parametrize("grid", [8, 24, 100, 132, 256])
def test_tbs_of_a_grid_lie_as_measured(grid):
    assert shape(simulated(grid)) == shape(measured(grid))


@pytest.mark.parametrize("grid", [8, 24])
def test_few_tbs_lie_in_the_measured_halves(grid):
    assert [half for _, _, half in simulated(grid)] == [half for _, _, half in measured(grid)]


def test_a_round_takes_every_sm_once():
    for places in (simulated(256), measured(256)):
        assert set(Counter(sm for sm, _, _ in places[:SMS]).values()) == {1}
        assert max(Counter(sm for sm, _, _ in places).values()) == 2
