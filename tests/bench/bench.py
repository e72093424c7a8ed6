"""Speed of the simulator: ``make bench``. Not a test: machines differ, so compare ratios within one run.

``--yardstick PROGRAM`` also runs a separately built request-path prototype (``PROGRAM gemm 4096 4096
4096``, ``PROGRAM stream 1024 1``, ``PROGRAM stream 32 32``, each printing ``<rate> Mreq/s``) beside the
three cases that it has a counterpart for and prints the ratio of L2 line requests a second.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from case import measure
from scaling import table

# name, workload, arguments of the yardstick
CASES = (
    ("GRU, defaults", "gru:", ""),
    ("fp32 GEMM 5124x700x2048", "gemm:m=5124,n=700,k=2048", ""),
    ("fp16 GEMM 4096^3", "gemm:m=4096,n=4096,k=4096,dtype=fp16", "gemm 4096 4096 4096"),
    ("DRAM stream 1 GiB", "read:tbs=4096,chunk=262144", "stream 1024 1"),
    ("L2 stream 2.5 MiB x 800", "read:tbs=160,chunk=16384,passes=800,bypass=1", "stream 32 32"),
    ("10,000 tiny kernels", "empty:tbs=10,kernels=10000", ""),
    ("1,000,000 tiny TBs", "tiny:tbs=1000000", ""),
)
# what the gain of a second thread is measured on
RATIO_OF = (
    "configs/titanv_gru.py",
    *("--hidden", "2816", "--batch", "128", "--timesteps", "6", "--layers", "1", "--schemes", "stream"),
)
ROOT = Path(__file__).resolve().parents[2]


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


def gru_run(threads: int, folder: Path) -> tuple[float, list[object]]:
    """Run the script of the two-thread ratio; return its ``simulate_seconds`` and its row of results."""
    out = ("--tables", "none", "--json", "--quiet", "--force", "--out", str(folder / "gru.h5"))
    command = [sys.executable, *RATIO_OF, "--threads", str(threads), *out]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:])}: ended with {done.returncode}")
    tables = json.loads(done.stdout)
    return tables["host"][0]["simulate_seconds"], tables["runs"]


def threads_ratio(pairs: int = 5) -> str:
    """Return the median ratio of one thread's time to two threads', taken in turns, and all of them."""
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(pairs):
            one, result = gru_run(1, Path(name))
            two, again = gru_run(2, Path(name))
            if result != again:
                raise SystemExit("results differ between one thread and two")
            ratios.append(one / two)
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"two threads: {statistics.median(ratios):.2f} x one, median of {each} ({' '.join(RATIO_OF)})"


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
    options = parser.parse_args()
    if options.scaling:
        print(table())
    if options.threads_ratio:
        print(threads_ratio())
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
