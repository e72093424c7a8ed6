"""How many lines an SM has under way before it stalls, against an H100 (tests/hw/sm/flight.cu)."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import pairwise

from pysim.program.job import Job, Memory
from pysim.program.warp_program import Code, Pattern
from pysim.workloads.microbench.bench import buffer, kernel
from tests.core.harness import config, execute
from tests.support.measured import measured_table

ROWS = measured_table("h100_flight.csv")
OPS, BYTES = 48, 4096  # ops of a warp, and what each has to itself
EVERY, STALL = 8, 500  # every so many ops the table has a time; cycles between two of them that are a stall
LATE = 8000  # cycles in which nothing comes yet
LOADS, COPIES = ("load_32x1", "load_8x1"), ("copy_8x2", "copy_4x4")
SHAPES = {
    "load_32x1": Pattern(0, 4, s0=128),
    "load_8x1": Pattern(0, 4, s0=4, s1=512, minor=4),
    "copy_8x2": Pattern(0, 16, s0=16, s1=512, minor=4),
    "copy_4x4": Pattern(0, 16, s0=16),
}


def measured(kinds):
    """Yield kind, warps, lines of an op, and the least and most lines that were under way at the first stall.

    The others read DRAM, so that what is asked for comes late. Ops that have issued and wait before the unit
    are taken off: 60 loads; 9 copies and one a warp (tests/hw/README.md). No most: it never stalled.
    """
    with ROWS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["kind"] in kinds and (row["beside"], row["pace"]) == ("dram", "0"):
                warps, lines = int(row["warps"]), int(row["requests_an_op"])
                times = [int(time) for time in row["issued"].split()]
                gaps = [b - a for a, b in pairwise(times)]
                stall = next((i for i, gap in enumerate(gaps, 1) if gap > STALL), None)
                wait = 60 if row["kind"] in LOADS else 9 + warps
                least = (EVERY * (stall or len(times)) - wait) * lines
                yield row["kind"], warps, lines, least, stall and least + (EVERY - 1) * lines


def asked(kind, warps, **limits):
    """Return the lines that a TB has asked for when the first of them is about to come."""
    memory, code = Memory(), Code()
    cold = buffer(memory, "cold", warps * OPS * BYTES)
    for i in range(OPS):
        place = replace(SHAPES[kind], base=i * BYTES, warp=OPS * BYTES)
        code.load(0, place, bypass_l1=True, smem=int(kind in COPIES))
    code.exit()
    job = Job("flight", [kernel("flight", code, 1, 32 * warps, smem=200 << 10, reads=(cold,))])
    alone = {"gpu__sms": 1, "gpu__gpcs": 1, "gpu__dram__latency": LATE}
    limits = {f"gpu__l1__{name}": value for name, value in limits.items()}
    made = execute(job, "stream", config("h100", **alone, **limits))
    come = int(made.tbs["start"][0]) + LATE * made.values["gpu.clock"]
    return int(made.samples["work"]["l2_requests"][: come // int(made.totals.sample_interval)].sum())


def loads_off(**limits):
    """Return the loads that stall behind other numbers of lines than on the card."""
    found = [(asked(kind, warps, **limits), least, most) for kind, warps, _, least, most in measured(LOADS)]
    return [row for row in found if not row[1] <= row[0] <= row[2]]


def copies_off(**limits):
    """Return the copies that stall outside of what was measured of any, or only here.

    An op goes whole where there is room for one of its lines: it may exceed the most by its lines.
    """
    rows = list(measured(COPIES))
    few, many = min(least for *_, least, most in rows if most), max(most for *_, most in rows if most)
    wrong = []
    for kind, warps, lines, _, most in rows:
        found, every = asked(kind, warps, **limits), OPS * warps * lines
        if not few <= found <= many + lines if most else found < every:
            wrong.append((kind, warps, found))
    return wrong


def test_loads_stall_behind_as_many_lines_as_on_an_h100():
    """Of 8 lines an op 224 to 280 are under way there, of 32 lines 128 to 352: every eighth op has a time.

    Not as there: 60 ops more are issued and wait before the unit, here each warp waits with its next one.
    Lines come late there as other SMs read DRAM and as addresses are translated, here as DRAM takes longer.
    """
    assert not loads_off()
    assert loads_off(in_flight=208)
    assert loads_off(in_flight=296)


def test_copies_stall_behind_as_many_lines_as_on_an_h100():
    """1,528 to 1,688 lines are under way there, and 1,536 without a stall where that is all that there is.

    Not as there: fewer lines where an op has 8 of two sectors (1,528 to 1,648) than where it has 4 of four
    (1,660 to 1,688), 500 to 1,060 where it has those of one sector, which are left out, and the ops that
    wait before the unit.
    """
    assert not copies_off()
    assert copies_off(copies_in_flight=0)
    assert copies_off(copies_in_flight=1480)
    assert copies_off(copies_in_flight=1740)
