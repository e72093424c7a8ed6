"""A sweep on a real Slurm, undisturbed and cancelled. The longer disturbances are in test_disturbances.py."""

import json

import pytest

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
