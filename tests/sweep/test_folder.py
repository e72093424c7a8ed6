"""The folder of a sweep: its files are the truth, whoever wrote them; nothing is lost, nothing done twice."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from pysim import stats
from pysim.errors import ConfigError, OutputError, WorkloadError
from pysim.sweep import Sweep, SweepFolder
from pysim.sweep.worker import Shard, simulate_point, work

from .common import SMALL, collected, planned, pysim, ran, sweep


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in (folder.path / "points").iterdir()}


def test_a_sweep_is_one_frame_in_grid_order(tmp_path):
    status = sweep().run(tmp_path / "sweep", jobs=2, quiet=True)
    assert (status.total, status.done, status.missing, status.running, dict(status.failed)) == (
        4,
        4,
        0,
        0,
        {},
    )
    frame = stats.load(tmp_path / "sweep")
    assert frame[["hidden", "split", "scheme"]].values.tolist() == [
        [hidden, split, scheme] for hidden in (64, 96) for split in (0, 1) for scheme in ("stream", "graph")
    ]
    assert frame["run"].tolist() == list(range(8))
    assert (frame["status"] == "ok").all()
    assert frame.attrs["units"]["time_us"] == "us"
    again = frame[(frame.hidden == 96) & (frame.split == 1)]
    direct = ran(
        "run", SMALL, "--hidden", 96, "--split", 1, "--schemes", "stream,graph", "--json", "--quiet",
        "--out", tmp_path / "one.h5",
    )  # fmt: skip
    assert direct[0] == 0
    rows = json.loads(direct[1])["runs"]
    assert [row["time_us"] for row in rows] == again["time_us"].tolist()
    assert [row["speedup"] for row in rows] == again["speedup"].tolist()


def test_a_second_run_touches_nothing(tmp_path):
    folder = SweepFolder(tmp_path / "sweep")
    sweep().run(folder.path, quiet=True)
    before = {path: path.stat().st_mtime_ns for path in (folder.path / "points").iterdir()}
    sweep().run(folder.path, quiet=True)
    assert {path: path.stat().st_mtime_ns for path in (folder.path / "points").iterdir()} == before


def test_a_larger_grid_and_more_schemes_run_only_what_is_missing(tmp_path):
    folder = SweepFolder(tmp_path / "sweep")
    sweep({"hidden": [64]}).run(folder.path, quiet=True)
    first = bytes_of(folder)
    assert len(first) == 1
    wider = sweep({"hidden": [32, 64]}, "graph,pool,stream")
    status = wider.run(folder.path, quiet=True)
    assert status.done == 2
    now = bytes_of(folder)
    assert first.items() <= now.items()
    assert len(now) == 3  # a new point, and pool of the old one
    frame = stats.load(folder.path)
    assert sorted(frame[frame.hidden == 64].scheme) == ["graph", "pool", "stream"]
    assert len(frame) == 6  # no row twice
    whole = tmp_path / "whole"
    wider.run(whole, quiet=True)
    key = ["hidden", "scheme"]
    mine, other = (f.set_index(key).sort_index()["speedup"] for f in (frame, stats.load(whole)))
    assert mine.to_dict() == other.to_dict()


def test_who_simulates_decides_no_byte(tmp_path):
    one, two = planned(tmp_path / "a"), planned(tmp_path / "b")
    work(one, Shard(), threads=1)
    for number in (2, 0, 1):
        work(two, Shard(number, 3), threads=2)
    assert collected(one) == collected(two)
    tables = stats.load(one.path / "all.h5")
    assert "host" not in tables
    points = tables.array("points")
    assert points["hidden"].tolist() == [64] * 4 + [96] * 4
    assert np.array_equal(points["run"], tables.array("runs")["run"])


def test_two_processes_share_the_points(tmp_path):
    folder = planned(tmp_path, {"hidden": [32, 64, 96, 128]})
    workers = [pysim("work", folder.path) for _ in range(3)]
    assert not any("Error" in err for worker in workers for err in worker.communicate(timeout=120))
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    alone = planned(tmp_path / "alone", {"hidden": [32, 64, 96, 128]})
    work(alone, Shard(), threads=1)
    assert collected(folder) == collected(alone)


def test_two_processes_may_write_one_point(tmp_path):
    folder = planned(tmp_path)
    key = folder.plan.files()[0]
    errors = []

    def simulate():
        try:
            simulate_point(folder, key, threads=1)
        except Exception as error:
            errors.append(error)

    both = [threading.Thread(target=simulate) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert not errors
    assert folder.is_done(key)
    stats.Results(folder.result(key)).verify()


def test_a_lock_is_seen_and_ends_with_its_process(tmp_path):
    folder = planned(tmp_path)
    first, second = folder.plan.files()[:2]
    with folder.claimed(first) as mine:
        assert mine
        assert folder.status().running == 1
        code = "import sys; from pysim.sweep import SweepFolder as F\n"
        code += "with F(sys.argv[1]).claimed(sys.argv[2]) as mine: print(mine)"
        words = [sys.executable, "-c", code, str(folder.path)]
        assert subprocess.check_output([*words, first], text=True).strip() == "False"
        assert subprocess.check_output([*words, second], text=True).strip() == "True"
    assert folder.status().running == 0


def test_a_killed_worker_costs_one_point_at_most(tmp_path):
    folder = planned(tmp_path)
    worker = pysim("work", folder.path)
    deadline = time.monotonic() + 60
    while not list((folder.path / "locks").iterdir()) and time.monotonic() < deadline:
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    status = folder.status()
    assert status.running == 0
    assert not status.failed
    for path in (folder.path / "points").glob("*.h5"):
        stats.Results(path).verify()
    sweep().run(folder.path, quiet=True)
    alone = planned(tmp_path / "alone")
    work(alone, Shard(), threads=1)
    assert collected(folder) == collected(alone)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_sweep_and_its_workers(tmp_path, number):
    words = [
        "sweep",
        "gru:layers=3,timesteps=1600",
        "--grid",
        "hidden=512,640,768",
        "--out",
        tmp_path / "sweep",
    ]
    process = pysim(*words, "--schemes", "stream", "--jobs", 2, start_new_session=True)
    folder = SweepFolder(tmp_path / "sweep")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        locks = folder.path / "locks"
        if locks.exists() and sum(bool(path.read_text().strip()) for path in locks.iterdir()) == 2:
            break
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # no worker is left
    ends = [line for line in err.splitlines() if not line.startswith("points: ")]
    assert ends == ["interrupted" if number == signal.SIGINT else "terminated"]  # its workers print nothing
    assert list((folder.path / "points").iterdir()) == []
    if number == signal.SIGINT:
        assert "0 of 3 points done" in out


def test_a_point_that_fails_is_named_with_its_reason_and_tried_again(tmp_path):
    path = tmp_path / "sweep"
    words = [
        "sweep",
        SMALL,
        "--grid",
        "hidden=64,1000000",
        "--out",
        path,
        "--max-memory",
        "500MiB",
        "--quiet",
    ]
    status, out, err = ran(*words)
    assert status == 1
    assert "1 of 2 points done, 1 failed" in out
    assert "hidden=1000000: " in out
    assert "--max-memory" in out
    assert "Traceback" not in err
    shown = json.loads(ran("status", path, "--json")[1])
    assert (shown["done"], list(shown["failed"])) == (1, ["hidden=1000000"])
    assert ran("collect", path, "-o", tmp_path / "all.h5")[0] == 1
    assert ran("collect", path, "-o", tmp_path / "all.h5", "--partial")[0] == 0
    with pytest.warns(UserWarning, match="1 of 2 points are missing"):
        assert set(stats.load(path)["hidden"]) == {64}


def test_a_worker_that_dies_is_replaced(tmp_path, monkeypatch):
    """A worker that the system kills takes one point with it, and the others are simulated."""
    kill = tmp_path / "sitecustomize.py"
    kill.write_text(
        "import os, sys\n"
        "if 'work' in sys.argv:\n"
        "    import pysim.sweep.worker as w\n"
        "    simulate = w.simulate_point\n"
        "    def deadly(folder, key, *more):\n"
        "        if 'hidden=96' in folder.plan.points[key].workload: os.kill(os.getpid(), 9)\n"
        "        simulate(folder, key, *more)\n"
        "    w.simulate_point = deadly\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    status = sweep({"hidden": [96, 64, 32]}).run(tmp_path / "sweep", jobs=1, quiet=True)
    assert status.done == 2
    assert "SIGKILL" in status.failed["hidden=96"]


def test_a_folder_of_another_workload_is_refused(tmp_path):
    planned(tmp_path)
    with pytest.raises(WorkloadError, match="holds a sweep of gru"):
        Sweep("lstm", {"hidden": [64]}).prepare(SweepFolder(tmp_path / "sweep"))


def test_a_change_of_the_code_is_seen(tmp_path, monkeypatch):
    folder = planned(tmp_path)
    monkeypatch.setattr("pysim.sweep.point.results_digest", lambda: "another core")
    with pytest.raises(ConfigError, match="code has changed"):
        folder.point(folder.plan.files()[0])


def test_a_gpu_of_a_file_is_copied(tmp_path):
    file = tmp_path / "half.toml"
    file.write_text('name = "half"\nbase = "titan_v"\n[gpu]\nsms = 40\n')
    folder = planned(tmp_path, {"hidden": [64]}, gpu=str(file))
    file.write_text("damaged")
    assert not work(folder, Shard(), threads=1)
    frame = stats.load(folder.path)
    assert set(frame["gpu"]) == {"half"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "damaged"),
        ("[]", "damaged"),
        ('{"format": 99}', "format 99"),
        ("[" * 100_000, "damaged"),
        ('{"format": 1, "places": 3}', "damaged"),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path, text, words):
    folder = planned(tmp_path)
    (folder.path / "sweep.json").write_text(text)
    with pytest.raises(WorkloadError, match=words):
        SweepFolder(folder.path).status()
    status, _, err = ran("status", folder.path)
    assert status == 2
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "a" * 24 + "/", "0" * 23])
def test_a_key_never_leaves_the_folder(tmp_path, name):
    folder = planned(tmp_path)
    file = folder.path / "sweep.json"
    old = folder.plan.files()[0]
    file.write_text(file.read_text().replace(old, name))
    with pytest.raises(WorkloadError, match="no key of a point"):
        SweepFolder(folder.path).status()


@pytest.mark.parametrize("gpu", ["../../gpu.toml", "/tmp/gpu.toml"])
def test_a_gpu_never_leaves_the_folder(tmp_path, gpu):
    folder = planned(tmp_path)
    file = folder.path / "sweep.json"
    file.write_text(file.read_text().replace('"titan_v"', json.dumps(gpu)))
    again = SweepFolder(folder.path)
    with pytest.raises(ConfigError, match="outside the folder"):
        again.point(again.plan.files()[0])


def test_a_folder_without_a_sweep(tmp_path):
    status, _, err = ran("status", tmp_path)
    assert (status, err.strip()) == (2, f"error: {tmp_path} holds no sweep: there is no sweep.json")
    with pytest.raises(stats.StoreError, match="no sweep"):
        stats.load(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where nobody may")
def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="Permission denied"):
        planned(tmp_path)


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "sweep").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        planned(tmp_path)


def test_where_no_result_can_be_written_a_worker_fails_each_point_with_one_line(tmp_path):
    folder = planned(tmp_path)
    Path(folder.path / "points").rmdir()
    (folder.path / "points").write_text("")
    status, out, err = ran("work", folder.path)
    assert status == 1
    assert "Traceback" not in err
    assert out.count("Not a directory") == 4


def test_a_copy_without_empty_folders_works(tmp_path):
    folder = planned(tmp_path)
    for name in ("locks", "failed", "logs", "points", "gpus"):
        (folder.path / name).rmdir()
    assert ran("work", folder.path)[0] == 0
    assert folder.status().done == 4


def test_workers_that_die_at_start_end_the_sweep(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif '--child' in sys.orig_argv: os.kill(os.getpid(), 11)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WorkloadError, match="die before they begin a point: was killed by SIGSEGV"):
        sweep().run(tmp_path / "sweep", jobs=1, quiet=True)
