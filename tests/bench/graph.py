"""Time and memory of ``pysim dependences`` on a million TBs and ten million edges: fails above its limits.

``tensors``: each TB reads eleven rows of what the kernel before wrote, as a stencil does. ``recorded``: each
TB was recorded reading ten random ones, the worst case of all: no two TBs are alike.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

from pysim import stats
from pysim.program.footprint import READ, WRITE, Footprint
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.warp_program import Program
from pysim.results.graph_schema import TABLES
from pysim.results.graph_tables import GraphTables

KERNELS, TBS, DEGREE = 256, 4096, 10
# Of each job, whose making does not count in the time. One thread: its processor time is what a machine takes
# that does nothing else, and one that does fails no job for it.
MOST_SECONDS, MOST_GB = 60.0, 4.0
PROGRAM = Program("p", ((),), 1, 32, 0, 0)


def tensors() -> Job:
    """Return kernels of overlapping windows."""
    memory = Memory()
    data = [memory.tensor(f"t{i}", TBS, 64, 4) for i in range(KERNELS + 1)]

    def reads(tb: np.ndarray) -> np.ndarray:
        low, high = np.maximum(tb - DEGREE // 2, 0), np.minimum(tb + DEGREE // 2 + 1, TBS)
        return np.stack([low, high, 0 * tb, 0 * tb + 64], axis=1)

    def writes(tb: np.ndarray) -> np.ndarray:
        return np.stack([tb, tb + 1, 0 * tb, 0 * tb + 64], axis=1)

    return Job("tensors", [
        Kernel("k", PROGRAM, (TBS, 1, 1), (), (Access(a, "read", reads), Access(b, "write", writes)))
        for a, b in pairwise(data)
    ])  # fmt: skip


def recorded() -> Job:
    """Return kernels whose TBs read random rows."""
    random = np.random.default_rng(1)
    made = []
    tb = np.arange(TBS)
    for number in range(KERNELS):
        source = random.integers(0, TBS, TBS * DEGREE)
        start = np.concatenate([source + number * TBS, tb + (number + 1) * TBS]) * 256
        mode = np.repeat((READ, WRITE), (TBS * DEGREE, TBS))
        footprint = Footprint.of(np.concatenate([np.repeat(tb, DEGREE), tb]), start, start + 256, mode)
        made.append(Kernel("k", PROGRAM, (TBS, 1, 1), (), (), 0, footprint))
    return Job("recorded", made)


JOBS: dict[str, Callable[[], Job]] = {"tensors": tensors, "recorded": recorded}


def measure(name: str) -> bool:
    """Print what each step of one job takes; return whether it stayed within the limits."""
    study = GraphTables(JOBS[name]())
    begin, busy = time.perf_counter(), time.process_time()
    laps = {}
    last = begin

    def lap(what: str) -> None:
        nonlocal last
        laps[what], last = time.perf_counter() - last, time.perf_counter()

    _ = study.deps
    lap("dependences")
    _ = study.graph
    lap("graph")
    tables = study.tables()
    lap("tables")
    with tempfile.TemporaryDirectory() as folder:
        stats.write(Path(folder) / "a.h5", {**tables, **study.csr()}, {}, {}, declared=TABLES)
        size = (Path(folder) / "a.h5").stat().st_size
    lap("HDF5")
    busy = time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    text = ", ".join(f"{what} {seconds:.1f}" for what, seconds in laps.items())
    print(
        f"{name}: {study.graph.tbs:,} TBs, {study.graph.edges:,} edges: {last - begin:.1f} s ({text}),"
        f" {busy:.1f} s of a processor, peak {peak:.2f} GB, file {size / 1e6:.0f} MB",
        flush=True,
    )
    good = busy <= MOST_SECONDS and peak <= MOST_GB
    if not good:
        print(f"{name}: above the limits of {MOST_SECONDS:g} s and {MOST_GB:g} GB", flush=True)
    return good


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(not measure(sys.argv[1]))
    # a process a job: its peak is its own
    codes = [subprocess.run([sys.executable, __file__, job], check=False).returncode for job in JOBS]
    sys.exit(max(map(abs, codes)))
