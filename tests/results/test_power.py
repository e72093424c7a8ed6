"""What a board's power limit leaves of the SM clock (pysim/results/power.py)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from docs.builders.power import STEADY
from pysim import simulate
from pysim.errors import ConfigError
from pysim.program.job import Job, Memory
from pysim.results.energy import mean_power
from pysim.results.power import TOLERANCE, MeanPower, next_clock_share
from pysim.workloads.kernels import micro
from pysim.workloads.validation.h200 import pause_us
from tests.support.measured import measured_table

JOB = Job("t", (micro.tensor(132, 8, 64, 60),))


def run(job=JOB, **overrides):
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    return simulate("h200", job, "stream", threads=1, overrides=named, baseline=False)


def took(result):
    tables = result.tables()
    seconds = float(tables["runs"]["time_us"][0]) / 1e6
    return seconds, mean_power(tables["energy"], seconds)


def test_the_next_share_takes_what_is_allowed():
    now = MeanPower(600.0, 150.0, 130.0)
    share = next_clock_share(0.95, now, 700, 0.9)
    assert now.watts_at_speed(share / 0.95, 0.9) == pytest.approx(700, abs=0.1)
    # near enough, or below the limit at full clocks: as it is
    assert next_clock_share(0.9, MeanPower(500, 70, 129), 700, 0.9) == 0.9
    assert next_clock_share(1.0, MeanPower(300, 50, 129), 700, 0.9) == 1.0
    # too low a share goes up again, at most to all
    assert 0.6 < next_clock_share(0.6, MeanPower(300, 50, 129), 700, 0.9) < 1
    assert next_clock_share(0.9, MeanPower(100, 50, 129), 700, 0.9) == 1.0


@pytest.mark.parametrize("limit", [450, 550])
def test_a_sustained_job_takes_what_the_board_may(limit):
    free = run(gpu__power_limit=limit)
    held = run(gpu__power_limit=limit, sim__sustained=1)
    (long, most), (longer, least) = took(free), took(held)
    assert most.total > 1.05 * limit
    assert least.total == pytest.approx(limit, rel=TOLERANCE)
    # mma alone: time goes by the clock, energy by its power 0.9
    share = float(held.notes[-1].split("with ")[1].split()[0])
    assert longer == pytest.approx(long / share, rel=0.02)  # the launch among it
    energy = [float(r.tables()["energy"]["joule"][6]) for r in (free, held)]
    assert energy[1] == pytest.approx(energy[0] * share**0.9, rel=1e-3)
    assert len(held.tables()["runs"]) == 1


def test_a_share_that_is_given_is_the_most():
    slow = {"sim__clock_share": 0.6, "sim__sustained": 1}
    assert "with 0.600 of the SM clock" in run(gpu__power_limit=700, **slow).notes[-1]
    less = run(gpu__power_limit=220, **slow).notes[-1]
    assert 0.3 < float(less.split("with ")[1].split()[0]) < 0.6


def test_each_scheme_finds_its_own_share():
    """Rows, notes and times are those of the runs that were taken, one a scheme."""
    job = Job("two", (micro.tensor(132, 8, 64, 60), micro.ffma(132, 8, 64, 60)))
    changed = {"sim.sustained": 1, "gpu.power_limit": 450}
    both = simulate("h200", job, "stream,graph", threads=1, overrides=changed)
    assert [note.split(":")[0] for note in both.notes if "allowed" in note] == ["stream", "graph"]
    one = simulate("h200", job, "graph", threads=1, overrides=changed, baseline=False)
    assert float(both.tables()["runs"]["time_us"][1]) == float(one.tables()["runs"]["time_us"][0])
    assert len(both.tables()["runs"]) == 2


def test_a_pause_leaves_more_for_the_job():
    """The mean of run and pause is what the board may take."""
    held = run(gpu__power_limit=400, sim__sustained=1, sim__pause=10)
    seconds, power = took(held)
    mean = (power.total * seconds + power.constant * 10e-6) / (seconds + 10e-6)
    assert mean == pytest.approx(400, rel=TOLERANCE)
    assert power.total > 1.1 * 400
    assert seconds < took(run(gpu__power_limit=400, sim__sustained=1))[0]


def test_pauses_between_measured_chains():
    """As the program that was measured has them: two kernels, a GRU's forty, a graph of them, one kernel."""
    assert pause_us(2, "stream") == 200 / 16 + 48
    assert pause_us(2, "cusync:row+streams") == 200 / 16 + 56
    assert pause_us(40, "pdl:late") == 200 / 6 + 200
    assert pause_us(40, "cusync:tile+graph") == 200 / 16 + 84
    assert pause_us(40, "fused:tile") == 200 / 16 + 44


def test_what_the_board_cannot_reach_is_told():
    """At a quarter of the clock it is still too much; without a limit nothing is."""
    assert "of 100 allowed, with 0.250" in run(gpu__power_limit=100, sim__sustained=1).notes[-1]
    free = run(gpu__power_limit=0, sim__sustained=1)
    assert not free.notes
    assert np.array_equal(free.tables()["tbs"], run().tables()["tbs"])


def test_a_job_below_the_limit_is_as_without():
    free, held = run(gpu__power_limit=2000), run(gpu__power_limit=2000, sim__sustained=1)
    assert np.array_equal(free.tables()["tbs"], held.tables()["tbs"])
    assert "with 1.000 of the SM clock" in held.notes[-1]


def test_network_and_memory_keep_their_clocks():
    """A chase through L2 takes what it took but for the SM's part of it; arithmetic takes longer."""
    memory = Memory()
    kernel = micro.read(memory, 132, 16, 1 << 16, unroll=4, bypass_l1=True)
    slow = {"sim__clock_share": 0.5}
    one, half = (float(run(Job("r", (kernel,)), **how).tables()["runs"]["time_us"][0]) for how in ({}, slow))
    assert one < half < 1.3 * one
    ffma = Job("f", (micro.ffma(132, 8, 64, 200),))
    one, half = (float(run(ffma, **how).tables()["runs"]["time_us"][0]) for how in ({}, slow))
    # the launch, the end and what waits for memory keep their time
    assert half == pytest.approx(2 * one, rel=0.07)


def test_a_gpu_whose_power_nobody_measured_is_refused():
    with pytest.raises(ConfigError, match=r"sim\.sustained = 1: v100 has no table of energies"):
        simulate("v100", JOB, "stream", overrides={"sim.sustained": 1})


def products(name):
    with measured_table(name).open(encoding="utf-8", newline="") as file:
        rows = {row["kernel"]: row for row in csv.DictReader(file)}
    idle = (float(rows["idle"]["power_W"]) + float(rows["idle_after"]["power_W"])) / 2
    return idle, {
        name: row
        for name, row in rows.items()
        if name.startswith("hgemm_") and row["clock_limits_hex"] == "4"
    }


@pytest.mark.deep
def test_the_slope_is_that_of_two_cards():
    """Of six fp16 products: what they took by what the table says, against the clock, through one point."""
    each = {steady.name: steady for steady in STEADY if steady.name.startswith("hgemm_")}
    x, y = [], []
    for steady in each.values():
        result = simulate("h200", steady.make(), "stream", threads=1, tables="energy", baseline=False)
        counted = {row["event"].decode(): float(row["count"]) for row in result.tables()["energy"]}
        spent = mean_power(result.tables()["energy"], 1.0)
        for name in ("h200_power.csv", "h200_power_second.csv"):
            idle, rows = products(name)
            row = rows[steady.name]
            by_table = (
                (spent.voltage_scaled + spent.by_rate) / steady.work(counted) * float(row["rate_per_s"])
            )
            x.append(np.log(float(row["sm_clock_MHz"]) / 1980))
            y.append(np.log((float(row["power_W"]) - idle) / by_table))
    slope = np.dot(x, y) / np.dot(x, x)
    assert slope == pytest.approx(0.9, abs=0.1)
