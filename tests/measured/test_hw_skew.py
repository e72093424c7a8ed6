"""How far apart warps go on behind a barrier, against an H100 (tests/hw/sm/skew.cu, leave.cu)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim.program.job import Job, Kernel
from pysim.program.warp_program import Code, Program
from pysim.program.warp_specialized import warp_specialized as per_warp
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h100_skew.csv")
TURNS = 64, 320


def measured(name):
    """Yield warps of a TB, and column ``name`` of a loop with a barrier and nothing else: cycles."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["work"], row["tbs"], row["warp"]) == ("nothing", "1", "0"):
                yield int(row["warps"]), float(row[name])


def turn(warps, sms=1, each=1, body=None, turns=TURNS, **settings):
    """Return cycles a turn of each TB, so many on an SM, from the first to the second number of turns."""
    took = []
    for count in turns:
        code = Code()
        mark = code.loop_begin()
        code.barrier()
        if body:
            body(code)
        code.loop_end(mark, count)
        code.exit()
        program = Program("turns", (tuple(code.ops),), warps, 32, (200 << 10) // each, 0)
        job = Job("turns", [Kernel("turns", program, (sms * each, 1, 1), (), (), 0)])
        tbs = execute(job, "stream", config("h200", gpu__sms=sms, gpu__gpcs=1, **settings)).tbs
        took.append([(int(e) - int(s)) / 1024 * 1.98 for s, e in zip(tbs["start"], tbs["end"], strict=True)])
    return [(b - a) / (turns[1] - turns[0]) for a, b in zip(*took, strict=True)]


@pytest.mark.parametrize(("warps", "cycles"), list(measured("turn")))
def test_a_barrier_takes_as_long_as_on_an_h100(warps, cycles):
    assert turn(warps)[0] == pytest.approx(cycles, rel=0.1)


def span(warps, **settings):
    """Return the mean over SMs of the cycles from the first to the last warp behind a barrier.

    When a warp goes on shows in the end of a TB that waits for it alone: a program for each warp, in which
    that one has much to do behind the last barrier, and the others nothing.
    """
    ends = []
    for late in range(warps):
        each = []
        for warp in range(warps):
            code = Code()
            mark = code.loop_begin()
            code.barrier()
            code.loop_end(mark, TURNS[0])
            code.delay(1000 if warp == late else 1)
            code.exit()
            each.append(tuple(code.ops))
        program = per_warp("spans", [tuple(each)], None, registers=32, smem=180 << 10, args=0)
        job = Job("spans", [Kernel("spans", program, (132, 1, 1), (), (), 0)])
        made = execute(job, "stream", config("h100", **settings))
        ends.append(made.tbs["end"].astype(np.int64) / made.values["gpu.clock"])
    return float(np.mean(np.max(ends, axis=0) - np.min(ends, axis=0)))


@pytest.mark.parametrize(("warps", "cycles"), list(measured("span")))
def test_warps_go_on_as_far_apart_as_on_an_h100(warps, cycles):
    """The last one follows the first after as many cycles, give or take a fifth: a mean here, a median there.

    On the card they go in the order in which they came, which a loop of nothing else keeps; here one is drawn
    for each TB. What was noted there comes before the barrier is complete (h200_past.csv), so it tells when
    warps come, in loops with arithmetic not when they go on.
    """
    assert span(warps) == pytest.approx(cycles, rel=0.2)
    assert span(warps, gpu__sm__barrier_leave=0) == 0
    assert span(warps, gpu__sm__barrier_leave=2) > 1.2 * cycles


def loads_and_arithmetic(code):
    code.compute(smem=16, smem_ops=4, smem_back=0)
    code.compute(fp32=32)


def test_tbs_that_do_the_same_keep_rates_of_their_own():
    """As on an H200, where no step of a TB differs from the one before, but TBs do (h200_vary.csv, no loads).

    Of two TBs an SM: by themselves TBs of such loops take the same to the cycle, here and there.
    """
    early, late = (
        turn(4, sms=16, each=2, body=loads_and_arithmetic, turns=turns) for turns in (TURNS, (320, 576))
    )
    assert early == pytest.approx(late, rel=1e-3)
    assert np.std(early) > 0.5
    assert np.std(turn(4, sms=16, body=loads_and_arithmetic)) < 0.01
    assert np.std(turn(4, sms=16, each=2, body=loads_and_arithmetic, gpu__sm__barrier_leave=0)) < 0.01
