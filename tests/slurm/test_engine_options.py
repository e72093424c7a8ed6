"""The options of ``pysim sweep`` that choose an engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pysim.sweep import SweepFolder
from pysim.sweep.engines import launching

GRID = ("gru", "--timesteps", "1", "--layers", "1", "--batch", "4", "--grid", "hidden=64,96")


def _pysim(*words, path="/usr/bin:/bin"):
    """Run the command where there is no Slurm."""
    return subprocess.run(
        [sys.executable, "-m", "pysim", *words],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(launching.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def empty(tmp_path):
    """Return a folder for PATH with no program in it."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return str(folder)


def test_a_dry_run_prints_the_script_and_needs_no_slurm(tmp_path, empty):
    out = tmp_path / "a b"
    options = ("--engine", "slurm", "--time", "2:00:00", "--throttle", "1", "--partition", "long")
    done = _pysim("sweep", *GRID, "--out", str(out), *options, "--sbatch=--qos=low", "--dry-run", path=empty)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    for line in (
        "--array=0-1%1",
        "--time=2:00:00",
        "--partition=long",
        "--qos=low",
        f'--output="{out}/logs/slurm-%A_%a.log"',
    ):
        assert f"#SBATCH {line}" in lines
    # the script is all that a batch system needs: run here as task 1, it simulates the second point
    task = {**os.environ, "SLURM_ARRAY_TASK_ID": "1"}
    subprocess.run(["sh", "-c", done.stdout], env=task, cwd=empty, check=True)
    folder = SweepFolder(out)
    assert [folder.is_done(key) for key in folder.plan.files()] == [False, True]


def test_what_cannot_be_submitted_is_one_line(tmp_path, empty):
    done = _pysim("sweep", *GRID, "--out", str(tmp_path / "x"), "--engine", "slurm", path=empty)
    assert done.returncode == 1
    assert (
        done.stderr
        == "error: there is no sbatch here: submit from a login node; --dry-run prints the script\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "30"), "--time goes with --engine slurm or submitit"),
        (("--engine", "dask", "--throttle", "3"), "--throttle goes with --engine slurm or submitit"),
        (("--engine", "slurm", "--scheduler", "tcp://x:1"), "--scheduler goes with --engine dask"),
        (("--engine", "slurm", "--jobs", "2"), "--jobs goes with --engine local"),
        (("--sbatch=--qos=low",), "--sbatch goes with --engine slurm or submitit"),
        (("--engine", "slurm", "--time", "soon"), "time = soon"),
        (
            ("--engine", "slurm", "--tasks", "2000", "--dry-run"),
            "tasks = 2,000: MaxArraySize of Slurm is 1,001 here",
        ),
    ],
)
def test_an_option_of_another_engine_is_refused(options, message, tmp_path, empty):
    done = _pysim("sweep", *GRID, "--out", str(tmp_path / "x"), *options, path=empty)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(Path(tmp_path).glob("x/points/*"))
