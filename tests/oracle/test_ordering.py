"""No scheme breaks a true dependence, and the oracle sees it when one does."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DependenceError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads import library
from pysim.workloads.library.moved import Moves, moved
from pysim.workloads.registry import make
from tests.core.harness import SCHEMES, execute, oracle, tiny
from tests.core.workloads_small import ALL, SPLIT, product, random_dag
from tests.support.thin import thin

TABLES = ("tb_static", "tb_ideal")
COHERENCE = {
    "host": ("auto", "kernel", "bypass", "tb", "argument"),
    "stream": ("auto", "kernel", "bypass", "tb", "argument"),
    "graph": ("auto", "kernel", "bypass", "tb", "argument"),
    "tb_static": ("auto", "bypass", "tb", "argument"),
    "tb_learned": ("auto", "bypass", "tb", "argument"),
    "tb_ideal": ("auto", "bypass", "tb", "argument"),
}


# ---- right orders pass ----
@pytest.mark.parametrize("seed", thin(range(40), 2))
def test_random_dags(seed):
    job = make(f"random_dag:kernels=24,seed={seed},elements=4096,largest=1024")
    for scheme in SCHEMES:
        execute(job, scheme, oracle())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    kernels=st.integers(2, 40),
    streams=st.integers(1, 4),
    scheme=st.sampled_from(SCHEMES),
    priority=st.sampled_from(("oldest", "newest", "critical")),
    window=st.sampled_from((1, 2, 7, 1000)),
    entries=st.sampled_from((1, 8, 64, 100000)),
    submit=st.sampled_from(("prefilled", "eager")),
    which=st.integers(0, 4),
    carveout=st.sampled_from(("auto", "kernel", "job")),
    bypass=st.sampled_from((0, 1, 16)),
)
def test_random_dags_under_random_settings(
    seed, kernels, streams, scheme, priority, window, entries, submit, which, carveout, bypass
):
    known = COHERENCE[scheme]
    conf = oracle(
        scheme__priority=priority,
        scheme__window=window,
        scheme__table__entries=entries,
        scheme__coherence=known[which % len(known)],
        scheme__carveout=carveout,
        scheme__bypass=bypass,
        host__submit=submit,
    )
    ran = execute(random_dag(seed, kernels, streams), scheme, conf)
    if scheme == "tb_static":
        assert ran.totals.table_peak_entries <= entries


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "name",
    [
        "gemm_chain",
        "split_k",
        "gru",
        "gru_hoisted",
        "copy",
        "shared_read",
        "sliced",
        "copied",
        "copied_in_time",
    ],
)
def test_networks(name, scheme):
    for coherence in COHERENCE[scheme]:
        execute(ALL[name](), scheme, oracle(scheme__coherence=coherence))


@pytest.mark.parametrize("priority", ["oldest", "newest", "critical"])
def test_priorities(priority):
    for name in ("gru", "random_dag", "gemm_chain"):
        for window in (1, 2, 3, 100):
            conf = oracle(scheme__priority=priority, scheme__window=window)
            for scheme in TABLES:
                execute(ALL[name](), scheme, conf)


@pytest.mark.threads
def test_oracle_with_threads():
    for scheme in SCHEMES:
        ran = execute(ALL["random_dag"](), scheme, oracle(), threads=(3, 1, 4), quanta=(50, 3))
        assert ran.hash == execute(ALL["random_dag"](), scheme, tiny()).hash


def test_the_oracle_changes_nothing():
    for name in ("gru", "split_k", "mixed", "read", "copied_in_time"):
        for scheme in ("stream", "tb_static"):
            checked = execute(ALL[name](), scheme, oracle()).fingerprint()
            assert checked == execute(ALL[name](), scheme, tiny()).fingerprint()


# ---- small tables ----
@pytest.mark.parametrize("name", ["gru", "gemm_chain", "random_dag", "split_k"])
def test_small_tables_are_right_and_coarser(name):
    times, coarse, peaks = [], [], []
    for entries in (1, 8, 64, 1 << 20):
        ran = execute(ALL[name](), "tb_static", oracle(scheme__table__entries=entries))
        times.append(ran.us)
        coarse.append(int(ran.totals.table_coarse_kernels))
        peaks.append(int(ran.totals.table_peak_entries))
        assert coarse[-1] == int(ran.kernels["coarse"].sum())
        assert peaks[-1] <= entries
    # with one entry fewer kernels are admitted while their producers still run
    assert min(coarse[:2]) >= coarse[2] >= coarse[3]
    assert coarse[0] > 0 == coarse[-1]
    # a coarser order is no shortcut (placement may differ a little)
    assert all(time >= 0.97 * times[-1] for time in times)
    assert peaks[-1] > 1


def test_a_full_table_admits_what_waits_for_nothing():
    """One entry: a third kernel, which depends on the first, waits for it; a fourth that is free as well."""
    memory = Memory()
    t, other = memory.tensor("t", 4, 32, 4), memory.tensor("other", 4, 32, 4)
    late = kernel("late", "store", t, tbs=4, delay=LATE)
    free = kernel("free", "store", other, tbs=4)
    job = Job(
        "full",
        [late, kernel("one", "load", t, tbs=4, whole=True), free, kernel("two", "load", t, tbs=4), free],
    )
    ran = execute(job, "tb_static", oracle(scheme__table__entries=1))
    wide = execute(job, "tb_static", oracle())
    admitted = ran.kernels["admitted"].astype(np.int64)
    assert int(ran.totals.table_peak_entries) == 1
    assert admitted[2] == wide.kernels["admitted"][2] < ran.kernels["last_end"][0] < admitted[3] < admitted[4]
    assert wide.kernels["admitted"][3] < wide.kernels["last_end"][0]


@pytest.mark.parametrize("consumers", [1, 2, 64])
def test_peak_entries_count_consumer_ranges(consumers):
    job = ALL["gemm_chain"]()
    ran = execute(job, "tb_static", oracle(scheme__table__consumers=consumers))
    deps = dependences(job)
    whole = sum(-(-int(n["ranges"]) // consumers) for n in deps.nodes)
    assert 0 < int(ran.totals.table_peak_entries) <= whole + int(deps.offsets[-1])


# ---- wrong orders are caught ----
LATE = 60_000  # cycles: far longer than anything that a consumer could wait for


def kernel(name, memory_op, tensor, *, tbs=1, delay=0, whole=False, mode=None):
    """TBs that wait, then load, store or update a line each of ``tensor`` (or all lines)."""
    code = Code()
    if delay:
        code.delay(delay)
    count = tensor.rows if whole else 1
    for row in range(count):
        where = Pattern(0, 4, base=row * tensor.pitch, bx=0 if whole else tensor.pitch, s0=4)
        getattr(code, memory_op)(0, where)
    code.wait(0)
    code.exit()

    def regions(numbers):
        first = np.zeros_like(numbers) if whole else np.asarray(numbers)
        zero = np.zeros_like(numbers)
        return np.stack([first, first + count, zero, zero + tensor.cols], axis=1)

    word = mode or {"load": "read", "store": "write", "reduce": "update"}[memory_op]
    program = Program(name, (tuple(code.ops),), 1, 16, 0, 1)
    return Kernel(name, program, (tbs, 1, 1), (tensor,), (Access(tensor, word, regions),))


def two(first, second, tbs=4, whole=False):
    memory = Memory()
    tensor = memory.tensor("t", tbs, 32, 4)
    return Job(
        "two",
        [
            kernel("first", first, tensor, tbs=tbs, delay=LATE),
            kernel("second", second, tensor, tbs=tbs, whole=whole),
        ],
    )


KINDS = [
    ("raw", "store", "load"),
    ("raw", "reduce", "load"),
    ("war", "load", "store"),
    ("war", "load", "reduce"),
    ("waw", "store", "store"),
    ("waw", "reduce", "store"),
    ("waw", "store", "reduce"),
]


def pair(error):
    """(kernel, TB) of both TBs that a message names."""
    found = re.findall(r"TB (\d+) of kernel (\d+)", str(error))
    assert len(found) == 2, str(error)
    return [(int(k), int(tb)) for tb, k in found]


@pytest.mark.parametrize("scheme", TABLES)
@pytest.mark.parametrize(("kind", "first", "second"), KINDS)
def test_a_dropped_kind_is_caught(kind, first, second, scheme):
    job = two(first, second)
    execute(job, scheme, oracle())
    less = without_edges(dependences(job), kind=kind)
    with pytest.raises(DependenceError, match=kind.upper()) as caught:
        execute(job, scheme, oracle(), deps=less)
    later, earlier = pair(caught.value)
    assert later[0] == 1
    assert earlier == (0, later[1])
    assert "\n" not in str(caught.value)
    assert "sector 0x" in str(caught.value)


@pytest.mark.parametrize("scheme", TABLES)
def test_a_dropped_producer_of_a_group_is_caught(scheme):
    """All TBs of the second kernel wait for eight of the first; the edge from the late last one is gone."""
    memory = Memory()
    tensor = memory.tensor("t", 8, 32, 4)
    plain = kernel("first", "store", tensor, tbs=8)
    late = kernel("first", "store", tensor, tbs=8, delay=LATE)
    # odd variants are those of the last TB in x
    variants = tuple((late if v & 1 else plain).program.variants[0] for v in range(8))
    first = Kernel("first", Program("first", variants, 1, 16, 0, 1), (8, 1, 1), plain.args, plain.accesses)
    job = Job("group", [first, kernel("second", "load", tensor, tbs=5, whole=True)])
    deps = dependences(job)
    assert len(deps.nodes) == 1
    execute(job, scheme, oracle())
    with pytest.raises(DependenceError, match="RAW") as caught:
        execute(job, scheme, oracle(), deps=without_edges(deps, producer=(0, 7)))
    later, earlier = pair(caught.value)
    assert earlier == (0, 7)
    assert later[0] == 1


@pytest.mark.parametrize("scheme", TABLES)
@pytest.mark.parametrize("whole", [False, True])
def test_a_dropped_group_node_is_caught(scheme, whole):
    job = two("store", "load", tbs=6, whole=whole)
    deps = dependences(job)
    for node in range(len(deps.nodes)):
        with pytest.raises(DependenceError, match="RAW") as caught:
            execute(job, scheme, oracle(), deps=without_edges(deps, node=node))
        later, earlier = pair(caught.value)
        assert later[0] == 1
        assert earlier[0] == 0
        assert later[1] in deps.groups[node].consumers


@pytest.mark.parametrize("scheme", TABLES)
def test_a_dropped_node_in_a_network_is_caught(scheme):
    caught = []
    for job in (product(96, 64, 64, chain=2), product(64, 64, 96, SPLIT)):
        deps = dependences(job)
        for node in range(len(deps.nodes)):
            try:
                execute(job, scheme, oracle(), deps=without_edges(deps, node=node))
            except DependenceError as error:
                caught.append((pair(error)[0][0], int(deps.nodes["kernel"][node])))
    assert len(caught) >= 3
    assert all(named == dropped for named, dropped in caught)


def test_a_dropped_kernel_edge_is_caught():
    job = two("store", "load")
    less = without_edges(dependences(job), kind="raw")
    with pytest.raises(DependenceError, match="RAW"):
        execute(job, "graph", oracle(), deps=less)
    # stream order does not look at data
    execute(job, "stream", oracle(), deps=less)


def test_streams_without_an_event_race():
    memory = Memory()
    tensor = memory.tensor("t", 2, 32, 4)
    first = kernel("first", "store", tensor, tbs=2, delay=LATE)
    second = kernel("second", "load", tensor, tbs=2)
    apart = Kernel("second", second.program, second.grid, second.args, second.accesses, stream=1)
    assert dependences(Job("race", [first, apart])).races == ((0, 1),)
    with pytest.raises(DependenceError):
        execute(Job("race", [first, apart]), "stream", oracle())
    execute(Job("no race", [first, apart], [(0, 1)]), "stream", oracle())


# ---- stale lines ----
def ping_pong():
    """Read a line on every SM, write it, read it again: L1 holds the old line."""
    memory = Memory()
    tensor = memory.tensor("t", 1, 32, 4)
    sms = tiny()["gpu.sms"]

    def reader(name):
        made = kernel(name, "load", tensor, tbs=2 * sms, whole=True, delay=50)
        return made

    return Job("ping_pong", [reader("before"), kernel("write", "store", tensor, whole=True), reader("after")])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_stale_lines_are_caught(scheme):
    execute(ping_pong(), scheme, oracle())
    with pytest.raises(DependenceError, match=r"stale L1 line: TB \d+ of kernel 2 reads sector 0x"):
        execute(ping_pong(), scheme, oracle(scheme__coherence="kernel"), order={"invalidate": 0})


# ---- bulk copies ----
def bulk_products(chained):
    """Two GEMMs that load by bulk copies: the second takes the first one's C for its A, or shares its B."""
    memory = Memory()
    (first,), _ = library.gemm(128, 64, 128, memory=memory)
    (second,), _ = library.gemm(128, 64, 128, memory=memory)
    old, new = (second.args[0], first.args[2]) if chained else (second.args[1], first.args[1])
    made = moved(second, Moves([(old, replace(old, address=new.address))]))
    return Job("products", [first, made])


def test_kernels_that_load_the_same_by_bulk_copies_may_overlap():
    job = bulk_products(chained=False)
    assert not len(dependences(job).nodes)
    for scheme in ("graph", "tb_static"):
        simulate("h200", job, scheme, overrides={"sim.oracle": 1}, baseline=False)


def test_a_bulk_load_before_its_producer_has_stored_is_caught():
    job = bulk_products(chained=True)
    simulate("h200", job, "graph,tb_static", overrides={"sim.oracle": 1}, baseline=False)
    none = without_edges(dependences(job), kind="raw")
    with pytest.raises(DependenceError, match="RAW dependence broken"):
        simulate("h200", job, "graph", overrides={"sim.oracle": 1}, baseline=False, deps=none)
