"""Copies of lines that many SMs read at the same time, against an H200 (tests/hw/memory/hot.cu)."""

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

ROWS = measured_table("h200_hot.csv")
SMS, STEPS, WARPS = 132, 32, 4
PITCH_A, PITCH_B = 2048, 128
B_FROM = 64 << 20
# rows of A and of B that a copy of a warp brings
ROWS_A, ROWS_B = 8, 4
SHARED = [(1, 1), (1, 132), (132, 1), (132, 132), (33, 33), (4, 4)]


def measured():
    """Return cycles a step by padding, SMs that read the same A, and that read the same B."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["tbs"], row["pitch_b"]) == ("132", "128")]
    return {
        (int(row["pad"]), int(row["share_a"]), int(row["share_b"])): float(row["step_cycles"])
        for row in rows
        if (row["wait"], row["skew"]) == ("0", "0")
    }


def spread(share, bytes_each, across):
    """Return what the x and the y of a TB add to its place, if so many in a row read the same."""
    if share == 1:
        return bytes_each, bytes_each * across
    return (0, 0) if share == SMS else (0, bytes_each)


def step(pad, share_a, share_b, **changed):
    """Return cycles a step of 64 rows of 64 B of A and 32 of 128 B of B, two steps ahead."""
    across = max({share_a, share_b} - {1, SMS}, default=SMS)
    ax, ay = spread(share_a, 64 * PITCH_A, across)
    bx, by = spread(share_b, 32 * PITCH_B * STEPS, across)
    pitch_a, pitch_b = 64 + pad, 128 + pad
    code = Code()

    def loads(first, slot=0, **when):
        """Copies of a step: a half of B's rows and one of A's, twice."""
        moves = bool(when.get("stages"))
        for half in (0, 1):
            b = [
                Pattern(
                    0, 16, base=B_FROM + (16 * half + ROWS_B * w + 32 * first) * PITCH_B, bx=bx, by=by,
                    step=32 * PITCH_B * moves, s0=16, s1=PITCH_B, minor=8,
                    into=(6144 + (16 * half + ROWS_B * w) * pitch_b) % 128, into_pitch=pitch_b,
                )
                for w in range(WARPS)
            ]  # fmt: skip
            a = [
                Pattern(
                    0, 16, base=(32 * half + ROWS_A * w) * PITCH_A + 64 * first, bx=ax, by=ay,
                    step=64 * moves, s0=16, s1=PITCH_A, minor=4,
                    into=(32 * half + ROWS_A * w) * pitch_a % 128, into_pitch=pitch_a,
                )
                for w in range(WARPS)
            ]  # fmt: skip
            for patterns in (b, a):
                code.load(slot, *patterns, bypass_l1=True, smem=1, **when)
        code.compute(int=4, control=2, chain=4)

    for first in (0, 1):
        loads(first, first, level=2)
    mark = code.loop_begin()
    code.wait(0, stages=3)
    code.barrier()
    loads(0, stages=3, level=0, ahead=2)
    code.compute(int=4, control=2, chain=4)
    code.loop_end(mark, STEPS - 2)
    code.wait(0)
    code.exit()
    program = Program("deep", (tuple(code.ops),), WARPS, 32, 120000, 1)
    source = buffer(Memory(), "source", 256 << 20)
    kernel = Kernel("deep", program, (across, SMS // across, 1), (source,), (), 0)
    tbs = execute(Job("hot", [kernel] * 2), "stream", config("h200", **changed)).tbs
    second = tbs[tbs["kernel"] == 1]
    return float(np.mean(second["end"] - second["start"])) / 1024 * 1.98 / STEPS


@pytest.mark.parametrize("pad", thin([16, 32], 2))
def test_steps_whose_rows_are_padded(pad):
    """As those of products. Nothing of the model is fitted to them.

    Those that share A are 9 to 20 % too fast, not known why (docs/validation/memory.md). Where lines in a row
    lie in slices in a row, nearly all of them are off by more.
    """
    card = measured()
    off, rows = (
        abs(np.array([step(pad, *shared, **how) / card[pad, *shared] - 1 for shared in SHARED]))
        for how in ({}, {"gpu__l2__chunked": 0})
    )
    assert off.max() < 0.21
    assert off.mean() < 0.11 < 0.15 < rows.mean()


def test_steps_without_padding():
    """As copies whose rows lie in shared memory as in lines: what several share is 6 to 18 % too fast."""
    card = measured()
    off = np.array([step(0, *shared) / card[0, *shared] - 1 for shared in SHARED])
    assert -0.2 < off.min() < off.max() < 0.05
