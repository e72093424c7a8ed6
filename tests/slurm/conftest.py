"""A private Slurm for the tests of this folder, and a sweep that has run undisturbed."""

import shutil
import subprocess
import sys

import pytest

from pysim.sweep.engines.launching import ROOT
from tests.slurm.cluster import Cluster, missing


@pytest.fixture(scope="session")
def cluster():
    """Return a running Slurm; skip where it is not installed. Its commands find it through the environment."""
    if absent := missing():
        pytest.skip(f"no {', '.join(absent)}: apt-get install slurm-wlm munge")
    with pytest.MonkeyPatch.context() as patch:
        made = Cluster(cpus=4)
        try:
            for name in ("SLURM_CONF", "PATH"):
                patch.setenv(name, made.env[name])
            yield made
        finally:
            made.stop()


def pysim(*words, check=True):
    """Run the command and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pysim", *map(str, words)],
        cwd=ROOT, env=None, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if check and done.returncode:
        raise AssertionError(
            f"pysim {' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done


# a point takes a tenth of a second or a second: the last ones are there to be disturbed
SWEEP = ("gru", "--layers", "1", "--schemes", "stream,graph,tb_static", "--gpu", "titan_v")
GRID = ("--grid", "timesteps=2,20", "hidden=128,256,512", "batch=8,32")
POINTS = 12


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Return the bytes of the collected file of a sweep that ran here, undisturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    pysim("sweep", *SWEEP, *GRID, "--out", folder / "sweep", "--quiet")
    pysim("collect", folder / "sweep", "-o", folder / "all.h5")
    made = (folder / "all.h5").read_bytes()
    shutil.rmtree(folder)
    return made
