"""What an H200's GPCs take of lines that several of their SMs copy, a line each row (share.cu).

That one reply serves all that joined is in what the profiler counts there: of whole lines slices serve a GPC
of 18 SMs 570 to 725 B a cycle whoever shares, from two TBs an SM on, while its SMs get up to 1,450 B.
"""

from __future__ import annotations

import csv

import pytest

from tests.support.measured import measured_table

from .test_hw_flood import LOOPS, SHARED, SMS, STEP, TURN, copies, wanted

MEASURED = measured_table("h200_share.csv")
LINE = 128
EACH = ["2", pytest.param("4", marks=pytest.mark.deep)]  # TBs of an SM


def card(row, pad, shared, each):
    """Wanted bytes a cycle of an SM, and sectors that a copy of 512 B makes slices serve."""
    with MEASURED.open(encoding="utf-8", newline="") as file:
        for found in csv.DictReader(file):
            if (found["row"], found["pad"], found["shared"], found["each"]) == (row, pad, shared, each):
                return float(found["mean"]), float(found["served"])
    raise AssertionError("no such row")


def share(row, pad, shared, each):
    """The same as simulated."""
    place = 4 * STEP // row * LINE
    grid = (SHARED[shared], SMS // SHARED[shared], each)
    got, ran = wanted(copies(row, pad, LINE, by=4 * place, bz=place), each, grid, 64 << 20)
    made = 2 * SMS * each * STEP * TURN * LOOPS / 512
    return got.mean(), ran.slices["sectors_read"].sum() / made


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(("row", "pad"), [("128", "0"), ("64", "0"), ("64", "16"), ("128", "16")])
def test_lines_of_their_own(row, pad, each):
    """Nothing but `gpu.l2.request` is from these, and that from one of them in part."""
    asked, served = card(row, pad, "none", each)
    got, made = share(int(row), int(pad), "none", int(each))
    assert made == pytest.approx(served, rel=0.001)
    assert got == pytest.approx(asked, rel=0.12)


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(
    ("row", "pad", "off", "joins"), [("128", "0", 0.12, 0.06), ("128", "16", 0.12, 0.06)]
)
def test_lines_of_a_tpc(row, pad, off, joins, each):
    """Whole lines join nearly always, pieces of padded rows hardly ever: each asks for others of its line."""
    asked, served = card(row, pad, "tpc", each)
    got, made = share(int(row), int(pad), "tpc", int(each))
    assert made == pytest.approx(served, rel=joins)
    assert got == pytest.approx(asked, rel=off)


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize(("row", "pad"), [("64", "0"), ("64", "16")])
def test_half_lines_of_a_tpc_join_too_often(row, pad, each):
    """On the card the two SMs drift apart, the more the more is under way; here they stay together."""
    asked, served = card(row, pad, "tpc", each)
    got, made = share(int(row), int(pad), "tpc", int(each))
    assert 0.65 * served < made < served
    assert asked < got * 1.03
    assert got < 1.4 * asked
