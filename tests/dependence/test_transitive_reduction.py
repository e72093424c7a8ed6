"""Edges that two others imply: what is left out, that nothing else is, and what it saves."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.dependence.dependences import dependences, without_edges
from pysim.dependence.transitive_reduction import reduce_transitively
from pysim.errors import DependenceError
from pysim.program.job import Job, Memory
from pysim.workloads.registry import make
from tests.core.harness import execute, oracle
from tests.core.workloads_small import ALL
from tests.oracle.test_ordering import LATE, kernel

TEXTS = ("random_dag:kernels=12,seed=3", "random_dag:kernels=14,seed=8,streams=3", "hotspot:n=192,kernels=5")


def behind_all(deps):
    """Bit p of row c: TB c starts after the end of TB p."""
    total = int(deps.offsets[-1])
    rows = np.zeros((total, total), bool)
    for group in deps.groups:
        for consumer in group.consumers + deps.offsets[group.kernel]:
            rows[consumer, group.producers] = True
            rows[consumer] |= rows[group.producers].any(axis=0)
    return rows


def edges_of(deps):
    """The waits themselves, not what follows from them."""
    total = int(deps.offsets[-1])
    rows = np.zeros((total, total), bool)
    for group in deps.groups:
        rows[np.ix_(group.consumers + deps.offsets[group.kernel], group.producers)] = True
    return rows


def updates(deps):
    return len(deps.groups.producers) + len(deps.groups.consumers)


@pytest.mark.parametrize("text", TEXTS)
def test_who_waits_for_whom_stays_the_same(text):
    deps = dependences(make(text))
    made = reduce_transitively(deps)
    assert (behind_all(made) == behind_all(deps)).all()
    assert not (edges_of(made) & ~edges_of(deps)).any()
    assert updates(made) < updates(deps)


@pytest.mark.parametrize("text", TEXTS)
def test_edges_of_single_tbs_that_are_left_are_needed(text):
    made = reduce_transitively(dependences(make(text)))
    edges = edges_of(made)
    over = (edges.astype(np.uint8) @ edges.astype(np.uint8)) > 0
    for group in made.groups:
        if len(group.consumers) == 1:
            consumer = int(group.consumers[0] + made.offsets[group.kernel])
            assert not over[consumer, group.producers].any()


def chain():
    """Four TBs write, four read, four write again: the last wait for the first over those between."""
    t = Memory().tensor("t", 4, 32, 4)
    parts = [("a", "store", LATE), ("b", "load", 0), ("c", "store", 0)]
    return Job("chain", [kernel(name, op, t, tbs=4, delay=delay) for name, op, delay in parts])


def test_an_edge_over_another_kernel_is_left_out():
    deps = dependences(chain())
    assert [tuple(e)[:2] for e in deps.edges.tolist()] == [(0, 1), (0, 2), (1, 2)]
    made = reduce_transitively(deps)
    assert [tuple(e)[:2] for e in made.edges.tolist()] == [(0, 1), (1, 2)]
    # one node a TB, of one producer
    assert (len(made.groups), updates(made)) == (8, 16)
    full, less = (execute(chain(), s, oracle()) for s in ("tb_static", "tb_static:reduced"))
    assert int(less.totals.table_updates) < int(full.totals.table_updates)
    assert less.tbs.tobytes() == full.tbs.tobytes() or less.end <= full.end


def test_what_is_left_is_needed():
    """Each node that is left, dropped: the oracle sees it, though it would not have seen the one left out."""
    made = reduce_transitively(dependences(chain()))
    for node in range(len(made.groups)):
        with pytest.raises(DependenceError, match=r"RAW|WAR|WAW"):
            execute(chain(), "tb_static", oracle(), deps=without_edges(made, node=node))
    execute(chain(), "tb_static", oracle(), deps=without_edges(dependences(chain()), kind="waw"))


def test_nothing_to_leave_out():
    memory = Memory()
    job = Job("free", [kernel(n, "store", memory.tensor(n, 4, 32, 4), tbs=4) for n in "ab"])
    deps = dependences(job)
    assert reduce_transitively(deps) is deps
    one = dependences(make("fft:batch=4,kernels=3"))
    assert updates(reduce_transitively(one)) == updates(one)


@pytest.mark.parametrize("entries", [3, 40, 16384])
@pytest.mark.parametrize("name", ["gru", "random_dag", "split_k", "copied_in_time"])
def test_runs_are_right_with_any_table(name, entries):
    conf = oracle(scheme__table__entries=entries, scheme__table__shortest=5.0)
    ran = execute(ALL[name](), "tb_static:reduced", conf)
    assert int(ran.totals.table_peak_entries) <= entries
    execute(ALL[name](), "tb_static:reduced+fetch", conf)


def test_a_stencil_over_many_launches():
    """FDTD-2D: its kernels name each other over up to nine launches, and need two."""
    job = make("fdtd2d:n=128,steps=4")
    deps = dependences(job)
    made = reduce_transitively(deps)
    assert 2 * updates(made) < updates(deps)
    assert max(int(e["consumer"] - e["producer"]) for e in made.edges) <= 3
    conf = oracle(scheme__table__group=0)
    full, less = (execute(job, s, conf) for s in ("tb_static", "tb_static:reduced"))
    assert 2 * int(less.totals.table_updates) < int(full.totals.table_updates)
    assert less.end <= 1.005 * full.end  # which SM a TB gets differs, and what it finds there
