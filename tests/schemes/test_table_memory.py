"""Tables of the scheduler in memory: their requests at L2 and DRAM, what waits for them, one result."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.program.job import Job, Memory
from pysim.workloads.applications.blockmaestro import APPS
from pysim.workloads.registry import make
from tests.core.harness import config, execute, oracle, tiny
from tests.core.test_partitions import TWO
from tests.core.workloads_small import ALL
from tests.oracle.test_ordering import kernel, two

CHAIN = "fft:batch=16,kernels=12"
BUFFERS = {"scheme__blockmaestro__entries": 5, "scheme__blockmaestro__children": 2}
NODES = {"scheme__wireframe__nodes": 9, "scheme__wireframe__pending": 2}
SCHEMES = {
    "tb_static:fetch": {"scheme__table__entries": 40},
    "tb_static:fetch+reduced": {"scheme__table__lists": 3, "scheme__table__references": 1},
    "tb_learned:fetch": {"scheme__table__entries": 40},
    "blockmaestro": BUFFERS,
    "blockmaestro:consumer+kernels4": BUFFERS,
    "wireframe": NODES,
}


def moved(ran):
    """Sectors of tables that were read and written."""
    return int(ran.slices["table_read"].sum()), int(ran.slices["table_written"].sum())


def loads_and_stores(ran):
    """The same of all other requests, as SMs count them."""
    return tuple(int(ran.sms["work"][f"{kind}_sectors"].sum()) for kind in ("load", "store"))


def adds_up(ran):
    """L2 has served what SMs and the scheduler have sent; what is not a hit has read DRAM."""
    l2, (read, written), (loads, stores) = ran.slices, moved(ran), loads_and_stores(ran)
    assert l2["sectors_read"].sum() == loads + read
    assert l2["sectors_written"].sum() == stores + written
    assert ((l2["requests"] - l2["hits"]) == l2["row_hits"] + l2["row_misses"]).all()


# ---- what goes through L2 ----
def test_entries_that_are_fetched_are_read_there():
    ran = execute(make(CHAIN), "tb_static:fetch", oracle(gpu__cp__admit=0.0))
    assert int(ran.totals.table_spills) == 10 * 16
    # two entries of 16 B a sector, a kernel's one behind the other
    alone = oracle(gpu__cp__admit=0.0, scheme__table__fetch=1)
    read, written = moved(execute(make(CHAIN), "tb_static", alone))
    assert (read, written) == (10 * 16 // 2, 0)
    # and lists of 8 B, of all kernels but the last: some of one time share a sector
    assert 11 * 16 // 4 <= moved(ran)[0] - read <= 11 * 16
    adds_up(ran)


def listed(**more):
    """A kernel of 60 TBs, each for one of the next: the lists of their counters lie in memory."""
    conf = oracle(scheme__table__fetch_lists=1, scheme__table__group=0, **more)
    return execute(two("store", "load", tbs=60), "tb_static", conf)


def test_lists_of_counters_are_read_once():
    free = execute(two("store", "load", tbs=60), "tb_static", oracle(scheme__table__group=0))
    wide, tight = listed(), listed(scheme__table__lists=1)
    assert moved(free) == (0, 0)
    # the first kernel's alone: 8 B each, four a sector where TBs are dispatched at one time
    for ran in (wide, tight):
        assert 60 // 4 <= moved(ran)[0] <= 60
        assert moved(ran)[1] == 0
        adds_up(ran)
    assert int(wide.totals.table_spills) == 0
    assert 0 < int(wide.totals.table_peak_lists) <= 60
    # what there is no room for is read when the TB ends, and waited for
    assert int(tight.totals.table_spills) > 40
    assert int(tight.totals.table_peak_lists) == 1
    assert wide.end == free.end < tight.end


def test_more_counters_take_more_entries():
    """TBs of a stencil end for up to 18 counters each."""
    job = make(f"fdtd2d:{APPS['fdtd2d'].small}")
    lists = {"scheme__table__fetch_lists": 1, "scheme__table__lists": 4096, "scheme__table__group": 0}
    ran = [execute(job, "tb_static", oracle(scheme__table__references=n, **lists)) for n in (1, 4)]
    one, four = (int(each.totals.table_peak_lists) for each in ran)
    assert 4 * four >= one > 2 * four > 0


def test_counters_of_all_tbs_need_no_list():
    ran = execute(make("mlp:layers=3,width=64,batch=16"), "tb_static:fetch", oracle())
    assert int(ran.totals.table_peak_lists) == 0


def test_a_learned_graph_is_written_first():
    """Beside the ranges that it is made of."""
    job, conf = make(CHAIN), oracle(gpu__cp__admit=0.0)
    ran = execute(job, "tb_learned:fetch", conf)
    both = zip(moved(ran), moved(execute(job, "tb_learned", conf)), strict=True)
    read, written = (with_graph - without for with_graph, without in both)
    assert 0 < read <= written
    adds_up(ran)


def test_buffers_are_filled_from_memory():
    """Sixty children of a parent each: lists of 20.25 B, counters of 5; whole words in memory."""
    job = two("store", "load", tbs=60)
    wide = execute(job, "blockmaestro", oracle())
    read, written = moved(wide)
    assert written == 0
    assert read >= (60 * 24 + 60 * 8) // 32
    tight = execute(job, "blockmaestro", oracle(scheme__blockmaestro__entries=16))
    # no list is read twice; a counter that is not there is updated in memory
    assert moved(tight)[1] > 0
    assert tight.end > wide.end
    for ran in (wide, tight):
        adds_up(ran)


def test_a_graph_of_tbs_passes_through_l2_once():
    job = two("store", "load", tbs=12)
    for pending, updates in ((12, 0), (5, 7), (0, 12)):
        conf = oracle(scheme__wireframe__nodes=12, scheme__wireframe__pending=pending)
        ran = execute(job, "wireframe", conf.replaced({"scheme.table.latency": 0.0}))
        read, written = moved(ran)
        assert written == updates
        # four nodes of 8 B a sector; places come free one by one, so the second kernel's are read one by one
        assert 12 * 8 // 32 < read <= 12 * 8 // 32 + 12
        adds_up(ran)


# ---- what it costs ----
def first_tb(conf):
    """When the first TB of a job of one TB is ready behind its admission, in cycles."""
    job = Job("one", [kernel("one", "store", Memory().tensor("t", 1, 32, 4))])
    ran = execute(job, "wireframe", conf)
    ready = int(ran.tbs["ready"].min()) - int(ran.kernels["admitted"][0])
    return ready / ran.values["gpu.clock"], ran.values


@pytest.mark.parametrize("conf", [tiny(), config("h200", gpu__dram__bank_refresh_time=0)])
def test_what_is_not_in_l2_comes_from_dram(conf):
    cycles, values = first_tb(conf)
    # a pointer chase finds gpu.dram.latency; it waits for a sector of the bus more or less, and for refresh
    assert cycles == pytest.approx(values["gpu.dram.latency"], rel=0.06)


def test_a_longer_way_to_dram_is_waited_for():
    cycles, values = first_tb(tiny())
    slow, _ = first_tb(tiny(gpu__dram__latency=values["gpu.dram.latency"] + 200))
    assert slow - cycles == pytest.approx(200, abs=2)


def test_the_way_takes_what_an_sm_would_wait():
    """Line by line of a row that is open: from L2 comes what was asked for with the line before."""
    conf = tiny(scheme__wireframe__nodes=1)
    ran = execute(two("store", "load", tbs=12), "wireframe", conf)
    first = np.sort(ran.tbs["dispatch"].astype(np.int64))[1:12]
    ended = np.sort(ran.tbs["end"].astype(np.int64))[:11]
    waited = (first - ended) / ran.values["gpu.clock"]
    # one sector holds four nodes: of each four, one comes from DRAM
    assert (np.sort(waited)[:8] < waited.min() + 30).all()
    assert np.sort(waited)[-1] > waited.min() + 100
    assert waited.min() >= ran.values["gpu.l2.latency"]


def test_requests_leave_one_a_cycle_and_so_many_are_under_way():
    """4096 TBs of one kernel, 16 nodes a line, all asked for at once."""
    job = Job("wide", [kernel("wide", "store", Memory().tensor("t", 4096, 32, 4), tbs=4096)])
    last = {}
    for lines in (64, 128, 448):
        conf = tiny(gpu__l1__in_flight=lines, scheme__wireframe__nodes=4096, gpu__dram__refresh_time=0)
        ran = execute(job, "wireframe", conf)
        ready = ran.tbs["ready"].astype(np.int64) / ran.values["gpu.clock"]
        last[lines] = ready.max() - ready.min()
    assert last[448] >= 4096 // 16 - 1
    # the way to DRAM is 375 cycles: four turns of 64 lines, two of 128
    assert last[64] - last[128] == pytest.approx(2 * 375 - 64, rel=0.2)


# ---- one result, and a right one ----
@pytest.mark.parametrize("entries", [1, 2, 3, 4, 6])
def test_what_waits_in_memory_for_two_kernels_goes_on(entries):
    ran = execute(ALL["gru"](), "tb_static:fetch", oracle(scheme__table__entries=entries))
    assert int(ran.totals.table_peak_entries) <= entries
    adds_up(ran)


@pytest.mark.parametrize("scheme", list(SCHEMES))
@pytest.mark.parametrize(("name", "parts"), [("random_dag", 1), ("copied_in_time", 1), ("random_dag", 2)])
def test_one_result(name, parts, scheme):
    conf = SCHEMES[scheme] | ({k.replace(".", "__"): v for k, v in TWO.items()} if parts == 2 else {})
    job = ALL[name]()
    ran = execute(job, scheme, oracle(**conf))
    want = execute(job, scheme, tiny(**conf)).fingerprint()
    assert ran.end == want["end"]
    assert sum(moved(ran)) > 0 or "fetch" in scheme or name == "copied_in_time"
    for quantum, threads, quanta in ((7, (1,), (100,)), (0, (3, 1, 4), (50, 3))):
        got = execute(job, scheme, tiny(sim__quantum=quantum, **conf), threads=threads, quanta=quanta)
        assert [part for part, value in want.items() if got.fingerprint()[part] != value] == []
