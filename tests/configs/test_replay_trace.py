"""The script that replays a trace, run as a user runs it."""

from __future__ import annotations

import gzip
import json
import time

import pytest

from pysim import stats
from pysim.clock import Clock, since_start
from pysim.errors import WorkloadError
from pysim.trace.conversion_cache import open_trace
from pysim.trace.converted_file import ConvertedTrace
from tests.support.calls import caller, pysim, refused
from tests.trace.made_traces import Warp, odd, product, write

run = caller("replay_trace")


@pytest.fixture
def trace(tmp_path):
    return write(tmp_path / "trace", product(), odd(3), product(4))


def test_schemes_of_a_trace(tmp_path, trace):
    done = run(tmp_path, trace, "--schemes", "stream,graph,tb_static", "--out", "r.h5", "--explain", "2:1")
    assert done.returncode == 0, done.stderr
    assert "3 of 3 kernels, 24 TBs" in done.stdout
    runs = stats.load(tmp_path / "r.h5")["runs"]
    assert runs["scheme"].tolist() == ["stream", "graph", "tb_static"]
    assert set(runs["status"]) == {"ok"}
    assert runs["warp_instructions"].nunique() == 1


def test_seconds_add_up_to_the_time_of_the_process(tmp_path, trace):
    begin = time.perf_counter()
    done = run(tmp_path, trace, "--json", "--tables", "none", "--quiet")
    wall = time.perf_counter() - begin
    host = json.loads(done.stdout)["host"]
    spent = [
        sum(row[f"{name}_seconds"] for row in host)
        for name in ("setup", "convert", "load", "simulate", "write")
    ]
    assert spent[1] > 0
    # a little is left for the end of the process, more on a busy machine
    assert 0 <= wall - sum(spent) < 0.3 + 0.3 * wall
    again = json.loads(run(tmp_path, trace, "--json", "--tables", "none", "--quiet", "--force").stdout)
    assert [row["convert_seconds"] for row in again["host"]] == [0]


def test_results_are_those_of_the_converted_file(tmp_path, trace):
    store = open_trace(trace, tmp_path, Clock())
    options = ("--schemes", "stream,tb_static", "--tables", "all")
    assert run(tmp_path, trace, *options, "--out", "a.h5").returncode == 0
    assert run(tmp_path, store.path, *options, "--out", "b.h5").returncode == 0
    hashes = {stats.load(tmp_path / name).attributes["hash"] for name in ("a.h5", "b.h5")}
    names = [
        run(tmp_path, x, "--schemes", "stream", "--kernels", "1-2").stdout.split("wrote ")[1]
        for x in (trace, trace)
    ]
    assert len(hashes) == 1
    assert names[0] == names[1]


def test_kernels_are_chosen(tmp_path, trace):
    done = run(tmp_path, trace, "--kernels", "3,1", "--out", "r.h5", "--tables", "kernels")
    assert done.returncode == 0, done.stderr
    assert stats.load(tmp_path / "r.h5")["kernels"]["tbs"].tolist() == [6, 6]
    for word, why in (
        ("2-4", "the trace has 1 to 3"),
        ("0", "positive"),
        ("3-2", "empty range"),
        ("x", "positive"),
    ):
        done = run(tmp_path, trace, "--kernels", word)
        assert done.returncode != 0
        assert why in done.stderr
        assert len(done.stderr.splitlines()) == 1
    # what is not there is told before the long conversion
    done = run(tmp_path / "trace", ".", "--kernels", "2-4")
    assert "the trace has 1 to 3" in done.stderr
    assert not (trace / "results").exists()


def test_only_the_kernels_asked_for_are_converted(tmp_path, trace):
    (trace / "kernelslist.g").write_text(
        "MemcpyHtoD,0x700000000000,4096\nkernel-1.traceg\nMemcpyHtoD,0x700010000000,64\nkernel-2.traceg\n"
        "MemcpyHtoD,0x700000000000,128\nkernel-3.traceg\n"
    )
    options = ("--kernels", "1,3", "--schemes", "stream,tb_static", "--tables", "all")
    first = run(tmp_path, trace, *options, "--out", "a.h5")
    assert first.returncode == 0, first.stderr
    assert "2 of 3 kernels, 12 TBs" in first.stdout
    assert "2 copies of 4,224 B" in first.stdout
    (store,) = (ConvertedTrace(path) for path in (tmp_path / "results" / "traces").iterdir())
    assert (store.chosen, len(store.kernels)) == ((1, 3), 2)
    # the same once the whole trace is there, and from the file that holds them
    assert run(tmp_path, trace).returncode == 0
    assert len(list((tmp_path / "results" / "traces").iterdir())) == 2
    (trace / "kernel-2.traceg").write_text("no trace\n")
    assert run(tmp_path, trace, *options, "--out", "b.h5").returncode == 0
    assert run(tmp_path, store.path, "--tables", "all", *options[2:4], "--out", "c.h5").returncode == 0
    assert len({stats.load(tmp_path / name).attributes["hash"] for name in ("a.h5", "b.h5", "c.h5")}) == 1
    assert "error: " in run(tmp_path, trace).stderr
    # all that there are is the whole trace
    clock = Clock()
    assert open_trace(trace, tmp_path, clock, kernels=[1]).chosen == (1,)
    write(trace, product(), odd(3), product(4))
    assert (
        open_trace(trace, tmp_path, clock, kernels=[1, 2, 3]).path == open_trace(trace, tmp_path, clock).path
    )


def test_unknown_opcodes(tmp_path):
    warp = Warp().op("FROB.X", 4, (5,)).op("IADD3", 5, (4, 4)).end()
    trace = write(tmp_path / "trace", ((1, 1, 1), 32, {(0, 0, 0): [warp]}, {}))
    done = run(tmp_path, trace)
    assert done.returncode == 2
    assert "FROB" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = run(tmp_path, trace, "--unknown-opcode", "as=INT")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, trace, "--unknown-opcode", "as=WHAT")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    # what was converted with a stand-in is not taken for a trace without
    assert run(tmp_path, trace).returncode == 2


def test_bad_folders(tmp_path):
    for path in (tmp_path, tmp_path / "none", tmp_path / "bad.pysim"):
        (tmp_path / "bad.pysim").write_bytes(b"pysimTRC and no more")
        done = run(tmp_path, path)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1
    assert run(tmp_path).returncode == 2


def test_a_changed_trace_is_converted_again(tmp_path, trace):
    first = open_trace(trace, tmp_path, Clock())
    assert open_trace(trace, tmp_path, Clock()).path == first.path
    clock = Clock()
    open_trace(trace, tmp_path, clock)
    assert clock.lap()["convert_seconds"] == 0
    # touched but the same: no need to
    (trace / "kernel-1.traceg").touch()
    clock = Clock()
    open_trace(trace, tmp_path, clock)
    assert clock.lap()["convert_seconds"] == 0
    write(trace, product(), odd(4), product(4))
    clock = Clock()
    assert open_trace(trace, tmp_path, clock).source != first.source
    assert clock.lap()["convert_seconds"] > 0
    first.path.write_bytes(b"damaged")
    clock = Clock()
    open_trace(trace, tmp_path, clock)
    assert clock.lap()["convert_seconds"] > 0


def test_a_failed_conversion_leaves_nothing(tmp_path, trace):
    with (trace / "kernel-3.traceg").open("ab") as file:
        file.write(b"#BEGIN_TB\n")
    done = run(tmp_path, trace)
    assert done.returncode == 2
    assert "kernel-3.traceg:" in done.stderr
    assert not list((tmp_path / "results").rglob("*.*"))


PROFILE = (
    b'{\n "schemaVersion": 1,\n "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "dur": 5}]}'
)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pt.trace.json", PROFILE, "a trace of the PyTorch profiler"),
        ("a.pt.trace.json.gz", gzip.compress(PROFILE, mtime=0), "a trace of the PyTorch profiler"),
        ("list.json", PROFILE[PROFILE.index(b"[") : -1], "a trace of the PyTorch profiler"),
        ("a.pysim", b"junk", "no converted trace"),
        ("a.pysim", b"", "no converted trace"),
        ("a.json.gz", gzip.compress(PROFILE, mtime=0)[:30], "a.json.gz:"),
    ],
)
def test_files_of_another_kind_are_named(tmp_path, name, data, words):
    path = tmp_path / "traces" / name
    path.parent.mkdir()
    path.write_bytes(data)
    for each in (path, path.parent) if ".pt." in name else (path,):
        with pytest.raises(WorkloadError) as caught:
            open_trace(each, tmp_path / "cache", Clock())
        assert str(path) in str(caught.value)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_profile_is_refused_in_one_line(tmp_path):
    (tmp_path / "a.json").write_bytes(PROFILE)
    refused(
        run(tmp_path, "a.json"), "error: a.json: a trace of the PyTorch profiler (Chrome trace JSON), not an"
    )
    refused(pysim("dependences", "./a.json", folder=tmp_path), "not an instruction trace")


def test_laps_add_up():
    clock = Clock(2.5)
    with clock.phase("load"):
        time.sleep(0.01)
    lap = clock.lap()
    assert lap["load_seconds"] >= 0.01
    assert 2.5 <= lap["setup_seconds"] < 3.5
    assert sum(clock.lap("write").values()) < 1
    assert 0 <= since_start() < 3600
