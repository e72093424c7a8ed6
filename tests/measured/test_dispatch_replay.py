"""Dispatch alone: a measured chain replayed with its measured TB times shows where its TBs were placed.

No memory model takes part: each TB runs for as long as it was measured to (workloads/measured), only start,
release and placement are simulated. The second kernel is launched early, so its TBs take the slots that the
first one leaves, and pile up on few SMs. The card's numbering of SMs is its own; what counts is how many TBs
an SM got.
"""

from __future__ import annotations

import csv
from collections import defaultdict

import numpy as np
import pytest

from pysim.errors import WorkloadError
from pysim.program.job import Job
from pysim.program.profiled import profiled
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h200_mlp_dispatch.csv")
SMS = 132
GHZ = 1.98


def measured(tile):
    """Return [(sm, start, end) by TB] of both kernels, ns."""
    stages = ({}, {})
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["tile"] == tile:
                stages[int(row["stage"])][int(row["tb"])] = [
                    int(row[key]) for key in ("sm", "start_ns", "end_ns")
                ]
    return [np.array([stage[tb] for tb in sorted(stage)]) for stage in stages]


def same_company(first, resident, sms):
    """Order the times of the first wave so that TBs that shared an SM share one of ``sms`` here.

    TBs of one SM slow each other down and end together, which decides how many slots an SM frees at once.
    """
    times = first[:, 2] - first[:, 1]
    wave = resident * SMS
    there, here = defaultdict(list), defaultdict(list)
    for tb, (sm, *_) in enumerate(first[:wave]):
        there[sm].append(times[tb])
    for tb, sm in enumerate(sms[:wave]):
        here[sm].append(tb)
    made = times.copy()
    # SMs that were given more TBs come first
    for tbs, taken in zip(
        sorted(here.values(), key=len, reverse=True),
        sorted(there.values(), key=len, reverse=True),
        strict=True,
    ):
        made[tbs] = taken
    return made


@pytest.mark.parametrize(
    ("tile", "resident", "warps", "registers"),
    [("64x64x32_128thr", 6, 4, 80), ("128x128x32_256thr", 2, 8, 128)],
)
def test_consumers_pile_up_as_measured(tile, resident, warps, registers):
    first, second = measured(tile)
    alone = profiled("producer", np.full(len(first), 40_000), warps=warps, registers=registers)
    alone = execute(Job("alone", (alone,)), "stream", config("h200")).tbs
    times = same_company(first, resident, alone["sm"][np.argsort(alone["tb"])])
    job = Job(
        "chain",
        (
            profiled("producer", np.round(times * GHZ).astype(np.int64), warps=warps, registers=registers),
            profiled("consumer", np.full(len(second), 400_000), warps=warps, registers=registers, stream=1),
        ),
    )
    got = execute(job, "stream", config("h200"))
    tbs = got.tbs
    producers, consumers = tbs[tbs["kernel"] == 0], tbs[tbs["kernel"] == 1]
    each, real = (np.bincount(sm, minlength=SMS) for sm in (consumers["sm"], second[:, 0]))
    assert abs(int((each > 0).sum()) - int((real > 0).sum())) <= 2
    assert each.max() == real.max()
    # SMs with so many TBs, one count after another: a tenth of the SMs may have another number than measured
    held = [np.bincount(n, minlength=resident + 1) for n in (each, real)]
    assert np.abs(held[0] - held[1]).sum() / 2 <= SMS / 10
    # they start as slots become free: the middle and the last one within 2 % of the measured times
    began = np.sort(consumers["start"] - producers["start"].min()) / 1024
    for at in (len(began) // 2, len(began) - 1):
        assert began[at] == pytest.approx(np.sort(second[:, 1])[at], rel=0.02)


def test_an_empty_chip_gives_every_sm_its_share():
    # as an H200 does: 256 TBs of this kernel lie on 132 SMs, at most 2 on one
    _, second = measured("64x64x32_128thr")
    job = Job("alone", (profiled("consumer", np.full(len(second), 400_000), warps=4, registers=80),))
    each = np.bincount(execute(job, "stream", config("h200")).tbs["sm"], minlength=SMS)
    assert each.min() == 1
    assert each.max() == 2


def test_resident_tbs_count_against_an_sm():
    # water finds its level: TBs go where least is resident, whatever kernel it belongs to
    times = np.full(SMS * 2, 400_000)
    times[: SMS // 2] = 4_000  # half of the SMs lose one of their two TBs early
    wait = profiled("wait", np.full(1, 8_000), warps=4, registers=32, stream=1)
    late = profiled("late", np.full(SMS // 2 + SMS, 100_000), warps=4, registers=32, stream=1)
    job = Job("level", (profiled("early", times, warps=4, registers=32), wait, late))
    tbs = execute(job, "stream", config("h200", gpu__cp__stream_gap=0)).tbs
    each = np.bincount(tbs["sm"][tbs["end"] > tbs["start"].min() + 10_000 * 1024], minlength=SMS)
    assert each.max() - each.min() <= 1


@pytest.mark.parametrize("times", [np.array([]), np.array([-1]), np.array([1 << 42]), np.zeros((2, 2))])
def test_times_out_of_range_are_refused(times):
    with pytest.raises(WorkloadError, match="times of TBs"):
        profiled("bad", times)
