"""Copies from the host: what lands in the L2, what it costs, who waits for them."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.dependence.dependences import dependences, without_edges
from pysim.engine.run import simulate
from pysim.errors import ConfigError, DependenceError, WorkloadError
from pysim.machine.config import Config
from pysim.program.copies import NAME, copy_kernel
from pysim.program.job import Job, Memory
from pysim.trace.convert import convert
from pysim.trace.converted_file import ConvertedTrace
from pysim.trace.copies import copies_before, with_copies
from pysim.trace.job import trace_job
from pysim.trace.writer import write_trace
from pysim.workloads.kernels import micro
from tests.core.harness import SCHEMES, config, execute, tiny
from tests.core.workloads_small import copied, product
from tests.trace.made_traces import A, B, C, Warp, strided, write
from tests.trace.made_traces import product as traced

L2 = 12 * 24 * 16 * 128  # bytes of the tiny machine
FAR = 1 << 31


def with_copy(kernels, *spans, timed=False):
    """The kernels with one copy before them."""
    copy = copy_kernel(np.array(spans, np.int64), timed, 1)
    return Job("job", *with_copies(kernels, [[copy], *([] for _ in kernels[1:])]))


def reader(nbytes):
    """A kernel that reads so many bytes once, and where."""
    kernel = micro.read(Memory(), nbytes >> 13, 4, 1 << 13)
    tensor = kernel.accesses[0].tensor
    return kernel, (tensor.address, tensor.address + tensor.nbytes)


def dram_reads(ran):
    return int(ran.slices["dram_read_sectors"].sum())


@pytest.mark.parametrize("replacement", ["random", "lru"])
def test_what_was_copied_is_in_the_l2(replacement):
    conf = tiny(gpu__l2__replacement=replacement)
    kernel, span = reader(L2 // 4)
    assert dram_reads(execute(Job("cold", [kernel]), "stream", conf)) == (span[1] - span[0]) // 32
    warm = execute(with_copy([kernel], span), "stream", conf)
    assert dram_reads(warm) == 0
    # a part of it, from within a sector: the sectors that it touches
    part = execute(with_copy([kernel], (span[0] + 40, span[0] + 4096 + 40)), "stream", conf)
    assert dram_reads(part) == (span[1] - span[0]) // 32 - 129


def test_a_large_copy_leaves_its_tail():
    kernel, span = reader(L2)
    tail = (span[1] - L2 // 4, span[1])
    lru = tiny(gpu__l2__replacement="lru")
    # the tensor is in front of 3 / 4 of what the L2 holds: the last quarter of it stays
    after = (span[1], span[1] + 3 * L2 // 4)
    ran = execute(with_copy([kernel], (span[0], after[1])), "stream", lru)
    all_sectors = (span[1] - span[0]) // 32
    assert 0 < dram_reads(ran) <= all_sectors
    # of a copy of many times the L2, its end
    front = execute(with_copy([kernel], span, (FAR, FAR + 40 * L2)), "stream", lru)
    assert dram_reads(front) == all_sectors
    reader_of_tail, where = reader(L2 // 4)
    behind = execute(with_copy([reader_of_tail], (where[1] - 20 * L2, where[1])), "stream", lru)
    assert dram_reads(behind) == 0
    assert tail[1] - tail[0] == where[1] - where[0]


@pytest.mark.parametrize("submit", ["prefilled", "eager"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_copy_without_time_costs_nothing(scheme, submit):
    kernels = product(130, 70, 64, chain=3).kernels
    conf = tiny(host__submit=submit)
    without_edges = execute(Job("job", kernels), scheme, conf)
    # memory that nobody touches, in sets that have room
    copies = [
        [copy_kernel(np.array([[FAR + (1 << 20) * i, FAR + (1 << 20) * i + 64]]), False, 1)] for i in range(3)
    ]
    ran = execute(Job("job", *with_copies(kernels, copies)), scheme, conf)
    assert ran.end == without_edges.end
    assert ran.totals.tbs_done == without_edges.totals.tbs_done + 3
    assert ran.sms["work"].tobytes() == without_edges.sms["work"].tobytes()
    assert len(ran.tbs) == len(without_edges.tbs)  # a copy is on no SM


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_copy_in_time_takes_the_link(scheme):
    kernel, span = reader(1 << 18)
    conf = tiny(host__copy_bandwidth=16.0, host__copy_latency=3000.0)
    two = with_copies([kernel], [[copy_kernel(np.array([s]), True, 1) for s in (span, (FAR, FAR + 16000))]])
    ran = execute(Job("job", *two), scheme, conf)
    begin, end = (ran.kernels[:2][name].astype(int) / 1024 for name in ("first_dispatch", "last_end"))
    way = end - begin - 3000 - np.array([(1 << 18) / 16, 16000 / 16])
    assert way[0] == way[1]  # to the L2
    assert 60 < way[0] * 1.455 < 250
    # one after another, as the link becomes free
    assert begin[1] in (end[0], end[0] - way[0])
    behind = int(ran.kernels[2]["first_dispatch"])
    if scheme in ("host", "stream", "tb_learned"):
        assert behind / 1024 == end[1]  # the list's order, though nobody reads the second
    else:
        assert end[0] <= behind / 1024 < end[1]
    assert dram_reads(ran) == 0
    written = ran.slices["sectors_written"] - ran.slices["table_written"]
    assert int(written.sum()) == ((1 << 18) + 16000) // 32


def test_what_a_copy_in_time_pushes_out_is_written_to_dram():
    kernel, span = reader(1 << 14)
    ran = execute(with_copy([kernel], (FAR, FAR + 4 * L2), span, timed=True), "stream", tiny())
    written = 32 * int(ran.slices["dram_write_sectors"].sum())
    assert 2.5 * L2 < written <= 3.2 * L2
    free = execute(with_copy([kernel], (FAR, FAR + 4 * L2), span), "stream", tiny())
    # the kernel's own loads alone
    assert 32 * int(free.slices["dram_write_sectors"].sum()) <= 1 << 14


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("scheme", ["graph", "tb_static", "tb_ideal"])
def test_a_copy_is_a_producer_and_waits_for_readers(scheme, timed):
    job = copied(timed)
    ran = execute(job, scheme, tiny(sim__oracle=1, host__copy_latency=2000.0))
    first, again = ran.kernels[2], ran.kernels[3]
    assert [k.copy is not None for k in job.kernels] == [
        True,
        True,
        False,
        True,
        True,
        False,
        True,
        True,
        False,
    ]
    # it overwrites what kernel 2 reads
    assert again["first_dispatch"] >= first["last_end"]
    for copy, kernel in ((1, 2), (4, 5), (7, 8)):
        assert ran.kernels[kernel]["first_dispatch"] >= ran.kernels[copy]["last_end"]


@pytest.mark.parametrize(("kind", "word"), [("raw", "RAW"), ("war", "WAR")])
def test_the_oracle_sees_what_does_not_wait(kind, word):
    job = copied(timed=True)
    deps = dependences(job)
    assert deps.edges[kind].sum() > 0
    with pytest.raises(DependenceError, match=f"{word} dependence broken"):
        execute(
            job, "tb_ideal", tiny(sim__oracle=1, host__copy_latency=0), deps=without_edges(deps, kind=kind)
        )


def test_bound_and_speedup_know_copies():
    kernel, span = reader(1 << 18)
    job = with_copy([kernel], span, timed=True)
    conf = Config.resolve(tiny().device, {"host.copy_bandwidth": 1.0})
    rows = simulate(conf, job, "stream,graph,tb_ideal", tables="none").tables()["runs"]
    assert (rows["bound_us"] > (1 << 18) / 1e3).all()
    assert (rows["bound_us"] <= rows["time_us"]).all()
    result = simulate(conf, job, "stream")
    assert "a copy from the host of 262,144 B" in result.explain("stream", 0, 0)


def test_a_copy_too_far_is_refused():
    kernel, _ = reader(1 << 14)
    with pytest.raises(WorkloadError, match="a copy to beyond"):
        execute(with_copy([kernel], (1 << 50, (1 << 50) + 9)), "stream", tiny())


# ---- of traces ----
def listed(folder, *lines):
    (folder / "kernelslist.g").write_text("".join(f"{line}\n" for line in lines))
    convert(folder, folder / "made.pysim")
    return ConvertedTrace(folder / "made.pysim")


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "trace", traced(), traced(), traced())


def spans_of(job):
    return [k.copy.spans.tolist() for k in job.kernels if k.copy]


def test_copies_of_a_list_come_where_they_stand(folder):
    store = listed(
        folder,
        f"MemcpyHtoD,0x{A:016x},4096",
        "MemcpyHtoD,0x0,0",
        "kernel-1.traceg",
        f"MemcpyHtoD,0x{B:016x},100",
        f"MemcpyHtoD,0x{A + (1 << 30):016x},100",
        "kernel-2.traceg",
        "kernel-3.traceg",
        f"MemcpyHtoD,0x{A:016x},1",
    )
    names = [k.name for k in trace_job(store).kernels]
    assert [name == NAME for name in names] == [True, False, True, True, False, False, True]
    job = trace_job(store)
    pages = store.trace_array("pages").tolist()
    b = pages.index(B >> 21) << 21
    far = [[store.memory_bytes, store.memory_bytes + 100]]
    assert spans_of(job) == [[[0, 4096]], [[b, b + 100]], far, [[0, 1]]]
    assert [k.copy.timed for k in trace_job(store, memcpy="time").kernels if k.copy] == [True] * 4
    assert [k.name for k in trace_job(store, memcpy="ignore").kernels] == [n for n in names if n != NAME]
    # with the kernel that follows
    assert spans_of(trace_job(store, [2])) == [
        [[b, b + 100]],
        [[store.memory_bytes, store.memory_bytes + 100]],
    ]
    assert spans_of(trace_job(store, [3])) == []
    with pytest.raises(ConfigError, match="ignore, fill, time"):
        trace_job(store, memcpy="no")


def test_a_copy_over_touched_and_other_pages(folder):
    page = 1 << 21
    store = listed(
        folder,
        f"MemcpyHtoD,0x{A - 10:016x},{3 * page + 10}",
        f"MemcpyHtoD,0x{A + 2 * page:016x},{page}",
        *(f"kernel-{i}.traceg" for i in (1, 2, 3)),
    )
    assert store.trace_array("pages").tolist()[0] == A >> 21
    end = store.memory_bytes
    first, second = spans_of(trace_job(store))
    # the page before, the one that kernels touch, two behind it, one that is copied to twice
    assert first == [[0, page], [end + page - 10, end + 3 * page]]
    assert second == [[end + 2 * page, end + 3 * page]]


def test_hostile_copies(folder):
    kernels = [f"kernel-{i}.traceg" for i in (1, 2, 3)]
    store = listed(folder, f"MemcpyHtoD,0x0,{2**64 - 1}", *kernels)
    with pytest.raises(WorkloadError, match="beyond the addresses of GPUs"):
        trace_job(store)
    assert len(trace_job(store, memcpy="ignore").kernels) == 3
    store = listed(folder, f"MemcpyHtoD,0x0,{2**52}", *kernels)
    for memcpy in ("fill", "time"):
        runs = simulate(tiny(), trace_job(store, memcpy=memcpy), "stream", tables="none").tables()["runs"]
        assert runs["status"].tolist() == [b"refused"]
        assert b"a copy" in runs["reason"][0]


def test_streams_wait_for_a_copy_and_it_for_them(tmp_path):
    warp = Warp().op("LDG.E", 4, (2,), strided(A, 4)).end()
    kernels = [((1, 1, 1), 32, {(0, 0, 0): [warp]}, {"cuda_stream_id": str(s)}) for s in (0, 7, 0, 7, 7)]
    folder = write(tmp_path / "trace", *kernels)
    copy = f"MemcpyHtoD,0x{C:016x},4096"
    names = [f"kernel-{i}.traceg" for i in range(1, 6)]
    job = trace_job(listed(folder, *names[:2], copy, copy, *names[2:]))
    assert [k.stream for k in job.kernels] == [0, 1, 2, 2, 0, 1, 1]
    assert sorted(job.events) == [(0, 2), (1, 2), (3, 4), (3, 5)]


def test_copies_are_written_and_come_back(tmp_path):
    job = copied(timed=False)
    write_trace(job, tmp_path / "out")
    lines = (tmp_path / "out" / "kernelslist.g").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines].count(NAME) == 7
    convert(tmp_path / "out", tmp_path / "x.pysim")
    back = trace_job(ConvertedTrace(tmp_path / "x.pysim"))
    assert sum(k.copy.nbytes for k in back.kernels if k.copy) == sum(
        k.copy.nbytes for k in job.kernels if k.copy
    )
    execute(back, "tb_static", tiny(sim__oracle=1))
    with pytest.raises(ConfigError, match="no kernels to write"):
        write_trace(job, tmp_path / "none", kernels=[1, 2])


def test_copies_before_nothing(folder):
    store = listed(folder, *(f"kernel-{i}.traceg" for i in (1, 2, 3)))
    assert copies_before(store, [0, 1, 2], timed=False, stream=0) == {}


def test_copies_after_the_last_kernel(folder):
    store = listed(folder, *(f"kernel-{i}.traceg" for i in (1, 2, 3)), f"{NAME},0x{FAR:x},4000000")
    job = trace_job(store, memcpy="time")
    assert [k.copy is not None for k in job.kernels] == [False] * 3 + [True]
    # the copy waits for the kernels of all streams
    assert {after for _, after in job.events} == {3}
    assert job.kernels[3].copy.nbytes == 4000000
    assert all(k.copy is None for k in trace_job(store, [1, 3], memcpy="time").kernels)
    last = execute(job, "stream", tiny()).end
    assert last > execute(trace_job(store, memcpy="ignore"), "stream", tiny()).end + 4000000 // 20


@pytest.mark.parametrize("timed", [False, True])
def test_copies_on_an_l2_in_two_partitions(timed):
    kernel, span = reader(1 << 20)
    copy = copy_kernel(np.array([span]), timed, 1)
    job = Job("job", *with_copies([kernel, kernel, kernel], [[copy], [], [copy]]))
    runs = [
        execute(job, scheme, config("h200", sim__oracle=1, **more), threads=(threads,)).fingerprint()
        for scheme in ("stream", "tb_ideal")
        for threads, more in ((1, {}), (2, {"sim__quantum": 31}))
    ]
    assert runs[0] == runs[1]
    assert runs[2] == runs[3]
