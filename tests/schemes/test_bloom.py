"""Bloom signatures and hints: how often they are wrong, what they add, and that no edge is missing."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence.dependences import dependences
from pysim.errors import ConfigError, DependenceError, WorkloadError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Program
from pysim.schemes.bloom import RATE_SCALE, false_positive_rate, launch_hints, tbs_per_signature
from pysim.workloads.registry import make
from tests.core.harness import execute, lowered_of, oracle, tiny
from tests.core.workloads_small import ALL, random_dag
from tests.oracle.test_ordering import KINDS, LATE, pair, two

from .test_kernel_schemes import NS, apart


def counted(*args, **kwargs):
    """The counts of look-ups of a run, by name."""
    totals = execute(*args, **kwargs).totals  # the struct inside does not keep it alive
    names = ("tests", "false_hits", "expected", "edges", "false_edges")
    return SimpleNamespace(**{name: int(getattr(totals.bloom, name)) for name in names})


def waiting(name, tbs, tensor, granules, mode, *, first=0, delay=LATE, granule=256):
    """A kernel that touches nothing in fact, and says that each TB touches so many granules of its own."""
    code = Code()
    code.delay(delay)
    code.exit()
    each = granules * granule // tensor.item

    def regions(numbers):
        zero = np.zeros_like(numbers)
        begin = first * granule // tensor.item + numbers * each
        return np.stack([zero, zero + 1, begin, begin + each], axis=1)

    program = Program(name, (tuple(code.ops),), 1, 16, 0, 0)
    return Kernel(name, program, (tbs, 1, 1), (), (Access(tensor, mode, regions),))


# ---- how often a signature is wrong ----
@pytest.mark.parametrize(
    ("bits", "hashes", "filled"), [(256, 1, 16), (256, 3, 16), (256, 4, 64), (512, 4, 32), (1024, 8, 64)]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_false_positive_rate_is_the_analytic_one(bits, hashes, filled, seed):
    """64 signatures of n granules, and as many granules that none of them holds.

    With q = 1 - e^(-kn/m) bits set of each, an answer is false with probability q^k. Both the tests and the
    share of bits set of each signature scatter: the latter at most as a binomial does, (1 - q) / (q m).
    """
    units, asked = 64, 4096
    memory = Memory()
    tensor = memory.tensor("t", 1, (units * filled + asked) * 64, 4)
    job = Job(
        "rate",
        [
            waiting("held", units, tensor, filled, "write"),
            waiting("asks", 32, tensor, asked // 32, "read", first=units * filled, delay=10),
        ],
    )
    conf = tiny(
        scheme__bloom__bits=bits, scheme__bloom__hashes=hashes, sim__seed=seed, scheme__bloom__lookup=0
    )
    found = counted(job, "tb_bloom", conf)
    assert found.tests == units * asked
    rate = float(false_positive_rate(np.array([filled]), bits, hashes)[0])
    assert found.expected / RATE_SCALE / found.tests == pytest.approx(rate, abs=1 / RATE_SCALE)
    set_share = 1 - math.exp(-hashes * filled / bits)
    scatter = math.sqrt(1 / (found.tests * rate) + hashes**2 * (1 - set_share) / (set_share * bits) / units)
    # the formula takes bits for independent, which is off by this at most for the sizes here
    bias = hashes**2 / 2 * (1 - set_share) / (set_share * bits) + 0.02
    assert abs(found.false_hits / found.tests / rate - 1) < 4 * scatter + bias
    exact = counted(job, "tb_bloom:exact", conf)
    assert exact.false_hits == found.false_hits
    assert (exact.edges, exact.false_edges) == (0, 0)
    assert found.edges == found.false_edges <= 64 * 32


def test_a_true_hit_is_no_false_one():
    job = two("store", "load", tbs=8)
    found = counted(job, "tb_bloom", oracle(scheme__bloom__granule=32))
    # each of 8 loads meets the 4 sectors of one of 8 stores
    assert (found.edges, found.false_edges, found.false_hits) == (8, 0, 0)
    assert found.tests == 8 * 4 * 8 - 8 * 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whole", [False, True])
def test_exact_signatures_of_sectors_find_the_true_edges(kind, whole):
    job = two(kind[1], kind[2], tbs=6, whole=whole)
    true = sum(int(dependences(job).edges[name].sum()) for name in ("raw", "war", "waw"))
    conf = oracle(scheme__bloom__granule=32, scheme__bloom__lookup=0)
    assert counted(job, "tb_bloom:exact", conf).edges == true


# ---- what hints cost ----
@pytest.mark.parametrize(
    ("cost", "granules", "first"), [("insert", 4, 0), ("lookup", 4, 4), ("latency", 1, 1)]
)
def test_hints_take_time(cost, granules, first):
    """Kernels of a line each, four granules: looked up before a kernel is admitted, entered behind it."""
    free = {f"scheme__bloom__{name}": 0.0 for name in ("insert", "lookup", "latency")}
    begun, ended = {}, {}
    for each in (0, 5, 50):
        conf = tiny(scheme__bloom__granule=32, **(free | {f"scheme__bloom__{cost}": float(each)}))
        ran = execute(apart(4, delay=0), "tb_bloom", conf)
        admitted = ran.kernels["admitted"].astype(np.int64)
        begun[each], ended[each] = int(admitted[0]), ran.end
        assert set(np.diff(admitted).tolist()) == {conf.encoded()["gpu.cp.admit"] + granules * each * NS}
        assert begun[each] - begun[0] == first * each * NS
    # the last of four kernels is admitted three times as much later, and the first one's look-up
    assert ended[50] - ended[5] == pytest.approx((3 * granules + first) * 45 * NS, rel=0.1)


# ---- units, memory, hints ----
@pytest.mark.parametrize("widen", [150, 400, 100000])
def test_wider_hints_add_edges(widen):
    job = two("store", "load", tbs=16)
    exact = counted(job, "tb_bloom:exact", oracle(scheme__bloom__granule=32))
    wide = counted(job, "tb_bloom:exact", oracle(scheme__bloom__granule=32, scheme__bloom__widen=widen))
    assert wide.edges > exact.edges == 16
    if widen == 100000:
        assert wide.edges == 16 * 16


def test_units():
    values = oracle(scheme__bloom__signatures=128).encoded()
    assert tbs_per_signature(64, values) == 1
    assert tbs_per_signature(65, values) == 2
    assert tbs_per_signature(1000, values) == 16
    assert tbs_per_signature(7, oracle(scheme__bloom__per="kernel").encoded()) == 7
    assert tbs_per_signature(7, oracle(scheme__bloom__per="group").encoded()) == 8
    job = ALL["gemm_chain"]()
    edges = []
    for per in ("tb", "group", "kernel"):
        conf = oracle(scheme__bloom__per=per, scheme__bloom__group=4, scheme__bloom__latency=0)
        edges.append(int(counted(job, "tb_bloom", conf).edges))
    assert edges[0] > edges[1] > edges[2] > 0


@pytest.mark.parametrize("clear", ["kernel", "epoch"])
@pytest.mark.parametrize("per", ["tb", "group", "kernel"])
def test_little_memory(clear, per):
    """A kernel of 300 TBs and more than fit at once: all run, in signatures that are there."""
    job = make("empty:tbs=300,kernels=9")
    many = Job("many", [*job.kernels, *ALL["gru"]().kernels])
    conf = oracle(scheme__bloom__signatures=128, scheme__bloom__clear=clear, scheme__bloom__per=per)
    ran = execute(many, "tb_bloom", conf)
    assert 0 < int(ran.totals.table_peak_entries) <= 128
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in many.kernels)


def test_without_hints_all_is_behind_barriers():
    job = ALL["gru"]()
    ran = execute(job, "tb_bloom", oracle(scheme__bloom__missing=1.0))
    admitted, released = (ran.kernels[name].astype(np.int64) for name in ("admitted", "released"))
    assert (admitted[1:] - released[:-1] >= oracle().encoded()["gpu.cp.stream_gap"]).all()
    totals = ran.totals
    assert int(totals.bloom.tests) == 0
    some = [
        launch_hints(job, oracle(scheme__bloom__missing=0.5, sim__seed=s).encoded()).barrier
        for s in (1, 1, 2)
    ]
    assert some[0].tolist() == some[1].tolist() != some[2].tolist()
    assert 0 < some[0].sum() < len(job.kernels)
    execute(job, "tb_bloom", oracle(scheme__bloom__missing=0.5))


def test_constants_are_named_if_asked():
    job = ALL["gemm_edges"]()
    few, all_of_it = (
        int(launch_hints(job, oracle(scheme__bloom__constants=c).encoded()).granules.sum()) for c in (0, 1)
    )
    assert 0 < few < all_of_it


def test_what_is_too_large_is_refused():
    tensor = Memory().tensor("big", 1, 1 << 33, 1)
    big = Job("big", [waiting("big", 1, tensor, 1 << 25, "write", granule=256)])
    with pytest.raises(WorkloadError, match="granules"):
        launch_hints(big, oracle(scheme__bloom__granule=32).encoded())


# ---- right and wrong orders ----
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    kernels=st.integers(2, 30),
    streams=st.integers(1, 3),
    bits=st.sampled_from((8, 64, 2048)),
    hashes=st.sampled_from((1, 4, 16)),
    granule=st.sampled_from((32, 256, 4096)),
    per=st.sampled_from(("tb", "group", "kernel")),
    clear=st.sampled_from(("kernel", "epoch")),
    signatures=st.sampled_from((128, 192, 4096)),
    missing=st.sampled_from((0.0, 0.2)),
    widen=st.sampled_from((100, 250)),
    window=st.sampled_from((1, 3, 64)),
)
def test_random_dags(
    seed, kernels, streams, bits, hashes, granule, per, clear, signatures, missing, widen, window
):
    job = random_dag(seed, kernels, streams)
    conf = oracle(
        scheme__bloom__bits=bits,
        scheme__bloom__hashes=hashes,
        scheme__bloom__granule=granule,
        scheme__bloom__per=per,
        scheme__bloom__clear=clear,
        scheme__bloom__signatures=signatures,
        scheme__bloom__missing=missing,
        scheme__bloom__widen=widen,
        scheme__bloom__lookup=0,
        scheme__bloom__latency=0,
        scheme__window=window,
        gpu__cp__admit=0,
    )
    ran = execute(job, "tb_bloom", conf)
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in job.kernels)


@pytest.mark.threads
@pytest.mark.parametrize("clear", ["kernel", "epoch"])
def test_threads_and_slices_change_nothing(clear):
    more = {"scheme__bloom__clear": clear, "scheme__bloom__bits": 64, "scheme__bloom__signatures": 128}
    job = ALL["random_dag"]()
    runs = [
        execute(job, "tb_bloom", oracle(**more)),
        execute(job, "tb_bloom", oracle(**more), threads=(3, 1, 4), quanta=(50, 3)),
        execute(job, "tb_bloom", oracle(sim__quantum=40, **more)),
    ]
    names = ("tests", "false_hits", "expected", "edges", "false_edges")
    seen = []
    for ran in runs:
        totals = ran.totals
        seen.append((ran.fingerprint(), [int(getattr(totals.bloom, n)) for n in names]))
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(("kind", "first", "second"), KINDS)
def test_a_left_out_hint_is_caught(kind, first, second):
    """Without the first kernel's hints nothing is found, and the second one runs too early."""
    job = two(first, second)
    execute(job, "tb_bloom", oracle())
    made, _ = lowered_of(job, "tb_bloom", oracle())
    sets = made.known.hints.tables["hint_sets"].copy()
    sets["hints"][: int(made.known.hints.launch["sets"][0])] = 0
    hints = replace(made.known.hints, tables=made.known.hints.tables | {"hint_sets": sets})
    with pytest.raises(DependenceError, match=kind.upper()) as caught:
        execute(job, "tb_bloom", oracle(), known=replace(made.known, hints=hints))
    later, earlier = pair(caught.value)
    assert (later[0], earlier) == (1, (0, later[1]))


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("hint_sets", "first_hint", 1 << 30),
        ("hint_sets", "written", 2),
        ("hint_sets", "units", 1 << 20),
        ("hints", "end", 0),
        ("set_units", None, 9),
        ("unit_sets", None, 9),
        ("unit_ptr", None, 99),
        ("launch", "units", 3),
        ("launch", "unit_tbs", 0),
        ("launch", "sets", 77),
    ],
)
def test_the_core_refuses_hints_out_of_range(table, column, value):
    job = two("store", "load")
    made, _ = lowered_of(job, "tb_bloom", oracle())
    hints = made.known.hints
    if table == "launch":
        own = hints.launch | {column: np.full(2, value, np.uint32)}
        hints = replace(hints, launch=own)
    else:
        rows = hints.tables[table].copy()
        if column:
            rows[column][-1] = value
        else:
            rows[-1] = value
        hints = replace(hints, tables=hints.tables | {table: rows})
    with pytest.raises(ConfigError, match="hints or units"):
        execute(job, "tb_bloom", oracle(), known=replace(made.known, hints=hints))


# ---- what is reported ----
def test_the_table():
    job = make("gru:hidden=64,batch=8,timesteps=3,layers=2")
    result = simulate(tiny(), job, "tb_bloom,tb_bloom:exact", overrides={"scheme.bloom.bits": 64}, threads=1)
    bloom, exact = result.tables()["bloom"]
    assert bloom["launches"] == bloom["hinted"] == 18
    assert bloom["false_rate"] == bloom["false_hits"] / bloom["tests"] > 0
    assert 0.5 < bloom["false_rate"] / bloom["analytic_rate"] < 2
    assert bloom["false_edges"] > exact["false_edges"] == 0
    assert bloom["memory_bytes"] == 4096 * (2 * 64 + 4096) // 8
    runs = result.tables()["runs"]
    assert (runs["bound_us"] <= runs["time_us"]).all()
    assert runs["table_bytes"][0] == runs["table_entries"][0] * (2 * 64 + 4096) // 8
