"""Memory traffic of PyTorch's element-wise operations: sectors of L2 and DRAM, from Nsight Compute.

usage: pointwise_counters.py OUTDIR [--seconds N]    (N: the time of both runs of the profiler, default 240)

Needs `ncu`. Writes OUTDIR/pointwise_sectors.csv, one row a kernel: the operations of pointwise_ops.py, in
each type and size; `cache` is cold (the profiler empties the caches before a kernel) or warm (it does not).
OUTDIR/ncu_cold.csv and ncu_warm.csv are the profiler's own tables. A kernel with a grid of i + 1 TBs stands
before the kernels of item i; the result leaves it out.
"""

import argparse
import csv
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SIZES = (1 << 16, 1 << 21, 1 << 25)
TYPES = ("fp32", "bf16", "fp16")
MARKER = "item_marker"
SOURCE = f'extern "C" __global__ void {MARKER}(int* p) {{ if (p) *p = 1; }}'
METRICS = {
    "gpu__time_duration.sum": "time_ns",
    "lts__t_sectors_op_read.sum": "l2_read_sectors",
    "lts__t_sectors_op_write.sum": "l2_write_sectors",
    "lts__t_sectors_srcunit_tex.sum": "l2_from_sm_sectors",
    "lts__t_sectors_srcunit_tex_lookup_hit.sum": "l2_from_sm_hits",
    "dram__sectors_read.sum": "dram_read_sectors",
    "dram__sectors_write.sum": "dram_write_sectors",
}
COLUMNS = [
    *("id", "op", "elements", "dtype", "bytes_counted", "cache", "number", "kernel", "grid", "block"),
    *METRICS.values(),
]
SEED = 1
GRACE_S = 30  # for the operation under way and the profiler's table


def items():
    """Return (dtype, elements) in a fixed random order; each has all operations."""
    made = [(dtype, n) for n in SIZES for dtype in TYPES]
    random.Random(SEED).shuffle(made)
    return made


def _child(order, deadline):
    """Launch each operation once between start and stop of the profiler, after a warm-up outside.

    No item starts after `deadline` (time.time()), as the profiler writes its table when this process ends.
    """
    import torch
    from pointwise_ops import operations

    mark = torch.cuda._compile_kernel(SOURCE, MARKER)
    nothing = torch.zeros(1, dtype=torch.int32, device="cuda")
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    profiler, i = torch.cuda.cudart(), 0
    with order.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "op", "elements", "dtype", "bytes_counted"])
        for dtype, n in items():
            torch.manual_seed(SEED)
            for name, counted, call in operations(n, kinds[dtype], "cuda"):
                if time.time() > deadline:
                    return
                call()
                torch.cuda.synchronize()
                writer.writerow([i, name, n, dtype, counted])
                file.flush()
                profiler.cudaProfilerStart()
                mark(grid=(i + 1, 1, 1), block=(1, 1, 1), args=[nothing])
                call()
                torch.cuda.synchronize()
                profiler.cudaProfilerStop()
                i += 1
            torch.cuda.empty_cache()


def known_metrics():
    """Return those of METRICS that this profiler has."""
    asked = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, timeout=120)
    names = set(re.findall(r"^([a-z0-9_]+)", asked.stdout, re.MULTILINE))
    return [metric for metric in METRICS if metric.split(".")[0] in names] or list(METRICS)


def profile(out, cache, metrics, seconds):
    """Run this program under the profiler; return the path of its table."""
    table = out / f"ncu_{cache}.csv"
    table.unlink(missing_ok=True)
    command = [
        *("ncu", "--csv", "--page", "raw", "--print-units", "base", "--profile-from-start", "off"),
        *("--clock-control", "none", "--cache-control", "all" if cache == "cold" else "none"),
        *("--metrics", ",".join(metrics), "--log-file", str(table)),
        *(sys.executable, str(Path(__file__).resolve()), str(out), "--child", str(time.time() + seconds)),
    ]
    with (out / f"ncu_{cache}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            print(f"{cache}: profiler ended with {process.wait(timeout=seconds + GRACE_S)}", flush=True)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            print(f"{cache}: killed after {seconds + GRACE_S:.0f} s", flush=True)
    return table


def read(path):
    """Return the rows of a table of the profiler, without its messages and its row of units."""
    if not path.exists():
        return []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith('"')]
    return [row for row in csv.DictReader(lines) if (row.get("ID") or "").isdigit()]


def attributed(rows, order, cache):
    """Yield result rows: a kernel belongs to the marker before it."""
    item, number = None, 0
    for row in rows:
        grid, block = ("x".join(re.findall(r"\d+", row.get(c) or "")) for c in ("Grid Size", "Block Size"))
        if row["Kernel Name"].startswith(MARKER):
            item, number = order.get(int(grid.split("x")[0]) - 1), 0
        elif item is not None:
            made = {**item, "cache": cache, "number": number, "kernel": row["Kernel Name"]}
            made.update(grid=grid, block=block)
            for metric, column in METRICS.items():
                made[column] = (row.get(metric) or "").replace(",", "")
            number += 1
            yield made


def main():
    parser = argparse.ArgumentParser(description="counts the memory traffic of element-wise operations")
    parser.add_argument("outdir", type=Path)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--child", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    out, order = arguments.outdir, arguments.outdir / "items.csv"
    out.mkdir(parents=True, exist_ok=True)
    if arguments.child is not None:
        _child(order, arguments.child)
        return 0
    if shutil.which("ncu") is None:
        print("pointwise_counters.py: no ncu on PATH", file=sys.stderr)
        return 1
    metrics = known_metrics()
    end, written = time.time() + arguments.seconds, 0
    with (out / "pointwise_sectors.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for left, cache in ((2, "cold"), (1, "warm")):
            order.unlink(missing_ok=True)
            path = profile(out, cache, metrics, max(10.0, (end - time.time()) / left))
            if not order.exists():
                continue
            with order.open(newline="", encoding="utf-8") as listed:
                found = {int(row["id"]): row for row in csv.DictReader(listed)}
            for row in attributed(read(path), found, cache):
                writer.writerow(row)
                written += 1
            file.flush()
    print(f"{written} rows")
    return 0 if written else 1


if __name__ == "__main__":
    sys.exit(main())
