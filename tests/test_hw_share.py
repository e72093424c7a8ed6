"""What an H200's GPCs take of lines that several of their SMs copy, a line each row (tests/hw/share.cu).

That one reply serves all that joined is in what the profiler counts there: of whole lines slices serve a GPC
of 18 SMs 570 to 725 B a cycle whoever shares, from two TBs an SM on, while its SMs get up to 1,450 B.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from pysim.job import Job, Kernel, Memory
from pysim.program import Code, Pattern, Program
from workloads.microbench.bench import buffer

from .core.harness import config, execute

MEASURED = Path(__file__).resolve().parents[1] / "workloads" / "measured" / "h200_share.csv"
SMS, LOOPS, STEP, TURN, LINE = 132, 6, 8192, 12, 128
SHARED = {"none": 1, "tpc": 2}  # TBs in a row that copy the same: their SMs are a TPC's

EACH = ["2", pytest.param("4", marks=pytest.mark.deep)]  # TBs of an SM


def card(row, pad, shared, each):
    """Wanted bytes a cycle of an SM, and sectors that a copy of 512 B makes slices serve."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        for found in csv.DictReader(file):
            if (found["row"], found["pad"], found["shared"], found["each"]) == (row, pad, shared, each):
                return float(found["mean"]), float(found["served"])
    raise AssertionError("no such row")


def share(row, pad, shared, each):
    """The same as simulated: 4 warps copy steps of 8 KiB of the TB's 32 KiB, 3 steps ahead."""
    place = 4 * STEP // row * LINE
    code = Code()
    mark = code.loop_begin()
    for step in range(TURN):
        for j in range(4):
            places = []
            for warp in range(4):
                at = j * 2048 + 512 * warp
                into = (at // row * (row + pad) + at % row) % 128
                here = (at + STEP * (step % 4)) // row * LINE + at % row
                where = {"s0": 16, "s1": LINE, "minor": row // 16, "into": into, "into_pitch": row + pad}
                places.append(Pattern(0, 16, base=here, by=4 * place, bz=place, **where))
            code.load(step % 3, *places, bypass_l1=True, smem=1)
            code.compute(int=4, chain=4)
        code.wait((step + 1) % 3)
    code.loop_end(mark, LOOPS)
    for slot in range(3):
        code.wait(slot)
    code.exit()
    program = Program("share", (tuple(code.ops),), 4, 64, max(220_000 // each // 1024 - 1, 16) * 1024, 1)
    source = buffer(Memory(), "source", 64 << 20)
    kernel = Kernel("share", program, (SHARED[shared], SMS // SHARED[shared], each), (source,), (), 0)
    ran = execute(Job("share", [kernel] * 2), "stream", config("h200"))
    tbs = ran.tbs[ran.tbs["kernel"] == 1]
    took = (tbs["end"].astype(np.int64) - tbs["start"].astype(np.int64)) / 1024 * 1.98
    copies = 2 * SMS * each * STEP * TURN * LOOPS / 512
    return (STEP * TURN * LOOPS * each / took).mean(), ran.slices["sectors_read"].sum() / copies


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(("row", "pad"), [("128", "0"), ("64", "0"), ("64", "16"), ("128", "16")])
def test_lines_of_their_own(row, pad, each):
    """Nothing but `gpu.l2.request` is from these, and that from one of them in part."""
    wanted, served = card(row, pad, "none", each)
    got, made = share(int(row), int(pad), "none", int(each))
    assert made == pytest.approx(served, rel=0.001)
    assert got == pytest.approx(wanted, rel=0.12)


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(
    ("row", "pad", "off", "joins"), [("128", "0", 0.12, 0.06), ("128", "16", 0.12, 0.06)]
)
def test_lines_of_a_tpc(row, pad, off, joins, each):
    """Whole lines join nearly always, pieces of padded rows hardly ever: each asks for others of its line."""
    wanted, served = card(row, pad, "tpc", each)
    got, made = share(int(row), int(pad), "tpc", int(each))
    assert made == pytest.approx(served, rel=joins)
    assert got == pytest.approx(wanted, rel=off)


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(("row", "pad"), [("64", "0"), ("64", "16")])
def test_half_lines_of_a_tpc_join_too_often(row, pad, each):
    """On the card the two SMs drift apart, the more the more is under way; here they stay together."""
    wanted, served = card(row, pad, "tpc", each)
    got, made = share(int(row), int(pad), "tpc", int(each))
    assert 0.65 * served < made < served
    assert wanted < got * 1.03
    assert got < 1.4 * wanted
