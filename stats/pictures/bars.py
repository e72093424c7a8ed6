"""Picture of many schemes beside each other: time against stream order, and the stall stack of the SMs."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pysim.stats.missing import no_matplotlib
from pysim.stats.schema import SHARES, Table
from pysim.stats.store import StoreError, decode

from .occupancy import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI = 120
_ROW = 0.27  # inches a scheme


def draw_schemes(tables: Mapping[str, Table], title: str) -> bytes:
    """Draw, as PNG, a bar a scheme: its speedup over stream, and its stall stack if the table is there.

    Refused schemes have a line with the reason in place of bars.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    runs = tables["runs"]
    height = 1.5 + _ROW * len(runs)
    figure = Figure(figsize=(12, height), dpi=_DPI)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.subplots_adjust(left=0.13, right=0.98, top=1 - 0.55 / height, bottom=0.85 / height, wspace=0.06)
    figure.suptitle(title, x=0.13, ha="left", fontsize=11)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1))
    left.set(yticks=range(len(runs)), yticklabels=[str(name) for name in decode(runs["scheme"])])
    left.set_ylim(len(runs) - 0.4, -0.6)
    _speedups(left, runs)
    _stacks(right, tables)
    for axes in (left, right):
        axes.tick_params(labelsize=8, left=False)
        axes.grid(visible=True, axis="x", linewidth=0.3)
        axes.set_axisbelow(True)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI, metadata={"Software": None})
    return data.getvalue()


def _speedups(axes: Axes, runs: Table) -> None:
    good = (runs["status"] == b"ok") & np.isfinite(runs["speedup"])
    reach = float(runs["speedup"][good].max(initial=1.0))
    base = runs["time_us"][good & (runs["scheme"] == b"stream")]
    estimate = runs["estimate_us"][good]
    if len(base) and len(estimate) and np.isfinite(estimate[0]):
        at = float(base[0] / estimate[0])
        reach = max(reach, at)
        axes.axvline(at, color="black", linewidth=1.0, linestyle=":")
        axes.annotate("estimate", (at, -0.5), fontsize=7, ha="right", rotation=90, va="top")
    axes.axvline(1.0, color="black", linewidth=0.8)
    for at, row in enumerate(runs):
        if good[at]:
            value = float(row["speedup"])
            axes.barh(at, value, height=0.7, color=PALETTE[0] if value >= 1 else PALETTE[1])
            axes.annotate(f"{value:.3f}", (0.01 * reach, at), fontsize=7, va="center", color="white")
        else:
            reason = row["reason"].decode("utf-8", "replace")
            text = f"{row['status'].decode('utf-8', 'replace')}: {reason}"
            axes.annotate(
                text[:70] + ("..." if len(text) > 70 else ""), (0.01 * reach, at), fontsize=6.5, va="center"
            )
    axes.set_xlim(0, 1.05 * reach)
    axes.set_xlabel("speedup over stream", fontsize=8)


def _stacks(axes: Axes, tables: Mapping[str, Table]) -> None:
    stalls = tables.get("stalls")
    axes.set_xlabel("SM time (%)", fontsize=8)
    axes.set_xlim(0, 100)
    if stalls is None or not len(stalls):
        return
    numbers = {int(row["run"]): at for at, row in enumerate(tables["runs"])}
    for row in stalls[stalls["level"] == b"run"]:
        at, left = numbers[int(row["run"])], 0.0
        for number, share in enumerate(SHARES):
            width = 100 * float(row[share])
            axes.barh(at, width, left=left, height=0.7, color=PALETTE[number % len(PALETTE)])
            left += width
    handles = [
        axes.barh(-9, 0, color=PALETTE[number % len(PALETTE)], label=share.replace("no_tb", "no TB"))
        for number, share in enumerate(SHARES)
    ]
    axes.figure.legend(handles=handles, ncols=len(SHARES), loc="lower left", fontsize=8, frameon=False)
