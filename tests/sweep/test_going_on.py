"""A point that was stopped goes on from its checkpoint to the same bytes."""

import os
import signal
import time

import pytest

from pysim.sweep import Sweep, SweepFolder
from pysim.sweep.worker import Shard, work
from tests.support.thin import thin

from .common import collected, pysim, ran

LONG = ("gru:layers=2,timesteps=40,batch=16", {"hidden": [256]})


def with_a_checkpoint(process, folder, key):
    """Ask a worker for checkpoints until there is one: the point is under way then."""
    deadline = time.monotonic() + 60
    lock = folder.path / "locks" / key
    while time.monotonic() < deadline and process.poll() is None:
        if list(folder.checkpoints(key).glob("*.ckpt")):
            return
        if lock.exists() and lock.read_text().strip() == str(process.pid):
            process.send_signal(signal.SIGUSR1)
        time.sleep(0.1)
    raise AssertionError(process.communicate())


def settled(file):
    """Return when a checkpoint was written last, once no request of before is open any more.

    A signal that comes while a checkpoint is written needs no second one.
    """
    last = 0
    while (now := file.stat().st_mtime_ns) != last:
        last = now
        time.sleep(0.3)  # a request is open for a slice of 0.1 s
    return now


@pytest.mark.parametrize("number", thin([signal.SIGTERM, signal.SIGUSR1, signal.SIGKILL], 3))
def test_a_point_goes_on_from_its_checkpoint(tmp_path, number):
    """SIGTERM keeps how far the point has come, SIGUSR1 too and goes on; SIGKILL leaves what was kept."""
    folder, alone = SweepFolder(tmp_path / "a"), SweepFolder(tmp_path / "b")
    for each in (folder, alone):
        Sweep(*LONG, schemes="tb_static", tables=("runs", "tbs")).prepare(each)
    (key,) = folder.plan.files()
    worker = pysim("work", folder.path)
    with_a_checkpoint(worker, folder, key)
    worker.send_signal(number)
    _, err = worker.communicate(timeout=60)
    assert worker.returncode == {signal.SIGTERM: 143, signal.SIGUSR1: 0}.get(number, -number), err
    kept = list(folder.checkpoints(key).glob("*.ckpt"))
    assert len(kept) == (number != signal.SIGUSR1)
    assert folder.is_done(key) == (number == signal.SIGUSR1)
    assert ran("work", folder.path)[0] == 0
    assert not folder.checkpoints(key).exists()
    work(alone, Shard(), threads=1)
    assert collected(folder) == collected(alone)


def test_a_damaged_checkpoint_is_reported_and_the_point_begins_afresh(tmp_path):
    folder = SweepFolder(tmp_path / "a")
    Sweep(*LONG, schemes="stream", tables=("runs",)).prepare(folder)
    (key,) = folder.plan.files()
    worker = pysim("work", folder.path)
    with_a_checkpoint(worker, folder, key)
    worker.terminate()
    worker.communicate(timeout=120)
    (file,) = folder.checkpoints(key).glob("*.ckpt")
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    status, _, err = ran("work", folder.path)
    assert status == 0
    assert err.startswith(f"hidden=256 begins afresh: {file}")
    assert folder.is_done(key)


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.deep), signal.SIGTERM])
def test_stopping_a_sweep_keeps_how_far_its_points_have_come(tmp_path, number):
    """A terminal sends Ctrl-C to the sweep and its workers at once; each point is kept once, whole."""
    words = [
        "sweep",
        "gru:layers=1,timesteps=40,batch=32",
        "--grid",
        "hidden=1024",
        "--schemes",
        "stream",
        "--tables",
        "runs",
        "--jobs",
        "1",
    ]
    process = pysim(*words, "--out", tmp_path / "a", start_new_session=True)
    folder = SweepFolder(tmp_path / "a")
    deadline = time.monotonic() + 60
    kept = []
    while not kept and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
        for lock in (folder.path / "locks").glob("*"):
            if lock.read_text().strip():
                os.kill(int(lock.read_text()), signal.SIGUSR1)
        kept = list((folder.path / "checkpoints").glob("*/*.ckpt"))
    before = settled(kept[0])
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 128 + number, err
    (file,) = (folder.path / "checkpoints").glob("*/*.ckpt")
    assert file.stat().st_mtime_ns > before
    assert ran(*words, "--out", tmp_path / "a")[0] == 0
    assert folder.status().done == 1
