"""Runs one workload under ``stream`` in a process of its own and prints what it counted, as JSON.

A process of its own, because the peak memory of a process never falls, and because the guard starts it
under valgrind.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from pysim import Code, Job, Kernel, Program, simulate
from pysim.workloads.registry import make

# Enough columns to pin the timing of every SM and slice, but not all, so that a new counter is no new result.
PINNED = {
    "sm": (
        "busy_us",
        "tbs",
        "memory_cycles",
        "warp_instructions",
        "ops",
        "l1_lines",
        "l1_hits",
        "load_sectors",
        "l2_requests",
    ),
    "l2": ("requests", "hits", "pending_hits", "busy_us", "dram_read_sectors", "row_hits", "bus_busy_us"),
}
LONG_SECONDS = 3.0  # a case that took this long is not repeated


def tiny_tbs(tbs: int = 1_000_000) -> Job:
    """Make TBs of one warp and three ops."""
    code = Code()
    code.compute(int=8)
    code.compute(fp32=8)
    code.exit()
    program = Program("tiny", (tuple(code.ops),), warps=1, registers=16, smem=0, args=0)
    return Job("tiny", [Kernel("tiny", program, (tbs, 1, 1), (), ())])


def traced(name: str) -> Job:
    """Return the job of an input of ``peer_traces`` as a trace that was written and converted."""
    from pysim.trace.convert import convert
    from pysim.trace.converted_file import ConvertedTrace
    from pysim.trace.job import trace_job
    from pysim.workloads.validation import peer_traces

    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)  # the job reads from the converted file as long as it lives
    converted = Path(folder.name) / "converted.pysim"
    convert(peer_traces.write(peer_traces.INPUTS[name], Path(folder.name) / name), converted)
    return trace_job(ConvertedTrace(converted))


def library_gemm(sizes: str) -> Job:
    """Return what cuBLAS launches on an H200 for an fp16 GEMM of ``MxNxK``."""
    from pysim import Memory
    from pysim.workloads.library.gemms.launches import gemm

    m, n, k = map(int, sizes.split("x"))
    kernels, _ = gemm(m, n, k, memory=Memory())
    return Job(f"gemm {sizes}", list(kernels))


def job_of(workload: str) -> Job:
    """Return the job of a workload; for benchmarks only ``tiny:tbs=N``, ``trace:NAME``, ``library:MxNxK``."""
    kind, _, what = workload.partition(":")
    if kind == "library":
        return library_gemm(what)
    if kind == "trace":
        return traced(what)
    return tiny_tbs(int(what.removeprefix("tbs="))) if kind == "tiny" else make(workload)


def fingerprint(tables: dict[str, Any]) -> str:
    """Return a hash of what was simulated: the time and the pinned counters of every SM and slice."""
    digest = hashlib.sha256(tables["runs"]["time_us"].tobytes())
    for table, columns in PINNED.items():
        for column in columns:
            digest.update(tables[table][column].tobytes())
    return digest.hexdigest()[:16]


def measure(workload: str, threads: int = 1, overrides: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the counts of one run; ``seconds`` are of the simulation alone, counters and stall stack on."""
    gpu = "h200" if workload.startswith("library:") else "titan_v"
    result = simulate(gpu, job_of(workload), "stream", threads=threads, tables="sm,l2", overrides=overrides)
    tables = result.tables()
    sm, host = tables["sm"], tables["host"]
    return {
        "seconds": float(host["simulate_seconds"][0]),
        "time_us": float(tables["runs"]["time_us"][0]),
        "cycles": float(tables["runs"]["cycles"][0]),
        "warp_instructions": int(sm["warp_instructions"].sum()),
        "ops": int(sm["ops"].sum()),
        "requests": int(tables["l2"]["requests"].sum()),
        "tbs": int(sm["tbs"].sum()),
        "bytes": int(host["peak_memory_bytes"][0]),
        "versions": host["versions"][0].decode(),
        "machine": host["machine"][0].decode(),
        "result": fingerprint(tables),
    }


def main() -> None:
    """Print the fastest of ``--runs`` runs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", help="as in pysim workloads, or tiny:tbs=N, trace:NAME, library:MxNxK")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", dest="overrides")
    options = parser.parse_args()
    overrides = dict(pair.split("=", 1) for pair in options.overrides)
    done: list[dict[str, Any]] = []
    while len(done) < options.runs and sum(run["seconds"] for run in done) < LONG_SECONDS:
        done.append(measure(options.workload, options.threads, overrides))
    print(json.dumps(min(done, key=lambda run: run["seconds"])))


if __name__ == "__main__":
    main()
