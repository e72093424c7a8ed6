"""The SM clock under load: GPCs with busy tensor cores run slower, all else keeps its time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pysim import simulate
from pysim.program.job import Job, Memory
from pysim.workloads.kernels import micro

SLOW = 0.8
EPOCH_US = 997920 / 1024e3


def run(job, share=SLOW, **options):
    overrides = {"gpu.clock_tensor": share} | options.pop("overrides", {})
    return simulate("h200", job, "stream", threads=1, overrides=overrides, **options)


def tensor(tbs, iterations=100):
    # 64 steps of 6.03 cycles a round and warp, two warps a sub-core: the tensor pipe never rests
    return micro.tensor(tbs, 8, 64, iterations)


def spans(result):
    rows = np.sort(result.tables()["tbs"], order=["kernel", "tb"])
    return rows, rows["end_ns"] - rows["start_ns"]


def test_busy_tensor_cores_slow_the_clock_by_the_share():
    rows, fast = spans(run(Job("t", (tensor(132),)), 1.0))
    _, slow = spans(run(Job("t", (tensor(132),))))
    # one epoch at most goes by at the old clock, and the last one may begin before the work has ended
    lost = np.median(slow) - np.median(fast) / SLOW
    assert -EPOCH_US * 1e3 * (1 / SLOW - 1) - 1 <= lost <= 1
    assert len(rows) == 132


def test_other_gpcs_keep_their_clock():
    """Two TBs land on two GPCs; FFMA TBs on all SMs are slowed where those are, and nowhere else."""
    others = replace(micro.ffma(132, 4, 64, 500), stream=1)
    rows, _ = spans(run(Job("two", (tensor(2, 500), others))))
    ffma = rows[rows["kernel"] == 1]
    busy = set(rows["sm"][rows["kernel"] == 0].tolist())
    assert len(busy) == 2
    ends = np.cumsum([18, 18, 16, 16, 16, 16, 16, 16])
    gpc = np.searchsorted(ends, ffma["sm"], side="right")
    ns = ffma["end_ns"] - ffma["start_ns"]
    # the fastest of a GPC: some SMs have two of these TBs
    fastest = np.array([ns[gpc == i].min() for i in range(8)])
    slowed = {int(i) for i in np.flatnonzero(fastest > fastest.min() * 1.1)}
    assert slowed == {int(np.searchsorted(ends, sm, side="right")) for sm in busy}
    assert fastest[sorted(slowed)] == pytest.approx(fastest.min() / SLOW, rel=0.03)


def test_without_tensor_cores_nothing_changes():
    memory = Memory()
    job = Job("plain", (micro.ffma(132, 4, 64, 64), micro.read(memory, 132)))
    assert run(job).hash == run(job, 1.0).hash


def test_memory_keeps_its_time():
    """A chain of L2 hits beside tensor work takes as many ns, but for what it spends in the SM."""

    def chase(share):
        memory = Memory()
        walker = replace(micro.chase(memory, 1 << 16, 128, 2, bypass_l1=True), stream=1)
        rows, ns = spans(run(Job("chase", (tensor(132, 500), walker)), share))
        return ns[rows["kernel"] == 1][0]

    ratio = chase(SLOW) / chase(1.0)
    # measured on an H200: 1.05 where the clock was slower by a factor of 1.13; here 1.25
    assert 1.01 < ratio < 1.1


def test_cycles_are_those_of_the_slowed_clock():
    result = run(Job("t", (tensor(132, 500),)))
    row = result.tables()["runs"][0]
    mean = row["cycles"] / row["time_us"]
    assert 1980 * SLOW < mean < 1980 * (SLOW + 0.05)
    assert row["alu_utilization"] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("quantum", [7, 17, 60, 150])
def test_any_quantum_and_pauses_between_kernels(quantum):
    # the gaps of the stream let every clock go back and come down again
    job = Job("gaps", (tensor(8), micro.ffma(264), tensor(264), micro.read(Memory(), 132), tensor(3)))
    wanted = run(job).hash
    assert run(job, overrides={"sim.quantum": quantum}).hash == wanted


@pytest.mark.threads
def test_any_number_of_threads():
    job = Job("gaps", (tensor(8), micro.ffma(264), tensor(264), tensor(3)))
    wanted = run(job).hash
    for threads in (2, 3):
        got = simulate("h200", job, "stream", threads=threads, overrides={"gpu.clock_tensor": SLOW})
        assert got.hash == wanted


def test_samples_count_time_whatever_the_clock():
    result = run(Job("t", (tensor(264, 500),)))
    samples = result.tables()["samples"]
    end = result.tables()["runs"][0]["time_us"]
    assert samples["end_us"][-1] == pytest.approx(end)
    busy = samples["resident_warps"] > 0
    # warps are there from the launch to the end: no sample between is empty, none before
    inside = np.flatnonzero(busy)
    assert busy[inside[0] : inside[-1] + 1].all()
    assert samples["start_us"][inside[0]] > 0
    assert samples["end_us"][inside[-1]] > end - 3
