"""A private Slurm for the tests of this folder, and a sweep that has run undisturbed."""

import pytest

from tests.slurm.batches import GRID, SWEEP, collected, pysim
from tests.slurm.cluster import Cluster, missing


@pytest.fixture(scope="session")
def running_slurm():
    """Return a running Slurm; skip where it is not installed."""
    if absent := missing():
        pytest.skip(f"no {', '.join(absent)}: apt-get install slurm-wlm munge (see make slurm)")
    made = Cluster()
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def cluster(running_slurm, monkeypatch):
    """Return a running Slurm that all commands of the test find."""
    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, running_slurm.env[name])
    yield running_slurm
    running_slurm.clear()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Return the bytes of the collected file of a sweep that ran on this machine, undisturbed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "sweep"
    pysim("sweep", *SWEEP, *GRID, "--out", folder, "--quiet")
    return collected(folder)
