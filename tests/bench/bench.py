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

from case import measure
from scaling import table
from second_thread import threads_ratio

# name, workload, arguments of the yardstick
CASES = (
    ("GRU, defaults", "gru:", ""),
    ("fp32 GEMM 5124x700x2048", "gemm:m=5124,n=700,k=2048", ""),
    ("fp16 GEMM 4096^3", "gemm:m=4096,n=4096,k=4096,dtype=fp16", "gemm 4096 4096 4096"),
    ("H200 fp16 GEMM 4096^3", "library:4096x4096x4096", ""),
    ("DRAM stream 1 GiB", "read:tbs=4096,chunk=262144", "stream 1024 1"),
    ("L2 stream 2.5 MiB x 800", "read:tbs=160,chunk=16384,passes=800,bypass=1", "stream 32 32"),
    ("10,000 tiny kernels", "empty:tbs=10,kernels=10000", ""),
    ("1,000,000 tiny TBs", "tiny:tbs=1000000", ""),
)


def rates(workload: str, threads: int) -> dict[str, float]:
    """Return rates of one run; times are of the simulation alone, counters and stall stack on."""
    run = measure(workload, threads)
    seconds = run["seconds"]
    return {
        "seconds": seconds,
        "Mwi/s": run["warp_instructions"] / seconds / 1e6,
        "Mops/s": run["ops"] / seconds / 1e6,
        "Mreq/s": run["requests"] / seconds / 1e6,
        "MTB/s": run["tbs"] / seconds / 1e6,
        "us/s": run["time_us"] / seconds,
        "MB": run["bytes"] / 1e6,
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
    parser.add_argument(
        "--scaling", action="store_true", help="only: speed over SMs, L2 and work, as Markdown"
    )
    parser.add_argument("--threads-ratio", action="store_true", help="only: gain of a second thread")
    parser.add_argument("--pairs", type=int, default=5, help="of runs for --threads-ratio (default 5)")
    options = parser.parse_args()
    if options.scaling:
        print(table())
    if options.threads_ratio:
        print(threads_ratio(options.pairs))
    if options.scaling or options.threads_ratio:
        return
    columns = ("seconds", "Mwi/s", "Mops/s", "Mreq/s", "MTB/s", "us/s", "MB")
    print(f"{'case':26s} thr " + " ".join(f"{c:>8s}" for c in columns) + "  ratio")
    for name, workload, arguments in CASES:
        if options.only not in name:
            continue
        for threads in (1, 2):
            done, peer = [], 0.0
            for _ in range(options.runs):
                done.append(rates(workload, threads))
                if options.yardstick and arguments and threads == 1:
                    peer = max(peer, yardstick(options.yardstick, arguments))
            best = min(done, key=lambda r: r["seconds"])
            ratio = f"{best['Mreq/s'] / peer:6.2f}" if peer else ""
            print(f"{name:26s} {threads:3d} " + " ".join(f"{best[c]:8.2f}" for c in columns) + f"  {ratio}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
