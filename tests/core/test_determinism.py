"""One job, one result: whatever the threads, the slices of the run and the quantum."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim.workloads.registry import make
from tests.support.thin import DRAWS, thin

from .harness import SCHEMES, config, execute, tiny
from .workloads_small import ALL

BY_NAME = list(ALL)
_KNOWN = {}


def base(name, scheme):
    key = (name, scheme)
    if key not in _KNOWN:
        _KNOWN[key] = execute(ALL[name](), scheme).fingerprint()
    return _KNOWN[key]


def same(got, want):
    different = [part for part in want if got[part] != want[part]]
    assert not different, f"parts that differ: {different}"


def by_turns(*ways):
    """Return all ways of each job and scheme; one of them runs plain, the next job's or scheme's another."""
    usual = {
        (name, scheme, ways[(i + j) % len(ways)])
        for i, name in enumerate(BY_NAME)
        for j, scheme in enumerate(SCHEMES)
    }
    return thin(itertools.product(BY_NAME, SCHEMES, ways), usual)


@pytest.mark.parametrize(("name", "scheme", "quantum"), by_turns(7, 13, 31))
def test_quantum(name, scheme, quantum):
    same(execute(ALL[name](), scheme, tiny(sim__quantum=quantum)).fingerprint(), base(name, scheme))


@pytest.mark.threads
@pytest.mark.parametrize(("name", "scheme", "threads"), by_turns(2, 4))
def test_threads(name, scheme, threads):
    same(execute(ALL[name](), scheme, threads=(threads,)).fingerprint(), base(name, scheme))


@pytest.mark.parametrize("quanta", [(1,), (3,), (100,), (1, 17, 5)])
@pytest.mark.parametrize("name", BY_NAME)
def test_slices(name, quanta):
    for scheme in ("stream", "tb_static"):
        same(execute(ALL[name](), scheme, quanta=quanta).fingerprint(), base(name, scheme))


@pytest.mark.threads
@pytest.mark.parametrize("name", BY_NAME)
def test_threads_change_between_slices(name):
    for scheme in ("stream", "tb_ideal"):
        got = execute(ALL[name](), scheme, threads=(2, 1, 3, 4), quanta=(5, 1, 40))
        same(got.fingerprint(), base(name, scheme))


@pytest.mark.parametrize("device", ["titan_v", "v100"])
@pytest.mark.parametrize("scheme", ["stream", "tb_static"])
def test_real_devices(device, scheme):
    job = make("gru:hidden=256,batch=32,timesteps=1,layers=1")
    want = execute(job, scheme, config(device)).fingerprint()
    for quantum in (7, 31):
        same(execute(job, scheme, config(device, sim__quantum=quantum)).fingerprint(), want)
    same(execute(job, scheme, config(device), quanta=(9, 200)).fingerprint(), want)


@pytest.mark.threads
def test_real_device_with_threads():
    job = make("gemm:m=384,n=500,k=128")
    want = execute(job, "stream", config()).fingerprint()
    for threads in ((2,), (4,), (8, 3, 1)):
        same(execute(job, "stream", config(), threads=threads, quanta=(100,)).fingerprint(), want)


@pytest.mark.parametrize("_draw", DRAWS)
@settings(max_examples=8, deadline=None)
@given(
    name=st.sampled_from(BY_NAME),
    scheme=st.sampled_from(SCHEMES),
    quantum=st.integers(1, 60),
    threads=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    quanta=st.lists(st.integers(1, 300), min_size=1, max_size=3),
    sms=st.sampled_from((1, 3, 4, 9)),
    slices=st.sampled_from((2, 3, 8, 14, 20, 26)),
    sets=st.sampled_from((32, 48, 128)),
    in_flight=st.sampled_from((32, 50, 256, 448)),
    copies_in_flight=st.sampled_from((0, 40, 2016)),
    stores_in_flight=st.sampled_from((0, 33, 720)),
    leave=st.sampled_from((0, 1, 16)),
    reply=st.sampled_from((8, 32, 64, 200)),
    noc=st.sampled_from((8, 20, 60)),
    clock=st.sampled_from((100.0, 1000.0, 1455.0, 7001.5)),
    block_max=st.sampled_from((1, 7, 64)),
    start=st.sampled_from((0.0, 0.09, 40.0)),
    replacement=st.sampled_from(("random", "lru", "clock")),
    coherence=st.sampled_from(("auto", "tb", "bypass", "argument")),
    keep_stores=st.sampled_from((0, 1)),
    reserved=st.sampled_from((0, 7168, 20480)),
    gpcs=st.sampled_from((1, 2)),
    gpc_link=st.sampled_from((0, 1, 7, 100)),
    share=st.sampled_from((1.0, 0.83)),
    join_loads=st.sampled_from((0, 4)),
    enter=st.sampled_from((0.0, 0.5, 20.0)),
    request=st.sampled_from((0.0, 1.16, 20.0)),
    chunked=st.sampled_from((0, 1)),
    halves=st.sampled_from((1, 2)),
)
def test_any_machine(_draw, name, scheme, quantum, threads, quanta, **machine):
    # two halves have half as many tags, which the smallest L2's memory is too short for
    one = (
        machine["slices"] % 2 or machine["replacement"] == "lru" or machine["slices"] * machine["sets"] < 128
    )
    halves = 1 if one else machine["halves"]
    conf = tiny(
        gpu__sms=machine["sms"],
        gpu__l2__slices=machine["slices"],
        gpu__l2__size=machine["slices"] * machine["sets"] * 2048,
        gpu__l2__replacement=machine["replacement"],
        gpu__l1__in_flight=machine["in_flight"],
        gpu__l1__copies_in_flight=machine["copies_in_flight"],
        gpu__l1__stores_in_flight=machine["stores_in_flight"],
        gpu__sm__barrier_leave=machine["leave"],
        gpu__noc__reply_bytes=machine["reply"],
        gpu__noc__latency=machine["noc"],
        gpu__clock=machine["clock"],
        gpu__dram__latency=600,
        gpu__sm__block_max=machine["block_max"],
        gpu__cp__tb_start=machine["start"],
        gpu__l1__keep_stores=machine["keep_stores"],
        gpu__l1__reserved=machine["reserved"],
        gpu__gpcs=min(machine["gpcs"], machine["sms"]),
        gpu__noc__gpc_link=machine["gpc_link"],
        sim__clock_share=machine["share"],
        gpu__noc__join_loads=machine["join_loads"],
        gpu__l2__enter=machine["enter"],
        gpu__l2__request=machine["request"],
        gpu__l2__chunked=machine["chunked"],
        gpu__l2__single=machine["slices"] // halves % 2,
        gpu__l2__partitions=halves,
        scheme__coherence=machine["coherence"],
    )
    job = ALL[name]()
    want = execute(job, scheme, conf).fingerprint()
    got = execute(job, scheme, conf.replaced({"sim.quantum": quantum}), threads=threads, quanta=quanta)
    same(got.fingerprint(), want)


def test_answers_to_the_scheduler_from_far_ahead():
    """They come sooner than what SMs send in that quantum may, and later than the ring of boxes holds."""
    machine = tiny(
        gpu__sms=3, gpu__l2__slices=8, gpu__l2__size=8 * 32 * 2048, gpu__noc__latency=8, gpu__clock=1000.0,
        gpu__dram__latency=600, gpu__cp__tb_start=0.0, scheme__coherence="tb", gpu__l2__replacement="clock",
    )  # fmt: skip
    job = ALL["gemm_beta"]()
    want = execute(job, "tb_learned", machine).fingerprint()
    same(execute(job, "tb_learned", machine.replaced({"sim.quantum": 1})).fingerprint(), want)


def test_long_runs_merge_their_samples_by_time():
    """More samples than fit are merged pair by pair, at the same places for every quantum."""
    job = make("chase:footprint=2097152,stride=128,passes=2")
    runs = [execute(job, "stream", tiny(sim__quantum=quantum)) for quantum in (0, 13)]
    assert runs[0].totals.sample_interval > 256 * runs[0].values["gpu.clock"]
    same(runs[1].fingerprint(), runs[0].fingerprint())
    assert runs[0].samples["work"]["l1_lines"].sum() == runs[0].sms["work"]["l1_lines"].sum()


@pytest.mark.threads
def test_replies_beyond_the_ring():
    """DRAM answers after more quanta than mailboxes hold, whichever thread ran the sender."""
    job = make("gemm:m=384,n=500,k=128")
    slow = config(gpu__dram__bandwidth=100, gpu__dram__latency=5000, sim__quantum=7)
    want = execute(job, "stream", slow).fingerprint()
    for threads in ((2,), (4,), (8, 3, 1)):
        same(execute(job, "stream", slow, threads=threads, quanta=(1000,)).fingerprint(), want)
