"""Which ready TB goes next, and where: priorities, placement, a share kept for older kernels."""

from __future__ import annotations

from itertools import groupby, pairwise

import numpy as np
import pytest

from pysim import simulate
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.schemes.priority import priority_ranks
from tests.core.harness import execute, tiny
from tests.oracle.test_ordering import LATE, kernel, two


def stores(memory, name, tbs, delay, warps=1, registers=16):
    made = kernel(name, "store", memory.tensor(name, tbs, 32, 4), tbs=tbs, delay=delay)
    program = Program(name, made.program.variants, warps, registers, 0, 1)
    return Kernel(name, program, made.grid, made.args, made.accesses)


def of(ran, number):
    return ran.tbs[ran.tbs["kernel"] == number]


def overlap(tbs, at):
    """TBs on the chip at a time."""
    return int(((tbs["start"] <= at) & (tbs["end"] > at)).sum())


# ---- priority ----
def test_ranks_of_consumers():
    # two chains of three kernels and one that stands alone
    preds = [(), (), (0,), (1,), (2,), (3,), ()]
    assert priority_ranks("consumer", preds, [1.0] * 7) == [4, 5, 2, 3, 0, 1, 6]
    assert priority_ranks("round_robin", preds, [1.0] * 7) == list(range(7))


def test_ranks_of_the_critical_path():
    """By the longest time from a kernel's start to the end of all, not by age or by how deep it lies."""
    # 0 -> 2 -> 4 and 1 -> 3, 1 -> 4; 5 stands alone and is long; 6 -> 7, 6 -> 8
    preds = [(), (), (0,), (1,), (1, 2), (), (), (6,), (6,)]
    times = [1.0, 4.0, 2.0, 6.0, 3.0, 7.0, 2.0, 4.0, 4.0]
    # so long: 6, 10, 5, 6, 3, 7, 6, 4, 4; of those alike the older goes first
    found = priority_ranks("critical", preds, times)
    assert found == [2, 0, 5, 3, 8, 1, 4, 6, 7]
    assert found not in (priority_ranks("oldest", preds, times), priority_ranks("consumer", preds, times))


def crowd():
    """A kernel that fills the six SMs, and three that are ready before it has ended."""
    memory = Memory()
    return Job(
        "crowd", [stores(memory, n, tbs, LATE) for n, tbs in zip("abcd", (192, 64, 64, 64), strict=True)]
    )


@pytest.mark.parametrize(
    ("priority", "first", "run"),
    [("oldest", 1, 64), ("newest", 3, 64), ("round_robin", 1, 1), ("consumer", 1, 64)],
)
@pytest.mark.parametrize("scheme", ["pool", "tb_static"])
def test_who_goes_next(scheme, priority, first, run):
    ran = execute(crowd(), scheme, tiny(scheme__priority=priority))
    later = ran.tbs[ran.tbs["kernel"] > 0]
    order = later["kernel"][np.argsort(later["dispatch"], kind="stable")].tolist()
    runs = [(kernel, len(list(same))) for kernel, same in groupby(order)]
    assert runs[0] == (first, run)
    assert all(length == run for _, length in runs)


def test_turns_go_round_among_those_that_fit():
    """One of the three needs a whole SM and is passed over; it has its turn when there is room."""
    memory = Memory()
    job = Job(
        "turns",
        [
            stores(memory, "a", 192, LATE),
            stores(memory, "wide", 6, 2000, 32, 64),
            stores(memory, "c", 200, 2000),
            stores(memory, "d", 200, 2000),
        ],
    )
    for bypass in (0, 4):
        ran = execute(job, "pool", tiny(scheme__priority="round_robin", scheme__bypass=bypass))
        assert int(ran.totals.tbs_done) == 598
        assert len(of(ran, 1)) == 6


# ---- placement ----
def early(tbs=12):
    """Five TBs that take an SM each, and a kernel that finds one SM free."""
    memory = Memory()
    return Job(
        "early", [stores(memory, "wide", 5, LATE, 32, 64), stores(memory, "early", tbs, 20 * LATE // 10)]
    )


def test_a_kernel_that_starts_early_takes_its_share():
    free, even = (
        execute(early(), "pool", tiny(scheme__placement=word)) for word in ("first_free", "balanced")
    )
    during = int(of(free, 0)["start"].max()) + 1_000_000
    assert overlap(of(free, 1), during) == 12
    assert overlap(of(even, 1), during) == 2
    # the others wait for further SMs
    assert (np.sort(of(even, 1)["dispatch"])[2:] >= of(even, 0)["end"].min()).all()
    assert np.bincount(of(free, 1)["sm"], minlength=6).max() == 12
    assert np.bincount(of(even, 1)["sm"], minlength=6).max() == 2


def test_stream_order_places_as_measured():
    runs = {
        execute(early(), "stream", tiny(scheme__placement=w)).hash
        for w in ("first_free", "balanced", "affinity")
    }
    assert len(runs) == 1


def test_consumers_run_where_their_producers_ran():
    job = two("store", "load", tbs=40)
    near, free = (execute(job, "tb_static", tiny(scheme__placement=w)) for w in ("affinity", "first_free"))
    assert (of(near, 0)["sm"] == of(near, 1)["sm"]).all()
    assert (of(free, 0)["sm"] != of(free, 1)["sm"]).any()


@pytest.mark.parametrize("affinity", [1, 8, 1000])
def test_affinity_on_a_full_chip(affinity):
    """More TBs than fit: the further one looks, the more run beside what they read."""
    job = two("store", "load", tbs=600)
    conf = tiny(scheme__placement="affinity", scheme__affinity=affinity, sim__oracle=1)
    ran = execute(job, "tb_static", conf)
    same = float((of(ran, 0)["sm"] == of(ran, 1)["sm"]).mean())
    plain = execute(job, "tb_static", tiny())
    assert same >= float((of(plain, 0)["sm"] == of(plain, 1)["sm"]).mean())


def reread(tbs, lines):
    """A TB reads lines of its own and stores one; its consumer loads that one, and the same lines again."""
    memory = Memory()
    made, own = memory.tensor("made", tbs, 32, 4), memory.tensor("own", tbs, 32 * lines, 4)

    def rows(tensor):
        return lambda tb: np.stack([tb, tb + 1, 0 * tb, 0 * tb + tensor.cols], axis=1)

    def part(name, op, mode, delay):
        code = Code()
        if delay:
            code.delay(delay)
        for line in range(lines):
            code.load(0, Pattern(1, 4, base=128 * line, bx=own.pitch, s0=4))
        code.wait(0)
        getattr(code, op)(0, Pattern(0, 4, bx=made.pitch, s0=4))
        code.wait(0)
        code.exit()
        program = Program(name, (tuple(code.ops),), 1, 16, 0, 2)
        accesses = (Access(made, mode, rows(made)), Access(own, "read", rows(own)))
        return Kernel(name, program, (tbs, 1, 1), (made, own), accesses)

    return Job("reread", [part("first", "store", "write", LATE), part("second", "load", "read", 0)])


def test_consumers_find_in_l1_what_their_producers_read():
    """What the job never writes stays in L1, so a consumer that runs elsewhere asks L2 for it once more."""
    tbs, lines = 40, 16
    hits = {}
    for word in ("first_free", "affinity"):
        result = simulate(tiny(scheme__placement=word), reread(tbs, lines), "tb_static", threads=1)
        tables = result.tables()
        at = {(int(t["kernel"]), int(t["tb"])): int(t["sm"]) for t in tables["tbs"]}
        home = sum(at[0, tb] == at[1, tb] for tb in range(tbs))
        hits[word] = int(tables["sm"]["l1_hits"].sum())
        assert hits[word] == lines * home
        # the first read of all lines, what was made, and the lines of those that ran elsewhere
        asked = tbs * (lines + 1) + (tbs - home) * lines
        assert int(tables["l2"]["sectors_read"].sum()) == 4 * asked
    assert hits["affinity"] == lines * tbs > 2 * hits["first_free"]


def test_the_further_affinity_looks_the_more_is_found_in_l1():
    found = []
    for affinity in (1, 8, 64):
        conf = tiny(scheme__placement="affinity", scheme__affinity=affinity, sim__oracle=1)
        ran = execute(reread(600, 4), "tb_static", conf)
        found.append((int(ran.sms["work"]["l1_hits"].sum()), -int(ran.slices["sectors_read"].sum())))
    assert all(a < b for less, more in pairwise(found) for a, b in zip(less, more, strict=True))


# ---- reserve ----
@pytest.mark.parametrize(("reserve", "most"), [(0.0, 192), (0.75, 96), (0.875, 48), (1.0, 0)])
def test_a_share_is_kept_for_the_oldest(reserve, most):
    """Newest first would leave nothing to the oldest kernel: 384 warps, six SMs of at most 32 TBs."""
    memory = Memory()
    job = Job("share", [stores(memory, "old", 1000, 4000), stores(memory, "new", 1000, 4000)])
    ran = execute(job, "pool", tiny(scheme__priority="newest", scheme__reserve=reserve))
    last = int(of(ran, 0)["dispatch"].max())
    new = of(ran, 1)
    held = [overlap(new, int(t)) for t in new["start"] if int(t) <= last - 1_000_000]
    assert max(held, default=0) == most


@pytest.mark.parametrize("priority", ["newest", "round_robin"])
def test_a_reserved_kernel_is_not_one_that_does_not_fit(priority):
    """Nothing may be passed over, and yet the oldest kernel behind those that are held back goes on."""
    memory = Memory()
    job = Job("held", [stores(memory, n, 30, 2000) for n in "abc"])
    conf = tiny(scheme__priority=priority, scheme__reserve=1.0, scheme__bypass=0)
    ran = execute(job, "tb_ideal", conf)
    begun = [int(of(ran, n)["dispatch"].min()) for n in range(3)]
    assert begun == sorted(begun)


@pytest.mark.parametrize("sms", [1, 2, 3, 5, 7, 11])
def test_every_sm_gets_tbs(sms):
    """Also the only one of a TPC, where there are fewer TPCs than GPCs."""
    ran = execute(Job("all", [stores(Memory(), "k", 64 * sms, 2000)]), conf=tiny(gpu__sms=sms))
    assert set(ran.tbs["sm"].tolist()) == set(range(sms))
