"""A sweep on a file system that becomes read-only, fills up or vanishes: one line, and nothing is lost."""

import os
import subprocess
from contextlib import suppress

import pytest

from pysim import stats
from pysim.sweep import Sweep, SweepFolder

from .common import collected, pysim, ran

WORKLOAD, GRID = "gru:layers=1,timesteps=2,batch=8", {"hidden": [32, 64, 96]}
WORDS = ("sweep", WORKLOAD, "--grid", "hidden=32,64,96", "--schemes", "stream", "--tables", "runs", "--quiet")


def mount(*words):
    return subprocess.run(["mount", *map(str, words)], capture_output=True, check=False).returncode == 0


def fill(path):
    """Write until no byte fits."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@pytest.fixture
def disk(tmp_path):
    """A file system of 4 MiB of its own."""
    path = tmp_path / "disk"
    path.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=4m", "none", path):
        pytest.skip("a file system can only be mounted by root")
    yield path
    subprocess.run(["umount", "-l", path], capture_output=True, check=False)


def sweep():
    return Sweep(WORKLOAD, GRID, schemes="stream", tables=("runs",))


def test_a_read_only_file_system_is_one_line(disk):
    folder = SweepFolder(disk / "sweep")
    sweep().prepare(folder)
    assert ran("work", folder.path, "--shard", "0/3")[0] == 0
    assert mount("-o", "remount,ro", disk)
    for words in (("work", folder.path), (*WORDS, "--out", folder.path)):
        status, _, err = ran(*words)
        assert status == 1
        assert "Read-only file system" in err
        assert "Traceback" not in err
    assert folder.status().done == 1  # what is done can be read
    assert len(stats.SweepResults(folder.path).parts) == 1
    assert mount("-o", "remount,rw", disk)
    assert ran(*WORDS, "--out", folder.path)[0] == 0


def test_a_full_file_system_costs_the_points_that_do_not_fit(disk, tmp_path):
    folder = SweepFolder(disk / "sweep")
    sweep().prepare(folder)
    filler = disk / "filler"
    fill(filler)
    status, _, err = ran("work", folder.path)
    assert status == 1
    assert "Traceback" not in err
    assert list((folder.path / "points").iterdir()) == []
    filler.unlink()
    assert ran("work", folder.path)[0] == 0
    sweep().run(tmp_path / "other", quiet=True)
    assert collected(folder) == collected(SweepFolder(tmp_path / "other"))


def test_a_file_system_that_vanishes_ends_the_worker_with_one_line(disk):
    folder = SweepFolder(disk / "sweep")
    Sweep("gru:layers=2,timesteps=100", GRID, schemes="stream", tables=("runs",)).prepare(folder)
    worker = pysim("work", folder.path)
    while not any((folder.path / "locks").iterdir()):
        assert worker.poll() is None
    subprocess.run(["umount", "-l", disk], check=True)
    _, err = worker.communicate(timeout=120)
    assert worker.returncode == 1
    assert "Traceback" not in err
    assert "No such file or directory" in err
