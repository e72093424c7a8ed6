"""Energy: counts of events are exact, tables say where they come from, and power agrees with a board."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from docs.builders import power
from pysim import Config, simulate
from pysim.machine.devices import DEVICES, device
from pysim.program.job import Job, Memory
from pysim.program.warp_program import Code
from pysim.results.energy import EVENTS
from pysim.workloads.kernels import micro
from pysim.workloads.microbench.bench import kernel as make_kernel
from pysim.workloads.mirrored import launch_of
from pysim.workloads.registry import make


def counts_of(result, run=0):
    rows = result.tables()["energy"]
    rows = rows[rows["run"] == run]
    return {row["event"].decode(): float(row["count"]) for row in rows}


def test_every_table_names_every_event_once_with_a_source():
    names = [event.name for event in EVENTS]
    assert len(set(names)) == len(names)
    tables = [made.energies for made in DEVICES.values() if made.energies]
    assert tables
    for table in tables:
        assert [row[0] for row in table] == names
        for _, each, off, source in table:
            assert each >= 0
            assert 0 <= off <= 1
            assert source


def test_late_operands_are_no_instructions():
    """100 FFMA a round, 40 cycles of the pipe lost, loops in each other."""
    code = Code()
    outer = code.loop_begin()
    inner = code.loop_begin()
    code.compute(fp32=100, int=10, control=1, conflicts=40, smem=6, smem_ops=3)
    code.loop_end(inner, 7)
    code.compute(fp32=20, conflicts=5)
    code.loop_end(outer, 11, level=1)
    code.exit()
    result = simulate("h200", Job("late", (make_kernel("late", code, 30, 128),)), "stream", threads=1)
    warps = 30 * 4
    counts = counts_of(result)
    assert counts["fp32"] == warps * 11 * (7 * 100 + 20)
    assert counts["int"] == warps * 11 * 7 * 10
    assert counts["smem"] == warps * 11 * 7 * 6
    assert counts["instruction"] == warps * (11 * (7 * 114 + 20) + 1)
    # another machine, where no operand is ever late, executes the same
    free = simulate(
        "h200",
        Job("late", (make_kernel("late", code, 30, 128),)),
        "stream",
        threads=1,
        overrides={"gpu.sm.register_ports": 0},
    )
    assert counts_of(free)["fp32"] == counts["fp32"]


@pytest.mark.parametrize("kernel", ["sgemm_64x64x16", "hgemm_64x64x32"])
def test_pipes_of_products_are_those_of_the_profiler(kernel):
    launch = launch_of(kernel, "M=128;N=192;K=256")
    counts = counts_of(simulate("h200", Job("p", (launch.kernel,)), "stream", threads=1))
    if "sgemm" in kernel:
        # integer multiply-adds of addresses go through the same pipe
        assert 1 <= counts["fp32"] / (128 * 192 * 256 / 32) < 1.04
        assert counts["tensor"] == 0
    else:
        assert counts["tensor"] == 128 * 192 * 256 / 2048
    assert counts["instruction"] == launch.counts["inst"]


def test_run_and_table_agree_and_do_not_depend_on_threads():
    job = Job("mix", (micro.ffma(132, 4, 64, 20), micro.read(Memory(), 132)))
    results = [simulate("h200", job, "stream,tb_static", threads=n) for n in (1, 2)]
    runs, rows = results[0].tables()["runs"], results[0].tables()["energy"]
    for run in (0, 1):
        mine = rows[rows["run"] == run]
        assert runs["energy_j"][run] == pytest.approx(mine["joule"].sum())
        assert (mine["uncertainty_j"] <= mine["joule"]).all()
    assert (rows["joule"] == results[1].tables()["energy"]["joule"]).all()
    # the board alone would have taken this much
    assert (runs["energy_j"] > runs["time_us"] * 1e-6 * 129).all()


def test_fewer_dram_bytes_take_less():
    one = simulate("h200", Job("a", (micro.read(Memory(), 264, passes=1),)), "stream", threads=1)
    two = simulate("h200", Job("a", (micro.read(Memory(), 264, shared=True),)), "stream", threads=1)
    far, near = counts_of(one)["dram_read"], counts_of(two)["dram_read"]
    assert far == 264 * (1 << 18) / 32
    assert near < far / 100


def test_without_a_table_energy_is_empty_and_the_device_says_why():
    result = simulate("titan_v", make("gru:hidden=128,batch=16,timesteps=1"), "stream", threads=1)
    assert np.isnan(result.tables()["runs"]["energy_j"]).all()
    assert len(result.tables()["energy"]) == 0
    command = [sys.executable, "-m", "pysim", "devices", "titan_v"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "no energy per event is known for this GPU" in done.stdout


# what takes a second or two; docs/energy.md has them all
QUICK = ("idle", "ffma_random", "shared_read", "mma_random", "mma_half_chip", "l2_write", "saxpy_l2")


def test_power_is_that_of_the_board():
    found = {row.name: row for row in power.rows(Config.resolve(device("h200")), QUICK.__contains__)}
    assert set(found) == set(QUICK)
    for row in found.values():
        assert row.at_rate == pytest.approx(row.watt, rel=0.15), row.name
    for name in ("idle", "ffma_random", "shared_read", "mma_half_chip"):
        assert found[name].simulated == pytest.approx(found[name].watt, rel=0.15), name
