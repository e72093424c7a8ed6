"""What a second thread gains: ``bench.py --threads-ratio``.

Beside each run of two threads stands how long a cache line took between two processors, right before it and
after: on a shared host that changes by a factor of five within seconds, and the gain with it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

RATIO_OF = (
    "configs/titanv_gru.py",
    *("--hidden", "2816", "--batch", "128", "--timesteps", "6", "--layers", "1", "--schemes", "stream"),
)
ROOT = Path(__file__).resolve().parents[2]


def gru_run(threads: int, folder: Path) -> tuple[float, list[object]]:
    """Run the script; return its ``simulate_seconds`` and its row of results."""
    out = ("--tables", "none", "--json", "--quiet", "--force", "--out", str(folder / "gru.h5"))
    command = [sys.executable, *RATIO_OF, "--threads", str(threads), *out]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:])}: ended with {done.returncode}")
    tables = json.loads(done.stdout)
    return tables["host"][0]["simulate_seconds"], tables["runs"]


def build_round_trip(folder: Path) -> Path:
    """Compile the measurement of the round trip; return the program."""
    program = folder / "round_trip"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    source = Path(__file__).with_name("round_trip.c")
    subprocess.run([*compiler, "-O2", "-pthread", str(source), "-o", str(program)], check=True)
    return program


def round_trip(program: Path) -> float:
    """Return ns for a cache line to another processor and back."""
    return float(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


def threads_ratio(pairs: int) -> str:
    """Return, as Markdown, the median ratio of one thread's time to two threads', taken in turns, and all."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        program = build_round_trip(Path(name))
        for _ in range(pairs):
            one, result = gru_run(1, Path(name))
            before = round_trip(program)
            two, again = gru_run(2, Path(name))
            rows.append((one / two, one, two, before, round_trip(program)))
            if result != again:
                raise SystemExit("results differ between one thread and two")
    lines = [
        f"Two threads: **{statistics.median(row[0] for row in rows):.2f} x** one, the median of {pairs} pairs"
        f" (`{' '.join(RATIO_OF)}`).",
        "",
        "| ratio | one thread s | two s | round trip before ns | after |",
        "|---|---|---|---|---|",
        *(f"| {r:.2f} | {one:.2f} | {two:.2f} | {a:.0f} | {b:.0f} |" for r, one, two, a, b in rows),
    ]
    return "\n".join(lines)
