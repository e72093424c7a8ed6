"""What tests of sweeps share."""

import subprocess
import sys

import stats


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
