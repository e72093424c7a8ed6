"""Where clusters run on an H200 (tests/hw/hopper/place.cu), and in the simulator."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from pysim.program.job import Job
from pysim.program.pipelined_code import PipelinedCode
from pysim.program.tiles import Tiles
from tests.core.harness import config, execute
from tests.core.test_pipelined import lone

TABLE = Path(__file__).resolve().parents[1] / "hw" / "hopper" / "h200_place.csv"


@pytest.fixture(scope="module")
def placed():
    """(cluster, TBs, turn) -> the unit of each cluster in order, and the SMs of each cluster."""
    made = defaultdict(list)
    with TABLE.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = tuple(int(row[name]) for name in ("cluster", "tbs", "turn"))
            made[key].append((int(row["gpc"]), int(row["sm"])))
    return made


def test_clusters_share_units_of_eight_sms(placed):
    units = defaultdict(set)
    for rows in placed.values():
        for unit, sm in rows:
            units[unit].add(sm)
    sizes = sorted(map(len, units.values()))
    assert sizes == [2] * 6 + [8] * 15
    for (cluster, tbs, _), rows in placed.items():
        if cluster > 2 and tbs > 120:
            continue  # the last clusters of four start where others end
        for first in range(0, len(rows), cluster):
            mine = rows[first : first + cluster]
            assert len({unit for unit, _ in mine}) == 1
            assert len({sm for _, sm in mine}) == cluster
            assert cluster == 2 or len(units[mine[0][0]]) == 8


@pytest.mark.parametrize(("cluster", "tbs"), [(4, 120), (8, 120), (8, 96), (4, 64)])
def test_first_units_are_filled_in_turn_before_second_ones(placed, cluster, tbs):
    """Eight GPCs have a first unit (SMs 0 to 63), seven a second one."""
    order = [unit for unit, _ in placed[cluster, tbs, 0]][::cluster]
    first = [unit for unit in order if unit < 64]
    assert order[: len(first)] == first
    assert len(set(first[:8])) == 8
    per = 8 // cluster
    assert len(first) == min(8 * per, len(order))


@pytest.mark.parametrize(("cluster", "tbs"), [(4, 64), (4, 120), (8, 96), (8, 120)])
def test_the_simulator_fills_units_as_the_chip_does(placed, cluster, tbs):
    """How many clusters in a row go to leftover TPCs, to first units, and to second ones."""

    def code_of(warp):
        code = PipelinedCode()
        code.delay(20_000)
        code.exit()
        return code

    kernel = lone(code_of, 4, tbs, Tiles((tbs, 1, 1), 1, cluster=(cluster, 1)), 200)
    made = execute(Job("job", [kernel]), "graph", config("h200"))
    sm = made.tbs["sm"][np.argsort(made.tbs["tb"])][::cluster]
    ends = np.cumsum([18, 18, *[16] * 6])
    gpc = np.searchsorted(ends, sm, side="right")
    unit = (sm - np.concatenate([[0], ends[:-1]])[gpc]) // 8
    measured = [unit for unit, _ in placed[cluster, tbs, 0]][::cluster]
    wanted = [sum(1 for u in measured if u < 64), sum(1 for u in measured if 64 <= u < 120)]
    assert list(np.bincount(unit, minlength=2)) == wanted
