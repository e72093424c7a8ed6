"""What a batch system and its machines do to a sweep. It runs again each time, and its bytes are the same."""

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pysim.sweep import SweepFolder
from pysim.sweep.engines import slurm
from pysim.sweep.engines.launching import Shares
from tests.slurm.batches import (
    GRID,
    POINTS,
    SWEEP,
    collected,
    finished,
    hang,
    log,
    pysim,
    submit,
    wait_until,
    worker,
)

pytestmark = [pytest.mark.slurm, pytest.mark.deep]

# writes down when each signal comes; stays until it is killed
LISTENER = """
import os, signal, sys, time
start, said = time.monotonic(), open(sys.argv[1], "a", buffering=1)
def heard(number, _frame):
    print(signal.Signals(number).name, f"{time.monotonic() - start:.1f}", file=said)
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGCONT):
    signal.signal(number, heard)
print("pid", os.getpid(), file=said)
while True:
    time.sleep(1)
"""


def _status(folder):
    return json.loads(pysim("status", folder, "--json").stdout)


def _run_again(cluster, folder, before, undisturbed):
    """Submit what is missing; what was done is not touched, and the whole is as if undisturbed."""
    cluster.wait(submit(folder, "--tasks", "3"))
    assert before.items() <= finished(folder).items()
    assert _status(folder)["done"] == POINTS
    assert collected(folder) == undisturbed


def test_signals_reach_python_in_time(cluster, tmp_path, monkeypatch):
    """USR1 comes before the limit and ends nothing; TERM comes at the limit, KILL after KillWait."""
    said = tmp_path / "said"
    command = [sys.executable, "-c", LISTENER, str(said)]
    monkeypatch.setattr(slurm, "worker_command", lambda *_: command)
    (tmp_path / "logs").mkdir()
    text = slurm.render(tmp_path, Shares(1, (0,), 1), slurm.Slurm(time="1", signal_s=20))
    job = cluster.run("sbatch", "--parsable", text=text).strip()
    states = cluster.wait(job, 180)
    assert set(states.values()) == {"TIMEOUT"}
    lines = dict(line.split() for line in said.read_text().splitlines())
    # Slurm may be a minute early
    assert float(lines["SIGUSR1"]) <= 45
    assert 45 <= float(lines["SIGTERM"]) <= 120
    assert not Path("/proc", lines["pid"]).exists()


def test_a_task_that_hits_the_time_limit(cluster, tmp_path, undisturbed):
    """A worker that hangs, for instance in a file system, ends at the limit."""
    folder = tmp_path / "sweep"
    job = submit(folder, "--tasks", "1", "--time", "1", "--signal", "60")  # USR1 at once: it ends nothing
    wait_until(lambda: len(finished(folder)) >= 2)
    process = wait_until(lambda: worker(folder))
    before = hang(process, lambda: finished(folder))
    assert len(before) < POINTS
    hang(process, lambda: not cluster.active(job))
    assert set(cluster.states(job).values()) == {"TIMEOUT"}
    assert "DUE TO TIME LIMIT" in log(folder)
    assert _status(folder)["running"] == 0
    assert finished(folder) == before
    _run_again(cluster, folder, finished(folder), undisturbed)


def test_a_task_that_is_requeued(cluster, tmp_path, undisturbed):
    folder = tmp_path / "sweep"
    job = submit(folder, "--tasks", "1")
    wait_until(lambda: len(finished(folder)) >= 2)
    before = finished(folder)
    cluster.run("scontrol", "requeue", f"{job}_0")
    wait_until(lambda: cluster.states(job).get(0) == "PENDING")
    assert len(before) <= len(finished(folder)) < POINTS
    # Slurm waits two minutes, so that no late message of the first run ends the second; five seconds do here
    cluster.run("scontrol", "update", f"JobId={job}_0", "StartTime=now+5")
    assert set(cluster.wait(job, 180).values()) == {"COMPLETED"}
    assert "Restarts=1" in cluster.run("scontrol", "show", "job", "-o", f"{job}_0")
    assert "terminated" in log(folder)  # the log of the first run is kept
    _run_again_nothing(folder)
    assert before.items() <= finished(folder).items()
    assert collected(folder) == undisturbed


def _run_again_nothing(folder):
    jobs = len(list((folder / "jobs").iterdir()))
    pysim("sweep", *SWEEP, *GRID, "--out", folder, "--engine", "slurm")
    assert len(list((folder / "jobs").iterdir())) == jobs


def _stopped_while_it_writes(folder):
    """Stop a worker at a moment when its result has a temporary name; return the process and that name."""

    def caught():
        parts = [e.name for e in os.scandir(folder / "points") if not re.fullmatch(r"[0-9a-f]+\.h5", e.name)]
        if parts and (process := worker(folder)):
            os.kill(process, signal.SIGSTOP)
            time.sleep(0.01)
            if (folder / "points" / parts[0]).exists():
                return process, parts[0]
            os.kill(process, signal.SIGCONT)
        return None

    return wait_until(caught, pause=0)


def test_a_task_that_is_killed_while_it_writes(cluster, tmp_path, undisturbed):
    folder = tmp_path / "sweep"
    pysim("sweep", *SWEEP, *GRID, "--out", folder, "--dry-run")
    job = submit(folder, "--tasks", "1")
    process, part = _stopped_while_it_writes(folder)
    before = finished(folder)
    os.kill(process, signal.SIGKILL)
    assert set(cluster.wait(job).values()) <= {"FAILED", "NODE_FAIL"}
    assert finished(folder) == before
    assert (folder / "points" / part).exists()
    status = _status(folder)
    assert (status["done"], status["running"], status["missing"]) == (len(before), 0, POINTS - len(before))
    _run_again(cluster, folder, before, undisturbed)


@pytest.fixture
def small_disk(tmp_path):
    """Return a folder of a file system of two megabytes; skip where this user cannot mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "pysim", str(folder)], capture_output=True
    )
    if done.returncode:
        pytest.skip("only root can mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(path):
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk(cluster, small_disk, undisturbed):
    folder = small_disk / "sweep"
    job = submit(folder, "--tasks", "2", "--throttle", "1")
    wait_until(lambda: len(finished(folder)) >= 2)
    _fill(small_disk / "filler")
    before = finished(folder)
    assert set(cluster.wait(job).values()) == {"FAILED"}
    status = _status(folder)
    assert 2 <= status["done"] < POINTS
    assert status["done"] + len(status["failed"]) + status["missing"] == POINTS
    (small_disk / "filler").unlink()
    _run_again(cluster, folder, before, undisturbed)


def test_a_limit_on_the_size_of_files(cluster, tmp_path, undisturbed):
    """A quota as any user can have it: Slurm passes the limits of the submitting shell on to its tasks."""
    folder = tmp_path / "sweep"
    pysim("sweep", *SWEEP, *GRID, "--out", folder, "--dry-run")
    plan = (folder / "sweep.json").stat().st_size

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan + 1, resource.RLIM_INFINITY))

    job = submit(folder, "--tasks", "2", preexec_fn=limited)
    assert set(cluster.wait(job).values()) == {"FAILED"}
    status = _status(folder)
    assert status["done"] == len(finished(folder))
    assert status["failed"]
    assert all("cannot write" in reason for reason in status["failed"].values())
    _run_again(cluster, folder, finished(folder), undisturbed)


def test_two_arrays_at_once(cluster, tmp_path, undisturbed):
    """A second submission while the first one runs does nothing twice."""
    folder = tmp_path / "sweep"
    first = submit(folder, "--tasks", "2")
    wait_until(lambda: worker(folder))
    second = submit(folder, "--tasks", "2")
    cluster.wait(first)
    cluster.wait(second)
    if _status(folder)["missing"]:  # a point that was the other's when this one came by
        cluster.wait(submit(folder, "--tasks", "1"))
    assert collected(folder) == undisturbed


def test_ten_thousand_points_are_one_array(cluster, tmp_path):
    folder = tmp_path / "sweep"
    grid = (
        "--grid",
        f"hidden={','.join(str(32 * n) for n in range(1, 101))}",
        f"batch={','.join(map(str, range(1, 101)))}",
    )
    start = time.monotonic()
    pysim(
        "sweep",
        "gru",
        "--layers",
        "1",
        "--timesteps",
        "1",
        "--schemes",
        "stream",
        *grid,
        "--out",
        folder,
        "--dry-run",
    )
    planned = time.monotonic()
    made = slurm.Slurm(throttle=50, directives=("--hold",)).launch(SweepFolder(folder))
    submitted = time.monotonic()
    print(f"10,000 points: planned in {planned - start:.1f} s, submitted in {submitted - planned:.2f} s")
    assert made.tasks == 10_000
    shown = cluster.run("squeue", "-h", "-o", "%i %T", "-j", made.job).split()
    assert re.fullmatch(rf"{made.job}_\[0-9999%50\]|{made.job}_\[0-\d+,\.\.\.%50\]", shown[0]), shown
    cluster.run("scancel", made.job)
    assert submitted - planned < 10


def test_a_path_with_anything_in_it(cluster, tmp_path):
    """What Slurm makes of the quoted log, for each character that has a meaning to it or to a shell."""
    for name in (
        "a b",
        "it's",
        'q"d',
        "50%A",
        "$HOME",
        "`id`",
        "a;b",
        "*",
        "#x",
        "  lead",
        "é",
        "a=b",
        "&",
        "~",
    ):
        folder = tmp_path / name
        (folder / "logs").mkdir(parents=True)
        text = slurm.render(folder, Shares(1, (0,), 1), slurm.Slurm())
        text = re.sub(r"(?m)^exec .*", f"echo {shlex.quote(name)}", text)
        cluster.wait(cluster.run("sbatch", "--parsable", text=text).strip())
        (path,) = (folder / "logs").iterdir()
        assert path.read_text() == f"{name}\n"
