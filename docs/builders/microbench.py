"""Writes docs/microbench.md: the constants of an H200, measured and simulated."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from pysim import stats
from pysim.workloads.microbench import rows

from .writing import DOCS, replace, shown, table


def write() -> None:
    """Write the constants of docs/microbench.md."""
    units = {row.key: row.unit for row in rows()}
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "constants.h5"
        shown("microbench", path, "--gpu", "h200")
        found = stats.load(path).array("validation")
    lines = []
    for row in found:
        key = row["case"].decode()
        figures = (f"{row['measured']:,.4g}", f"{row['simulated']:,.4g}", f"{row['error']:.1%}")
        lines.append([f"`{key}`", *figures, units[key]])
    heads = ["constant", "measured", "simulated", "error", "unit"]
    constants = table(heads, [False, True, True, True, False], lines)
    errors = np.abs(found["error"])
    summary = (
        f"On an H200 {(errors <= 0.05).sum()} of {len(found)} constants come out within 5 %; median error"
        f" {np.median(errors):.1%}."
    )
    replace(DOCS / "microbench.md", {"constants": constants, "summary": summary})
