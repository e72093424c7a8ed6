"""Utilisation of the arithmetic pipes by kernel, in ten levels: a table and a heat map."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.missing import no_matplotlib
from pysim.stats.schema import Table
from pysim.stats.store import StoreError, decode
from pysim.stats.text.runs import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = 10
BANDS = (("low", 1, 3), ("medium", 4, 6), ("high", 7, 10))
_CNN = "cnn"

# inches
_CELL, _ROW, _TOP, _BOTTOM, _LABELS, _BETWEEN, _BAR = 0.78, 0.33, 1.0, 1.25, 1.75, 0.25, 1.25


def levels(share: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return 1 to 10 for shares of 0 to 1: level n is above (n - 1) tenths and up to n."""
    return np.clip(np.ceil(np.round(share * LEVELS, 9)), 1, LEVELS).astype(np.int64)


def _halves(table: Table) -> list[tuple[str, Table]]:
    cnn = table["network"] == _CNN.encode()
    halves = (("recurrent networks, training", table[~cnn]), ("convolutional layers, training", table[cnn]))
    return [(title, rows) for title, rows in halves if len(rows)]


def _grid(rows: Table, column: str) -> tuple[list[str], list[str], NDArray[Any]]:
    labels = list(dict.fromkeys(decode(rows["label"]).tolist()))
    kernels = list(dict.fromkeys(decode(rows["kernel"]).tolist()))
    made = np.full((len(labels), len(kernels)), np.nan)
    for row in rows:
        made[labels.index(row["label"].decode()), kernels.index(row["kernel"].decode())] = row[column]
    return labels, kernels, made


def format_utilization(table: Table) -> str:
    """Lay out, for both kinds of networks, level and share of the arithmetic pipes a kernel, and its time."""
    out: list[str] = []
    for title, rows in _halves(table):
        labels, kernels, level = _grid(rows, "level")
        alu, time = _grid(rows, "alu")[2], _grid(rows, "time_us")[2]

        def cell(at: tuple[int, int], level: Any = level, alu: Any = alu, time: Any = time) -> str:
            if not np.isfinite(level[at]):
                return "-"
            return f"{level[at]:.0f} ({100 * alu[at]:.0f} %, {format_time(time[at])})"

        lines = [[title, *kernels]]
        lines += [[label, *(cell((i, j)) for j in range(len(kernels)))] for i, label in enumerate(labels)]
        wide = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        for line in lines:
            cells = [c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(line, wide, strict=True))]
            out.append("  ".join(cells).rstrip())
        out.append("")
    out += _summary(table)
    return "\n".join(out)


def _summary(rows: Table) -> list[str]:
    """Return a line for each network: the levels of its GEMMs and of its other kernels."""
    lines = []
    for network in dict.fromkeys(rows["network"].tolist()):
        mine = rows[rows["network"] == network]
        products = np.array([b"product" in name or b"weights" in name for name in mine["kernel"].tolist()])
        said = [
            f"{word} at levels {level.min()} to {level.max()}, median {np.median(level):g}"
            for word, level in (("products", mine["level"][products]), ("others", mine["level"][~products]))
            if len(level)
        ]
        lines.append(f"{network.decode()}: {'; '.join(said)}")
    return lines


def draw_utilization(table: Table, title: str) -> bytes:
    """Draw, as PNG, a heat map of recurrent and one of convolutional kernels: a row a size, ten colours."""
    try:
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import BoundaryNorm, ListedColormap
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    halves = [(name, *_grid(rows, "level")) for name, rows in _halves(table)]
    most = max(len(labels) for _, labels, _, _ in halves)
    width = sum(_LABELS + _CELL * len(kernels) for _, _, kernels, _ in halves) + _BETWEEN + _BAR
    height = _TOP + _ROW * most + _BOTTOM
    figure = Figure(figsize=(width, height), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.text(0.2 / width, 1 - 0.3 / height, title, fontsize=12, weight="bold", va="center")
    colours = ListedColormap(colormaps["viridis"](np.linspace(0, 1, LEVELS)))
    norm = BoundaryNorm(np.arange(0.5, LEVELS + 1), LEVELS)
    left, shown = 0.0, []
    for name, labels, kernels, values in halves:
        left += _LABELS
        wide, high = _CELL * len(kernels), _ROW * len(labels)
        box = (left / width, 1 - (_TOP + high) / height, wide / width, high / height)
        axes = figure.add_axes(box)
        shown.append(axes.imshow(values, cmap=colours, norm=norm, aspect="auto"))
        _mark(axes, labels, kernels, values)
        axes.set_title(name, fontsize=10, loc="left")
        left += wide + _BETWEEN
    # as high as the first heat map
    high = _ROW * len(halves[0][1])
    bar = figure.add_axes(((left + 0.05) / width, 1 - (_TOP + high) / height, 0.18 / width, high / height))
    figure.colorbar(shown[0], cax=bar, ticks=range(1, LEVELS + 1))
    bar.tick_params(labelsize=8)
    for word, first, last in BANDS:
        bar.text(2.9, (first + last) / 2, word, rotation=90, fontsize=8, va="center", ha="center")
        if first > 1:
            bar.axhline(first - 0.5, color="black", linewidth=1.2)
    figure.text(
        0.2 / width, 0.18 / height, "level n: the busiest arithmetic pipe is busy for up to n tenths of the"
        " time that the kernel runs", fontsize=8,
    )  # fmt: skip
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()


def _mark(axes: Axes, labels: list[str], kernels: list[str], values: NDArray[Any]) -> None:
    axes.set_xticks(range(len(kernels)), kernels, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(labelsize=8, length=0)
    axes.set_xticks(np.arange(1, len(kernels)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(labels)) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            ink = "black" if value > 0.6 * LEVELS else "white"
            axes.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color=ink)
