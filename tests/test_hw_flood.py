"""What all SMs of an H200 get of copies that hit in L2, with more and more under way (tests/hw/flood.cu)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from pysim.job import Job, Kernel, Memory
from pysim.program import Code, Pattern, Program
from workloads.microbench.bench import buffer

from .core.harness import config, execute

ROWS = Path(__file__).resolve().parents[1] / "workloads" / "measured" / "h200_flood.csv"
SMS, LOOPS, STEP, TURN = 132, 6, 8192, 12
FIRST, LAST = 16 * 1024, 220_000  # B of shared memory: what three steps need at least, and an SM has


def measured():
    """Wanted bytes a cycle of an SM, mean of all, by row, padding and TBs."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["what"], row["apart"]) == ("copies", "0")]
    return {
        tuple(int(row[name]) for name in ("row", "pad", "each")): tuple(
            float(row[name]) for name in ("p10", "mean", "p90")
        )
        for row in rows
    }


CARD = measured()


def flood(row, pad, each, **overrides):
    """The same as simulated: each of 4 warps goes through its part of the TB's 32 KiB, 3 steps ahead."""
    code = Code()
    mark = code.loop_begin()
    for step in range(TURN):
        for j in range(4):
            places = []
            for warp in range(4):
                at = j * 2048 + 512 * warp
                into = (at // row * (row + pad) + at % row) % 128
                where = {"s0": 16, "s1": row, "minor": row // 16, "into": into, "into_pitch": row + pad}
                places.append(Pattern(0, 16, base=at + STEP * (step % 4), bx=4 * STEP, **where))
            code.load(step % 3, *places, bypass_l1=True, smem=1)
            code.compute(int=4, chain=4)
        code.wait((step + 1) % 3)
    code.loop_end(mark, LOOPS)
    for slot in range(3):
        code.wait(slot)
    code.exit()
    smem = max(LAST // each // 1024 * 1024 - 1024, FIRST)
    source = buffer(Memory(), "source", 32 << 20)
    program = Program("flood", (tuple(code.ops),), 4, 64, smem, 1)
    kernel = Kernel("flood", program, (SMS * each, 1, 1), (source,), (), 0)
    tbs = execute(Job("flood", [kernel] * 2), "stream", config("h200", **overrides)).tbs
    second = tbs[tbs["kernel"] == 1]
    took = (second["end"].astype(np.int64) - second["start"].astype(np.int64)) / 1024 * 1.98
    return STEP * TURN * LOOPS * each / took


@pytest.mark.parametrize("each", [1, 3, 6])
@pytest.mark.parametrize(("row", "pad"), [(128, 0), (128, 16), (128, 32)])
def test_what_sms_get_of_copies(row, pad, each):
    """10 % more at most; the slow ones, of the large GPCs, within 6 %: gpu.noc.gpc_bytes is theirs."""
    got = flood(row, pad, each)
    low, mean, _ = CARD[row, pad, each]
    assert np.percentile(got, 10) == pytest.approx(low, rel=0.06)
    assert got.mean() == pytest.approx(mean, rel=0.12)


def test_without_the_ports_of_gpcs_all_get_more():
    """As much as slices give."""
    free, bound = (flood(128, 0, 6, **how) for how in ({"gpu__noc__gpc_bytes": 0}, {}))
    low, _, high = CARD[128, 0, 6]
    assert np.percentile(free, 10) > 1.05 * np.percentile(bound, 10)
    # SMs of small clusters get more than those of large ones, as there
    assert np.percentile(bound, 90) / np.percentile(bound, 10) == pytest.approx(high / low, rel=0.1)
    assert np.percentile(free, 90) / np.percentile(free, 10) < 1.2


@pytest.mark.parametrize(("row", "pad"), [(64, 16), (64, 32)])
def test_more_requests_for_as_much(row, pad):
    """10 and 15 requests a copy: 30 % too fast to 20 % too slow, as cards take more of them the more wait."""
    for each in (1, 3, 6):
        assert flood(row, pad, each).mean() == pytest.approx(CARD[row, pad, each][1], rel=0.3)
