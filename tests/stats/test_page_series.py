"""Time series of the report: what they add up to is what the tables say of the whole run."""

from __future__ import annotations

import numpy as np
import pytest

from pysim import stats
from pysim.program.job import Job, Memory
from pysim.stats.page import series
from pysim.stats.page.report import Recording, make_page
from pysim.stats.page.spans import Spans, time_in_bins
from pysim.workloads import make
from pysim.workloads.kernels import micro
from tests.support.result_files import result_file

SCHEMES = "stream,tb_static"
SMS = 10  # so few that several TBs share one


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> stats.Results:
    path = tmp_path_factory.mktemp("series") / "r.h5"
    job = make("gru:hidden=256,batch=16,timesteps=3")
    return result_file(path, "titan_v", job, SCHEMES, sim__sample=1.7, gpu__sms=SMS, gpu__gpcs=1)


def charts_of(results: stats.Results, run: int) -> tuple[dict, dict]:
    """Return the charts of a run and the ends of their intervals in ns, both by key."""
    made: list = []
    keep = series.blob

    def kept(columns):
        made.append(columns)
        return keep(columns)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series, "blob", kept)
        part = series.series_part(results, results.array("runs")[run], run)
    (columns,) = made
    assert list(part.blobs) == [f"series{run}"]
    tick = part.about["series_tick_ns"]
    charts = {each["key"]: columns[each["key"]].astype(float) for each in part.about["series"]}
    ends = {each["key"]: columns[each["edges"]] * tick for each in part.about["series"]}
    return charts, ends


@pytest.mark.parametrize("run", [0, 1])
def test_times_of_sms_are_those_that_the_core_counts(results, run):
    """The core counts from a TB's first issue to its end, in whole cycles, interval by interval."""
    tbs, counted = (rows[rows["run"] == run] for rows in (results.array("tbs"), results.array("sm_series")))
    first = counted[counted["sm"] == 0]
    edges = np.append(first["start_us"], first["end_us"][-1]) * 1e3
    times = tbs["start_ns"], tbs["end_ns"]
    busy = time_in_bins(*Spans(tbs["sm"], *times).merged()[1:], edges)
    held = time_in_bins(*times, edges)
    for ours, name in ((busy, "busy_us"), (held, "tb_time_us")):
        theirs = np.bincount(counted["sample"], counted[name] * 1e3)
        assert ours.sum() > 1e5
        assert abs(ours - theirs).max() <= len(tbs)  # a cycle of 0.69 ns a TB
    assert busy.sum() < held.sum()


@pytest.mark.parametrize("run", [0, 1])
def test_integrals_are_those_of_the_run(results, run):
    charts, ends = charts_of(results, run)
    row = results.array("runs")[run]
    tbs = results.array("tbs")[results.array("tbs")["run"] == run]
    sm = results.array("sm")[results.array("sm")["run"] == run]

    def integral(key):
        return float(np.nansum(charts[key] * np.diff(ends[key])))

    for each in ends.values():
        assert each[0] == 0
        assert (np.diff(each) > 0).all()
        assert each[-1] == pytest.approx(row["time_us"] * 1e3, rel=1e-6)
    assert integral("resident_tbs") * SMS == pytest.approx(
        (tbs["end_ns"] - tbs["dispatch_ns"]).sum(), rel=1e-6
    )
    # an SM counts as busy until the scheduler has seen the end of its last TB: 70 ns and the server's time
    seen = sm["busy_us"].sum() * 1e3 - integral("busy_sms") * SMS
    assert 0 < seen < 200 * len(tbs)
    assert charts["busy_sms"].max() <= 1 + 1e-6
    assert charts["resident_tbs"].max() > 0.2
    alu = float(np.nansum(charts["alu"] * np.diff(ends["alu"]))) / (row["time_us"] * 1e3)
    assert alu == pytest.approx(row["alu_utilization"], rel=0.01)
    assert integral("l2_requests") / 1e3 == pytest.approx(sm["l2_requests"].sum(), rel=1e-6)
    assert integral("l2_bandwidth") == pytest.approx(row["l2_bytes"], rel=1e-6)
    assert integral("dram_read") + integral("dram_write") == pytest.approx(row["dram_bytes"], rel=1e-6)
    assert integral("dram_share") * 652.8 == pytest.approx(row["dram_bytes"], rel=1e-6)
    assert np.nanmax(charts["l2_hits"]) <= 1


def test_what_a_file_lacks_is_not_drawn(tmp_path):
    job = Job("f", (micro.ffma(8, 4, 64, 20),))
    whole = result_file(tmp_path / "a.h5", "titan_v", job)
    keys = [each["key"] for each in series.series_part(whole, whole.array("runs")[0], 0).about["series"]]
    assert keys == ["busy_sms", "resident_tbs", "resident_warps", "alu", "fp32", "l2_requests"]
    bare = result_file(tmp_path / "b.h5", "titan_v", job, "stream", ("tbs", "samples"))
    part = series.series_part(bare, bare.array("runs")[0], 0)
    assert part.about["series"] == []
    assert part.blobs == {}


def test_many_samples_are_merged_and_keep_their_sums(tmp_path, monkeypatch):
    job = Job("r", (micro.read(Memory(), 160, 4, 1 << 16),))
    results = result_file(tmp_path / "r.h5", "titan_v", job, sim__sample=0.1)
    fine, ends = charts_of(results, 0)
    monkeypatch.setattr(series, "MOST_BINS", 7)
    coarse, fewer = charts_of(results, 0)
    for key in ("alu", "l2_bandwidth", "l2_requests", "dram_read", "resident_warps"):
        assert len(fine[key]) > 20
        assert 4 <= len(coarse[key]) <= 7
        total = (fine[key] * np.diff(ends[key])).sum()
        assert (coarse[key] * np.diff(fewer[key])).sum() == pytest.approx(total, rel=1e-6)
        assert fewer[key][-1] == ends[key][-1]


def test_times_longer_than_32_bit_ticks_take_a_coarser_tick(results):
    row = results.array("runs")[0].copy()
    row["time_us"] = 3.6e9  # an hour
    part = series.series_part(results, row, 0)
    assert part.about["series_tick_ns"] > 800
    assert "series0" in part.blobs


def test_a_page_names_the_series_of_each_run(results):
    page = make_page([Recording(results)])
    for number, run in enumerate(page.data["runs"]):
        assert run["series_sms"] == SMS
        names = [name for name, _, _ in page.data["blobs"][f"series{number}"]]
        assert {each["key"] for each in run["series"]} | {each["edges"] for each in run["series"]} == set(
            names
        )
