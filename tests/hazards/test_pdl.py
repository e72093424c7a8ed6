"""Hazards of programmatic dependent launch: orders, places, known races, and the oracle's opinion."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pysim.errors import InputError, WorkloadError
from pysim.hazards import conflicts, pdl
from pysim.hazards.advice import TOGETHER, PdlAdvice
from pysim.hazards.order import LaunchOrder, ended_before
from pysim.hazards.pdl import PdlCheck
from pysim.hazards.places import AHEAD, LATEST, START, Place, inserted, op_lists, parse_place, with_pdl
from pysim.hazards.plan import Row, check_rows, read_plan
from pysim.hazards.report import verdict
from pysim.hazards.simulated import Simulated
from pysim.isa import OPS
from pysim.machine.system import resolve
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.profiled import profiled
from pysim.program.warp_program import OP, Code, Op, Pattern, Program
from pysim.workloads.registry import make
from tests.core.harness import tiny
from tests.oracle.random_placements import case, check

TBS, WORDS = 4, 32
NONE = Place("none")


def rows_of(first):
    def regions(tbs):
        return np.stack([first + tbs, first + tbs + 1, 0 * tbs, 0 * tbs + WORDS], axis=1)

    return regions


def kernel(name, *, reads=(), writes=(), rows=0):
    """A kernel that loads a row of each tensor a TB, one tensor after another, then stores to others.

    ``rows``: where its rows begin.
    """
    tensors, code = [*reads, *writes], Code()
    for number in range(len(tensors)):
        pattern = Pattern(number, 4, base=128 * rows, bx=128, s0=4)
        if number < len(reads):
            code.load(0, pattern)
        else:
            code.wait(0)
            code.store(1, pattern)
    code.exit()
    program = Program(name, (code.ops,), 1, 16, 0, len(tensors))
    accesses = [Access(t, "read", rows_of(rows)) for t in reads]
    accesses += [Access(t, "write", rows_of(rows)) for t in writes]
    return Kernel(name, program, (TBS, 1, 1), tuple(tensors), tuple(accesses))


def wide(tensor, mode):
    """A kernel of as many TBs as six SMs hold at once, of which the first ones touch a row each."""
    code = Code()
    code.store(0, Pattern(0, 4, bx=128, s0=4))
    code.exit()
    program = Program("wide", (code.ops,), 1, 16, 0, 1)
    return Kernel("wide", program, (2 * TBS, 1, 1), (tensor,), (Access(tensor, mode, rows_of(0)),))


@pytest.fixture
def memory():
    made = Memory()
    return {name: made.tensor(name, 2 * TBS, WORDS, 4) for name in "abcdw"}


def found(job, *rows):
    """(kernel before, kernel after, kind) of the hazards of a placement."""
    static = PdlCheck(job)
    return [(one.before, one.after, one.kind) for one in static.hazards(static.placed(rows))]


def simulated(job):
    return Simulated(job, tiny(scheme__hypothetical=1))


def proved(job, *rows):
    """The kinds that the oracle reports of the hazards of a placement, each kernel before being late."""
    static, ran = PdlCheck(job), simulated(job)
    placed = static.placed(rows)
    said = [ran.proof(static.only(placed, one), one.before) for one in static.hazards(placed)]
    return [one and one.text[:3] for one in said]


# ---- orders ----
def test_a_chain_knows_only_what_was_waited_for():
    plain, eager = LaunchOrder(False, False, True), LaunchOrder(True, True, False)
    never, tidy = LaunchOrder(True, False, True), LaunchOrder(True, True, True)
    assert [e.waited for e in ended_before([plain, eager, eager])] == [0, 1, 3]
    assert [e.start for e in ended_before([plain, eager, eager])] == [0, 0, 0]
    assert [e.start for e in ended_before([plain, tidy, tidy])] == [0, 0, 1]
    # kernel 2 waits for kernel 1, which did not wait for kernel 0
    assert ended_before([plain, never, eager])[2].waited == 2
    # a normal launch waits for all
    assert ended_before([plain, never, plain])[2].start == 3


def test_waits_and_triggers_keep_jumps():
    loop = (Op(OP["LOAD"]), Op(OP["LOOP"], target=0, count=3), Op(OP["EXIT"]))
    made = inserted(loop, [(0, Op(OP["DEPEND"])), (2, Op(OP["TRIGGER"]))])
    assert [OPS[op.kind][0] for op in made] == ["DEPEND", "LOAD", "LOOP", "TRIGGER", "EXIT"]
    assert made[2].target == 1
    turn = (Op(OP["TURN"], target=3), Op(OP["LOAD"]), Op(OP["LOOP"], target=0), Op(OP["EXIT"]))
    made = inserted(turn, [(3, Op(OP["DEPEND"]))])
    assert (made[0].target, OPS[made[3].kind][0]) == (3, "DEPEND")


# ---- known races ----
def test_a_load_before_the_wait(memory):
    job = Job("raw", [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["w"], memory["a"]])])
    assert found(job, Row(1, wait=Place("before", "load", "a"))) == []
    assert found(job, Row(1, wait=Place("after", "load", "w"))) == []
    late = Row(1, wait=Place("after", "load", "a"))
    assert found(job, late) == [(0, 1, "RAW")]
    assert proved(job, late) == ["RAW"]


def test_a_prologue_that_writes_what_is_still_read(memory):
    job = Job("war", [kernel("a", reads=[memory["a"]]), kernel("b", writes=[memory["a"]])])
    assert found(job, Row(1, wait=START)) == []
    assert found(job, Row(1, wait=NONE)) == [(0, 1, "WAR")]
    assert proved(job, Row(1, wait=NONE)) == ["WAR"]


def test_a_kernel_that_never_waits(memory):
    """The kernel behind it waits for it alone: the first one may still run."""
    kernels = [
        kernel("a", writes=[memory["a"]]),
        kernel("b", writes=[memory["b"]]),
        kernel("c", reads=[memory["a"]]),
    ]
    job = Job("chain", kernels)
    assert found(job) == []
    assert found(job, Row(1, wait=NONE)) == [(0, 2, "RAW")]
    assert proved(job, Row(1, wait=NONE)) == ["RAW"]
    assert found(job, Row(1, wait=Place("end"))) == []
    assert found(job, Row(1, early=False), Row(2, wait=LATEST)) == []


def test_a_prologue_may_meet_the_kernel_two_before(memory):
    """It may, unless the one in between triggers behind its wait: the trigger makes nothing visible."""
    kernels = [kernel("a", writes=[memory["a"]]), kernel("b", writes=[memory["b"]])]
    job = Job("two", [*kernels, kernel("c", reads=[memory["a"], memory["b"]])])
    early = Row(2, wait=Place("before", "load", "b"))
    assert found(job, early) == [(0, 2, "RAW")]
    assert proved(job, early) == ["RAW"]
    assert found(job, early, Row(1, trigger=Place("wait"))) == []
    # its neighbour's trigger is late, and yet what it has written is not visible
    assert found(job, Row(2, wait=NONE), Row(1, trigger=NONE)) == [(1, 2, "RAW")]


def test_rows_that_nobody_writes_may_be_read_ahead(memory):
    """The same tensor, such as a cache of keys: it is by bytes, not by tensor."""
    first, last = kernel("a", writes=[memory["a"]], rows=TBS), kernel("b", reads=[memory["a"]])
    assert found(Job("apart", [first, last]), Row(1, wait=NONE)) == []
    same = kernel("b", reads=[memory["a"]], rows=TBS - 1)
    hazards = PdlCheck(Job("shared", [first, same]))
    one = hazards.hazards(hazards.placed([Row(1, wait=NONE)]))[0]
    assert (one.tbs.tolist(), one.others.tolist()) == ([1, 2, 3], [0, 1, 2])
    assert (one.bytes - one.address).tolist() == [[4 * 128, 7 * 128]]


def test_the_latest_wait(memory):
    job = Job(
        "latest", [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["w"]], writes=[memory["a"]])]
    )
    static = PdlCheck(job)
    assert static.place_of(1, static.placed([Row(wait=LATEST)])[1].waits) == "before store a"
    free = PdlCheck(Job("free", [job.kernels[0], kernel("b", reads=[memory["w"]])]))
    # it waits all the same, for kernels behind it
    assert free.place_of(1, free.placed([Row(wait=LATEST)])[1].waits) == "end"


def test_advice_of_a_pair(memory):
    job = Job("raw", [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["w"], memory["a"]])])
    made = PdlAdvice(PdlCheck(job)).advice(simulated(job), 4)
    pair = made.pairs[0]
    assert (pair.latest, pair.first.kind) == ("before load a", "RAW")
    assert pair.gain_us == max(pair.gains.values()) > 0
    assert min(made.together.values()) < made.plain_us
    assert pair.gains[pair.best] == pytest.approx(pair.gain_us, rel=0.01)


# ---- what is refused ----
def test_what_is_not_known_is_refused(memory):
    first = kernel("a", writes=[memory["a"]])
    with pytest.raises(WorkloadError, match=r"kernel 1 .slow.: its code is a trace or a measured time"):
        PdlCheck(Job("profile", [first, profiled("slow", np.array([5]))]))
    with pytest.raises(WorkloadError, match="kernels in several streams"):
        PdlCheck(Job("streams", [first, replace(first, stream=1)]))


def test_many_launches(memory, monkeypatch):
    """Launches that are alike are looked at once, and there is an end to hazards."""
    pair = [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["a"]])]
    check = PdlCheck(Job("long", pair * 200))
    real, compared = conflicts.common, []
    monkeypatch.setattr(conflicts, "common", lambda *each: compared.append(each) or real(*each))
    assert check.hazards(check.placed([Row(wait=LATEST)])) == []
    monkeypatch.setattr(pdl, "MOST_HAZARDS", 50)
    assert 50 <= len(check.hazards(check.placed([Row(wait=NONE)]))) < 250
    assert len(compared) <= 8
    monkeypatch.setattr(pdl, "MOST_KERNELS", 399)
    with pytest.raises(WorkloadError, match="job long: 400 launches: at most 399"):
        PdlCheck(check.job)


def test_a_launch_that_does_not_ask(memory):
    kernels = [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["a"]])]
    job = Job("memset", [kernels[0], replace(kernels[1], programmatic=False), kernels[1]])
    assert PdlCheck(job).able == [False, False, False]
    assert found(job, Row(wait=NONE)) == []
    assert PdlAdvice(PdlCheck(job)).pairs()[1].reason == "b is not launched so"


@pytest.mark.parametrize("text", ["before", "after load", "before wait x", "", 5, "loop end"])
def test_no_place(text):
    with pytest.raises(InputError, match=r"wait = .*: no such place: there are start, latest"):
        parse_place(text, ("start", "latest"), "wait")


def test_plans(tmp_path, memory):
    path = tmp_path / "plan"
    path.write_text("# all\n*; latest\n1; before load a; wait\n", encoding="utf-8")
    assert read_plan(path) == [
        Row("*", wait=LATEST),
        Row(1, wait=Place("before", "load", "a"), trigger=Place("wait")),
    ]
    path.write_text('[{"kernel": "b*", "wait": "none", "launch": "normal"}]', encoding="utf-8")
    assert read_plan(path) == [Row("b*", False, NONE)]
    path.write_text("\ufeff[gl]*; start\n", encoding="utf-8")
    assert read_plan(path) == [Row("[gl]*")]
    for text, said in (
        ("a", "plan:1: a: must be KERNEL; WAIT; TRIGGER"),
        ("# nothing\n", "plan: has no row"),
        ("1; end\n2; end\n1; start\n", "plan:3: kernel 1 has a row already"),
        ('[{"kernel": "*"}, {"kernel": "*", "wait": "end"}]', r"row 1: kernel '\*' has a row already"),
        ('[{"kernel": 1, "kernel": 2}]', "key 'kernel' twice in an object"),
        ('[{"wait": "end"}]', "row 0: no key kernel"),
        ("[5]", "row 0: 5: must be an object"),
        ("[", "plan: Expecting value"),
        ('[{"late": 1}]', "key 'late'"),
        ('[{"kernel": 0, "launch": "soon"}]', "must be early or normal"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            read_plan(path)
    job = Job("raw", [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["a"]])])
    for name, said in (
        ("9" * 5000, "9+...: there are a, b"),
        ("2", "2: there are 0 to 1"),
    ):
        path.write_text(f"0; end\n{name}; end\n", encoding="utf-8")
        with pytest.raises(InputError, match=f"plan:2: no kernel {said}"):
            check_rows(job, read_plan(path))
    with pytest.raises(InputError, match=r"kernel 1 .b.: wait: before load w: its program has no load of w"):
        found(job, Row(1, wait=Place("before", "load", "w")))
    assert found(job, Row("*", wait=Place("before", "load", "a"))) == []
    with pytest.raises(InputError, match="its program has no load of w"):
        found(job, Row("*", wait=Place("before", "load", "w")))
    with pytest.raises(InputError, match="does not say where its main loop ends"):
        found(job, Row(0, trigger=Place("loop end")))


# ---- against the oracle ----
def test_the_oracle_says_the_same_of_random_placements():
    came = Counter(check(case(number)) for number in range(36))
    assert came["safe"] > 15
    assert came["hit"] > 3
    assert came["not hit"] < came["hit"]


def test_an_unforeseen_violation_fails(monkeypatch):
    """The check is one: of a static check that sees nothing the oracle says otherwise."""
    monkeypatch.setattr(PdlCheck, "hazards", lambda *_: [])
    bad = [made for made in map(case, range(24)) if not made.orderly]
    failed = 0
    for made in bad:
        try:
            check(made)
        except AssertionError:
            failed += 1
    assert failed >= 3


def test_op_lists_of_equal_variants_are_one(memory):
    one = kernel("a", writes=[memory["a"]])
    eight = replace(
        one, program=replace(one.program, variants=tuple(tuple(one.program.variants[0]) for _ in range(8)))
    )
    assert len(list(op_lists(eight))) == 1
    job = Job("raw", [eight, kernel("b", reads=[memory["a"]])])
    assert simulated(job).violation(PdlCheck(job).placed([Row()])) is None


def test_what_no_op_touches_counts_with_the_first_load(memory):
    """A kernel that loads from a stand-in of its input: the oracle cannot see that it needs its producer."""
    second = kernel("b", reads=[memory["w"]], writes=[memory["b"]])
    real = Access(memory["a"], "read", rows_of(0))
    job = Job(
        "stand-in", [kernel("a", writes=[memory["a"]]), replace(second, accesses=(*second.accesses, real))]
    )
    assert found(job, Row(1, wait=Place("after", "load", "w"))) == [(0, 1, "RAW")]
    assert found(job, Row(1, wait=Place("before", "load", "w"))) == []
    static = PdlCheck(job)
    assert static.place_of(1, static.placed([Row(wait=LATEST)])[1].waits) == "start"


def test_independent_loads_go_ahead_of_the_wait(memory):
    job = Job("ahead", [kernel("a", writes=[memory["a"]]), kernel("b", reads=[memory["a"], memory["w"]])])
    static = PdlCheck(job)
    launch = static.placed([Row(wait=AHEAD)])[1]
    ops = with_pdl(job.kernels[1], launch.waits, launch.triggers, True, 0, launch.moved).variants[0]
    assert [OPS[op.kind][0] for op in ops] == ["LOAD", "DEPEND", "LOAD", "EXIT"]
    assert [op.patterns[0].arg for op in ops if op.patterns] == [1, 0]
    assert static.hazards(static.placed([Row(wait=AHEAD)])) == []
    # of a kernel that also writes to w, neither load is independent
    both = Job("both", [kernel("a", writes=[memory["a"], memory["w"]]), job.kernels[1]])
    assert PdlCheck(both).placed([Row(wait=AHEAD)])[1].moved == {}


SMALL = (
    "bicg:n=256",
    "fdtd2d:n=64",
    "lstm:hidden=64,batch=4,timesteps=2,layers=1",
    "nw:n=128",
    "lenet:batch=1",
)
LARGE = ("gpt2:layers=1,batch=1,seq=32,pass=decode", "bert-base:layers=1,batch=1,seq=32", "network", "rigid")


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.deep) for name in LARGE)])
def test_the_oracle_says_the_same_of_templates(name):
    job = make(name, "h200")
    static, ran = PdlCheck(job), Simulated(job, resolve("h200"))
    for row in TOGETHER.values():
        placed = static.placed([row])
        assert static.hazards(placed) == []
        assert ran.violation(placed) is None
    placed = static.placed([Row(wait=NONE)])
    foreseen = {(one.after, one.before) for one in static.hazards(placed)}
    said = ran.violation(placed)
    assert bool(said) == bool(foreseen)
    if said:
        (after, _), (before, _) = said.pairs
        assert (after, before) in foreseen


@pytest.mark.parametrize(
    ("reads", "tbs", "reason"),
    [
        ("a", 32, "nothing independent before the wait"),
        ("wa", 32, "nothing gained"),
        ("wa", 1, "no free slots"),
    ],
)
def test_why_a_pair_gains_nothing(memory, reads, tbs, reason):
    """An early launch that takes longer than another gains nothing, whatever the kernels do."""
    job = Job("slow", [wide(memory["a"], "write"), kernel("b", reads=[memory[name] for name in reads])])
    conf = tiny(scheme__hypothetical=1, gpu__cp__early_gap=5000, gpu__sm__tbs=tbs)
    pair = PdlAdvice(PdlCheck(job)).advice(Simulated(job, conf), 1).pairs[0]
    assert (pair.gain_us <= 0, pair.reason) == (True, reason)
    assert verdict(pair) == f"safe but useless: {reason}"
