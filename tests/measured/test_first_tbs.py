"""Where the TBs of a kernel go that finds an H200 empty, against measured grids (h200_first.csv)."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Program
from tests.core.harness import config, execute
from tests.oracle.test_ordering import LATE, kernel
from tests.support.measured import measured_table

ROWS = measured_table("h200_first.csv")
SMS = 132
AHEAD = 8  # SMs of one GPC that come first of all


def measured(grid):
    """SM, GPC and half of each TB."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [
            (int(row["sm"]), int(row["gpc"]), int(row["half"]))
            for row in csv.DictReader(file)
            if int(row["grid"]) == grid
        ]


def simulated(tbs, **overrides):
    memory = Memory()
    made = kernel("first", "store", memory.tensor("first", tbs, 32, 4), tbs=tbs, delay=LATE)
    program = Program("first", made.program.variants, 4, 32, 0, 1)
    job = Job("first", [Kernel("first", program, made.grid, made.args, made.accesses)])
    rows = execute(job, "stream", config("h200", **overrides)).tbs
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


def halves(places):
    """The half of each GPC that is filled behind the SMs that come ahead, in the order in which they are."""
    runs = [next(same) for _, same in groupby(places[AHEAD:SMS], key=lambda place: place[1])]
    return "".join(str(half) for _, _, half in runs)


@pytest.mark.parametrize("grid", [132, 256])
def test_the_halves_take_turns_as_measured(grid):
    """Up to a rotation, of which several were measured, and up to which half is called which."""
    ours, card = halves(simulated(grid)), halves(measured(grid))
    turned = [card[i:] + card[:i] for i in range(len(card))]
    assert ours in turned or ours.translate(str.maketrans("01", "10")) in turned


@pytest.mark.parametrize("tbs", [1, 5, 9, 77, 110, 131, 133, 200, 263, 264, 300])
def test_an_empty_chip_is_filled_evenly(tbs):
    """Of the last round behind the SMs that come ahead, GPCs take the same, but those that are full."""
    places = simulated(tbs)
    taken = Counter(sm for sm, _, _ in places)
    assert max(taken.values()) == -(-tbs // SMS)
    rest = places[tbs // SMS * SMS :]
    size = Counter({gpc: 18 if gpc < 2 else 16 for gpc in range(8)})
    size.subtract(gpc for _, gpc, _ in rest[:AHEAD])
    by_gpc = Counter(gpc for _, gpc, _ in rest[AHEAD:])
    open_to = [by_gpc[gpc] for gpc in range(8) if by_gpc[gpc] < size[gpc]]
    assert len(rest) <= AHEAD or max(open_to) - min(open_to) <= 1


def test_the_order_of_gpcs_is_the_devices():
    """By their number the last GPC's first SMs come ahead, then GPC by GPC."""
    places = simulated(SMS, gpu__cp__gpc_order="number")
    assert {gpc for _, gpc, _ in places[:AHEAD]} == {7}
    assert [gpc for gpc, _ in groupby(gpc for _, gpc, _ in places[AHEAD:])] == list(range(8))


def test_what_is_left_fills_a_chip_that_empties():
    """TBs that a slow kernel let go find the chip empty behind it: they spread as a grid of so many."""
    tensor = Memory().tensor("t", 40, 32, 4)

    def later_rows(numbers):
        return np.tile([20, 40, 0, tensor.cols], (len(numbers), 1))

    slow = kernel("slow", "store", tensor, delay=4 * LATE)
    slow = replace(slow, accesses=(Access(tensor, "write", later_rows),))
    job = Job("two", [slow, kernel("second", "load", tensor, tbs=40, delay=LATE)])
    rows = execute(job, "tb_ideal", config("h200")).tbs
    late = [int(row["sm"]) for row in rows if row["kernel"] == 1 and row["tb"] >= 20]
    assert sorted(late) == sorted(sm for sm, _, _ in simulated(20))
