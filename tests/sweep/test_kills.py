"""A sweep that is killed at any moment: no damaged file under a final name, and the same bytes at the end."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from pysim import stats
from pysim.sweep import Sweep, SweepFolder
from tests.support.once import once

GRID = {"hidden": [32, 64, 96, 128], "timesteps": [2, 4]}
FEW, MANY = 3, 100  # moments: of make test, of make nightly


def sweep():
    return Sweep("gru:layers=1,batch=8", GRID, schemes="stream,graph", tables=("runs", "kernels"))


def started(path):
    words = ["sweep", "gru:layers=1,batch=8", "--schemes", "stream,graph", "--tables", "runs,kernels"]
    words += ["--grid", *(f"{key}={','.join(map(str, values))}" for key, values in GRID.items())]
    words += ["--out", str(path), "--jobs", "2", "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "pysim", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def collected(folder):
    out = folder.path.with_suffix(".h5")
    stats.collect(folder.path, out, force=True)
    return out.read_bytes()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):

    def make(made):
        begin = time.monotonic()
        sweep().run(made / "sweep", jobs=2, quiet=True)
        (made / "seconds").write_text(str(time.monotonic() - begin))
        collected(SweepFolder(made / "sweep"))

    made = once(tmp_path_factory, "undisturbed-sweep", make)
    return (made / "sweep.h5").read_bytes(), float((made / "seconds").read_text())


@pytest.mark.parametrize("moments", [FEW, pytest.param(MANY, marks=pytest.mark.deep)])
def test_killed_at_random_moments(tmp_path, undisturbed, moments):
    whole, seconds = undisturbed
    draw = random.Random(moments)
    folder = SweepFolder(tmp_path / "sweep")
    killed = 0
    for number in range(moments):
        process = started(folder.path)
        time.sleep(draw.uniform(0, 1.2 * seconds))
        if process.poll() is None:
            killed += 1
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for path in (folder.path / "points").glob("*.h5") if folder.path.exists() else ():
            stats.Results(path).verify()
        if (folder.path / "sweep.json").exists():
            deadline = time.monotonic() + 30  # workers die a moment after what started them
            while SweepFolder(folder.path).status().running and time.monotonic() < deadline:
                time.sleep(0.05)
            assert SweepFolder(folder.path).status().running == 0
            if SweepFolder(folder.path).status().done == 8:
                assert collected(folder) == whole
                folder = SweepFolder(tmp_path / f"sweep{number}")
    assert killed > moments // 3
    sweep().run(folder.path, jobs=2, quiet=True)
    assert collected(folder) == whole


def test_a_flipped_byte_is_refused(tmp_path):
    folder = SweepFolder(tmp_path / "sweep")
    sweep().run(folder.path, quiet=True)
    file = folder.result(folder.plan.files()[3])
    rows = stats.Results(file).array("runs")
    at = file.read_bytes().find(rows["time_us"].tobytes()[:8])
    data = bytearray(file.read_bytes())
    draw = random.Random(1)
    refused = 0
    for _ in range(40):
        where = draw.randrange(len(data)) if at < 0 or draw.random() < 0.9 else at
        file.write_bytes(bytes([*data[:where], data[where] ^ 1 << draw.randrange(8), *data[where + 1 :]]))
        try:
            stats.collect(folder.path, tmp_path / "all.h5", force=True)
        except stats.StoreError:
            refused += 1
        else:  # what is flipped holds no table: a gap, the padding of an attribute
            assert stats.Results(file).array("runs").tobytes() == rows.tobytes()
    assert refused > 5


def test_a_result_on_a_full_disk_is_no_result(tmp_path):
    """A limit on the size of files stands for a disk that is full: nothing is left under a final name."""
    folder = SweepFolder(tmp_path / "sweep")
    sweep().prepare(folder)
    words = f"ulimit -f 8; exec {sys.executable} -m pysim work {folder.path}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stdout.count("cannot write") == len(folder.plan.places)
    assert list((folder.path / "points").iterdir()) == []
    status = folder.status()
    assert len(status.failed) == status.total
    sweep().run(folder.path, quiet=True)
    assert folder.status().done == status.total


def test_a_clock_that_steps_back_changes_nothing(tmp_path, undisturbed, monkeypatch):
    """No decision of a sweep follows from the time of day."""
    folder = SweepFolder(tmp_path / "sweep")
    sweep().prepare(folder)
    first = folder.plan.files()[0]
    ticks = iter(range(10**9, 0, -1000))
    monkeypatch.setattr(time, "time", lambda: float(next(ticks)))
    from pysim.sweep.worker import Shard, work

    work(folder, Shard(0, 8), threads=1)
    os.utime(folder.result(first), (2e9, 2e9))
    assert folder.is_done(first)
    work(folder, Shard(), threads=1)
    assert collected(folder) == undisturbed[0]
