"""Copies into shared memory (cp.async) in a sub-core's queue for the load/store unit, and what waits."""

from dataclasses import replace

import pytest

from pysim.errors import WorkloadError
from pysim.isa import UNNEEDED
from pysim.program.job import Job, Kernel, Memory
from pysim.program.ops import split_block
from pysim.program.warp_program import Code, Pattern, Program

from .harness import config, execute

ROWS = 8  # of a copy, 64 B each
REST = 3000  # cycles, until all loads are there
CLOCK = 1980
READ = 12  # cycles in which a copy's registers are read
START = 4000  # of copies that others meet
FIRST = 730  # about what their first load takes
AGED = {"gpu__sm__queue": 0}  # other cards: no such queue is known


def ends(copies, then="", *, pitch=128, warps=1, rows=ROWS, **overrides):
    """Cycles from a TB's start to its end: so many copies a warp, something, and a rest."""
    memory, code = Memory(), Code()
    source = memory.tensor("source", 64 * rows, 32, 4)
    for i in range(copies):
        place = Pattern(0, 16, base=i * rows * 128, s0=16, s1=128, minor=32 // rows, into=0, into_pitch=pitch)
        code.load(0, place, bypass_l1=True, smem=1)
    if then == "taken":
        code.wait_operands_read()
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
    conf = config("h200", gpu__sms=1, gpu__gpcs=1, **overrides)
    tbs = execute(Job("copies", [kernel]), "stream", conf).tbs
    return (int(tbs["end"][0]) - int(tbs["start"][0])) / 1024 * CLOCK / 1000


@pytest.mark.parametrize("then", ["taken", "loads"])
def test_copies_leave_as_fast_as_registers_are_read(then):
    """The unit takes eight cycles for eight lines."""
    assert ends(12, then) - ends(4, then) == pytest.approx(8 * READ, abs=1.5)


@pytest.mark.parametrize("then", ["taken", "loads"])
def test_copies_leave_when_the_unit_has_room(then):
    """A line for each lane takes it longer: then all but six have begun."""
    assert ends(24, then, rows=32) - ends(16, then, rows=32) == pytest.approx(8 * 32, abs=1.5)
    # as many as lie in front of it leave at once
    few = ends(7, then, rows=32) - ends(1, then, rows=32)
    assert few == pytest.approx(6 * READ, abs=4)


@pytest.mark.parametrize("then", ["taken", "loads"])
def test_without_a_queue_a_copy_leaves_when_the_one_before_it_begins(then):
    """Eight lines of a copy keep the unit for a cycle each."""
    for many in (8, 12):
        more = ends(many, then, **AGED) - ends(4, then, **AGED)
        assert more == pytest.approx((many - 4) * ROWS, abs=1.5)


def test_a_warp_issues_a_copy_each_four_cycles_until_four_are_queued():
    assert ends(4) - ends(1) == pytest.approx(3 * 4, abs=1.5)
    assert ends(16) - ends(12) == pytest.approx(4 * READ, abs=1.5)
    assert ends(12, **AGED) - ends(4, **AGED) == pytest.approx(8 * 4, abs=1.5)


def test_nothing_waits_for_what_loads_nothing():
    """LDS RZ before a copy (@!PT): what comes next waited for the queue before it once, and TBs in turn."""
    assert ends(16, "kept", **AGED) - ends(16, **AGED) > 6 * ROWS
    assert ends(16, "void", **AGED) - ends(16, **AGED) < 2 * ROWS
    assert ends(16, "kept") - ends(16) > 3 * READ
    assert ends(16, "void") - ends(16) < 2 * READ


def test_a_run_of_them_is_cut_into_such_runs():
    """Nothing waits between the pieces, so that they stay one run where a warp is picked greedily."""
    code = Code()
    code.compute(smem=4, smem_ops=4, fp32=36, chain=0, smem_back=UNNEEDED)
    pieces = split_block(code.ops[0], 8)
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


def test_the_registers_of_one_copy_are_read_behind_its_issue():
    assert ends(1, "taken") - ends(1) == pytest.approx(READ, abs=1.5)
    assert ends(1, "taken", **AGED) == pytest.approx(ends(1, **AGED), abs=1.5)


@pytest.mark.parametrize("overrides", [{}, AGED])
def test_sub_cores_share_the_unit(overrides):
    """Four warps, one a sub-core: the queues are served in turn, each copy behind those of the others."""
    more = ends(12, "taken", warps=4, **overrides) - ends(8, "taken", warps=4, **overrides)
    assert more == pytest.approx(4 * 4 * ROWS, abs=4)


def beside(copies, warps, rows=ROWS, op="shared", after=80):
    """Cycles of a warp of an older TB that does something beside so many warps that copy, so long behind."""
    memory, copier, other = Memory(), Code(), Code()
    source = memory.tensor("source", rows * max(copies, 1), 32, 4)
    copier.delay(START)
    for i in range(copies):
        place = Pattern(0, 16, base=i * rows * 128, s0=16, s1=128, minor=32 // rows, into=0, into_pitch=128)
        copier.load(0, place, bypass_l1=True, smem=1)
    copier.exit()
    if op == "global":  # of L1, which the other kernel's start has emptied
        other.delay(START // 2)
        other.load(0, Pattern(0, 4, s0=4))
        other.wait(0)
        other.delay(START - START // 2 - FIRST + after)
        other.load(0, Pattern(0, 4, s0=4))
        other.wait(0)
    else:
        other.delay(START + after)
        if op == "shared":
            other.compute(smem=4, smem_ops=1, smem_back=0)
        else:
            other.store(0, Pattern(0, 4, s0=4))
    other.exit()
    kernels = [
        Kernel(name, Program(name, (tuple(code.ops),), n, 32, 4096, 1), (1, 1, 1), (source,), (), i)
        for i, (name, code, n) in enumerate((("other", other, 1), ("copier", copier, warps)))
    ]
    tbs = execute(Job("beside", kernels), "stream", config("h200", gpu__sms=1, gpu__gpcs=1)).tbs
    tb = tbs[tbs["kernel"] == 0]
    return (int(tb["end"][0]) - int(tb["start"][0])) / 1024 * CLOCK / 1000


def test_a_load_of_another_warp_waits_for_copies_without_room():
    """Not behind ten copies of one warp, but behind those that forty of four warps have in the queues.

    Measured (h200_entry.csv): until all but seven of the forty have begun, as queues are longer there while
    nothing else is in them; here four a queue and six in front of the unit.
    """
    free = beside(1, warps=1)
    assert beside(10, warps=1) - free < 50
    waited = beside(10, warps=4, rows=32) - free
    assert 4 * 4 * 32 < waited < (4 * 4 + 6) * 32


def test_the_unit_is_not_kept_while_registers_are_read():
    """Measured (h200_through.csv): a load that L1 has takes 0 and 5 cycles longer beside ten copies."""
    free = beside(0, 1, op="global")
    waits = [beside(10, 1, op="global", after=n) - free - n + 80 for n in range(-120, 280, 8)]
    assert 0 < max(waits) < 30
    assert min(waits) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("op", ["global", "store"])
def test_copies_do_not_keep_others_waiting_for_good(op):
    """Eight warps copy 32 lines at a time, of which more are queued than the unit takes ahead."""
    free, few, many = (beside(n, 8, 32, op, 1500) for n in (0, 50, 200))
    assert few - free < 1500  # the copies take 12,800
    assert many - few < 300  # and 51,200


@pytest.mark.parametrize(("queue", "later"), [(1, 100), (2, 50)])
def test_who_waited_for_credits_enters_when_there_is_room(queue, later):
    """Eight warps a sub-core copy a line each, for which the lines of their first copies must come."""
    memory, code = Memory(), Code()
    source = memory.tensor("source", 64 * 32, 32, 4)

    def copy(rows, base):
        where = {"base": base, "warp": 1024, "s0": 16, "s1": 128, "minor": 32 // rows}
        code.load(0, Pattern(0, 16, **where, into=0, into_pitch=128), bypass_l1=True, smem=1)

    copy(8, 0)
    code.barrier()
    copy(1, 32 * 1024)
    code.delay(REST)
    code.exit()
    program = Program("copies", (tuple(code.ops),), 32, 32, 4096, 1)
    kernel = Kernel("copies", program, (1, 1, 1), (source,), (), 0)

    def end(queue):
        limits = {"gpu__l1__copies_in_flight": 250, "gpu__sm__queue": queue, "gpu__sm__queue_read": 384 // 48}
        one = config("h200", gpu__sms=1, gpu__gpcs=1, **limits)
        tbs = execute(Job("copies", [kernel]), "stream", one).tbs
        return (int(tbs["end"][0]) - int(tbs["start"][0])) / 1024 * CLOCK / 1000

    # registers of one are read in 48 cycles, and lines come faster
    assert end(queue) - end(7) > later


def copies_beside_stores_that_join():
    """16 warps copy 2,048 lines between barriers, more than may be under way; 4 store twice to sectors."""
    memory, copier, storer = Memory(), Code(), Code()
    t = memory.tensor("t", 1 << 15, 32, 4)
    copier.delay(3000)
    mark = copier.loop_begin()
    for i in range(4):
        where = {"base": i * 4 * 128, "warp": 4096, "s0": 16, "s1": 128, "minor": 8}
        copier.load(0, Pattern(0, 16, **where, into=0, into_pitch=128), bypass_l1=True, smem=1)
    copier.barrier()
    copier.loop_end(mark, 8)
    copier.exit()
    mark = storer.loop_begin()
    for _ in range(2):
        storer.store(4, Pattern(0, 8, s0=8, base=1 << 21, warp=1024))
    storer.loop_end(mark, 400)
    storer.exit()
    kernels = [
        Kernel(name, Program(name, (tuple(code.ops),), n, 32, 0, 1), (1, 1, 1), (t,), (), i)
        for i, (name, code, n) in enumerate((("copier", copier, 16), ("storer", storer, 4)))
    ]
    return Job("joins", kernels)


def test_who_has_credits_and_waits_for_room_is_woken_once():
    """A store that joins another takes no credits, and woke the one that has them in every cycle once."""
    job, one = copies_beside_stores_that_join(), {"gpu__sms": 1, "gpu__gpcs": 1}
    ran = execute(job, "stream", config("h200", **one))
    assert len(ran.tbs) == 2
    more = execute(job, "stream", config("h200", gpu__l1__copies_in_flight=2016, **one))
    assert 0.95 * more.cycles < ran.cycles < 1.1 * more.cycles


@pytest.mark.parametrize("limit", [0, 1])
def test_a_copy_that_is_skipped_takes_no_place(limit):
    """Beyond its limit, behind seven that fill the queue."""

    def end(last):
        memory, code = Memory(), Code()
        source = memory.tensor("source", 64, 32, 4)
        mark = code.loop_begin()
        for i in range(last):
            place = Pattern(0, 16, base=i * 1024, s0=16, s1=128, minor=4, into=0, into_pitch=128)
            code.load(0, place, bypass_l1=True, smem=1, ahead=1, limit=limit if i == 7 else 0)
        code.loop_end(mark, 1)
        code.delay(REST)
        code.exit()
        kernel = Kernel(
            "skip", Program("skip", (tuple(code.ops),), 1, 32, 4096, 1), (1, 1, 1), (source,), (), 0
        )
        tbs = execute(Job("skip", [kernel]), "stream", config("h200", gpu__sms=1, gpu__gpcs=1)).tbs
        return (int(tbs["end"][0]) - int(tbs["start"][0])) / 1024 * CLOCK / 1000

    assert end(8) - end(7) == pytest.approx(0 if limit else READ, abs=1.5)


def test_a_load_takes_cycles_of_the_queue():
    """At 8 B a cycle 16 for the one register of each load, 48 for a copy's three."""

    def end(loads):
        memory, code = Memory(), Code()
        source = memory.tensor("source", 64, 32, 4)
        for _ in range(loads):
            code.compute(smem=4, smem_ops=1, chain=0)
        code.load(0, Pattern(0, 16, s0=16, into=0, into_pitch=128), bypass_l1=True, smem=1)
        code.wait_operands_read()
        code.delay(REST)
        code.exit()
        kernel = Kernel(
            "loads", Program("loads", (tuple(code.ops),), 1, 32, 4096, 1), (1, 1, 1), (source,), (), 0
        )
        conf = config("h200", gpu__sms=1, gpu__gpcs=1, gpu__sm__queue_read=8)
        tbs = execute(Job("loads", [kernel]), "stream", conf).tbs
        return (int(tbs["end"][0]) - int(tbs["start"][0])) / 1024 * CLOCK / 1000

    assert end(8) - end(4) == pytest.approx(4 * 16, abs=1.5)
    assert end(1) - end(0) == pytest.approx(16, abs=6)


def test_what_comes_to_another_line_of_shared_memory_is_asked_for_by_itself():
    """Rows of 64 B, 80 B apart: some lie across lines or sectors, and pieces take cycles of their own."""
    padded, aligned = (
        ends(8, "taken", pitch=p, **AGED) - ends(4, "taken", pitch=p, **AGED) for p in (80, 128)
    )
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
