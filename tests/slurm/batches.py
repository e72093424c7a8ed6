"""The sweep that the tests disturb, and how they look at it from outside."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from pysim.sweep import SweepFolder
from pysim.sweep.engines.launching import ROOT

# a point takes some hundredths of a second or about one: the last ones are there to be disturbed
SWEEP = ("gru", "--layers", "1", "--schemes", "stream,graph", "--gpu", "titan_v")
GRID = ("--grid", "timesteps=2,20", "hidden=128,256,512", "batch=8,32")
POINTS = 12


def pysim(*words, check=True, **more):
    """Run the command; with ``check`` it has to succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "pysim", *map(str, words)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        **more,
    )
    if check and done.returncode:
        raise AssertionError(f"pysim {words[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def submit(folder, *options, engine="slurm", **more):
    """Submit what is missing of the sweep and return the job."""
    done = pysim("sweep", *SWEEP, *GRID, "--out", folder, "--engine", engine, *options, **more)
    name, job = done.stdout.splitlines()[0].partition(":")[0].split()
    assert name == engine
    return job


def collected(folder):
    """Return the bytes of the collected file."""
    out = folder.with_name(f"{folder.name}.h5")
    pysim("collect", folder, "-o", out)
    made = out.read_bytes()
    out.unlink()
    return made


def finished(folder):
    """Return the result files that are there: by name what a second write would change."""
    files = (folder / "points").glob("*.h5")
    return {path.name: (stat.st_ino, stat.st_mtime_ns) for path in files if (stat := path.stat())}


def wait_until(true, seconds=60.0, pause=0.01):
    """Wait until a function returns something true, and return that."""
    end = time.monotonic() + seconds
    while not (made := true()):
        if time.monotonic() > end:
            raise AssertionError(f"not after {seconds:g} s")
        time.sleep(pause)
    return made


def worker(folder):
    """Return the process that holds a point of the sweep; None: there is none."""
    sweep = SweepFolder(folder)
    for lock in sorted((folder / "locks").iterdir()):
        if sweep.is_running(lock.name) and (text := lock.read_text().strip()):
            return int(text)
    return None


def log(folder):
    """Return what all tasks of Slurm have printed."""
    return "".join(path.read_text(errors="replace") for path in sorted((folder / "logs").glob("slurm-*.log")))


def hang(process, until, seconds=180.0):
    """Keep a process stopped until a function returns something true: Slurm wakes it with each signal."""

    def stop():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
        return until()

    return wait_until(stop, seconds)
