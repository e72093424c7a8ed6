"""submitit and dask-jobqueue on a real Slurm, where they are installed."""

from pathlib import Path

import pytest

from pysim.sweep import SweepFolder
from pysim.sweep.engines.dask import Dask
from tests.slurm.batches import (
    GRID,
    POINTS,
    SWEEP,
    collected,
    finished,
    hang,
    pysim,
    submit,
    wait_until,
    worker,
)

pytestmark = [pytest.mark.slurm, pytest.mark.deep]


@pytest.fixture
def submitit():
    """Skip where submitit is not installed."""
    return pytest.importorskip("submitit")


def test_an_array_of_submitit(cluster, submitit, tmp_path, undisturbed):
    folder = tmp_path / "a sweep"
    job = submit(folder, "--tasks", "4", "--time", "10", engine="submitit")
    assert set(cluster.wait(job).values()) == {"COMPLETED"}
    assert collected(folder) == undisturbed


def test_submitit_requeues_a_task_before_its_limit(cluster, submitit, tmp_path, undisturbed):
    """At USR2 submitit stops the worker and requeues the task, which then skips what is done."""
    folder = tmp_path / "sweep"
    job = submit(folder, "--tasks", "1", "--time", "1", "--signal", "60", engine="submitit")
    wait_until(lambda: len(finished(folder)) >= 2)
    process = wait_until(lambda: worker(folder))
    before = hang(process, lambda: finished(folder))
    assert len(before) < POINTS

    hang(process, lambda: not Path("/proc", str(process)).exists(), 60)  # KillWait ends it at last
    shown = wait_until(lambda: _pending(cluster, job))
    assert "Restarts=1" in shown
    # Slurm waits two minutes, so that no late message of the first run ends the second; five seconds do here
    cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+5")
    assert cluster.end(job) == "COMPLETED"
    assert before.items() <= finished(folder).items()
    assert collected(folder) == undisturbed


def _pending(cluster, job):
    """Return what Slurm shows of a job that waits; None while it does not."""
    shown = cluster.run("scontrol", "show", "job", "-o", job)
    return shown if "JobState=PENDING" in shown else None


@pytest.mark.filterwarnings("default")  # those of Dask are its own
def test_workers_of_dask_jobqueue(cluster, tmp_path, undisturbed):
    distributed = pytest.importorskip("distributed")
    jobqueue = pytest.importorskip("dask_jobqueue")
    folder = tmp_path / "sweep"
    pysim("sweep", *SWEEP, *GRID, "--out", folder, "--dry-run")
    with (
        jobqueue.SLURMCluster(
            cores=1, memory="500MB", walltime="00:10:00", interface="lo", log_directory=str(tmp_path),
            job_extra_directives=["--mem=0"], scheduler_options={"dashboard_address": None},
        ) as made,
        distributed.Client(made) as client,
    ):  # fmt: skip
        made.scale(2)
        launched = Dask(client=client, tasks=4).launch(SweepFolder(folder))
        assert launched.tasks == 4
    assert collected(folder) == undisturbed
