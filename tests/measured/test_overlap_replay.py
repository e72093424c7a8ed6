"""Two kernels of different shared memory on an H200: which SMs the second one's TBs could start on.

``tests/hw/launch/h200_carve.csv``: 66 or 132 TBs of 128 threads hold their SMs for 60 us, then 132 TBs of
5 us come on another stream. ``beside``: how many of these began on an SM that was held.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim.program.job import Job
from pysim.program.occupancy import carveout
from pysim.program.profiled import profiled
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h200_carve.csv")
GHZ = 1.98


def measured(preferred="-1"):
    with ROWS.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["held_preferred"] == preferred]


def held(kb, tbs, us, delay_ns=0, stream=0):
    time = np.full(tbs, round(us * 1000 * GHZ), np.int64)
    return profiled(f"k{stream}", time, warps=4, registers=16, smem=kb * 1024, stream=stream)


def beside(row, **overrides):
    """TBs of the second kernel that begin on a held SM while it is held."""
    kb, tbs, other = (int(row[name]) for name in ("held_kb", "held_tbs", "kb"))
    first = held(kb, tbs, 60)
    second = held(other, 132, 5, stream=1)
    ran = execute(Job("carve", (first, second)), "stream", config("h200", **overrides))
    mine, theirs = (ran.tbs[ran.tbs["kernel"] == k] for k in (0, 1))
    during = theirs[theirs["start"] < mine["end"].min()]
    return int(np.isin(during["sm"], mine["sm"]).sum())


@pytest.mark.parametrize("row", measured(), ids=lambda r: f"{r['held_kb']}x{r['held_tbs']}-{r['kb']}")
def test_a_kernel_starts_beside_another_where_it_did(row):
    """All are met but for the SM that the gate kernel of the measurement held, and its neighbours."""
    assert abs(beside(row) - int(row["beside"])) <= 7


def test_carveouts_of_an_h200():
    """The smallest that holds as many TBs as an SM can hold; 32 KiB at least."""
    h200 = config("h200")
    values, sizes = h200.encoded(), h200.carveouts
    chosen = [carveout(held(kb, 1, 1), values, sizes) // 1024 for kb in (0, 1, 8, 16, 29, 57, 100)]
    assert chosen == [32, 32, 164, 228, 228, 196, 228]


def test_without_it_shared_memory_alone_decides():
    row = {"held_kb": "57", "held_tbs": "132", "kb": "29"}
    assert beside(row) == 0
    assert beside(row, gpu__sm__own_carveout=0) == 132
