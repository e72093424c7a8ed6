"""Few lines that all SMs read all the time, against an H200 (tests/hw/memory/hotline.cu)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim.program.job import Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.microbench.bench import buffer
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h200_hotline.csv")
WARPS, LOADS, TURNS = 8, 32, 8


def measured():
    """Return cycles of a turn by lines, bytes between them and sectors of each, if all SMs read the same."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["sms"], row["own"]) == ("132", "0")]
    return {
        tuple(int(row[key]) for key in ("lines", "pitch", "sectors")): float(row["cycles"]) for row in rows
    }


def turn(lines, pitch, sectors, **changed):
    """Return cycles of a turn: each of an SM's warps loads 32 times, four at a time, all lines by turns."""
    code = Code()
    mark = code.loop_begin()
    for first in range(0, LOADS, 4):
        for number in range(first, first + 4):
            patterns = [
                Pattern(0, 4, base=(number + 5 * warp) % lines * pitch, s0=4, minor=8 * sectors)
                for warp in range(WARPS)
            ]
            code.load(0, *patterns, bypass_l1=True)
        code.wait(0)
        code.compute(int=4, chain=1)
    code.compute(int=4, control=2, chain=4)
    code.loop_end(mark, TURNS)
    code.exit()
    program = Program("line", (tuple(code.ops),), WARPS, 32, 120000, 1)
    kernel = Kernel("line", program, (132, 1, 1), (buffer(Memory(), "source", 1 << 20),), (), 0)
    tbs = execute(Job("line", [kernel] * 2), "stream", config("h200", **changed)).tbs
    second = tbs[tbs["kernel"] == 1]
    return float(np.mean(second["end"] - second["start"])) / 1024 * 1.98 / TURNS


def off(rows, card, **changed):
    return np.array([turn(*row, **changed) / card[row] - 1 for row in rows])


def test_a_slice_lets_loads_in_one_by_one():
    """`gpu.l2.enter` is what two lines of one slice take; the others, of one slice or two, follow."""
    card = measured()
    rows = [(lines, 128, sectors) for lines in (1, 2, 4, 8) for sectors in (1, 2)]
    assert abs(off(rows, card)).max() < 0.1
    assert off(rows, card, gpu__l2__enter=0).max() < -0.3


def test_whole_lines_of_one_slice():
    """More than 64 B enter twice: 12 % too fast to 17 % too slow, where one to four lines lie in a slice.

    On the card a load of one line takes 0.86 cycles, of two in one slice 0.79, of two in each of two 0.66.
    """
    card = measured()
    rows = [(lines, 128, 4) for lines in (1, 2, 4, 8)]
    assert off(rows, card) == pytest.approx([-0.115, -0.03, 0.165, 0.15], abs=0.04)
    assert off(rows[:2], card, gpu__l2__request=0).max() < -0.2


def test_a_gpc_has_one_port_for_all_slices():
    """Of 2 KiB that all SMs read four slices of either half hand a GPC all that it gets."""
    card = measured()
    assert abs(off([(16, 128, 4)], card)).max() < 0.12


def test_lines_of_many_slices():
    """There SMs by themselves take as long, which is 7 to 12 % too fast here, as for lines of their own."""
    card = measured()
    rows = [(lines, 4096, sectors) for lines in (8, 16) for sectors in (1, 2, 4)]
    assert off(rows, card) == pytest.approx(-0.095, abs=0.04)
