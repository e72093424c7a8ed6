"""Schemes whose kernels wait for whole kernels: what a hand-over costs, and what their windows hold."""

from __future__ import annotations

import numpy as np
import pytest

import pysim.schemes.kernel_window
from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DependenceError
from pysim.program.footprint import Footprint
from pysim.program.job import Job, Kernel, Memory
from pysim.schemes.kernel_window import MAX_SEGMENTS, conflicting_kernels, kernel_segments
from tests.core.harness import execute, tiny
from tests.core.workloads_small import ALL
from tests.oracle.test_ordering import LATE, kernel, two

NS = 1024


def chain(count, delay=2000):
    """Kernels of one TB, each of which needs what the one before has written."""
    memory = Memory()
    tensor = memory.tensor("t", 1, 32, 4)
    return Job("chain", [kernel(f"k{i}", "store", tensor, delay=delay) for i in range(count)])


def apart(count, delay=LATE, tbs=1):
    """Kernels that have nothing in common."""
    memory = Memory()
    return Job(
        "apart",
        [
            kernel(f"k{i}", "store", memory.tensor(f"t{i}", tbs, 32, 4), tbs=tbs, delay=delay)
            for i in range(count)
        ],
    )


def handed_over(ran):
    """From the release of each kernel of a chain to the next one being ready, ticks."""
    records = ran.kernels
    return set((records["ready"][1:].astype(np.int64) - records["released"][:-1].astype(np.int64)).tolist())


def test_pool_hands_over_by_the_table():
    conf = tiny(scheme__table__update=3.0, scheme__table__latency=50.0)
    assert handed_over(execute(chain(4), "pool", conf)) == {53 * NS}
    # of two that wait for one, both counters are counted down first
    memory = Memory()
    tensor = memory.tensor("t", 1, 32, 4)
    fork = Job(
        "fork",
        [kernel("a", "store", tensor, delay=LATE), kernel("b", "load", tensor), kernel("c", "load", tensor)],
    )
    assert handed_over(execute(fork, "pool", conf)) & {56 * NS}


def test_pool_differs_from_the_table_by_its_edges_alone():
    """Where each kernel needs all of the one before, the two are one scheme."""
    job = two("store", "load", tbs=6, whole=True)
    conf = tiny(scheme__coherence="bypass", scheme__table__update=0.0)
    one, other = (execute(job, scheme, conf) for scheme in ("pool", "tb_static"))
    assert one.hash == other.hash
    assert int(one.totals.table_coarse_kernels) == 0


def test_pool_window_and_entries():
    job = apart(6)
    for window in (1, 2, 6):
        ran = execute(job, "pool", tiny(scheme__window=window))
        admitted, ended = (ran.kernels[n].astype(np.int64) for n in ("admitted", "released"))
        assert all(admitted[k] >= ended[k - window] for k in range(window, 6))
        between = ran.values["gpu.cp.admit"]
        assert all(admitted[k] <= ended[k - window] + between for k in range(window, 6))
    assert int(execute(chain(9, LATE), "pool", tiny()).totals.table_peak_entries) == 8
    assert int(execute(chain(9, LATE), "pool", tiny(scheme__table__entries=3)).totals.table_peak_entries) == 3


@pytest.mark.parametrize("scheme", ["pool", "acs_hw", "acs_sw"])
@pytest.mark.parametrize(("kind", "first", "second"), [("raw", "store", "load"), ("war", "load", "store")])
def test_a_job_without_its_only_edge_is_caught(scheme, kind, first, second, monkeypatch):
    """Kernels compared by ranges find no edge here; a kind alone is left out in random_mutations.py."""
    job = two(first, second)
    execute(job, scheme, tiny(sim__oracle=1))
    less = without_edges(dependences(job), kind=kind)
    monkeypatch.setattr(pysim.schemes.kernel_window, "conflicting_kernels", lambda job: ([(), ()], [1, 1]))
    with pytest.raises(DependenceError, match=kind.upper()):
        execute(job, scheme, tiny(sim__oracle=1), deps=less)


def test_ranges_catch_all_three():
    """What the published test leaves out, a read after a write, too."""
    assert conflicting_kernels(two("store", "load"))[0] == [(), (0,)]
    assert conflicting_kernels(two("load", "store"))[0] == [(), (0,)]
    assert conflicting_kernels(two("store", "store"))[0] == [(), (0,)]
    assert conflicting_kernels(two("load", "load"))[0] == [(), ()]
    assert conflicting_kernels(chain(3)) == ([(), (0,), (1,)], [1, 1, 1])


def test_ranges_of_recorded_kernels_are_few_and_cover():
    starts = np.arange(40) ** 2 * 1024
    program = kernel("k", "load", Memory().tensor("t", 1, 32, 4)).program
    footprint = Footprint.of(np.zeros(40), starts, starts + 64, np.zeros(40))
    made = Kernel("k", program, (1, 1, 1), (), (), footprint=footprint)
    read, written = kernel_segments(made)
    assert len(read) == MAX_SEGMENTS
    assert len(written) == 0
    assert (read[1:, 0] > read[:-1, 1]).all()
    at = np.searchsorted(read[:, 0], starts, side="right") - 1
    assert (starts + 64 <= read[at, 1]).all()


@pytest.mark.parametrize("name", ["gru", "random_dag", "split_k", "copied"])
def test_ranges_imply_the_true_edges(name):
    job = ALL[name]()
    preds, reached = conflicting_kernels(job)[0], []
    for sources in preds:
        reached.append(set(sources).union(*(reached[p] for p in sources)))
    for kernel_, true in enumerate(dependences(job).preds):
        assert set(true) <= reached[kernel_]


def test_acs_hw_pays_for_its_slots():
    conf = tiny(scheme__acs__window=32, scheme__table__update=0.0, scheme__table__latency=0.0)
    cycle = conf.encoded()["gpu.clock"]
    assert handed_over(execute(chain(4), "acs_hw", conf)) == {31 * cycle}
    admitted = execute(apart(4), "acs_hw", conf).kernels["admitted"].astype(np.int64)
    assert set(np.diff(admitted).tolist()) == {conf.encoded()["gpu.cp.admit"] + 32 * cycle}


def test_acs_hw_runs_ahead_of_the_oldest_so_far():
    """The first kernel is long: the window has room again, but the list has not."""
    memory = Memory()
    job = Job(
        "ahead",
        [
            kernel(f"k{i}", "store", memory.tensor(f"t{i}", 1, 32, 4), delay=LATE if i == 0 else 10)
            for i in range(8)
        ],
    )
    ran = execute(job, "acs_hw", tiny(scheme__acs__list=4))
    admitted, ended = (ran.kernels[n].astype(np.int64) for n in ("admitted", "released"))
    assert admitted[3] < ended[0] <= admitted[4]


def test_acs_sw_pays_the_round_trip():
    conf = tiny()
    assert handed_over(execute(chain(4), "acs_sw", conf)) == {conf.encoded()["host.roundtrip"]}


def test_acs_sw_compares_segments():
    conf = tiny(scheme__acs__insert=100.0, scheme__acs__check=8.0)
    admitted = execute(apart(5), "acs_sw", conf).kernels["admitted"].astype(np.int64)
    # one segment each, against those of the kernels that are in
    assert np.diff(admitted).tolist() == [(100 + 8 * before) * NS for before in range(1, 5)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_acs_sw_has_so_many_kernels_in_flight(threads):
    ran = execute(apart(10, delay=5000), "acs_sw", tiny(scheme__acs__threads=threads))
    begun = np.sort(ran.kernels["first_dispatch"].astype(np.int64))
    ended = np.sort(ran.kernels["released"].astype(np.int64))
    assert max(int((begun <= t).sum() - (ended < t).sum()) for t in begun) == threads
    # a thread launches again after the end has been seen: a round trip later
    again = begun[threads:] - ended[:-threads]
    assert (again >= tiny().encoded()["host.roundtrip"]).all()
