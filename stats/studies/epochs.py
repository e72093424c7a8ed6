"""Epochs and their projections as text: SeqPoints, times, speedups and errors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pysim.stats.schema import Table


def mean_error(errors: Table) -> tuple[float, float]:
    """Return the mean and the largest absolute error."""
    sizes = np.abs(errors)
    return float(sizes.mean()), float(sizes.max())


def _share(value: float, digits: int = 2) -> str:
    return f"{100 * value:z.{digits}f} %"


def _aligned(lines: list[list[str]], texts: int) -> list[str]:
    """Lay out cells: the first ``texts`` columns to the left, the others to the right."""
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < texts else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, wide, strict=True))
        ).rstrip()
        for line in lines
    ]


def format_seqpoints(rows: Table) -> str:
    """Lay out the SeqPoints of a network."""
    lines = [["length", "weight", "stands for"]]
    lines += [[f"{r['length']}", f"{r['weight']:,}", f"{r['first']} to {r['last']}"] for r in rows]
    return "\n".join(_aligned(lines, 0))


def format_projections(rows: Table, names: Mapping[str, str]) -> str:
    """Lay out the projections of a network; ``names``: of machines."""
    heads = ["machine", "scheme", "actual ms", "projected ms", "error", "speedup", "projected", "error"]
    lines = [heads]
    for row in rows:
        machine = row["machine"].decode()
        lines.append(
            [
                names.get(machine, machine), row["scheme"].decode(),
                f"{row['actual_us'] / 1e3:,.2f}", f"{row['projected_us'] / 1e3:,.2f}", _share(row["error"]),
                f"{row['speedup']:.4f}x", f"{row['projected_speedup']:.4f}x", _share(row["speedup_error"]),
            ]
        )  # fmt: skip
    out = _aligned(lines, 2)
    return "\n".join([out[0], "-" * max(map(len, out)), *out[1:]])


def format_errors(rows: Table, published: tuple[float, float, float], reduction: float) -> str:
    """Lay out mean errors and saved iterations beside the published ones.

    The time is the mean over all rows; the log's own speedup, of 1, is no projection and is left out.
    """
    time, most = mean_error(rows["error"])
    lines = [["mean absolute error", "pysim", "most", "published (geometric mean)"]]
    lines.append(["time", _share(time), _share(most), _share(published[0])])
    if len(rows) > 1:
        speedup, most = mean_error(rows["speedup_error"][1:])
        lines.append(["speedup", _share(speedup), _share(most), _share(published[1])])
    lines.append(["fewer iterations", f"{reduction:,.0f}x", "", f"{published[2]:,.0f}x"])
    return "\n".join(_aligned(lines, 1))
