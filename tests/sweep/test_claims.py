"""Who may simulate a point: one process at a time, whoever looks on."""

import os
import subprocess
import sys
import time

import pytest

from pysim.sweep import SweepFolder

KEY = "a" * 24


@pytest.fixture
def folder(tmp_path):
    for name in ("locks", "points"):
        (tmp_path / name).mkdir()
    (tmp_path / "sweep.json").touch()
    return SweepFolder(tmp_path)


def test_a_look_at_the_status_takes_no_point_from_a_worker(folder):
    """A worker that skipped a point because of it would leave it missing."""
    (folder.path / "locks" / KEY).touch()
    code = f"""
import sys
from pysim.sweep import SweepFolder
folder = SweepFolder({str(folder.path)!r})
print("looking", flush=True)
while True:
    folder.is_running({KEY!r})
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    looker = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert looker.stdout.readline() == "looking\n"
        taken = 0
        for _ in range(300):
            with folder.claimed(KEY) as mine:
                taken += mine
            time.sleep(0.001)
    finally:
        looker.kill()
        looker.wait()
        looker.stdout.close()
    assert taken == 300


def test_a_point_that_another_process_holds_is_not_claimed(folder):
    with folder.claimed(KEY) as mine:
        assert mine
        assert folder.is_running(KEY)
        with SweepFolder(folder.path).claimed(KEY) as second:
            assert not second
    assert not folder.is_running(KEY)
    with folder.claimed(KEY) as mine:
        assert mine


def test_a_claim_removes_what_a_killed_process_has_begun(folder):
    points = folder.path / "points"
    left = points / f".{KEY}.h5.4711.0123abcd.tmp"
    other = points / f".{'b' * 24}.h5.4711.0123abcd.tmp"
    for path in (left, other):
        path.touch()
    with folder.claimed(KEY):
        assert not left.exists()
        assert other.exists()
