"""The L2 hit counter: a hit is a sector that was there, with one partition and with two."""

from __future__ import annotations

import pytest

from pysim import simulate
from pysim.program.job import Job, Memory
from pysim.workloads.kernels import micro
from pysim.workloads.kernels.copy import fill

from .harness import execute, tiny
from .test_partitions import two

LINES = 512
BYTES = LINES * 128
PARTITIONS = pytest.mark.parametrize("conf", [tiny, two], ids=["one", "two"])


def counts(kernels, conf):
    """Look-ups, hits, hits on a fill in flight, and DRAM sectors read, of all slices."""
    slices = execute(Job("read", tuple(kernels)), "stream", conf).slices
    names = ("requests", "hits", "pending_hits", "dram_read_sectors")
    return tuple(int(slices[name].sum()) for name in names)


def reader(memory, tbs, passes=1):
    return micro.read(memory, tbs, 8, BYTES, passes=passes, shared=True, bypass_l1=True)


@PARTITIONS
def test_cold_lines_have_no_hit(conf):
    requests, hits, pending, sectors = counts([reader(Memory(), 1)], conf())
    assert (hits, pending, sectors) == (0, 0, 4 * LINES)
    # a line of the other partition is looked up there, too
    far = requests - LINES
    assert far == 0 if conf is tiny else 0.3 * LINES < far < 0.7 * LINES


@PARTITIONS
def test_lines_that_were_read_hit(conf):
    cold, _, _, sectors = counts([reader(Memory(), 1)], conf())
    requests, hits, pending, again = counts([reader(Memory(), 1, passes=3)], conf())
    assert requests - cold == hits == 2 * LINES
    assert (pending, again) == (0, sectors)


@PARTITIONS
def test_of_many_readers_only_the_first_misses(conf):
    """All six SMs read every line: each slice that keeps it misses once, whoever comes while it is filled."""
    requests, hits, pending, sectors = counts([reader(Memory(), 6)], conf())
    kept = 1 if conf is tiny else 2
    assert requests == (5 + kept) * LINES
    assert requests - hits == kept * LINES
    assert 0 < pending <= hits
    assert sectors == 4 * LINES


def test_a_line_of_the_other_partition_hits_where_it_is():
    """The SM of the first kernel fills both partitions; without twins the home of each line answers."""
    memory = Memory()
    kernel = reader(memory, 1)
    far = counts([kernel], two())[0] - LINES
    filled = fill("fill", kernel.args[0])
    stores = counts([filled], two())[0]
    requests, hits, _, sectors = counts([filled, kernel], two())
    assert sectors == 0
    # stores allocate without a read and all loads find what they wrote; some need one more look-up
    assert requests - hits <= far
    assert hits == stores + LINES


@pytest.mark.parametrize("gpu", ["titan_v", "a100", "h100", "h200"])
def test_devices(gpu):
    job = Job("read", (reader(Memory(), 1),))
    l2 = simulate(gpu, job, "stream", threads=1).frame("l2")
    assert l2["hits"].sum() == 0
    assert l2["dram_read_sectors"].sum() == 4 * LINES


@PARTITIONS
def test_samples_add_up(conf):
    job = Job("read", (reader(Memory(), 6, passes=2),))
    made = simulate(conf(sim__sample=0.5), job, "stream", threads=1)
    l2, series = made.frame("l2"), made.frame("l2_series")
    assert series["hits"].min() >= 0
    assert series.groupby("slice")["hits"].sum().tolist() == l2["hits"].tolist()
