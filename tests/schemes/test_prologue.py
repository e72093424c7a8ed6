"""Prologues: where they end, that TBs wait inside, that nothing deadlocks, and what they win."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import ConfigError, DependenceError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import OP, Code, Pattern, Program
from pysim.schemes.prologue import dependent_args, job_without_prologues, prologue_plan
from tests.core.harness import execute, lowered_of, oracle, tiny
from tests.core.workloads_small import ALL, random_dag
from tests.oracle.test_ordering import LATE

GATED = ("tb_static:prologue", "tb_learned:prologue", "tb_bloom:prologue", "tb_ideal:prologue")


def rows_of(tensor):
    def regions(tbs):
        return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + tensor.cols], axis=1)

    return regions


def weighted(name, weights, read, write, *, tbs=4, prologue=0, body=0):
    """Load a row of weights, take some time, read a row that another kernel made, and write one."""
    code = Code()
    code.load(0, Pattern(0, 4, bx=weights.pitch, s0=4))
    code.wait(0)
    if prologue:
        code.delay(prologue)
    code.load(1, Pattern(1, 4, bx=read.pitch, s0=4))
    code.wait(1)
    if body:
        code.delay(body)
    code.store(2, Pattern(2, 4, bx=write.pitch, s0=4))
    code.wait(2)
    code.exit()
    program = Program(name, (tuple(code.ops),), 1, 16, 0, 3)
    accesses = (
        Access(weights, "read", rows_of(weights)),
        Access(read, "read", rows_of(read)),
        Access(write, "write", rows_of(write)),
    )
    return Kernel(name, program, (tbs, 1, 1), (weights, read, write), accesses)


def chain(count=3, tbs=4, **times):
    memory = Memory()
    steps = [memory.tensor(f"t{n}", tbs, 32, 4) for n in range(count + 1)]
    return Job(
        "chain",
        [
            weighted(f"k{n}", memory.tensor(f"w{n}", tbs, 32, 4), steps[n], steps[n + 1], tbs=tbs, **times)
            for n in range(count)
        ],
    )


# ---- where a prologue ends ----
def kinds(ops):
    return [op.kind for op in ops]


def test_the_wait_stands_before_the_first_dependent_access():
    job = chain(2)
    first, second = dependent_args(job)
    assert (first.loads, first.stores) == (frozenset(), frozenset())
    assert (second.loads, second.stores) == (frozenset({1}), frozenset({1}))
    plan = prologue_plan(job)
    assert plan.has_prologue == [0, 1]
    ops = plan.job.kernels[1].program.variants[0]
    load, wait, depend = OP["LOAD"], OP["WAIT"], OP["DEPEND"]
    assert kinds(ops)[:5] == [load, wait, depend, load, wait]
    assert kinds(job_without_prologues(job).kernels[1].program.variants[0])[0] == load


def test_a_loop_is_waited_for_before_it_and_loads_beside_are_issued_first():
    memory = Memory()
    a, w = memory.tensor("a", 4, 32, 4), memory.tensor("w", 4, 32, 4)
    code = Code()
    code.compute(fp32=10)
    outer = code.loop_begin()
    code.load(0, Pattern(1, 4, s0=4))
    inner = code.loop_begin()
    code.load(1, Pattern(0, 4, s0=4))
    code.loop_end(inner, 3, level=1)
    code.loop_end(outer, 2)
    code.exit()
    looped = Program("looped", (tuple(code.ops),), 1, 16, 0, 2)
    flat = Code()
    flat.load(0, Pattern(0, 4, s0=4))
    flat.load(1, Pattern(1, 4, s0=4))
    flat.wait(0)
    flat.exit()
    beside = Program("beside", (tuple(flat.ops),), 1, 16, 0, 2)
    make_a = weighted("make", w, w, a)
    kernels = [make_a] + [
        Kernel(p.name, p, (1, 1, 1), (a, w), (Access(a, "read", rows_of(a)),)) for p in (looped, beside)
    ]
    plan = prologue_plan(Job("loops", kernels))
    # nothing is loaded in front of the outer loop: its gate stays before dispatch
    assert plan.has_prologue == [0, 0, 1]
    ops = plan.job.kernels[2].program.variants[0]
    assert [op.patterns[0].arg if op.patterns else op.kind for op in ops[:3]] == [1, OP["DEPEND"], 0]
    needs = dependent_args(Job("loops", kernels))[1]
    front, behind, waits = needs.split(looped.variants[0])
    assert (kinds(front), waits) == ([OP["COMPUTE"]], True)
    assert len(front) + len(behind) == len(looped.variants[0])


# ---- what it wins ----
@pytest.mark.parametrize("scheme", ["tb_static", "tb_ideal", "tb_bloom"])
def test_prologues_overlap_with_what_they_wait_for(scheme):
    """Each of three kernels takes a prologue and a body: in a row 3 (P + B), with prologues P + 3 B."""
    before, body = 20_000, 10_000
    job = chain(3, prologue=before, body=body)
    plain = execute(job, scheme, oracle())
    early = execute(job, f"{scheme}:prologue", oracle())
    assert 3 * (before + body) < plain.cycles < 3 * (before + body) + 12_000
    assert before + 3 * body < early.cycles < before + 3 * body + 12_000
    late = early.tbs[early.tbs["kernel"] > 0]
    assert (late["dispatch"] < late["ready"]).all()
    # the hand-over is paid behind the counter
    ends = {int(r["tb"]): int(r["end"]) for r in early.tbs[early.tbs["kernel"] == 1]}
    for row in early.tbs[early.tbs["kernel"] == 2]:
        assert int(row["end"]) > ends[int(row["tb"])] + oracle().encoded()["gpu.cp.depend"]


def test_the_bound_allows_for_prologues():
    job = chain(4, prologue=20_000, body=10_000)
    rows = simulate(tiny(), job, "tb_static,tb_static:prologue", threads=1, tables="none").tables()["runs"]
    plain, early = rows[0], rows[1]
    assert early["bound_us"] <= early["time_us"] < plain["bound_us"] <= plain["time_us"]
    # tight: a prologue and four bodies without contention
    assert early["bound_us"] > 0.6 * early["time_us"]


def test_no_slot_is_taken_from_a_ready_tb():
    """A kernel that is free fills the SMs before one that waits: the latter gets what is left."""
    memory = Memory()
    tbs = 6 * 32
    a, b = memory.tensor("a", tbs, 32, 4), memory.tensor("b", tbs, 32, 4)
    w, v, other = (memory.tensor(n, tbs, 32, 4) for n in ("w", "v", "other"))
    first = weighted("first", w, v, a, tbs=tbs, body=LATE)
    waits = weighted("waits", w, a, b, tbs=tbs)
    free = weighted("free", w, v, other, tbs=tbs)
    ran = execute(Job("full", [first, waits, free]), "tb_static:prologue", oracle())
    begin = [int(ran.tbs[ran.tbs["kernel"] == k]["start"].min()) for k in range(3)]
    assert begin[0] < min(begin[1:])
    assert int(ran.totals.tbs_done) == 3 * tbs


# ---- right and wrong orders ----
@pytest.mark.parametrize("scheme", GATED)
@pytest.mark.parametrize("name", ["gemm_chain", "split_k", "gru", "gru_hoisted", "sliced", "copied_in_time"])
def test_networks(name, scheme):
    ran = execute(ALL[name](), scheme, oracle())
    assert ran.fingerprint() == execute(ALL[name](), scheme, tiny()).fingerprint()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    kernels=st.integers(2, 30),
    streams=st.integers(1, 3),
    scheme=st.sampled_from(GATED),
    priority=st.sampled_from(("oldest", "newest", "critical", "round_robin", "consumer")),
    window=st.sampled_from((1, 2, 5, 1000)),
    entries=st.sampled_from((1, 8, 100000)),
    bypass=st.sampled_from((0, 4)),
    sms=st.sampled_from((1, 6)),
    placement=st.sampled_from(("first_free", "balanced", "affinity")),
)
def test_random_dags(seed, kernels, streams, scheme, priority, window, entries, bypass, sms, placement):
    job = random_dag(seed, kernels, streams)
    conf = oracle(
        scheme__priority=priority,
        scheme__window=window,
        scheme__table__entries=entries,
        scheme__bypass=bypass,
        scheme__placement=placement,
        gpu__sms=sms,
        gpu__cp__admit=0,
    )
    ran = execute(job, scheme, conf)
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in job.kernels)


@settings(max_examples=25, deadline=None)
@given(
    tbs=st.integers(1, 300),
    count=st.integers(2, 6),
    scheme=st.sampled_from(GATED),
    entries=st.sampled_from((1, 40, 100000)),
    priority=st.sampled_from(("oldest", "newest", "critical")),
    prologue=st.sampled_from((0, 3000)),
)
def test_more_waiting_tbs_than_slots(tbs, count, scheme, entries, priority, prologue):
    """One SM of 32 TBs: those that wait inside never keep out those that they wait for."""
    job = chain(count, tbs=tbs, prologue=prologue, body=500)
    conf = oracle(gpu__sms=1, scheme__table__entries=entries, scheme__priority=priority)
    assert int(execute(job, scheme, conf).totals.tbs_done) == tbs * count


@pytest.mark.threads
@pytest.mark.parametrize("scheme", GATED)
def test_threads_and_slices_change_nothing(scheme):
    for job in (ALL["gru"](), chain(4, tbs=50, prologue=2000)):
        one = execute(job, scheme, tiny()).fingerprint()
        assert one == execute(job, scheme, tiny(), threads=(3, 1, 4), quanta=(50, 3)).fingerprint()
        assert one == execute(job, scheme, tiny(sim__quantum=40)).fingerprint()


def test_a_dropped_edge_is_caught():
    job = chain(2, body=LATE)
    execute(job, "tb_static:prologue", oracle())
    with pytest.raises(DependenceError, match="RAW"):
        execute(job, "tb_static:prologue", oracle(), deps=without_edges(dependences(job), kind="raw"))


def test_a_program_without_a_wait_is_named():
    """A launch that says it waits inside, and does not."""
    job = chain(2, body=LATE)
    made, _ = lowered_of(job, "tb_static", oracle(), order={"prologue": 1})
    made.launches["prologue"][1] = 1
    from pysim.engine.simulation import Sim
    from tests.core.harness import drive

    with Sim(made) as sim, pytest.raises((ConfigError, DependenceError)):
        drive(sim)


def test_l1_must_be_passed_by():
    job = chain(2)
    with pytest.raises(ConfigError, match=r"scheme\.coherence"):
        execute(job, "tb_static:prologue", oracle(scheme__coherence="tb"))
