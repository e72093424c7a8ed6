"""Chrome traces: the rules of their format, and that nothing of a result is lost or made up."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.program.copies import NAME as COPY
from pysim.results.schema import DTYPES, TABLES
from pysim.stats.export import chrome_trace, trace_kernels
from pysim.workloads import make
from tests.program.test_copies import reader, with_copy
from tests.support.large_results import large_results
from tests.support.result_files import result_file
from tests.support.trace_events import Read, cut_double, cut_text, load_trace, read_trace, to_exact

GRU = "gru:hidden=128,batch=8,timesteps=3,layers=2"
SCHEMES = "host,stream,graph,pool,acs_sw,queues,blockmaestro,tb_static,tb_ideal,fused,pdl,cusync"
ODD = ('x%d<"{[', "µ", "\\", "\t")
READERS = [to_exact, cut_text, cut_double]
SHELL = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")


@pytest.fixture(scope="module")
def gru(tmp_path_factory: pytest.TempPathFactory) -> stats.Results:
    path = tmp_path_factory.mktemp("gru") / "gru.h5"
    return result_file(path, "h200", make(GRU), SCHEMES, sim__sample=2.0)


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> stats.Results:
    path = tmp_path_factory.mktemp("eager") / "eager.h5"
    return result_file(path, "titan_v", make(GRU), "stream,tb_static", host__submit="eager")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> stats.Results:
    kernel, span = reader(1 << 20)
    job = with_copy([kernel], span, timed=True)
    return result_file(tmp_path_factory.mktemp("copied") / "copied.h5", "titan_v", job, "stream,tb_static")


def made_up(path: Path, tbs: list[tuple[Any, ...]], kernels: int = 0) -> stats.Results:
    """Write a file with TBs (kernel, tb, sm, slot, ready, dispatch, end, last kernel, last TB), in ns."""
    rows = np.zeros(len(tbs), DTYPES["tbs"])
    columns = ("kernel", "tb", "sm", "slot", "ready_ns", "dispatch_ns", "end_ns", "last_kernel", "last_tb")
    for name, values in zip(columns, zip(*tbs, strict=True), strict=True):
        rows[name] = values
    rows["start_ns"], rows["reason"] = rows["dispatch_ns"], b"slot"
    runs = np.zeros(1, DTYPES["runs"])
    runs["scheme"], runs["status"], runs["gpu"] = "stream", "ok", "none"
    launches = np.zeros(int(rows["kernel"].max()) + 1, DTYPES["kernels"])
    launches["kernel"], launches["tbs"] = np.arange(len(launches)), np.bincount(rows["kernel"])
    for name in ("first_dispatch", "last_end", "complete"):
        launches[f"{name}_us"] = rows["end_ns"].max() / 1e3
    tables = {"runs": runs, "tbs": rows, "kernels": launches}
    stats.write(path, tables, {"script": "test"}, {}, declared=TABLES)
    return stats.load(path)


def traced(results: stats.Results, folder: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    made = stats.to_chrome_trace(results.path, folder / "t.json", **options)
    return made, load_trace(folder / "t.json")


@pytest.mark.parametrize("ns", READERS)
@pytest.mark.parametrize("which", ["gru", "eager", "copied"])
def test_rules_and_conservation(
    which: str, ns: Callable[[Decimal], Decimal], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    results = request.getfixturevalue(which)
    made, trace = traced(results, tmp_path)
    read = read_trace(trace["traceEvents"], ns)
    runs = results.array("runs")
    ran = runs[runs["status"] == b"ok"]
    assert len(ran) > 1
    assert len(read.flows) == made.arrows
    pids = [pid for pid in read.places if isinstance(pid, int)]
    assert [read.names[pid] for pid in sorted(pids, key=read.places.get)] == list(made.runs)
    for pid, row in zip(sorted(pids, key=read.places.get), ran, strict=True):
        assert read.names[pid] == row["scheme"].decode()
        tbs = results.array("tbs")[results.array("tbs")["run"] == row["run"]]
        kernels = results.array("kernels")[results.array("kernels")["run"] == row["run"]]
        check_slices(read, pid, tbs, ns)
        check_kernels(read, pid, kernels)
        check_arrows(read, pid, tbs, kernels)


def check_slices(read: Read, pid: int, tbs: np.ndarray, ns: Callable[[Decimal], Decimal]) -> None:
    """Check that each TB is a slice with its times, place and waits."""
    slices = {(each.event["args"]["kernel"], each.event["args"]["tb"]): each for each in read.of("tb", pid)}
    assert len(slices) == len(read.of("tb", pid)) == len(tbs)
    assert not any(each.depth for each in slices.values())
    sm_tracks: dict[int, set[Any]] = {}
    for row in tbs:
        each = slices[int(row["kernel"]), int(row["tb"])]
        args = each.event["args"]
        words = read.names[each.track].split()
        assert words[:2] == ["SM", str(row["sm"])]
        assert words[2:] in ([], ["slot", str(row["slot"])])
        sm_tracks.setdefault(int(row["sm"]), set()).add(each.track)
        assert (args["last_kernel"], args["last_tb"]) == (row["last_kernel"], row["last_tb"])
        assert args["reason"] == row["reason"].decode()
        waits = [args[f"{name}_us"] for name in ("launch", "dependence", "slot", "dispatch")]
        assert float(sum(waits)) == pytest.approx(row["start_ns"] / 1e3, abs=3e-4)
        if ns is to_exact:
            # rounding to a tick gives the exact time
            begin, length = each.begin, each.end - each.begin
            assert round(begin * 1024) == row["dispatch_ns"] * 1024
            assert round(length * 1024) == (row["end_ns"] - row["dispatch_ns"]) * 1024
    for sm, tracks in sm_tracks.items():
        mine = np.sort(tbs[tbs["sm"] == sm], order="dispatch_ns")
        overlap = np.any(mine["dispatch_ns"][1:] < np.maximum.accumulate(mine["end_ns"])[:-1])
        assert len(tracks) == (len(np.unique(mine["slot"])) if overlap else 1)


def check_kernels(read: Read, pid: int, kernels: np.ndarray) -> None:
    """Check that each kernel is a slice with its phases inside."""
    every = read.of("kernel", pid)
    outer = {each.event["args"]["kernel"]: each for each in every if not each.depth}
    assert sorted(outer) == kernels["kernel"].tolist()
    for row in kernels:
        each = outer[int(row["kernel"])]
        assert {name: float(value) for name, value in each.event["args"].items() if "_us" in name} == {
            f"{name}_us": row[f"{name}_us"] for name in trace_kernels.TIMES
        }
        inside = [
            other
            for other in every
            if other.depth == 1 and other.track == each.track and each.begin <= other.begin < each.end
        ]
        assert sum(other.end - other.begin for other in inside) == each.end - each.begin
        assert {other.name for other in inside} <= set(trace_kernels.PHASES)


def check_arrows(read: Read, pid: int, tbs: np.ndarray, kernels: np.ndarray) -> None:
    """Check that an arrow leads to each TB from the one that made it ready, or from its kernel."""
    known = {(int(row["kernel"]), int(row["tb"])) for row in tbs}
    expected = {}
    for row in tbs:
        last = (int(row["last_kernel"]), int(row["last_tb"]))
        if last[0] >= 0:
            expected[int(row["kernel"]), int(row["tb"])] = last if last in known else (last[0], None)
    found = {}
    for source, target in read.flows.values():
        if source.track[0] != pid:
            continue
        args = target.event["args"]
        if source.event["cat"] == "kernel" and source.depth:  # a phase: of the slice that it lies in
            source = next(
                each
                for each in read.of("kernel", pid)
                if each.track == source.track and not each.depth and each.begin <= source.begin <= each.end
                and each.end >= source.end
            )  # fmt: skip
        before = source.event["args"]
        found[args["kernel"], args["tb"]] = (before["kernel"], before.get("tb"))
    assert found == expected


def test_what_no_track_has_is_on_tracks_of_kernels(copied, eager, gru, tmp_path: Path) -> None:
    """A copy has no TB; the host's launches show where it enqueues one after another."""
    _, trace = traced(copied, tmp_path)
    read = read_trace(trace["traceEvents"])
    assert {source.track for source, _ in read.flows.values()} <= {each.track for each in read.of("kernel")}
    assert {each.name for each in read.of("kernel") if not each.depth} == {COPY, "read"}
    for results, begin in ((eager, "enqueue"), (gru, "admission")):
        _, trace = traced(results, tmp_path, force=True, schemes=("stream", "tb_static"))
        read = read_trace(trace["traceEvents"])
        lanes = [name for name in read.names.values() if name.startswith("kernels")]
        assert lanes
        assert all(name.startswith(f"kernels from {begin}, ") for name in lanes)


def test_kernels_begin_later_where_they_would_take_too_many_tracks(
    gru, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_kernels, "MOST_LANES", 3)
    _, trace = traced(gru, tmp_path, schemes=("tb_ideal",))
    read = read_trace(trace["traceEvents"])
    first = next(name for name in read.names.values() if name.startswith("kernels"))
    assert first in ("kernels from ready, 0", "kernels from first dispatch, 0")


def test_counters(gru, tmp_path: Path) -> None:
    _, trace = traced(gru, tmp_path, schemes=("tb_static",))
    read = read_trace(trace["traceEvents"])
    mine = {name: events for (_, name), events in read.counters.items()}
    assert len(mine["DRAM (GB/s)"]) > 10
    run = int(gru["runs"].query("scheme == 'tb_static'")["run"].iloc[0])
    read_sectors = gru["dram_series"].query(f"run == {run}")["dram_read_sectors"].sum()
    moved = integral(mine["DRAM (GB/s)"], "read") * 1e3  # GB/s are kB/us
    assert moved == pytest.approx(read_sectors * 32, rel=1e-5)
    samples = gru["samples"].query(f"run == {run}")
    warps = (samples["resident_warps"] * (samples["end_us"] - samples["start_us"])).sum()
    assert integral(mine["warps"], "resident") == pytest.approx(warps, rel=1e-5)
    looked = mine["L2 look-ups (1/us)"]
    l2 = gru["l2_series"].query(f"run == {run}")
    assert integral(looked, "hits") + integral(looked, "misses") == pytest.approx(
        l2["requests"].sum(), rel=1e-5
    )
    kernels = gru["kernels"].query(f"run == {run}")
    spent = (kernels["complete_us"] - kernels["admitted_us"]).sum()
    assert integral(mine["kernels"], "admitted") == pytest.approx(spent, rel=1e-6)
    assert not any(float(value) for events in mine.values() for value in events[-1]["args"].values())


def integral(events: list[dict[str, Any]], series: str) -> float:
    times = np.array([float(each["ts"]) for each in events])
    values = np.array([float(each["args"][series]) for each in events])
    return float((np.diff(times) * values[:-1]).sum())


@pytest.mark.parametrize("ns", READERS)
def test_tbs_that_touch_overlap_for_no_reader(ns: Callable[[Decimal], Decimal], tmp_path: Path) -> None:
    """Ends at every whole ns up to 3 us and at every tick of some: a TB follows at once in the same slot."""
    random = np.random.default_rng(5)
    ends = np.sort(np.concatenate([np.arange(1, 3000), random.integers(1, 3 << 20, 3000) / 1024]))
    begins = np.append(0.0, ends[:-1])
    rows = [
        (0, tb, 0, 0, begin, begin, end, -1, -1)
        for tb, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True))
    ]
    made, trace = traced(made_up(tmp_path / "touch.h5", rows), tmp_path)
    read = read_trace(trace["traceEvents"], ns)
    assert len(read.of("tb")) == made.slices == len(rows)
    assert {name for name in read.names.values() if not name.startswith("kernels")} == {"stream", "SM 0"}
    assert not any(each.depth for each in read.of("tb") if each.end > each.begin)


def test_a_tb_that_lets_others_go_early(tmp_path: Path) -> None:
    """Under pdl a TB is made ready by one that has not ended: the arrow leaves when it is ready."""
    rows = [(0, 0, 0, 0, 0, 0, 5000, -1, -1), (1, 0, 1, 0, 2000, 2500, 6000, 0, 0)]
    _, trace = traced(made_up(tmp_path / "early.h5", rows), tmp_path)
    ((source, target),) = read_trace(trace["traceEvents"]).flows.values()
    assert (source.track != target.track, source.name, target.name) == (True, "kernel 0", "kernel 1")
    start = next(each for each in trace["traceEvents"] if each["ph"] == "s")
    assert start["ts"] == 2


def test_slots_are_tracks_only_where_tbs_overlap(tmp_path: Path) -> None:
    rows = [
        (0, 0, 7, 0, 0, 0, 10, -1, -1),
        (0, 1, 7, 3, 0, 10, 20, -1, -1),
        (0, 2, 2, 0, 0, 0, 10, -1, -1),
        (0, 3, 2, 1, 0, 5, 15, -1, -1),
    ]
    _, trace = traced(made_up(tmp_path / "slots.h5", rows), tmp_path)
    read = read_trace(trace["traceEvents"])
    tracks = [key for key in read.names if isinstance(key, tuple)]
    in_order = [read.names[key] for key in sorted(tracks, key=read.places.get)]
    assert [name for name in in_order if not name.startswith("kernels")] == [
        "SM 2 slot 0",
        "SM 2 slot 1",
        "SM 7",
    ]


def test_a_choice_of_kernels_and_schemes(gru, tmp_path: Path) -> None:
    made, trace = traced(gru, tmp_path, schemes=("graph", "stream"), kernels=((0, 1), (4, 4)))
    read = read_trace(trace["traceEvents"])
    assert made.runs == ("stream", "graph")
    assert {each.event["args"]["kernel"] for each in read.of("tb")} == {0, 1, 4}
    tbs = gru["tbs"].merge(gru["runs"][["run", "scheme"]], on="run")
    tbs = tbs[tbs["kernel"].isin([0, 1, 4]) & tbs["scheme"].isin(["stream", "graph"])]
    assert made.slices == len(read.of("tb")) == len(tbs)
    assert made.arrows == int(tbs["last_kernel"].isin([0, 1, 4]).sum())


def test_names_of_runs_and_odd_names_of_kernels(tmp_path: Path) -> None:
    results = large_results(tmp_path / "two.h5", kernels=3, sms=2, slots=2, runs=2)
    tables = {name: results.array(name) for name in results}
    tables["runs"]["scheme"] = b"stream"
    tables["runs"]["workload"] = ["b%s", 'a"\\{']
    tables["names"]["text"] = [name.encode() for name in ODD] * 2
    stats.write(tmp_path / "odd.h5", tables, {"script": "test"}, {"bad": "%s"}, declared=TABLES)
    made, trace = traced(stats.load(tmp_path / "odd.h5"), tmp_path)
    assert made.runs == ("stream, b%s", 'stream, a"\\{')
    read = read_trace(trace["traceEvents"])
    assert {each.name for each in read.of("tb")} == set(ODD[:3])
    assert trace["otherData"]["configuration"] == {"bad": "%s"}


def test_the_same_bytes_compressed_or_not(gru, tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "a.json.gz", "b.json.gz"):
        stats.to_chrome_trace(gru.path, tmp_path / name, schemes=("pdl",))
    plain, packed = ((tmp_path / name).read_bytes() for name in ("a.json", "a.json.gz"))
    assert plain == (tmp_path / "b.json").read_bytes() == gzip.decompress(packed)
    assert packed == (tmp_path / "b.json.gz").read_bytes()


def test_refused(gru, tmp_path: Path) -> None:
    def refused(target: str, words: str, source: Path = gru.path, **options: Any) -> None:
        before = sorted(tmp_path.iterdir())
        with pytest.raises(stats.StoreError, match=words):
            stats.to_chrome_trace(source, tmp_path / target, **options)
        assert sorted(tmp_path.iterdir()) == before

    (tmp_path / "there.json").write_text("mine")
    refused("there.json", "there.json is there already: --force .force=True. replaces it")
    refused("t.txt", r"the name of a trace ends in .json or .json.gz")
    refused("t.json", "has no run of scheme nope: there are host, stream,", schemes=("nope",))
    refused("t.json", "has no TBs of kernels 900-999", kernels=((900, 999),))
    refused("t.json", "TBs are more than 10, .* choose schemes or kernels", most_tbs=10)
    refused("t.json", "is a folder", source=tmp_path)
    refused("there.json/t.json", "there.json is no folder")
    tables = {name: gru.array(name) for name in gru if name != "tbs"}
    stats.write(tmp_path / "bare.h5", tables, {"script": "test"}, {}, declared=TABLES)
    refused("t.json", "has no rows in table tbs: run again with --tables all", source=tmp_path / "bare.h5")
    rows = [(0, 0, 0, 0, 0, 0, 10, -1, -1), (0, 1, 0, 0, 0, 9, 20, -1, -1)]
    made_up(tmp_path / "over.h5", rows)
    refused("t.json", "over.h5 is damaged: run 0: TBs overlap on SM 0, slot 0", source=tmp_path / "over.h5")
    assert (tmp_path / "there.json").read_text() == "mine"


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_full_disk_leaves_nothing(
    gru, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield

    monkeypatch.setattr(chrome_trace, "_arrows", full)
    with pytest.raises(stats.StoreError, match=r"cannot write .*: No space left on device"):
        stats.to_chrome_trace(gru.path, tmp_path / f"t{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(SHELL is None, reason="no trace_processor_shell on PATH, nor in TRACE_PROCESSOR")
@pytest.mark.parametrize("which", ["gru", "eager", "copied"])
def test_perfetto_reads_all_of_it(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    results = request.getfixturevalue(which)
    made, trace = traced(results, tmp_path)
    read = read_trace(trace["traceEvents"])
    (tmp_path / "q.sql").write_text(
        "select (select count(*) from slice) as slices, (select count(*) from flow) as flows,"
        " (select sum(value) from stats where severity = 'error') as errors;\n"
    )
    done = subprocess.run(
        [str(SHELL), "-q", tmp_path / "q.sql", tmp_path / "t.json"],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.split()[-1] == f"{len(read.slices)},{made.arrows},0"


def test_many_tbs_are_read_back(tmp_path: Path) -> None:
    results = large_results(tmp_path / "large.h5", kernels=20)
    made, trace = traced(results, tmp_path)
    read = read_trace(trace["traceEvents"])
    assert made.slices == len(read.of("tb")) == len(results.array("tbs")) == 20 * 132 * 8
    assert made.arrows == len(read.flows) == 19 * 132 * 8
    assert json.dumps(sorted(set(read.labels.values())))[2:6] == "none"
