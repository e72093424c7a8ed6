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
AHEAD = 8  # SMs of one GPC that come first of all


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


@pytest.mark.parametrize("tbs", [1, 5, 9, 77, 131, 133, 200, 263, 264, 300])
def test_no_sm_takes_more_than_its_share_of_an_empty_chip(tbs):
    places = simulated(tbs)
    taken = Counter(sm for sm, _, _ in places)
    assert max(taken.values()) == -(-tbs // SMS)
    by_gpc = Counter(gpc for _, gpc, _ in places[tbs // SMS * SMS :][AHEAD:])
    assert not by_gpc or max(by_gpc.values()) - min(by_gpc[gpc] for gpc in range(8)) <= AHEAD + 2


def test_a_round_takes_every_sm_once():
    for places in (simulated(256), measured(256)):
        assert set(Counter(sm for sm, _, _ in places[:SMS]).values()) == {1}
        assert max(Counter(sm for sm, _, _ in places).values()) == 2
