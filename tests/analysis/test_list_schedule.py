"""The estimate of a job: list schedules come near what tb_ideal reaches, and share what there is."""

from __future__ import annotations

import pytest

from pysim.analysis.traffic import dram_traffic
from pysim.program.job import Job, Memory
from pysim.workloads.kernels import micro
from pysim.workloads.registry import make
from tests.schemes.test_prologue import chain

from .test_lower_bound import rows_of


# ---- estimates ----
def test_gru_is_near_tb_ideal():
    row = rows_of("titan_v", make("gru:hidden=1536,batch=32,timesteps=3"), "tb_ideal")[0]
    assert row["estimate_us"] == pytest.approx(row["time_us"], rel=0.15)


@pytest.mark.parametrize("text", ["ffma:tbs=640", "ffma:tbs=1001", "read:tbs=640", "copy:nbytes=67108864"])
@pytest.mark.parametrize("gpu", ["titan_v", "h200"])
def test_one_kernel(gpu, text):
    row = rows_of(gpu, make(text), "tb_ideal")[0]
    assert row["estimate_us"] == pytest.approx(row["time_us"], rel=0.1)


@pytest.mark.parametrize(
    "text",
    [
        "gru:hidden=512,batch=16,timesteps=3",
        "lstm:hidden=512,batch=16,timesteps=3,layers=1",
        "lud:n=96",
        "fft",
    ],
)
def test_small_networks(text):
    """TBs wait for bursts of loads, for each other and for the far half of L2, kernels for the servers."""
    row = rows_of("h200", make(text), "tb_ideal")[0]
    assert row["estimate_us"] == pytest.approx(row["time_us"], rel=0.15)


def test_which_arguments_come_from_dram():
    first, second = chain(2).kernels
    assert dram_traffic(Job("two", [first, second]), 1 << 20).args == [(0b011, 1.0), (0b001, 1.0)]
    assert dram_traffic(Job("again", [first, first]), 1 << 20).args == [(0b011, 1.0), (0, 0.0)]
    assert dram_traffic(Job("small", [first, first]), 512).args[1] == (0b011, 1.0)


def test_releases_come_one_after_another():
    """A kernel of many TBs that all wait for those of another: the servers are most of the time."""
    job = make("fft")
    slow, fast = (
        rows_of("h200", job, "tb_ideal", **{"gpu.cp.tb_release": ns})[0]["estimate_us"] for ns in (20.0, 0.6)
    )
    assert slow - fast > 0.5 * len(job.kernels) * 256 * (20.0 - 0.6) / 1e3


def test_pathfinder_on_the_pascal():
    rows = rows_of("titan_x_pascal", make("pathfinder"), "stream,tb_ideal")
    assert rows["estimate_us"][0] < rows["time_us"][0]
    assert rows["estimate_us"][1] == pytest.approx(rows["time_us"][1], rel=0.1)


def test_kernels_side_by_side_share_what_there_is():
    """FFMA and loads use different things: together they take as long as the longer one."""
    one = rows_of("titan_v", Job("f", [micro.ffma(160)]), "tb_ideal")[0]["estimate_us"]
    memory = Memory()
    reader = micro.read(memory, 160, 4, 1 << 17, stream=1)
    other = rows_of("titan_v", Job("r", [reader]), "tb_ideal")[0]["estimate_us"]
    both = rows_of("titan_v", Job("both", [micro.ffma(160), reader]), "tb_ideal")[0]["estimate_us"]
    assert max(one, other) <= both < 1.1 * max(one, other) < one + other
