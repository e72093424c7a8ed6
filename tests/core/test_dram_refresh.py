"""Banks that are refreshed in turn: what it does to loads, and what was measured on an H200."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pysim import simulate
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Code, Pattern, Program
from pysim.workloads.kernels import micro
from pysim.workloads.registry import make
from tests.support.measured import measured_table

from .harness import config, execute

PERIOD, AWAY = 1950.0, 273.0  # ns
COLD = measured_table("h200_cold_loads.csv")
TILES = measured_table("h200_cold_tiles.csv")


def single(tbs, pitch):
    """TBs of one warp that load a sector each, rows ``pitch`` bytes apart."""
    src = Memory().tensor("src", tbs, pitch // 4, 4)
    code = Code()
    code.load(0, Pattern(0, 1, bx=pitch), bypass_l1=True)
    code.wait(0)
    code.exit()

    def region(tb):
        tb = np.asarray(tb, np.int64)
        return np.stack([tb, tb + 1, 0 * tb, 0 * tb + 8], axis=1)

    program = Program("single", (tuple(code.ops),), 1, 32, 0, 1)
    return Job("single", [Kernel("single", program, (tbs, 1, 1), (src,), (Access(src, "read", region),))])


def singles(conf, pitches):
    """Cycles of each TB of such kernels."""
    ran = [execute(single(132, pitch), "stream", conf) for pitch in pitches]
    took = [r.tbs["end"].astype(np.int64) - r.tbs["dispatch"].astype(np.int64) for r in ran]
    return np.concatenate(took) / ran[0].values["gpu.clock"]


def tiles(rows, tbs, pitch, steps):
    """Copies of ``rows`` x 128 B a step by TBs of 128 threads, each behind the one before: as in cold.cu."""
    src = Memory().tensor("src", rows * steps, pitch // 4, 4)
    code = Code()
    mark = code.loop_begin()
    for j in range(rows // 16):
        part = Pattern(
            0, 16, base=j * 16 * pitch, bx=128, warp=4 * pitch, step=rows * pitch, s0=16, s1=pitch, minor=8
        )
        code.load(0, part, bypass_l1=True)
    code.wait(0)
    code.barrier()
    code.loop_end(mark, steps)
    code.exit()

    def region(tb):
        tb = np.asarray(tb, np.int64)
        return np.stack([0 * tb, 0 * tb + rows * steps, tb * 32, tb * 32 + 32], axis=1)

    program = Program("tiles", (tuple(code.ops),), 4, 32, 0, 1)
    return Job("tiles", [Kernel("tiles", program, (tbs, 1, 1), (src,), (Access(src, "read", region),))])


def rows_of(path, **wanted):
    with path.open(newline="") as file:
        return [r for r in csv.DictReader(file) if all(r[key] == value for key, value in wanted.items())]


def test_one_load_in_seven_waits_for_its_bank():
    """As measured: by how much, and how many of them."""
    seen = rows_of(COLD, what="random", span="4294967296", again="0")
    real = np.repeat([float(r["cycles"]) + 5 for r in seen], [int(r["loads"]) for r in seen])
    got = singles(config("h200"), [8192 + 384 * k for k in range(24)])
    # a TB's begin and end are more than the load; here all of a half of L2 are equally far
    got -= np.quantile(got, 0.02) - np.quantile(real, 0.1)
    for share in (0.1, 0.25, 0.75, 0.95, 0.99):
        assert np.quantile(got, share) == pytest.approx(np.quantile(real, share), rel=0.06)
    for late in (850, 1000, 1100):
        assert (got > late).mean() == pytest.approx((real > late).mean(), abs=0.015)


@pytest.mark.parametrize(("rows", "tbs", "pitch"), [(32, 1, 8192), (64, 16, 2048), (32, 132, 16896)])
def test_groups_of_loads_wait_for_the_last(rows, tbs, pitch):
    (real,) = rows_of(
        TILES, lines="clean", rows=str(rows), depth="1", tbs=str(tbs), pitch=str(pitch), again="0"
    )[:1]
    ran = simulate("h200", tiles(rows, tbs, pitch, 64), "stream", baseline=False).tables()["tbs"]
    step = np.median(ran["end_ns"] - ran["start_ns"]) * 1.98 / 64
    assert step == pytest.approx(float(real["cycles"]), rel=0.09)


def test_no_load_waits_longer_than_its_bank_is_away():
    none = singles(config("h200", gpu__dram__bank_refresh_time=0.0, gpu__dram__refresh_time=0.0), [8192])
    conf = config("h200", gpu__dram__refresh_time=0.0)
    some = np.concatenate([singles(conf, [8192 + 384 * k]) for k in range(6)])
    mean_wait = AWAY**2 / (2 * PERIOD)  # which the configured latency holds
    most = (AWAY - mean_wait) * 1.98
    assert some.max() - none.max() == pytest.approx(most, rel=0.1)
    assert (some > none.max()).mean() == pytest.approx(AWAY / PERIOD * 0.8, abs=0.06)


def test_the_bus_goes_on():
    """Reads lose next to nothing where banks take turns, and all of the time where a channel stops."""

    def rate(bank, channel):
        conf = config("h200", gpu__dram__bank_refresh_time=bank, gpu__dram__refresh_time=channel)
        job = Job("read", [micro.read(Memory(), 264, 16, 1 << 18, unroll=4, bypass_l1=True)])
        return 1 / execute(job, "stream", conf).kernel_cycles()

    free = rate(0.0, 0.0)
    assert rate(AWAY, 0.0) > 0.97 * free
    assert rate(0.0, AWAY) < (1 - AWAY / PERIOD + 0.03) * free


def test_a_bank_that_is_behind_is_refreshed_too():
    """Where rows of few banks are all that is waited for, they lose the time that they are away."""
    slow = {"gpu__dram__banks": 4, "gpu__dram__row_cycle": 400.0, "gpu__dram__refresh_time": 0.0}

    def took(away):
        conf = config("h200", gpu__dram__bank_refresh_time=away, **slow)
        return execute(single(1 << 16, 8192 + 384), "stream", conf).kernel_cycles()

    assert took(AWAY) == pytest.approx(took(0.0) / (1 - AWAY / PERIOD), rel=0.04)


@pytest.mark.parametrize("bandwidth", [600.0, 200.0, 60.0])
def test_the_share_of_the_bus_is_kept(bandwidth):
    """Whatever a sector's slot: refreshes take whole ones."""

    def took(busy):
        conf = config("h200", gpu__dram__bandwidth=bandwidth, gpu__dram__refresh_time=busy)
        return execute(make("copy:nbytes=4194304"), "stream", conf).kernel_cycles()

    share = 3.56 / (PERIOD / 32)
    assert took(0.0) / took(3.56) == pytest.approx(1 - share, abs=0.02)


def test_the_seed_says_when():
    same, again, other = (singles(config("h200", sim__seed=seed), [8192]).tolist() for seed in (1, 1, 2))
    assert same == again != other
