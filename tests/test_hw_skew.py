"""How far apart warps go on behind a barrier, against an H100 (tests/hw/skew.cu)."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pysim.job import Job, Kernel
from pysim.program import Code, Program

from .core.harness import config, execute

ROWS = Path(__file__).resolve().parents[1] / "workloads" / "measured" / "h100_skew.csv"
TURNS = 64, 320


def measured():
    """Yield warps of a TB, cycles of a turn of a loop with a barrier and nothing else."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["work"], row["tbs"], row["warp"]) == ("nothing", "1", "0"):
                yield int(row["warps"]), float(row["turn"])


def turn(warps, sms=1, **settings):
    """Return cycles a turn of each TB, one on an SM."""
    took = []
    for turns in TURNS:
        code = Code()
        mark = code.loop_begin()
        code.barrier()
        code.loop_end(mark, turns)
        code.exit()
        program = Program("turns", (tuple(code.ops),), warps, 32, 200 << 10, 0)
        job = Job("turns", [Kernel("turns", program, (sms, 1, 1), (), (), 0)])
        tbs = execute(job, "stream", config("h200", gpu__sms=sms, gpu__gpcs=1, **settings)).tbs
        took.append([(int(e) - int(s)) / 1024 * 1.98 for s, e in zip(tbs["start"], tbs["end"], strict=True)])
    return [round((b - a) / (TURNS[1] - TURNS[0]), 6) for a, b in zip(*took, strict=True)]


@pytest.mark.parametrize(("warps", "cycles"), list(measured()))
def test_a_barrier_takes_as_long_as_on_an_h100(warps, cycles):
    assert turn(warps)[0] == pytest.approx(cycles, rel=0.1)


def test_tbs_that_do_the_same_drift_apart():
    """Each SM has turns of its own, as none has where all warps go on at once."""
    assert len(set(turn(8, sms=16))) > 8
    assert len(set(turn(8, sms=16, gpu__sm__barrier_leave=0))) == 1
