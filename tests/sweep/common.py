"""What tests of sweeps share."""

import subprocess
import sys

from pysim import stats
from pysim.sweep import Sweep, SweepFolder

SMALL = "gru:layers=1,timesteps=2,batch=8"
GRID = {"hidden": [64, 96], "split": [0, 1]}


def sweep(grid=None, schemes="stream,graph", **more):
    return Sweep(SMALL, GRID if grid is None else grid, schemes=schemes, tables=("runs", "kernels"), **more)


def planned(tmp_path, *given, **more):
    folder = SweepFolder(tmp_path / "sweep")
    sweep(*given, **more).prepare(folder)
    return folder


def collected(folder, name="all.h5"):
    stats.collect(folder.path, folder.path / name, force=True)
    return (folder.path / name).read_bytes()


def pysim(*words, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "pysim", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def ran(*words, **more):
    process = pysim(*words, **more)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err
