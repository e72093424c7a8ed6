"""Footprints learned at the first launch: what is served, what it costs, and that no edge is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence.dependences import dependences
from pysim.dependence.groups import without_edges
from pysim.errors import DependenceError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.regions import SECTOR
from pysim.schemes.learned import covering_ranges, learn_footprints
from pysim.workloads.registry import make
from tests.core.harness import execute, lowered_of, oracle
from tests.core.workloads_small import ALL
from tests.oracle.random_shapes import twice
from tests.oracle.test_ordering import LATE, kernel

from .test_table_memory import adds_up, moved


def edge_rows(deps, since):
    """Edges of kernel pairs behind launch ``since``, as (producer, consumer, RAW, WAR, WAW)."""
    return [tuple(int(v) for v in e) for e in deps.edges if int(e["producer"]) > since]


# ---- edges ----
def test_the_second_round_of_a_gru_has_the_true_edges():
    job = make("gru:hidden=64,batch=8,timesteps=3,layers=2")
    known = learn_footprints(job, oracle().encoded())
    last = int(np.flatnonzero(known.barrier)[-1])
    assert last < len(job.kernels) // 2
    assert edge_rows(known.deps, last) == edge_rows(dependences(job), last) != []
    assert known.report.served == len(job.kernels) - int(known.barrier.sum())
    assert known.report.launches == len(job.kernels)
    assert known.report.mispredicted == known.report.changed == known.report.unlearnable == 0
    # what comes next starts when the last first launch has ended, and not before
    ran = execute(job, "tb_learned", oracle())
    assert int(ran.kernels["admitted"][last + 1]) >= int(ran.kernels["released"][last])
    assert int(ran.kernels["admitted"][last]) >= int(ran.kernels["released"][last - 1])
    gap = oracle().encoded()["gpu.cp.stream_gap"]
    assert int(ran.kernels["admitted"][last]) - int(ran.kernels["released"][:last].max()) >= gap


@pytest.mark.parametrize("strided", [0, 1])
@pytest.mark.parametrize("ranges", [1, 2, 3, 5, 64])
def test_few_ranges_add_edges_and_lose_none(ranges, strided):
    job = twice(ALL["gemm_chain"]())
    conf = oracle(scheme__learned__ranges=ranges, scheme__learned__strided=strided)
    known = learn_footprints(job, conf.encoded())
    last = int(np.flatnonzero(known.barrier)[-1])
    true = dependences(job)
    for index in range(last + 1, len(job.kernels)):
        for tb in range(job.kernels[index].tbs):
            mine = reached(known.deps, index, tb, last)
            assert reached(true, index, tb, last) <= mine
    execute(job, "tb_learned", conf)


def reached(deps, index, tb, since):
    """All TBs behind launch ``since`` that a TB comes after."""
    left, found = [(index, tb)], set()
    while left:
        for producer in deps.producers(*left.pop()):
            if producer[0] > since and producer not in found:
                found.add(producer)
                left.append(producer)
    return found


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 96), st.integers(0, 96)),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 6),
    st.booleans(),
    st.integers(1, 3),
)
@settings(max_examples=150, deadline=None)
def test_hulls_hold_what_they_stand_for(rows, limit, strided, parts):
    table = np.array([(a, b, c, d) if a < b and c < d else (0, 0, 0, 0) for a, b, c, d in rows], np.int64)
    given_parts = [(4096 * n, 96, table) for n in range(parts)]
    made = covering_ranges(0, "read", given_parts, limit, strided)
    assert sum(int(each.counts.sum()) for each in made) <= limit * len(rows)

    def touched(offset, pitch, row):
        row0, row1, byte0, byte1 = row
        return {offset + r * pitch + b for r in range(row0, row1) for b in range(byte0, byte1)}

    for tb in range(len(rows)):
        need = set().union(*(touched(o, p, t[tb]) for o, p, t in given_parts))
        have = set().union(*(touched(r.offset, r.pitch, r.table[tb]) for r in made))
        assert need <= have
        if strided and parts <= limit:
            assert need == have


# ---- what is served ----
def store_to(memory, count=3):
    return [memory.tensor(f"t{n}", 4, 32, 4) for n in range(count)]


def both(name, program, args):
    """A kernel that reads a row of its first argument and writes one of its second."""

    def row(tbs):
        return np.stack([tbs, tbs + 1, 0 * tbs, 0 * tbs + 32], axis=1)

    return Kernel(
        name, program, (4, 1, 1), args, (Access(args[0], "read", row), Access(args[1], "write", row))
    )


def copying():
    from pysim.program.warp_program import Code, Pattern, Program

    code = Code()
    code.load(0, Pattern(0, 4, bx=128, s0=4))
    code.wait(0)
    code.store(0, Pattern(1, 4, bx=128, s0=4))
    code.wait(0)
    code.exit()
    return Program("copying", (tuple(code.ops),), 1, 16, 0, 2)


def test_relocated_kernels_are_served_and_aliased_ones_are_not():
    a, b, c = store_to(Memory())
    program = copying()
    kernels = [
        both("first", program, (a, b)),
        both("moved", program, (b, c)),
        both("in place", program, (c, c)),
        both("in place again", program, (a, a)),
    ]
    known = learn_footprints(Job("moved", kernels), oracle().encoded())
    assert known.barrier.tolist() == [1, 0, 1, 0]
    assert (known.report.changed, known.report.signatures) == (1, 2)
    execute(Job("moved", kernels), "tb_learned", oracle())


def test_a_footprint_that_did_not_follow_its_arguments_is_caught_before_launch():
    a, b, c = store_to(Memory())
    program = copying()
    odd = replace(
        both("odd", program, (b, c)),
        accesses=(Access(b, "read", lambda t: np.stack([0 * t, 0 * t + 4, 0 * t, 0 * t + 32], axis=1)),),
    )
    known = learn_footprints(Job("odd", [both("first", program, (a, b)), odd]), oracle().encoded())
    assert known.barrier.tolist() == [1, 1]
    assert known.report.mispredicted == 1


def test_kernels_with_listed_addresses_are_not_learned():
    from pysim.program.footprint import WRITE, Footprint

    a, b, _ = store_to(Memory())
    plain = both("k", copying(), (a, b))
    recorded = replace(
        plain, accesses=(), footprint=Footprint.of([0], [a.address], [a.address + 32], [WRITE])
    )
    known = learn_footprints(Job("recorded", [recorded, recorded]), oracle().encoded())
    assert known.barrier.tolist() == [1, 1]
    assert known.report.unlearnable == 2


def test_ranges_are_looked_up_before_a_launch_is_admitted():
    """Of each launch that is served four TBs' ranges of two arguments, a line in L2; of the first none."""
    tensors = store_to(Memory(), 12)
    program = copying()
    job = Job("apart", [both("k", program, tensors[2 * n : 2 * n + 2]) for n in range(6)])
    at = {}
    for lookup in (0.0, 5.0, 50.0):
        conf = oracle(scheme__learned__lookup=lookup)
        admitted = execute(job, "tb_learned", conf).kernels["admitted"].astype(np.int64)
        at[lookup] = admitted
        values = conf.encoded()
        way = values["gpu.l2.latency"] * values["gpu.clock"]
        taken = values["gpu.cp.admit"] + way + int(8 * lookup) * 1024
        assert set(np.diff(admitted[1:]).tolist()) == {taken}
        assert admitted[0] == at[0.0][0]
        assert admitted[1] - at[0.0][1] == int(8 * lookup) * 1024


@pytest.mark.parametrize("size", [20, 32, 96])
def test_footprints_go_through_l2(size):
    job = make("gru:hidden=64,batch=8,timesteps=5,layers=2")
    conf = oracle(scheme__learned__entry_bytes=size, scheme__learned__lookup=0.0)
    ran = execute(job, "tb_learned", conf)
    report = learn_footprints(job, conf.encoded()).report
    assert report.recorded_bytes >= size * report.ranges > 0
    assert report.fetched_bytes >= size * report.looked_up > report.recorded_bytes
    read, written = moved(ran)
    if size % SECTOR == 0:  # else TBs share sectors
        assert written == report.recorded_bytes // SECTOR
        # as many as there are, but those at the ends of first lines belong to one request
        assert read == report.fetched_bytes // SECTOR
    assert read >= report.fetched_bytes / SECTOR
    assert written >= report.recorded_bytes / SECTOR
    adds_up(ran)


def test_tbs_have_as_many_bytes_as_the_one_with_the_most():
    """Tiles at the edge of a matrix have fewer rows, and each row is a range."""
    job = twice(make("gemm:m=100,n=100,k=64"))
    values = oracle(scheme__learned__strided=0, scheme__learned__ranges=64).encoded()
    known = learn_footprints(job, values)
    each, tbs = values["scheme.learned.entry_bytes"], job.kernels[0].tbs
    assert known.launch["footprint"].tolist() == [int(known.launch["footprint"][0])] * len(job.kernels)
    assert known.report.recorded_bytes == int(known.launch["footprint"][0]) * tbs > each * known.report.ranges
    ran = execute(job, "tb_learned", oracle(scheme__learned__strided=0, scheme__learned__ranges=64))
    assert moved(ran)[0] >= known.report.fetched_bytes / SECTOR


# ---- right orders ----
@pytest.mark.parametrize("seed", range(12))
def test_random_dags_twice(seed):
    job = twice(make(f"random_dag:kernels=14,seed={seed},elements=2048,largest=700,streams={1 + seed % 3}"))
    for ranges in (1, 4):
        conf = oracle(scheme__learned__ranges=ranges, scheme__window=(2, 64)[seed % 2])
        ran = execute(job, "tb_learned", conf)
        assert int(ran.totals.tbs_done) == sum(k.tbs for k in job.kernels)


@pytest.mark.threads
def test_threads_and_slices_change_nothing():
    job = twice(ALL["random_dag"]())
    one = execute(job, "tb_learned", oracle()).fingerprint()
    assert one == execute(job, "tb_learned", oracle(), threads=(3, 1, 4), quanta=(50, 3)).fingerprint()
    assert one == execute(job, "tb_learned", oracle(sim__quantum=40)).fingerprint()


def chain():
    """Store, load and store a tensor's rows, twice; the first of each round ends late."""
    (a,) = store_to(Memory(), 1)
    late = kernel("late", "store", a, tbs=4, delay=LATE)
    read = kernel("read", "load", a, tbs=4, delay=LATE // 2)
    over = kernel("over", "store", a, tbs=4)
    return Job("chain", [late, read, over] * 2)


@pytest.mark.parametrize("kind", ["raw", "war", "waw"])
def test_a_dropped_kind_is_caught(kind):
    job = chain()
    kernels = list(job.kernels)
    if kind == "waw":
        kernels = [kernels[0], kernels[2]] * 2
    elif kind == "raw":
        kernels = kernels[:2] * 2
    else:
        kernels = kernels[1:3] * 2
    job = Job(kind, kernels)
    made, _ = lowered_of(job, "tb_learned", oracle())
    less = replace(made.known, deps=without_edges(made.known.deps, kind=kind))
    execute(job, "tb_learned", oracle())
    with pytest.raises(DependenceError, match=kind.upper()):
        execute(job, "tb_learned", oracle(), known=less)


def test_a_barrier_that_is_left_out_is_caught():
    job = chain()
    made, _ = lowered_of(job, "tb_learned", oracle())
    less = replace(made.known, barrier=np.zeros_like(made.known.barrier))
    with pytest.raises(DependenceError):
        execute(job, "tb_learned", oracle(), known=less)


# ---- what is reported ----
def test_the_table():
    result = simulate("titan_v", make("gru:hidden=64,batch=8,timesteps=3,layers=2"), "tb_static,tb_learned")
    (row,) = result.tables()["learned"]
    assert row["run"] == 1
    assert row["launches"] == row["served"] + row["barriers"] == 18
    assert row["recorded_bytes"] == 16 * row["ranges"] > 0
    assert row["fetched_bytes"] == 16000 * row["lookup_us"] > 0
    runs = result.tables()["runs"]
    assert (runs["bound_us"] <= runs["time_us"]).all()
