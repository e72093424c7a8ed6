"""Simulated time beyond a second, where cycles no longer fit 32 bits: what happens then happens as before."""

import math
from dataclasses import replace

import numpy as np
import pytest

from pysim import Access, Job, simulate
from pysim.program.profiled import profiled
from pysim.workloads import make
from tests.core.harness import execute, tiny

# the origins of cycles move on every 2^38 ticks
SHIFT = 1 << 38


def unit(values):
    """Ticks after which clock, DRAM bus map and refreshes are where they were."""
    slices, bandwidth = values["gpu.l2.slices"], values["gpu.dram.bandwidth"]
    slot = (32 * 1024 * 1000 * slices + bandwidth // 2) // bandwidth
    refresh = values["gpu.dram.refresh_period"] * slices if values["gpu.dram.refresh_time"] else 1
    return math.lcm(values["gpu.clock"] * 256, refresh, slot * 64)


def after(job, ticks, values):
    """Return the job after a kernel that is one delay, and that all of it depends on."""
    wait = profiled("wait", np.array([ticks // values["gpu.clock"]]))
    tensors = {id(arg): arg for kernel in job.kernels for arg in kernel.args}.values()
    accesses = tuple(Access(t, "write", whole(t)) for t in tensors)
    return Job("late", [replace(wait, accesses=accesses), *job.kernels], [])


def whole(tensor):
    return lambda tbs: np.tile(np.array([0, tensor.rows, 0, tensor.cols]), (len(tbs), 1))


def shape(ran, ticks):
    """What a run did after its first kernel, from the end of that on."""
    tbs = ran.tbs[ran.tbs["kernel"] > 0]
    times = [tbs[name].astype(np.int64) - ticks for name in ("ready", "dispatch", "start", "end")]
    stalls = [ran.kernels["stalls"][name][1:].tolist() for name in ran.kernels["stalls"].dtype.names]
    counts = [ran.slices[name].tolist() for name in ("hits", "dram_read_sectors", "row_hits", "bus_busy")]
    return [column.tolist() for column in times], tbs["sm"].tolist(), stalls, counts


JOBS = (
    "gru:hidden=64,batch=4,timesteps=3,layers=1",
    "gemm:m=256,n=256,k=512",
    "read:tbs=12,chunk=16384,passes=2",
)
# without refreshes, and with a bus slot of four cycles, all repeats after 256 cycles
PLAIN = {"gpu.dram.refresh_time": 0, "gpu.dram.bandwidth": 139.636}


@pytest.mark.parametrize("scheme", ["stream", "tb_static", "cusync:tile+streams"])
@pytest.mark.parametrize("workload", JOBS)
@pytest.mark.parametrize("plain", [True, False])
def test_a_late_job_runs_as_an_early_one(workload, scheme, plain):
    if scheme.startswith("cusync") and not workload.startswith("gru"):
        scheme = "graph"
    conf = tiny(scheme__hypothetical=1).replaced(PLAIN if plain else {})
    values, job = conf.encoded(), make(workload)
    step = unit(values)
    assert (step < 1 << 20) == plain
    soon = step * (1 + (1 << 26) // step)  # all is admitted by then
    early = execute(after(job, soon, values), scheme, conf)
    wanted = shape(early, soon)
    half = (int(early.tbs["end"].max()) - soon) // 2
    # the cycles' origin moves on while the job runs (without refreshes); keys of messages wrap around
    for ticks in (SHIFT - half, 3 * SHIFT, (1 << 44) - half, 100 << 40):
        at = step * max(2, ticks // step)
        late = execute(after(job, at, values), scheme, conf)
        assert shape(late, at) == wanted
        assert late.us > at / 1024e3


def test_threads_and_slices_change_nothing_late():
    values = tiny().encoded()
    job = after(make(JOBS[0]), 5 << 40, values)
    once = execute(job, "tb_static").fingerprint()
    assert execute(job, "tb_static", threads=(3, 1), quanta=(15, 40)).fingerprint() == once


def test_a_wait_longer_than_a_second_is_counted_whole():
    """A TB waits inside its program for one that takes 3 s: its stalls still make up its time."""
    values = tiny().encoded()
    ran = execute(after(make("empty"), 3 << 40, values), "stream")
    first = ran.tbs[ran.tbs["kernel"] == 0][0]
    cycles = (int(first["end"]) - int(first["start"])) // values["gpu.clock"]
    stalls = ran.kernels["stalls"][0]
    assert sum(int(stalls[name]) for name in stalls.dtype.names) == cycles


def test_a_thousand_seconds():
    second = 10**9 * 1024 // 704  # cycles
    jobs = [profiled("a", np.full(3, 500 * second)), profiled("b", np.full(2, 499 * second))]
    jobs += make("empty").kernels
    result = simulate("titan_v", Job("long", jobs), "stream", overrides={"gpu.sms": 4})
    assert result.frame("runs").status.tolist() == ["ok"]
    assert result.time_us("stream") == pytest.approx(999e6, rel=1e-6)
    ends = result.frame("tbs").end_ns
    assert ends.max() == pytest.approx(999e9, rel=1e-6)


def test_a_job_beyond_the_end_of_time_has_a_status():
    second = 10**9 * 1024 // 704
    jobs = [profiled("a", np.full(1, 600 * second))] * 2
    result = simulate("titan_v", Job("too long", jobs), "stream", overrides={"gpu.sms": 4})
    row = result.frame("runs").iloc[0]
    assert row.status == "failed"
    assert "1,099 s of simulated time" in row.reason
