"""What holds of every scheme that waits before dispatch: dependences, one result, the bound."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import simulate
from workloads.registry import make

from .core.harness import FAMILY, execute, tiny
from .core.workloads_small import ALL

NETWORKS = ("gemm_chain", "split_k", "gru", "copy", "shared_read", "sliced", "copied", "copied_in_time")


def oracle(**overrides):
    return tiny(sim__oracle=1, **overrides)


@pytest.mark.parametrize("scheme", FAMILY)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, scheme):
    ran = execute(ALL[name](), scheme, oracle())
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in ran.job.kernels)
    assert ran.fingerprint() == execute(ALL[name](), scheme, tiny()).fingerprint()


@pytest.mark.parametrize("scheme", FAMILY)
@pytest.mark.parametrize("seed", range(12))
def test_random_dags(seed, scheme):
    execute(make(f"random_dag:kernels=24,seed={seed},elements=4096,largest=1024"), scheme, oracle())


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    kernels=st.integers(2, 40),
    streams=st.integers(1, 4),
    scheme=st.sampled_from(FAMILY),
    priority=st.sampled_from(("oldest", "newest", "critical")),
    window=st.sampled_from((1, 2, 7, 1000)),
    entries=st.sampled_from((1, 8, 100000)),
    submit=st.sampled_from(("prefilled", "eager")),
    coherence=st.sampled_from(("auto", "bypass", "tb")),
    bypass=st.sampled_from((0, 1, 16)),
    acs=st.sampled_from((2, 5, 256)),
)
def test_random_settings(
    seed, kernels, streams, scheme, priority, window, entries, submit, coherence, bypass, acs
):
    text = f"random_dag:kernels={kernels},streams={streams},seed={seed},elements=2048,largest=700,tensors=3"
    conf = oracle(
        scheme__priority=priority,
        scheme__window=window,
        scheme__table__entries=entries,
        scheme__coherence=coherence,
        scheme__bypass=bypass,
        scheme__acs__window=acs,
        scheme__acs__list=acs,
        host__submit=submit,
    )
    ran = execute(make(text), scheme, conf)
    if scheme == "pool":
        assert ran.totals.table_peak_entries <= entries


@pytest.mark.threads
@pytest.mark.parametrize("scheme", FAMILY)
@pytest.mark.parametrize("name", ["gru", "random_dag", "copied_in_time"])
def test_one_result(name, scheme):
    want = execute(ALL[name](), scheme).fingerprint()
    assert execute(ALL[name](), scheme, tiny(sim__quantum=13)).fingerprint() == want
    assert execute(ALL[name](), scheme, threads=(3, 1, 4), quanta=(50, 3)).fingerprint() == want


@pytest.mark.parametrize("name", ["gru", "random_dag"])
def test_no_scheme_beats_the_bound(name):
    rows = simulate(tiny(), ALL[name](), ",".join(FAMILY), threads=1, tables="none").frame("runs")
    assert (rows["status"] == "ok").all()
    assert (rows["time_us"] >= rows["bound_us"]).all()
