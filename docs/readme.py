"""Writes what README.md says of a GRU: its runs, the windows of the table, and what limits it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from writing import DOCS, README, code, replace, shown

import stats

WINDOWS = (4, 16, 64, 180)


def windows(folder: Path, default: Any, *more: str) -> str:
    """Simulate the table scheme under each window; the other rows do not depend on it."""
    rows = [row for row in default if row["scheme"] != b"tb_static"]
    for window in WINDOWS:
        path = folder / f"{window}.h5"
        narrow = ("--schemes", "stream,tb_static", "--set", f"scheme.window={window}")
        shown("titanv_gru", path, *narrow, "--tables", "none", "--force", *more)
        row = stats.load(path).array("runs")[1]
        row["scheme"] = f"tb_static, window {window}".encode()
        rows.append(row)
    order = {b"host": 0, b"stream": 1, b"graph": 2, b"tb_ideal": 9}
    rows.sort(key=lambda row: order.get(row["scheme"], 5))
    return code(stats.format_runs(np.array(rows, default.dtype), (), 20))


def reason(rows: dict[str, Any], bandwidth: float) -> str:
    """Say in numbers what the default run is limited by."""
    base, best = rows["stream"], min(rows.values(), key=lambda row: row["time_us"])
    least = base["dram_bytes"] / bandwidth / 1e3
    return (
        f"In stream order the run moves {base['dram_bytes'] / 1e9:.2f} GB from and to DRAM, which take"
        f" {least / 1e3:.2f} ms at the peak of {bandwidth:g} GB/s: {least / base['time_us']:.0%} of its"
        " time. Whatever the order, as long as these bytes move no scheme can reach more than"
        f" {base['time_us'] / least:.2f}x. The best row, `{best['scheme'].decode()}`, reaches"
        f" {best['speedup']:.3f}x: the share of SM time without a TB falls from {base['sm_idle']:.1%} to"
        f" {best['sm_idle']:.1%}, and DRAM traffic changes by"
        f" {best['dram_bytes'] / base['dram_bytes'] - 1:+.1%}."
    )


def write() -> None:
    """Simulate, then write the tables of README.md and its picture."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "titanv_gru.h5"
        text = shown("titanv_gru", path)
        shutil.copyfile(path.with_suffix(".png"), DOCS / "titanv_gru.png")
        results = stats.load(path)
        runs = results.array("runs")
        bandwidth = float(results.configuration["parameters"]["gpu.dram.bandwidth"])
        every = windows(folder, runs)
        renamed = ("--buffers", "20")
        path = folder / "renamed.h5"
        shown("titanv_gru", path, *renamed, "--tables", "none")
        own = windows(folder, stats.load(path).array("runs"), *renamed)
    replace(
        README,
        {
            "output": code(text),
            "windows": every,
            "renamed": own,
            "reason": reason({row["scheme"].decode(): row for row in runs}, bandwidth),
        },
    )
