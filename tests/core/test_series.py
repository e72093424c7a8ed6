"""Time series of SMs, slices, channels and banks: exact times, exact sums, the same for every way to run."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import ConfigError, simulate
from pysim._ffi import check, lib
from pysim.engine.simulation import Sim
from pysim.results.schema import SERIES
from pysim.workloads.registry import make

from .harness import config, drive, lowered_of, tiny
from .workloads_small import JOBS

SOME = ("gemm_chain", "split_k", "gru", "copy", "random_dag", "empty")
TICKS_US = 1024e3


def series_of(sim, values):
    """The core's own arrays, counters from the start on."""
    return sim.series(values, 0)


def record(name, scheme="stream", *, threads=(1,), quanta=(1 << 40,), **overrides):
    made, _ = lowered_of(JOBS[name](), scheme, tiny(**overrides))
    with Sim(made) as sim:
        drive(sim, threads, quanta)
        return series_of(sim, made.values)


def same(got, want):
    assert got.interval == want.interval
    for field in ("sms", "slices", "banks"):
        assert getattr(got, field).tobytes() == getattr(want, field).tobytes(), field


def tables_of(job, scheme="stream", conf=None, **more):
    return simulate(conf or tiny(sim__sample=0.5), job, scheme, threads=1, **more).tables()


def totals(rows, part, name):
    """Sum of a counter over the samples of each part."""
    return np.bincount(rows[part], weights=rows[name])


def same_sums(rows, part, counter, want):
    """Check that the samples of a counter add up to the totals; times to a thousandth of a tick."""
    found = totals(rows, part, counter)
    assert np.abs(found - want[counter]).max() <= (1e-9 if counter.endswith("_us") else 0), counter


@pytest.mark.parametrize("scheme", ["stream", "tb_static"])
@pytest.mark.parametrize("name", SOME)
def test_samples_add_up_to_the_totals(name, scheme):
    made = tables_of(JOBS[name](), scheme)
    for table, whole, part in (("sm_series", "sm", "sm"), ("l2_series", "l2", "slice")):
        rows = made[table][made[table]["run"] == 0]
        want = made[whole][made[whole]["run"] == 0]
        skipped = {"run", "sample", "start_us", "end_us", part, "backlog_ns"}
        names = [n for n in rows.dtype.names if n not in skipped]
        for counter in set(names) - {"tb_time_us", "warp_time_us"} - ({"busy_us"} if part == "sm" else set()):
            same_sums(rows, part, counter, want)
    rows, want = (made[t][made[t]["run"] == 0] for t in ("dram_series", "l2"))
    for counter in ("dram_read_sectors", "dram_write_sectors", "row_hits", "row_misses", "bus_busy_us"):
        same_sums(rows, "channel", counter, want)
    banks = made["bank_series"][made["bank_series"]["run"] == 0]
    assert totals(banks, "channel", "accesses").tolist() == (want["row_hits"] + want["row_misses"]).tolist()
    assert totals(banks, "channel", "activates").tolist() == want["row_misses"].tolist()
    assert rows[rows["sample"] == rows["sample"].max()]["queued"].max() == 0


@pytest.mark.parametrize("name", SOME)
def test_no_part_does_more_than_it_can(name):
    conf = tiny(sim__sample=0.25)
    made = tables_of(JOBS[name](), "stream", conf)
    values = conf.encoded()
    period, interval = (values[path] / TICKS_US for path in ("gpu.clock", "sim.sample"))
    close = 1e-9  # us: sums of tens of floats
    sms, slices, dram = (made[f"{part}_series"] for part in ("sm", "l2", "dram"))
    for rows in (made[table] for table in SERIES):
        counters = rows.dtype.names[rows.dtype.names.index("end_us") + 1 :]
        assert min(float(rows[counter].min()) for counter in counters) == 0
    # a TB ends with the cycle of its last event, whenever the interval ends
    assert sms["busy_us"].max() <= interval + period + close
    assert (sms["tb_time_us"] <= 32 * sms["busy_us"] + close).all()
    assert (sms["warp_time_us"] <= 64 * sms["busy_us"] + close).all()
    assert (sms["tb_time_us"] >= sms["busy_us"]).all()
    assert slices["busy_us"].max() <= interval + close
    # a transfer counts when it ends: a whole batch of writes at most
    sector = 32 * 12 * 1024 / conf.number("gpu.dram.bandwidth")
    batch = (values["gpu.dram.write_batch"] + 4) * sector + values["gpu.dram.turnaround"]
    assert dram["bus_busy_us"].max() <= interval + 2 * batch / TICKS_US + close


def test_residence_is_that_of_the_tbs():
    conf = config("titan_v", sim__sample=0.3)
    made = tables_of(make("gemm:m=1024,n=512,k=64"), "stream", conf)
    tbs, rows = made["tbs"], made["sm_series"]
    cycle = 1e3 / conf.number("gpu.clock")
    assert len(np.unique(tbs["sm"])) > 60
    for row in rows[rows["sample"] % 5 == 2]:
        mine = tbs[tbs["sm"] == row["sm"]]
        start, end = row["start_us"] * 1e3, row["end_us"] * 1e3
        held = np.clip(np.minimum(mine["end_ns"], end) - np.maximum(mine["start_ns"], start), 0, None)
        # both ends of a TB fall between two edges
        assert abs(row["tb_time_us"] * 1e3 - held.sum()) <= 2 * cycle * np.count_nonzero(held) + 0.01


def test_clocks_that_change_do_not_matter():
    """Tensor cores slow the clock of their GPC down: cycles are no measure of time."""
    job = make("gemm:m=1024,n=1024,k=512,dtype=fp16")
    conf = config("h200", sim__sample=0.4)
    made = simulate(conf, job, "stream", threads=1)
    assert conf["gpu.clock_tensor"] < 1
    rows, tbs = made.tables()["sm_series"], made.tables()["tbs"]
    held = np.bincount(rows["sm"], weights=rows["tb_time_us"] * 1e3)
    lived = np.bincount(tbs["sm"], weights=tbs["end_ns"] - tbs["start_ns"], minlength=len(held))
    assert np.abs(held - lived).max() <= 2 * 1e3 / conf.number("gpu.clock") * 4
    assert rows["busy_us"].min() >= 0
    other = simulate(conf.replaced({"sim.quantum": 60}), job, "stream", threads=1)
    assert other.hash == made.hash


@pytest.mark.parametrize("interval", [0.37, 0.001])
@pytest.mark.parametrize("name", SOME)
def test_quantum_and_slices_do_not_matter(name, interval):
    want = record(name, "tb_static", sim__sample=interval)
    same(record(name, "tb_static", sim__sample=interval, sim__quantum=7), want)
    same(record(name, "tb_static", sim__sample=interval, sim__quantum=31), want)
    same(record(name, "tb_static", sim__sample=interval, quanta=(1, 17, 5)), want)


@pytest.mark.threads
@pytest.mark.parametrize("name", SOME)
def test_threads_do_not_matter(name):
    want = record(name, sim__sample=0.37)
    same(record(name, sim__sample=0.37, threads=(3, 1, 2), quanta=(40,)), want)


@pytest.mark.parametrize("name", ["gru", "copy"])
def test_merged_samples_are_those_of_the_longer_interval(name):
    # a million rows are few on a machine with many banks
    merged = record(name, sim__sample=0.001, gpu__dram__banks=32, gpu__sms=900)
    assert merged.interval > 1024
    assert merged.sms.shape[0] <= 1_000_000 // (900 + 12 * 34)
    asked = record(name, sim__sample=merged.interval / TICKS_US, gpu__dram__banks=32, gpu__sms=900)
    same(asked, merged)


def test_a_run_that_stops_has_what_the_whole_has():
    conf = tiny(sim__sample=0.2)
    made, _ = lowered_of(JOBS["gru"](), "stream", conf)
    with Sim(made) as sim:
        drive(sim)
        whole = series_of(sim, made.values)
    seen = set()
    with Sim(made) as sim:
        done = False
        while not done:
            done = check(lib.gs_run(sim.sim, 1, 7), sim.sim) == lib.GS_DONE
            part = series_of(sim, made.values)
            if part is None:
                continue
            samples = len(part.sms) - (1 if done else 0)
            seen.add(samples)
            for field in ("sms", "slices", "banks"):
                mine, all_of = getattr(part, field), getattr(whole, field)
                assert mine[:samples].tobytes() == all_of[:samples].tobytes()
        same(series_of(sim, made.values), whole)
    assert len(seen) > 10


def test_nothing_else_changes():
    job = JOBS["gru"]()
    plain = simulate(tiny(), job, "stream,tb_static", threads=1)
    timed = simulate(tiny(sim__sample=0.1), job, "stream,tb_static", threads=1)
    left = {name: rows for name, rows in timed.tables().items() if name not in SERIES}
    assert not set(SERIES) & set(plain.tables())
    assert list(left) == list(plain.tables())
    for name in set(left) - {"host"}:
        assert left[name].tobytes() == plain.tables()[name].tobytes(), name


def test_what_is_refused():
    job = JOBS["empty"]()
    with pytest.raises(ConfigError, match=r"sim.sample = 0.0005 us: must be 0 or at least 0.001 us"):
        simulate(tiny(sim__sample=0.0005), job, "stream")
    with pytest.raises(ConfigError, match="table bank_series needs an interval"):
        simulate(tiny(), job, "stream", tables="runs,bank_series")


def test_a_coarser_interval_is_told():
    result = simulate(config("h200", sim__sample=0.001), make("copy:nbytes=4194304"), "stream", threads=1)
    assert any("time series every" in note and "not 0.001" in note for note in result.notes)
    rows = result.tables()
    assert sum(len(rows[name]) for name in SERIES) <= 1_000_000


def camping(**overrides):
    conf = config("v100", sim__sample=4.0, **overrides)
    made = simulate(conf, make("columns:rows=4096,cols=256,lead=4096"), "stream", threads=1).tables()
    return made, made["runs"]["time_us"][0]


def test_columns_camp_without_the_hash():
    spread, fast = camping()
    camped, slow = camping(gpu__l2__hash=0)
    assert slow > 8 * fast
    # a strip of 32 columns lies in one slice: 4096 floats are 128 lines, twice as many as there are slices
    used = np.bincount(camped["l2_series"]["slice"], weights=camped["l2_series"]["requests"])
    assert np.count_nonzero(used) == 8
    used = np.bincount(spread["l2_series"]["slice"], weights=spread["l2_series"]["requests"])
    assert used.min() > 0.8 * used.mean()


def test_rows_camp_on_a_bank_without_its_hash():
    # 2^18 floats are 16 rows of every channel: without a hash all of them lie in one bank
    job = make("columns:rows=1024,cols=32,lead=262144")
    banks = []
    for hashed in (1, 0):
        conf = config("v100", sim__sample=4.0, gpu__l2__hash=0, gpu__dram__bank_hash=hashed)
        rows = simulate(conf, job, "stream", threads=1).tables()["bank_series"]
        banks.append(len(np.unique(rows["bank"][rows["accesses"] > 0])))
    assert banks[1] == 1
    assert banks[0] > 4
