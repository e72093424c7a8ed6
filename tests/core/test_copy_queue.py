"""Copies into shared memory (cp.async) in a sub-core's queue for the load/store unit, and what waits."""

from dataclasses import replace

import pytest

from pysim.errors import WorkloadError
from pysim.isa import UNNEEDED
from pysim.job import Job, Kernel, Memory
from pysim.ops import cut
from pysim.program import Code, Pattern, Program

from .harness import config, execute

ROWS = 8  # of a copy, 64 B each
REST = 3000  # cycles, until all loads are there
CLOCK = 1980


def ends(copies, then="", *, pitch=128, warps=1):
    """Cycles from a TB's start to its end: so many copies a warp, something, and a rest."""
    memory, code = Memory(), Code()
    source = memory.tensor("source", 64 * ROWS, 32, 4)
    for i in range(copies):
        place = Pattern(0, 16, base=i * ROWS * 128, s0=16, s1=128, minor=4, into=0, into_pitch=pitch)
        code.load(0, place, bypass_l1=True, smem=1)
    if then == "taken":
        code.taken()
    elif then == "loads":
        code.compute(smem=4, smem_ops=1, smem_back=0)
    elif then == "void":
        code.compute(smem=4, smem_ops=1, smem_back=UNNEEDED)
        code.compute(int=1, chain=4)
    elif then == "kept":
        code.compute(smem=4, smem_ops=1, chain=0)
        code.compute(int=1, chain=4)
    code.delay(REST)
    code.exit()
    program = Program("copies", (tuple(code.ops),), warps, 32, 4096, 1)
    kernel = Kernel("copies", program, (1, 1, 1), (source,), (), 0)
    tbs = execute(Job("copies", [kernel]), "stream", config("h200", gpu__sms=1, gpu__gpcs=1)).tbs
    return (int(tbs["end"][0]) - int(tbs["start"][0])) / 1024 * CLOCK / 1000


@pytest.mark.parametrize("then", ["taken", "loads"])
def test_a_copy_leaves_when_the_one_before_it_begins(then):
    """Eight lines of a copy keep the unit for a cycle each."""
    for many in (8, 12):
        assert ends(many, then) - ends(4, then) == pytest.approx((many - 4) * ROWS, abs=1.5)


def test_a_warp_issues_a_copy_each_four_cycles():
    """Nothing waits for them."""
    assert ends(12) - ends(4) == pytest.approx(8 * 4, abs=1.5)


def test_nothing_waits_for_what_loads_nothing():
    """LDS RZ before a copy (@!PT): what comes next waited for the queue before it once, and TBs in turn."""
    assert ends(16, "kept") - ends(16) > 6 * ROWS
    assert ends(16, "void") - ends(16) < 2 * ROWS


def test_a_run_of_them_is_cut_into_such_runs():
    """Nothing waits between the pieces, so that they stay one run where a warp is picked greedily."""
    code = Code()
    code.compute(smem=4, smem_ops=4, fp32=36, chain=0, smem_back=UNNEEDED)
    pieces = cut(code.ops[0], 8)
    assert [op.smem_wait for op in pieces] == [UNNEEDED + 1] * 5

    def end(*waits):
        body = Code()
        mark = body.loop_begin()
        body.ops.extend(replace(op, smem_wait=wait) for op, wait in zip(pieces, waits, strict=True))
        body.compute(sfu=2, int=4, chain=20)
        body.loop_end(mark, 100)
        body.exit()
        kernel = Kernel("run", Program("run", (tuple(body.ops),), 8, 32, 0, 0), (1, 1, 1), (), (), 0)
        conf = config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__warp_order="greedy")
        return int(execute(Job("run", [kernel]), "stream", conf).tbs["end"][0])

    told = end(*[UNNEEDED + 1] * 5)
    assert told == end(0, 0, 0, 0, UNNEEDED + 1)
    assert told != end(*[200] * 5)
    with pytest.raises(WorkloadError, match="smem_back = 65536"):
        code.compute(smem=1, smem_ops=1, smem_back=UNNEEDED + 1)


def test_one_copy_is_not_waited_for():
    """The unit begins it at once, so its registers have been read."""
    assert ends(1, "taken") == pytest.approx(ends(1), abs=1.5)


def test_sub_cores_share_the_unit():
    """Four warps, one a sub-core: the queues are served in turn, each copy behind those of the others."""
    more = ends(8, "taken", warps=4) - ends(4, "taken", warps=4)
    assert more == pytest.approx(4 * 4 * ROWS, abs=4)


def test_what_comes_to_another_line_of_shared_memory_is_asked_for_by_itself():
    """Rows of 64 B, 80 B apart: some lie across lines or sectors, and pieces take cycles of their own."""
    padded, aligned = (ends(8, "taken", pitch=p) - ends(4, "taken", pitch=p) for p in (80, 128))
    assert aligned < padded <= 2 * aligned


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ({"into": 128}, "load"),
        ({"into_pitch": -16}, "load"),
        ({"into_pitch": 1 << 33}, "load"),
        ({"into_pitch": 80}, "store"),
    ],
)
def test_places_in_shared_memory_that_no_copy_has(place, kind):
    memory, code = Memory(), Code()
    target = memory.tensor("t", 64, 64, 4)
    getattr(code, kind)(0, Pattern(0, 16, s0=16, **place), **({"smem": 1} if kind == "load" else {}))
    code.exit()
    kernel = Kernel("bad", Program("bad", (tuple(code.ops),), 1, 32, 0, 1), (1, 1, 1), (target,), (), 0)
    with pytest.raises(WorkloadError, match="program bad: into"):
        execute(Job("bad", [kernel]), "stream", config("h200"))
