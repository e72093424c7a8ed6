"""A sweep on a real Slurm, undisturbed and cancelled. The longer disturbances are in test_disturbances.py."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pysim.sweep.engines.launching import ROOT
from tests.slurm.batches import GRID, POINTS, SWEEP, collected, finished, log, pysim, submit, wait_until

pytestmark = pytest.mark.slurm


def test_an_array_gives_the_bytes_of_a_local_run(cluster, tmp_path, undisturbed):
    folder = tmp_path / 'it\'s a "sweep" of 50%A'
    job = submit(folder, "--tasks", "4")
    assert set(cluster.wait(job).values()) == {"COMPLETED"}
    assert json.loads(pysim("status", folder, "--json").stdout)["done"] == POINTS
    assert collected(folder) == undisturbed
    assert json.loads((folder / "jobs" / f"{job}.json").read_text())["tasks"] == 4
    assert len(list((folder / "logs").glob(f"slurm-{job}_?.log"))) == 4
    # nothing is missing: nothing is submitted
    again = pysim("sweep", *SWEEP, *GRID, "--out", folder, "--engine", "slurm")
    assert "slurm" not in again.stdout
    assert len(list((folder / "jobs").iterdir())) == 1


@pytest.mark.deep
def test_a_cancelled_array_goes_on_where_it_was(cluster, tmp_path, undisturbed):
    folder = tmp_path / "sweep"
    job = submit(folder, "--throttle", "1", "--tasks", "3")
    wait_until(lambda: len(finished(folder)) >= 2)
    cluster.run("scancel", job)
    assert "CANCELLED" in cluster.wait(job).values()
    before = finished(folder)
    assert 2 <= len(before) < POINTS
    status = json.loads(pysim("status", folder, "--json").stdout)
    assert (status["done"], status["missing"], status["running"]) == (len(before), POINTS - len(before), 0)
    assert not status["failed"]
    cluster.wait(submit(folder, "--tasks", "3"))
    assert before.items() <= finished(folder).items()
    assert collected(folder) == undisturbed
    assert "terminated" in log(folder)


@pytest.mark.deep
def test_nothing_is_left_of_a_slurm_whose_pytest_is_killed(cluster, tmp_path):
    """Neither daemons, nor a running job, nor its folder."""
    said = tmp_path / "said"
    code = f"""
import pathlib, time
from tests.slurm.cluster import Cluster
made = Cluster()
made.run("sbatch", "-o", "/dev/null", text="#!/bin/sh\\necho $$ > {said}.job\\nsleep 600\\n")
while not pathlib.Path("{said}.job").exists():
    time.sleep(0.05)
pathlib.Path("{said}").write_text(str(made.folder))
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    folder = Path(wait_until(lambda: said.exists() and said.read_text()))
    job = tmp_path.joinpath("said.job").read_text().strip()
    assert folder.is_dir()
    assert _processes_of(folder)
    process.kill()
    process.wait()
    wait_until(lambda: not folder.exists() and not _processes_of(folder))
    assert not Path("/proc", job).exists()
    assert cluster.run("sinfo", "-h", "-o", "%T").strip() == "idle"  # the other one goes on


def _processes_of(folder):
    """Return the processes whose command names the folder, or whose environment names its configuration."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            texts = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if any(str(folder).encode() in text for text in texts):
            found.append(entry.name)
    return found
