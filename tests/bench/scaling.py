"""How speed moves with the SM count, the size of the L2 and the work: ``bench.py --scaling``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CASE = Path(__file__).with_name("case.py")
RUNS = 3  # the fastest counts; long ones are run once (case.py)
USUAL = 10  # work where something else varies

# name and workload; {work} is 1, 10 or 100, times the number that stands before it
WORKLOADS = (
    ("fp32 GEMM", "gemm:m=2048,n=1024,k=256,repeat={work}", 1),
    ("fp16 GEMM", "gemm:m=4096,n=4096,k=128,dtype=fp16,repeat={work}", 1),
    ("DRAM stream", "read:chunk=65536,tbs={work}", 400),
    ("tiny TBs", "tiny:tbs={work}", 10_000),
)
# what varies: title of the row, settings, factor of the work; a Titan V has 80 SMs and 4.5 MiB
POINTS: tuple[tuple[str, dict[str, str], int], ...] = (
    *((f"{sms} SMs", {"gpu.sms": str(sms)}, USUAL) for sms in (20, 40, 80, 160)),
    *((f"L2 {size} MiB", {"gpu.l2.size": f"{size}MiB"}, USUAL) for size in (2.25, 4.5, 9, 18)),
    *((f"work ×{work}", {}, work) for work in (1, 10, 100)),
)


def measure(workload: str, settings: dict[str, str]) -> dict[str, Any]:
    """Run a case on one thread in a process of its own."""
    pairs = [part for path, value in settings.items() for part in ("--set", f"{path}={value}")]
    command = [sys.executable, str(CASE), workload, "--runs", str(RUNS), *pairs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{workload} {' '.join(pairs)}: ended with {done.returncode}")
    return dict(json.loads(done.stdout))


def table() -> str:
    """Return a Markdown table a workload."""
    lines: list[str] = []
    for name, workload, unit in WORKLOADS:
        lines += [
            f"{name} (`{workload.format(work=f'{unit}×work' if unit > 1 else 'work')}`):",
            "",
            "| | seconds | M warp instr./s | M L2 req./s | M cycles/s | M TBs/s | peak MB |",
            "|---|--:|--:|--:|--:|--:|--:|",
        ]
        for title, settings, work in POINTS:
            run = measure(workload.format(work=unit * work), settings)
            rates = (run[key] / run["seconds"] / 1e6 for key in ("warp_instructions", "requests", "cycles"))
            each = " | ".join(f"{rate:.2f}" for rate in rates)
            tbs = run["tbs"] / run["seconds"] / 1e6
            lines.append(
                f"| {title} | {run['seconds']:.3f} | {each} | {tbs:.4f} | {run['bytes'] / 1e6:.0f} |"
            )
        lines.append("")
    return "\n".join(lines).rstrip()
