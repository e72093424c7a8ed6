"""What warp-group multiplies of m64 x n x 32 B take on an H200 (tests/hw/hopper/wgmma.cu)."""

from __future__ import annotations

import csv

import pytest

from tests.support.measured import measured_table

KEY = ("n", "a_from", "sms", "warp_groups", "chains", "left", "step")
TYPES = ("fp16", "tf32", "e4m3")
NEVER = 9  # `left` of those that wait at the end only


def _table():
    with measured_table("h200_wgmma.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    words = {"type", "a_from", "cycles"}
    return [
        {k: v if k in words else int(v) for k, v in row.items()} | {"cycles": float(row["cycles"])}
        for row in rows
    ]


ROWS = _table()


def each(a_from, kind=None, **wanted):
    """Return the rows of a source of A, and of a type if one is named, with such values."""
    wanted |= {"a_from": a_from} | ({"type": kind} if kind else {})
    found = [row for row in ROWS if all(row[k] == v for k, v in wanted.items())]
    assert len(found) >= 15
    return found


def tensor_cycles(n):
    """Return the cycles that a multiply occupies the tensor cores with both operands in shared memory."""
    return max(n / 2, 16 + n / 4)


def busy(row):
    """Return the cycles of all warp groups' multiplies of a step."""
    return row["warp_groups"] * row["step"] * tensor_cycles(row["n"])


@pytest.mark.parametrize("kind", TYPES)
def test_multiplies_of_one_accumulator_are_pipelined(kind):
    """Reading the 64 rows of A limits n below 64; several warp groups may end before the last step ends."""
    for row in each("shared", kind, left=NEVER, warp_groups=1, chains=1):
        assert row["cycles"] == pytest.approx(busy(row), abs=0.1)
    for groups in (2, 3):
        for row in each("shared", kind, left=NEVER, warp_groups=groups, chains=1):
            assert 0.965 * busy(row) < row["cycles"] < 1.003 * busy(row)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("a_from", "pipeline"), [("shared", 60), ("registers", 50)])
def test_latency_of_a_lone_multiply(kind, a_from, pipeline):
    """From issue until the warp group goes on. A in registers saves ten cycles."""
    lone = [row for row in each(a_from, kind, warp_groups=1) if row["step"] == 1]
    assert {row["first"] - pipeline - row["n"] / 2 for row in lone} == {0}


@pytest.mark.parametrize("kind", TYPES)
def test_latency_of_a_step(kind):
    """The first multiply's latency, then one after the other."""
    for row in each("shared", kind, warp_groups=1, chains=1):
        assert row["first"] == 60 + row["n"] / 2 + (row["step"] - 1) * tensor_cycles(row["n"])


def test_types_take_the_same():
    """A multiply has k of 32 B, so fp16 computes twice as much as tf32, e4m3 twice as much as fp16."""
    known = {tuple(row[k] for k in KEY): row for row in each("shared", "fp16") + each("registers", "fp16")}
    for kind in TYPES[1:]:
        for a_from, within in (("shared", 0.013), ("registers", 0.02)):
            for row in each(a_from, kind):
                same = known[tuple(row[k] for k in KEY)]
                assert row["cycles"] == pytest.approx(same["cycles"], rel=within)


def test_all_sms_take_what_one_takes():
    known = {(row["type"], *(row[k] for k in KEY if k != "sms")): row for row in ROWS if row["sms"] == 1}
    for row in ROWS:
        same = known[row["type"], *(row[k] for k in KEY if k != "sms")]
        assert row["cycles"] == pytest.approx(same["cycles"], rel=0.02)


def test_a_step_that_is_waited_for_takes_its_latency():
    """41 to 67 cycles a step more than its multiplies; one step left under way hides nearly all of it."""
    for row in each("shared", warp_groups=1, chains=1, left=0):
        assert -5.2 < row["cycles"] - row["first"] < 7.1
        assert 40 < row["cycles"] - busy(row) < 68
    for row in each("shared", warp_groups=1, chains=1, left=1):
        assert row["cycles"] - busy(row) < (13 if row["step"] == 1 else 5.1 if row["step"] == 2 else 0.3)


def test_a_second_warp_group_hides_the_wait():
    """From steps of four multiplies on."""
    for row in each("shared", warp_groups=2, chains=1, left=0):
        if row["step"] >= 4:
            assert row["cycles"] == pytest.approx(busy(row), abs=0.3)


def test_operand_in_registers():
    """Without A to be read from shared memory, issue limits n below 27."""
    for groups in (2, 3):
        for row in each("registers", warp_groups=groups):
            if row["step"] >= 4:
                least = groups * row["step"] * max(row["n"] / 2, 13.5)
                assert 0.95 * least < row["cycles"] < 1.07 * least
