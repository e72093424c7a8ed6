"""Forms of a kernel's nodes where TBs share counters: what they hold, when they are used, what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.dependence.dependences import dependences
from pysim.schemes.coarsening import COUNTER_LIMITS, coarse_forms, tbs_per_counter
from pysim.workloads.registry import make
from tests.core.harness import execute, oracle, tiny
from tests.core.workloads_small import ALL

STENCIL = "hotspot:n=192,kernels=5"
CHAIN = "fft:batch=64,kernels=12"


def test_sizes_are_rows_or_even_parts_of_one():
    assert tbs_per_counter([(32, 32, 1)], 16).tolist() == [64]
    assert tbs_per_counter([(32, 32, 1)], 24).tolist() == [64]
    assert tbs_per_counter([(32, 32, 1)], 256).tolist() == [4]
    assert tbs_per_counter([(24, 24, 1)], 64).tolist() == [12]
    assert tbs_per_counter([(7, 5, 3)], 4).tolist() == [28]
    for grid in ((1, 1, 1), (13, 1, 1), (3, 700, 2)):
        for counters in COUNTER_LIMITS:
            size = int(tbs_per_counter([grid], counters)[0])
            assert -(-np.prod(grid) // size) <= counters


def edges_of(deps):
    """All (producer, consumer) pairs by global numbers."""
    made = set()
    for group in deps.groups:
        start = int(deps.offsets[group.kernel])
        made |= {(p, start + c) for p in group.producers.tolist() for c in group.consumers.tolist()}
    return made


@pytest.mark.parametrize(
    "text", ["random_dag:kernels=12,seed=3", STENCIL, CHAIN, "gru:hidden=64,batch=8,timesteps=2"]
)
def test_forms_hold_every_edge(text):
    """Whatever waits for a TB in the graph waits for its part in each form."""
    job = make(text)
    deps = dependences(job)
    values = tiny(scheme__table__shortest=0.0, scheme__table__entries=64).encoded() | {
        "gpu.cp.tb_release": 10**6
    }
    made = coarse_forms(job, deps, values)
    known = edges_of(deps)
    assert made.forms
    begin = len(deps.nodes)
    ranges = np.concatenate((deps.ranges, made.ranges))
    for first, count, unit in made.forms:
        kernel = int(made.nodes["kernel"][first - begin])
        start, end = (int(deps.offsets[kernel + i]) for i in (0, 1))
        linked = set()
        for source in range(kernel):
            low = int(made.launch["first_link"][source])
            for node, size in made.links[low : low + int(made.launch["links"][source])]:
                if not first <= node < first + count:
                    continue
                for tb in range(int(deps.offsets[source]), int(deps.offsets[source + 1])):
                    row = made.nodes[node - begin + (tb - int(deps.offsets[source])) // size]
                    assert int(row["kernel"]) == kernel
                    for r in ranges[int(row["first_range"]) : int(row["first_range"]) + int(row["ranges"])]:
                        for u in range(int(r["count"])):
                            at = start + (int(r["start"]) + u * int(r["stride"])) * unit
                            linked |= {(tb, c) for c in range(at, min(at + unit, end))}
        assert {(p, c) for p, c in known if start <= c < end} <= linked


@pytest.mark.parametrize("scheme", ["tb_static", "tb_learned"])
@pytest.mark.parametrize("text", [STENCIL, CHAIN])
def test_a_small_table_shares_counters_before_it_waits_for_kernels(text, scheme):
    job = make(text)
    ran = execute(job, scheme, oracle(scheme__table__entries=96))
    assert 0 < int(ran.totals.table_peak_entries) <= 96
    assert int(ran.totals.table_shared_kernels) > 0 == int(ran.totals.table_coarse_kernels)
    shared = ran.kernels["unit"] > 1
    assert shared.sum() == (ran.kernels["form"] > 0).sum() == int(ran.totals.table_shared_kernels)
    alone = execute(job, scheme, oracle(scheme__table__entries=96, scheme__table__group=0))
    assert int(alone.totals.table_shared_kernels) == 0 < int(alone.totals.table_coarse_kernels)
    assert ran.end < alone.end


def test_edges_that_cost_too_much_are_not_kept():
    """Tiles of a stencil wait for many: with slow updates TBs share counters, with fast ones none does."""
    job = make(STENCIL)
    slow = oracle(scheme__table__update=20.0)
    ran = execute(job, "tb_static", slow)
    assert int(ran.totals.table_shared_kernels) > 0
    every = execute(job, "tb_static", slow.replaced({"scheme.table.group": 0}))
    assert int(ran.totals.table_updates) < int(every.totals.table_updates) / 3
    assert ran.end < every.end
    fast = execute(job, "tb_static", oracle(scheme__table__update=0.01))
    assert int(fast.totals.table_shared_kernels) == 0
    # not even counters that are shared: kernels wait for kernels
    none = execute(job, "tb_static", oracle(scheme__table__update=20000.0))
    assert int(none.totals.table_coarse_kernels) > 0 == int(none.totals.table_shared_kernels)


def test_entries_are_fetched_when_producers_are_dispatched():
    """A chain of kernels: two of them are in the table where all were, and each entry is read once."""
    job = make("fft:batch=16,kernels=12")
    all_in = execute(job, "tb_static", oracle(gpu__cp__admit=0.0))
    fetched = execute(job, "tb_static:fetch", oracle(gpu__cp__admit=0.0))
    # 16 nodes a kernel but the first; all TBs of a kernel run at once, so two kernels at most wait for some
    assert int(all_in.totals.table_peak_entries) == 11 * 16
    assert int(fetched.totals.table_peak_entries) <= 3 * 16
    assert int(fetched.totals.table_spills) == 10 * 16  # the second is admitted while the first runs
    assert int(all_in.totals.table_spills) == 0
    assert fetched.end < 1.02 * all_in.end
    # the first TB of a kernel cannot start before the nodes have come
    spill = int(fetched.values["gpu.l2.latency"] * fetched.values["gpu.clock"])
    first = fetched.kernels["first_dispatch"].astype(np.int64)
    assert (np.diff(first) >= spill).all()


def test_what_has_no_entry_waits_in_memory():
    """One entry: kernels behind the first that has it wait for whole kernels, and one by one for memory."""
    job = make("fft:batch=16,kernels=12")
    ran = execute(job, "tb_static:fetch", oracle(scheme__table__entries=1))
    assert int(ran.totals.table_peak_entries) == 1
    assert int(ran.totals.table_coarse_kernels) == 11


@pytest.mark.parametrize("fetch", [0, 1])
@pytest.mark.parametrize("entries", [1, 3, 40])
@pytest.mark.parametrize("name", ["gru", "random_dag", "split_k", "copied_in_time"])
def test_one_result(name, entries, fetch):
    conf = {"scheme__table__entries": entries, "scheme__table__shortest": 5.0}
    job, scheme = ALL[name](), "tb_static:fetch" if fetch else "tb_static:prologue"
    ran = execute(job, scheme, oracle(**conf))
    want = ran.fingerprint()
    assert execute(job, scheme, tiny(**conf), threads=(3, 1, 4), quanta=(50, 3)).fingerprint() == want
    assert int(ran.totals.table_peak_entries) <= entries
