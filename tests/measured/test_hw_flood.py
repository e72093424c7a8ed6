"""What all SMs of an H200 get of copies that hit in L2 (tests/hw/memory/flood.cu, port.cu)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim.program.job import Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.microbench.bench import buffer
from tests.core.harness import config, execute
from tests.support.measured import measured_table
from tests.support.thin import thin

SMS, LOOPS, STEP, TURN = 132, 6, 8192, 12
FIRST, LAST = 16 * 1024, 220_000  # B of shared memory: what three steps need at least, and an SM has
# TBs in a row that copy the same: their SMs are a TPC's, mostly of one GPC, all
SHARED = {"none": 1, "tpc": 2, "gpc": 12, "all": SMS}


def rows(name, *keys, **only):
    """Wanted bytes a cycle of an SM, 10th per cent, mean of all and 90th, by some columns of a table."""
    with measured_table(name).open(encoding="utf-8", newline="") as file:
        found = [row for row in csv.DictReader(file) if all(row[key] == only[key] for key in only)]
    return {
        tuple(row[key] if key == "shared" else int(row[key]) for key in keys): tuple(
            float(row[name]) for name in ("p10", "mean", "p90", *(["mhz"] if "mhz" in row else []))
        )
        for row in found
    }


CARD = rows("h200_flood.csv", "row", "pad", "each", what="copies", apart="0")
PORT = rows("h200_port.csv", "row", "pad", "shared", "mma", "each")


def copies(row, pad, pitch, **strides):
    """4 warps copy steps of 8 KiB of a TB's 32 KiB, 3 ahead, in rows that lie ``pitch`` B apart."""
    code = Code()
    mark = code.loop_begin()
    for step in range(TURN):
        for j in range(4):
            places = []
            for warp in range(4):
                at = j * 2048 + 512 * warp
                into = (at // row * (row + pad) + at % row) % 128
                here = (at + STEP * (step % 4)) // row * pitch + at % row
                where = {"s0": 16, "s1": pitch, "minor": row // 16, "into": into, "into_pitch": row + pad}
                places.append(Pattern(0, 16, base=here, **strides, **where))
            code.load(step % 3, *places, bypass_l1=True, smem=1)
            code.compute(int=4, chain=4)
        code.wait((step + 1) % 3)
    code.loop_end(mark, LOOPS)
    for slot in range(3):
        code.wait(slot)
    code.exit()
    return code


def wanted(code, each, grid, room, **overrides):
    """Wanted bytes a cycle of each SM, of the second of two such kernels, and what ran."""
    smem = max(LAST // each // 1024 * 1024 - 1024, FIRST)
    program = Program("flood", (tuple(code.ops),), 4, 64, smem, 1)
    kernel = Kernel("flood", program, grid, (buffer(Memory(), "source", room),), (), 0)
    ran = execute(Job("flood", [kernel] * 2), "stream", config("h200", **overrides))
    second = ran.tbs[ran.tbs["kernel"] == 1]
    took = (second["end"].astype(np.int64) - second["start"].astype(np.int64)) / 1024 * 1.98
    return STEP * TURN * LOOPS * each / took, ran


def flood(row, pad, each, shared="none", **overrides):
    """The same as simulated."""
    code = copies(row, pad, row, by=4 * STEP, bz=4 * STEP * SMS)
    grid = (SHARED[shared], SMS // SHARED[shared], each)
    return wanted(code, each, grid, 32 << 20, **overrides)[0]


@pytest.mark.parametrize("each", thin([1, 3, 6], [1, 6]))
@pytest.mark.parametrize(("row", "pad"), thin([(128, 0), (128, 16), (128, 32)], 2))
def test_what_sms_get_of_copies(row, pad, each):
    """The slow ones, of large GPCs, within 4 %, all on average within 7; nothing is fitted to them."""
    got = flood(row, pad, each)
    low, mean, high = CARD[row, pad, each]
    assert np.percentile(got, 10) == pytest.approx(low, rel=0.04)
    assert got.mean() == pytest.approx(mean, rel=0.07)
    assert np.percentile(got, 90) == pytest.approx(high, rel=0.15)


def test_without_the_links_to_gpcs_all_get_more():
    """As much as slices give."""
    free, bound = (flood(128, 0, 6, **how) for how in ({"gpu__noc__gpc_link": 0}, {}))
    assert np.percentile(free, 10) > 1.05 * np.percentile(bound, 10)
    # SMs of small clusters get more than those of large ones, though less than on the card (1.49)
    assert np.percentile(bound, 90) > 1.25 * np.percentile(bound, 10)
    assert np.percentile(free, 90) < 1.2 * np.percentile(free, 10)


@pytest.mark.parametrize(("row", "pad"), thin([(64, 16), (64, 32)], 2))
def test_more_requests_for_as_much(row, pad):
    """10 and 15 requests a copy: 20 % too fast to 16 % too slow, as cards take more of them the more wait."""
    for each in (1, 3, 6):
        assert flood(row, pad, each).mean() == pytest.approx(CARD[row, pad, each][1], rel=0.22)


# what SMs get of copies that several of them make at once is off by so much at most, by rows and who shares
OFF = {
    (128, 0): {"none": 0.09, "tpc": 0.09, "gpc": 0.14, "all": 0.35},
    (64, 16): {"none": 0.16, "tpc": 0.16, "gpc": 0.28, "all": 0.24},
}


@pytest.mark.parametrize("shared", thin(SHARED, ["tpc"]))
@pytest.mark.parametrize(("row", "pad"), OFF)
def test_lines_that_several_sms_copy_at_once(row, pad, shared):
    """One reply serves several SMs; where each were sent its own, whole lines would come at half the rate.

    Whole lines that all SMs copy are 21 to 31 % too slow: on the card an SM gets up to 100 B a cycle of them.
    Rows of 64 B that a GPC shares, padded by 16, are 27 % too fast.
    """
    card = [PORT[row, pad, shared, 0, each][1] for each in (1, 4)]
    made = [flood(row, pad, each, shared).mean() for each in (1, 4)]
    assert made == pytest.approx(card, rel=OFF[row, pad][shared])
    if (pad, shared) == (0, "tpc"):
        alone = flood(row, pad, 4, shared, gpu__noc__join_loads=0).mean()
        assert alone < 0.7 * card[1]


@pytest.mark.parametrize("each", [1, 2, 3, 4])
@pytest.mark.parametrize(("row", "pad"), [(128, 0), (128, 16), (64, 16), (64, 32)])
def test_links_have_the_clock_of_l2(row, pad, each):
    """Beside mma SMs have 0.9 of their clock and get as much in a ns: within 4 % there and 1 here."""
    idle, busy = (PORT[row, pad, "none", mma, each] for mma in (0, 1))
    assert busy[3] < 0.92 * idle[3]
    assert busy[1] * busy[3] == pytest.approx(idle[1] * idle[3], rel=0.04)
    if (pad, each) == (0, 2):
        assert flood(row, pad, each, sim__clock_share=0.9).mean() == pytest.approx(
            flood(row, pad, each).mean(), rel=0.01
        )
