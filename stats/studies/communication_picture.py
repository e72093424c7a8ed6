"""Share of communication over the width of a layer, as a picture."""

from __future__ import annotations

import io

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.occupancy import PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

MARKS = "os^Dv"


def draw_communication(rows: Table, title: str, published: tuple[float, float]) -> bytes:
    """Draw, as PNG, a line a ratio over the layers of ``rows``, and the published range as a band.

    Raises StoreError without matplotlib, or without rows.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    if not len(rows):
        raise StoreError("no layer to draw")
    figure = Figure(figsize=(8.0, 4.6), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    axes = figure.subplots()
    low, high = (100 * value for value in published)
    label = f"published range: {low:g} to {high:g} % (arXiv 2302.02825)"
    axes.axhspan(low, high, color="#dddddd", linewidth=0, label=label)
    for number, ratio in enumerate(dict.fromkeys(rows["ratio"].tolist())):
        mine = rows[rows["ratio"] == ratio]
        text = (
            "compute and bandwidth of today"
            if ratio == 1
            else f"compute grows {ratio:g}x as much as bandwidth"
        )
        colour, mark = PALETTE[number % len(PALETTE)], MARKS[number % len(MARKS)]
        axes.plot(mine["hidden"], 100 * mine["share"], f"{mark}-", color=colour, label=text)
    axes.set_xscale("log", base=2)
    first = rows[rows["ratio"] == rows["ratio"][0]]
    names = [f"{row['hidden'] / 1024:g}K\nTP {row['shards']}" for row in first]
    axes.set_xticks(first["hidden"], names, fontsize=9)
    axes.minorticks_off()
    axes.set_xlabel("features of the layer, and GPUs that share it (TP)", fontsize=9)
    axes.set_ylabel("time in tensor-parallel all-reduces, %", fontsize=9)
    axes.set_ylim(0, 100)
    axes.grid(visible=True, axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontsize=10)
    axes.legend(fontsize=8, frameon=False, loc="upper left", ncols=2)
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()
