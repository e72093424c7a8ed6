"""Tables of workloads under many schemes, with the mean of each group of workloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pysim.stats.schema import Table

from .suite import geometric, grid, lines

BASE = "stream"


def group_rows(
    runs: Table, counts: Mapping[str, tuple[int, int]], groups: Mapping[str, str]
) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells: speedups over stream, a row a workload, then one a group and one of all.

    ``counts``: kernels and TBs of each workload; ``groups``: the group of each. Means are geometric.
    """
    names, schemes, speedup = grid(runs, "speedup")
    shown = [j for j, scheme in enumerate(schemes) if scheme != BASE]
    base = (
        grid(runs, "time_us")[2][:, schemes.index(BASE)] if BASE in schemes else np.full(len(names), np.nan)
    )

    def text(value: float) -> str:
        return f"{value:.2f}" if np.isfinite(value) else "-"

    head = ["graph", "kernels", "TBs", "stream us", *(schemes[j] for j in shown)]
    body = [
        [name, *(f"{n:,}" for n in counts[name]), f"{base[i]:,.0f}", *(text(speedup[i, j]) for j in shown)]
        for i, name in enumerate(names)
    ]
    present = list(dict.fromkeys(groups[name] for name in names))
    for group in [*present, ""][: len(present) + (len(present) > 1)]:
        mine = [i for i, name in enumerate(names) if group in ("", groups[name])]
        means = (text(geometric(speedup[mine, j])) for j in shown)
        body.append([f"mean of {len(mine)}: {group or 'all'}", "-", "-", "-", *means])
    return head, body


def format_groups(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Lay out the rows as text."""
    return "\n".join(lines(list(head), [list(row) for row in body])) + "\n"
