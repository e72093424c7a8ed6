"""Speed of the simulator: ``make bench``. Not a test: machines differ, so compare ratios within one run.

``--yardstick PROGRAM`` also runs a separately built request-path prototype (``PROGRAM gemm 4096 4096
4096``, ``PROGRAM stream 1024 1``, ``PROGRAM stream 32 32``, each printing ``<rate> Mreq/s``) beside the
three cases that it has a counterpart for and prints the ratio of L2 line requests a second.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys

from pysim import Code, Job, Kernel, Program, simulate
from workloads.registry import make

# name, workload, scheme, arguments of the yardstick
CASES = (
    ("GRU, defaults", "gru:", "stream", ""),
    ("fp32 GEMM 5124x700x2048", "gemm:m=5124,n=700,k=2048", "stream", ""),
    ("fp16 GEMM 4096^3", "gemm:m=4096,n=4096,k=4096,dtype=fp16", "stream", "gemm 4096 4096 4096"),
    ("DRAM stream 1 GiB", "read:tbs=4096,chunk=262144", "stream", "stream 1024 1"),
    ("L2 stream 2.5 MiB x 800", "read:tbs=160,chunk=16384,passes=800,bypass=1", "stream", "stream 32 32"),
    ("10,000 tiny kernels", "empty:tbs=10,kernels=10000", "stream", ""),
    ("1,000,000 tiny TBs", "", "stream", ""),
)


def tiny_tbs() -> Job:
    """Make a million TBs of one warp and three ops."""
    code = Code()
    code.compute(int=8)
    code.compute(fp32=8)
    code.exit()
    program = Program("tiny", (tuple(code.ops),), warps=1, registers=16, smem=0, args=0)
    return Job("tiny", [Kernel("tiny", program, (1_000_000, 1, 1), (), ())])


def measure(workload: str, scheme: str, threads: int) -> dict[str, float]:
    """Return rates of one run; times are of the simulation alone, counters and stall stack on."""
    result = simulate(
        "titan_v", make(workload) if workload else tiny_tbs(), scheme, threads=threads, tables="sm,l2"
    )
    tables = result.tables()
    seconds = float(tables["host"]["simulate_seconds"][0])
    sm, l2, run = tables["sm"], tables["l2"], tables["runs"][0]
    return {
        "seconds": seconds,
        "Mwi/s": sm["warp_instructions"].sum() / seconds / 1e6,
        "Mops/s": sm["ops"].sum() / seconds / 1e6,
        "Mreq/s": l2["requests"].sum() / seconds / 1e6,
        "MTB/s": sm["tbs"].sum() / seconds / 1e6,
        "us/s": run["time_us"] / seconds,
        "MB": tables["host"]["peak_memory_bytes"][0] / 1e6,
    }


def yardstick(program: str, arguments: str) -> float:
    """Return the prototype's M line requests a second."""
    text = subprocess.run([program, *arguments.split()], capture_output=True, text=True, check=True).stdout
    found = re.search(r"([\d.]+) Mreq/s", text)
    if not found:
        raise SystemExit(f"{program}: no rate in its output")
    return float(found[1])


def main() -> None:
    """Print one row a case and number of threads: the fastest of ``--runs``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="take the fastest of so many (default 3)")
    parser.add_argument("--yardstick", default="", help="a request-path prototype to compare with")
    parser.add_argument("--only", default="", help="cases whose name has this text")
    options = parser.parse_args()
    columns = ("seconds", "Mwi/s", "Mops/s", "Mreq/s", "MTB/s", "us/s", "MB")
    print(f"{'case':26s} thr " + " ".join(f"{c:>8s}" for c in columns) + "  ratio")
    for name, workload, scheme, arguments in CASES:
        if options.only not in name:
            continue
        for threads in (1, 2):
            rates, peer = [], 0.0
            for _ in range(options.runs):
                rates.append(measure(workload, scheme, threads))
                if options.yardstick and arguments and threads == 1:
                    peer = max(peer, yardstick(options.yardstick, arguments))
            best = min(rates, key=lambda r: r["seconds"])
            ratio = f"{best['Mreq/s'] / peer:6.2f}" if peer else ""
            print(f"{name:26s} {threads:3d} " + " ".join(f"{best[c]:8.2f}" for c in columns) + f"  {ratio}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
