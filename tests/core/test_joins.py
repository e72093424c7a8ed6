"""Requests that join others on their way, of SMs of a cluster and of a warp's stores; what DRAM delivers."""

import numpy as np
import pytest

from pysim.job import Access, Job, Kernel, Memory
from pysim.program import Code, Pattern, Program
from workloads.micro import read

from .harness import execute, tiny

SMS, CHUNK = 6, 1 << 14


def shared_read(warps=8, tbs=SMS):
    """Every SM reads the same bytes at about the same time, past L1."""
    memory = Memory()
    return Job("shared", [read(memory, tbs, warps, CHUNK, unroll=2, shared=True, bypass_l1=True)])


def stores(strides, count=8, *, op="store", lane=16):
    """One warp stores 4 B a lane, ``lane`` bytes apart, ``count`` times; ``strides``: where, by number."""
    memory = Memory()
    target = memory.tensor("out", 1, 1 << 14, 4)
    code = Code()
    for i in range(count):
        getattr(code, op)(0, Pattern(0, 4, base=strides(i), s0=lane))
    code.exit()

    def regions(tbs):
        return np.tile(np.array([[0, 1, 0, target.cols]], np.int64), (len(tbs), 1))

    program = Program("stores", (tuple(code.ops),), 1, 16, 0, 1)
    return Job(
        "stores", [Kernel("stores", program, (1, 1, 1), (target,), (Access(target, "write", regions),))]
    )


def cycles(job, gpu):
    return execute(job, "stream", gpu).cycles


def read_sectors(stride, gpu):
    """DRAM sectors read by a warp that loads one sector of each ``stride`` bytes."""
    memory = Memory()
    source = memory.tensor("in", 1, 1 << 14, 4)
    code = Code()
    code.load(0, Pattern(0, 4, s0=stride))
    code.wait(0)
    code.exit()

    def regions(tbs):
        return np.tile(np.array([[0, 1, 0, source.cols]], np.int64), (len(tbs), 1))

    program = Program("load", (tuple(code.ops),), 1, 16, 0, 1)
    kernel = Kernel("load", program, (1, 1, 1), (source,), (Access(source, "read", regions),))
    return int(execute(Job("load", [kernel]), "stream", gpu).slices["dram_read_sectors"].sum())


def test_sms_of_a_cluster_ask_once():
    alone = execute(shared_read(), "stream", tiny())
    ran = execute(shared_read(), "stream", tiny(gpu__noc__join_loads=1))
    count, wanted = ran.slices, int(ran.sms["work"]["load_sectors"].sum())
    assert wanted == int(alone.sms["work"]["load_sectors"].sum()) == SMS * CHUNK // 32
    assert int(count["sectors_read"].sum()) + int(count["joined"].sum()) == wanted
    # six SMs are a cluster of four and one of two; a few requests come late and are asked again
    assert 2 * CHUNK // 32 <= int(count["sectors_read"].sum()) < 3 * CHUNK // 32
    assert int(alone.slices["joined"].sum()) == 0


def test_one_sm_joins_nobody():
    ran = execute(shared_read(tbs=1), "stream", tiny(gpu__noc__join_loads=1))
    assert int(ran.slices["joined"].sum()) == 0


@pytest.mark.parametrize("quantum", [0, 20])
def test_joins_do_not_depend_on_the_quantum(quantum):
    want = execute(shared_read(), "stream", tiny(gpu__noc__join_loads=1), threads=(1,))
    ran = execute(shared_read(), "stream", tiny(gpu__noc__join_loads=1, sim__quantum=quantum), threads=(2,))
    assert ran.hash == want.hash


def test_two_stores_to_the_same_sectors_are_one():
    sectors = {}
    for joined in (0, 1):
        gpu = tiny(gpu__l1__join_stores=joined)
        ran = execute(stores(lambda i: 4 * (i % 4)), "stream", gpu)
        sectors[joined] = int(ran.sms["work"]["store_sectors"].sum())
    # 8 stores of 16 sectors; a third one does not join
    assert sectors == {0: 128, 1: 64}


def test_stores_to_other_sectors_do_not_join():
    ran = execute(stores(lambda i: 512 * (i % 2)), "stream", tiny(gpu__l1__join_stores=1))
    assert int(ran.sms["work"]["store_sectors"].sum()) == 128


@pytest.mark.parametrize(
    ("op", "lane", "lines"), [("store", 16, 4), ("store", 32, 8), ("store", 4, 0), ("reduce", 16, 0)]
)
def test_a_line_written_in_part_holds_the_port(op, lane, lines):
    """As measured for stores (h200_stores.csv); nothing is known of reductions, and whole sectors do not."""
    count = 64
    job = stores(lambda i: 512 * (i % 64), count, op=op, lane=lane)
    without, held = (cycles(job, tiny(gpu__noc__write_partial=each)) for each in (0, 64))
    longer = count * lines * 64
    assert held - without == pytest.approx(longer, rel=0.1, abs=2)


def test_pairs_of_sectors_come_from_dram():
    assert read_sectors(128, tiny()) == 32
    assert read_sectors(128, tiny(gpu__l2__fill=64)) == 64
    assert read_sectors(32, tiny(gpu__l2__fill=64)) == 32
