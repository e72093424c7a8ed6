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
from tests.core.harness import config, execute, lowered_of, oracle, tiny
from tests.core.workloads_small import ALL, random_dag
from tests.oracle.test_ordering import KINDS, LATE, pair, two

from .test_kernel_schemes import NS, apart

# a signature a TB, and granules of one size
BY_TB = {"per": "tb", "signatures": 4096, "levels": 1, "granule": 256, "bits": 2048}


def by_tb(make=oracle, **own):
    """A configuration with a signature a TB; ``own``: settings of the scheme."""
    return make(**{f"scheme__bloom__{name}": value for name, value in (BY_TB | own).items()})


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
    conf = by_tb(tiny, bits=bits, hashes=hashes, lookup=0).replaced({"sim.seed": seed})
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
    found = counted(job, "tb_bloom", by_tb(granule=32))
    # each of 8 loads meets the 4 sectors of one of 8 stores
    assert (found.edges, found.false_edges, found.false_hits) == (8, 0, 0)
    assert found.tests == 8 * 4 * 8 - 8 * 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whole", [False, True])
def test_exact_signatures_of_sectors_find_the_true_edges(kind, whole):
    job = two(kind[1], kind[2], tbs=6, whole=whole)
    true = sum(int(dependences(job).edges[name].sum()) for name in ("raw", "war", "waw"))
    for levels in (1, 3, 10):
        conf = by_tb(granule=32, levels=levels, fill=16, lookup=0)
        assert counted(job, "tb_bloom:exact", conf).edges == true


# ---- what hints cost ----
@pytest.mark.parametrize(("cost", "first"), [("insert", 1), ("lookup", 1), ("latency", 1)])
def test_hints_take_time(cost, first):
    """Kernels of a line each, four sectors: what takes longer than reading a launch delays its admission."""
    free = dict.fromkeys(("insert", "lookup", "latency"), 0.0)
    period = oracle().encoded()["gpu.cp.admit"]
    begun = {}
    for each in (0, 5, 500):
        conf = by_tb(tiny, granule=32, **(free | {cost: float(each)}))
        ran = execute(apart(4, delay=0), "tb_bloom", conf)
        admitted = ran.kernels["admitted"].astype(np.int64)
        begun[each] = int(admitted[0])
        over = max(4 * each * NS - period, 0) if cost != "latency" else 0
        assert set(np.diff(admitted).tolist()) == {period + over}
        assert begun[each] - begun[0] == (over if cost != "latency" else each * NS)


# ---- units, memory, hints ----
@pytest.mark.parametrize("widen", [150, 400, 100000])
def test_wider_hints_add_edges(widen):
    job = two("store", "load", tbs=16)
    exact = counted(job, "tb_bloom:exact", by_tb(granule=32))
    wide = counted(job, "tb_bloom:exact", by_tb(granule=32, widen=widen))
    assert wide.edges > exact.edges == 16
    if widen == 100000:
        assert wide.edges == 16 * 16


def test_units():
    values = by_tb(signatures=128).encoded()
    assert tbs_per_signature(64, values) == 1
    assert tbs_per_signature(65, values) == 2
    assert tbs_per_signature(1000, values) == 16
    assert tbs_per_signature(7, oracle().encoded()) == 7
    assert tbs_per_signature(7, by_tb(per="group").encoded()) == 8
    assert tbs_per_signature(7, by_tb(per="part").encoded()) == 2
    job = ALL["gemm_chain"]()
    edges = []
    for per in ("tb", "group", "kernel"):
        conf = by_tb(per=per, group=4, latency=0)
        edges.append(int(counted(job, "tb_bloom", conf).edges))
    assert edges[0] > edges[1] > edges[2] > 0


def test_edges_that_others_imply_are_dropped():
    """Of a chain in which each kernel reads what all before have written, each waits for the last alone."""
    memory = Memory()
    tensors = [memory.tensor(f"t{i}", 1, 64, 4) for i in range(4)]

    def kernel(number):
        made = waiting(f"k{number}", 1, tensors[number], 1, "write")
        reads = tuple(replace(made.accesses[0], tensor=t, mode="read") for t in tensors[:number])
        return replace(made, accesses=(*made.accesses, *reads))

    job = Job("chain", [kernel(number) for number in range(4)])
    found = counted(job, "tb_bloom:exact", oracle(scheme__bloom__latency=0, gpu__cp__admit=0))
    assert (found.edges, found.false_edges) == (3, 0)


def test_parts_where_they_touch_different_memory():
    job = ALL["gemm_chain"]()
    many = Job("many", [waiting("own", 8, Memory().tensor("t", 1, 1 << 12, 4), 1, "write"), *job.kernels])
    made = launch_hints(many, by_tb(per="part").encoded()).launch
    assert made["units"].tolist()[0] == 4
    # each TB of a product reads more than half of a small matrix
    assert 1 in made["units"].tolist()[1:]
    assert launch_hints(many, oracle().encoded()).launch["units"].tolist() == [1] * len(many.kernels)


def test_a_full_signature_fills_gaps():
    """A kernel that writes every other line: with few bits its hints are one range."""
    memory = Memory()
    tensor = memory.tensor("t", 1, 64 * 2 * 64, 4)
    job = Job("lines", [waiting("lines", 64, tensor, 1, "write")])
    whole = job.kernels[0].accesses[0]

    def every_other(numbers):
        rows = whole.regions(numbers)
        rows[:, 2:] += 64 * numbers[:, None]
        return rows

    job.kernels[0] = replace(job.kernels[0], accesses=(replace(whole, regions=every_other),))
    few, many = (launch_hints(job, oracle(scheme__bloom__bits=b).encoded()).tables for b in (256, 65536))
    assert len(few["hints"]) < 40 < 64 < len(many["hints"])


@pytest.mark.parametrize(
    ("text", "fine_loses"),
    [
        ("gru:hidden=512,batch=16,timesteps=2,layers=2", True),
        ("transformer:layers=1,hidden=512,heads=8,sequence=128,batch=1", False),
    ],
)
def test_the_defaults_do_not_lose_to_a_graph(text, fine_loses):
    job = make(text)
    graph, bloom = (execute(job, scheme, config("titan_v")).end for scheme in ("graph", "tb_bloom"))
    assert bloom < 1.02 * graph
    if fine_loses:  # what the defaults avoid
        fine = config("titan_v").replaced({f"scheme.bloom.{n}": v for n, v in BY_TB.items()})
        assert execute(job, "tb_bloom", fine).end > 1.1 * graph


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
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    kernels=st.integers(2, 30),
    streams=st.integers(1, 3),
    bits=st.sampled_from((8, 64, 2048)),
    hashes=st.sampled_from((1, 4, 16)),
    granule=st.sampled_from((32, 256, 4096)),
    levels=st.sampled_from((1, 4, 10)),
    fill=st.sampled_from((0.0, 0.5, 16.0)),
    per=st.sampled_from(("tb", "group", "part", "kernel")),
    clear=st.sampled_from(("kernel", "epoch")),
    signatures=st.sampled_from((64, 192, 4096)),
    missing=st.sampled_from((0.0, 0.2)),
    widen=st.sampled_from((100, 250)),
    window=st.sampled_from((1, 3, 64)),
)
def test_random_dags(
    seed,
    kernels,
    streams,
    bits,
    hashes,
    granule,
    levels,
    fill,
    per,
    clear,
    signatures,
    missing,
    widen,
    window,
):
    job = random_dag(seed, kernels, streams)
    conf = oracle(
        scheme__bloom__bits=bits,
        scheme__bloom__hashes=hashes,
        scheme__bloom__granule=granule,
        scheme__bloom__levels=levels,
        scheme__bloom__fill=fill,
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
    own = {f"scheme.bloom.{name}": value for name, value in (BY_TB | {"bits": 64}).items()}
    result = simulate(tiny(), job, "tb_bloom,tb_bloom:exact", overrides=own, threads=1)
    bloom, exact = result.tables()["bloom"]
    assert bloom["launches"] == bloom["hinted"] == 18
    assert bloom["false_rate"] == bloom["false_hits"] / bloom["tests"] > 0
    assert 0.5 < bloom["false_rate"] / bloom["analytic_rate"] < 2
    assert bloom["false_edges"] > exact["false_edges"] == 0
    assert bloom["memory_bytes"] == 4096 * (2 * 64 + 4 + 4096 + 4) // 8
    runs = result.tables()["runs"]
    assert (runs["bound_us"] <= runs["time_us"]).all()
    assert runs["table_bytes"][0] == runs["table_entries"][0] * (2 * 64 + 4 + 4096 + 4) // 8
