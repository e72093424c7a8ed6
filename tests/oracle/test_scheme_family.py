"""What holds of every scheme that waits before dispatch: dependences, one result, the bound."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pysim.schemes.kernel_window
from pysim import simulate
from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DependenceError
from pysim.workloads.registry import make
from tests.core.harness import FAMILY, execute, oracle, tiny
from tests.core.workloads_small import ALL
from tests.support.thin import DRAWS, thin

from .random_jobs import OFTEN, QUANTA, SETTINGS, TEAMS, Case, check
from .test_ordering import KINDS, pair, two

NETWORKS = ("gemm_chain", "split_k", "gru", "copy", "shared_read", "sliced", "copied", "copied_in_time")


@pytest.mark.parametrize("scheme", FAMILY)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, scheme):
    ran = execute(ALL[name](), scheme, oracle())
    assert int(ran.totals.tbs_done) == sum(k.tbs for k in ran.job.kernels)
    assert ran.fingerprint() == execute(ALL[name](), scheme, tiny()).fingerprint()


# a third of the graphs under each scheme, by turns: three does not divide the number of schemes
@pytest.mark.parametrize(("seed", "scheme"), thin(itertools.product(range(12), FAMILY), 3))
def test_random_dags(seed, scheme):
    execute(make(f"random_dag:kernels=24,seed={seed},elements=4096,largest=1024"), scheme, oracle())


@pytest.mark.parametrize("_draw", DRAWS)
@settings(deadline=None, max_examples=80)
@given(
    made=st.builds(
        Case,
        seed=st.integers(0, 1 << 30),
        shape=st.sampled_from(OFTEN),
        kernels=st.integers(2, 12),
        streams=st.integers(1, 4),
        chosen=st.fixed_dictionaries({path: st.sampled_from(values) for path, values in SETTINGS.items()}),
        quanta=st.sampled_from(QUANTA),
        free=st.booleans(),
        threads=st.sampled_from(TEAMS),
    ),
    drawn=st.data(),
)
def test_random_settings(_draw, made, drawn):
    """Under one scheme each; under all: ``make oracle``, and some in tests/oracle/test_random_jobs.py."""
    check(made, [drawn.draw(st.sampled_from(made.schemes()))])


@pytest.mark.threads
@pytest.mark.parametrize("scheme", FAMILY)
@pytest.mark.parametrize("name", ["gru", "random_dag", "copied_in_time"])
def test_one_result(name, scheme):
    want = execute(ALL[name](), scheme).fingerprint()
    assert execute(ALL[name](), scheme, tiny(sim__quantum=13)).fingerprint() == want
    assert execute(ALL[name](), scheme, threads=(3, 1, 4), quanta=(50, 3)).fingerprint() == want


TEXTS = ("gru:hidden=64,batch=8,timesteps=3", *(f"random_dag:seed={n}" for n in range(6)))


@pytest.mark.parametrize("text", TEXTS)
def test_no_scheme_beats_the_bound(text):
    rows = simulate(tiny(), make(text), ",".join(FAMILY), threads=1, tables="none").frame("runs")
    assert (rows["status"] == "ok").all()
    assert (rows["time_us"] >= rows["bound_us"]).all()


GIVEN = tuple(scheme for scheme in FAMILY if not scheme.startswith("tb_"))  # those find edges of their own


@pytest.mark.parametrize("scheme", GIVEN)
@pytest.mark.parametrize(("kind", "first", "second"), KINDS)
def test_a_job_without_its_only_edge_is_caught(kind, first, second, scheme, monkeypatch):
    """Of two kernels: those with ranges find no edge at all here, others not that of the kind.

    That comparing ranges leaves out one kind alone: ``must_order`` in tests/oracle/random_mutations.py.
    """
    job = two(first, second)
    execute(job, scheme, oracle())
    less = without_edges(dependences(job), kind=kind)
    # what schemes with ranges go by: no kernel waits for any
    monkeypatch.setattr(pysim.schemes.kernel_window, "conflicting_kernels", lambda job: ([(), ()], [1, 1]))
    if "stream" in scheme or "threads1" in scheme:
        # stream order does not look at data, and one thread launches one kernel at a time
        execute(job, scheme, oracle(), deps=less)
        return
    with pytest.raises(DependenceError, match=kind.upper()) as caught:
        execute(job, scheme, oracle(), deps=less)
    later, earlier = pair(caught.value)
    assert (later[0], earlier) == (1, (0, later[1]))
