"""Compares counts of the templates with the profiler's: instructions, L1 and L2 sectors, DRAM reads."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from pysim import simulate

from . import job_of, launch_of
from .code import COUNTERS, SECTORS

MEASURED = Path(__file__).resolve().parents[1] / "measured" / "h200_counters.csv"
MEMORY = ("l2_sectors", "dram_read_bytes")
# in rows that move less the traffic of the profiler and its flush counts
LEAST = {"l1_load_sectors": 32, "l1_store_sectors": 32, "l2_sectors": 32, "dram_read_bytes": 1}
MEGABYTE = 1 << 20


def measured() -> list[dict[str, str]]:
    """Return the rows of ``workloads/measured/h200_counters.csv``."""
    return list(csv.DictReader(MEASURED.read_text(encoding="utf-8").splitlines()))


def simulated(row: Mapping[str, str], gpu: str = "h200") -> dict[str, int]:
    """Return L2 sectors that SMs request and bytes read from DRAM of one launch on an empty L2."""
    l2 = simulate(gpu, job_of(row["kernel"], row["params"]), "stream").frame("l2")
    asked = int(l2["sectors_read"].sum() + l2["sectors_written"].sum())
    return {"l2_sectors": asked, "dram_read_bytes": 32 * int(l2["dram_read_sectors"].sum())}


def errors(row: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, float]:
    """Return simulated / measured - 1 of each counter; those of memory only where more than 1 MB moves."""
    made: dict[str, float] = {}
    for name, count in counts.items():
        real = int(row[name])
        if name in LEAST and real * LEAST[name] < MEGABYTE:
            continue
        made[name] = count / real - 1 if real else float(count != 0)
    return made


def compare(kernels: list[str], memory: bool) -> Iterator[tuple[dict[str, str], dict[str, float]]]:
    """Yield each row of these kernels (none: all) with its errors; ``memory`` simulates them as well."""
    for row in measured():
        if kernels and row["kernel"] not in kernels:
            continue
        counts = dict(launch_of(row["kernel"], row["params"]).counts)
        counts = {name: counts[name] for name in (*COUNTERS, *SECTORS)}
        yield row, errors(row, counts | (simulated(row) if memory else {}))
