"""What lies between two TBs of a place and between two kernels, as an H200 shows it (gaps.cu)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim import simulate
from pysim.program.job import Job, Memory
from pysim.program.warp_program import Code, Pattern
from pysim.workloads.microbench.bench import kernel
from tests.core.harness import config
from tests.support.measured import measured_table

ROWS = measured_table("h200_gaps.csv")
SMS, GHZ = 132, 1.98
SPIN = 6000  # cycles of a kernel's body
ALONE = 200 * 1024  # shared memory that leaves no room for a second TB


def measured(what, edge, tbs, threads):
    with ROWS.open(encoding="utf-8", newline="") as file:
        key = [what, edge, str(tbs), str(threads)]
        return next(
            float(row["value"])
            for row in csv.DictReader(file)
            if [row[name] for name in ("what", "edge", "tbs", "threads")] == key
        )


def spin(tbs, threads, stores, cycles=SPIN, smem=0):
    """Make a kernel that waits, then stores 4 B a thread so many times."""
    code, memory = Code(), Memory()
    room = memory.tensor("room", tbs * threads * 64 // 1024, 1024, 4)
    code.delay(cycles)
    for i in range(stores):
        code.store(4, Pattern(0, 4, base=i * threads * 4, bx=threads * 256, warp=128, s0=4))
    code.exit()
    return kernel("spin", code, tbs, threads, smem=smem, writes=[room])


def gap_us(scheme, tbs, threads, stores, conf=None):
    """Return the period of kernels one behind the other, less what each waits."""
    job = spin(tbs, threads, stores)
    times = [
        simulate(conf or config("h200"), Job("spins", [job] * n), scheme, threads=1, tables="none").time_us(
            scheme
        )
        for n in (4, 8)
    ]
    return (times[1] - times[0]) / 4 - SPIN / GHZ / 1e3


@pytest.mark.parametrize("tbs", [1, 64, 132, 264])
@pytest.mark.parametrize("stores", [0, 1, 4, 16, 64])
@pytest.mark.parametrize(("scheme", "within"), [("stream", 0.25), ("graph", 0.1)])
def test_gap_between_kernels(scheme, within, tbs, stores):
    # The card's stream order knows steps of 0.1 us, which are not modelled. A lone TB's stores all lie as far
    # from it as its SM happens to be from their lines: up to 0.1 us more or less.
    want = measured(f"stores {stores}" if stores else "spin", scheme, tbs, 128)
    assert gap_us(scheme, tbs, 128, stores) == pytest.approx(want, abs=within)


def test_a_kernel_is_over_when_its_stores_are_seen():
    # without acknowledgements the gap would not know of stores
    plain, stored = (gap_us("graph", 132, 128, n) for n in (0, 1))
    want = measured("stores 1", "graph", 132, 128) - measured("spin", "graph", 132, 128)
    assert stored - plain == pytest.approx(want, abs=0.05)
    rushed = config("h200", gpu__cp__tb_flush=0)
    assert plain < gap_us("graph", 132, 128, 1, rushed) < stored


def turnaround(threads, stores, conf=None):
    """Return the cycles from the end of a TB's wait to the start of the next one in its place."""
    job = spin(SMS * 4, threads, stores, 20_000, ALONE)
    rows = simulate(conf or config("h200"), Job("turns", (job,)), "stream", threads=1).tables()["tbs"]
    by_sm = [np.sort(rows["start_ns"][rows["sm"] == sm]) for sm in range(SMS)]
    return float(np.median(np.diff(np.array(by_sm), axis=1))) * GHZ - 20_000


# what a place is free later for stores at the end of its TB: when they have left the SM, not when L2 has
# acknowledged them
@pytest.mark.parametrize(
    ("threads", "stores"),
    # one warp alone takes 9 cycles a store for the loop around it, which is not in the program here
    [(32, 1), (32, 4), *((threads, n) for threads in (128, 256) for n in (1, 4, 16, 64))],
)
def test_a_place_is_free_when_stores_have_left(threads, stores):
    tbs = SMS * 12
    idle = measured("turnaround with stores 0", "slot", tbs, threads)
    want = measured(f"turnaround with stores {stores}", "slot", tbs, threads) - idle
    got = turnaround(threads, stores) - turnaround(threads, 0)
    assert got == pytest.approx(want, rel=0.2, abs=100)
    kept = config("h200", gpu__sm__leave_stores=0)
    assert turnaround(threads, stores, kept) - turnaround(threads, 0, kept) > got + 150
