"""Heat maps of time series: which slices, channels and banks are in use when, and how many at once."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysim.stats.missing import no_matplotlib
from pysim.stats.store import StoreError, decode
from pysim.stats.text.runs import format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# inches
_WIDE, _LEFT, _BETWEEN, _BAR, _RIGHT = 5.2, 0.95, 0.35, 0.16, 0.85
_TOP, _HIGH, _GAP, _BOTTOM = 0.95, (1.9, 1.9, 2.6), 0.28, 0.6
_DPI = 110
_DOTS = 256

Image = NDArray[np.float64]


class Row(NamedTuple):
    """A row of panels: what is drawn, of which table, and the unit of its colours."""

    table: str
    column: str
    parts: tuple[str, ...]
    label: str
    unit: str


ROWS = (
    Row("l2_series", "busy_us", ("slice",), "L2 slice (index)", "port busy (%)"),
    Row("dram_series", "bus_busy_us", ("channel",), "DRAM channel (index)", "bus busy (%)"),
    Row(
        "bank_series",
        "activates",
        ("channel", "bank"),
        "DRAM bank (bank + banks x channel)",
        "rows opened a us",
    ),
)


def image_of(tables: Mapping[str, Any], row: Row, run: int) -> tuple[Image, Image]:
    """Return (parts, samples) in the unit of the row, and the edges of the samples (us)."""
    rows = np.asarray(tables[row.table])
    rows = rows[rows["run"] == run]
    if not len(rows):
        raise StoreError(f"run {run} has no table {row.table}: it needs --sample-us")
    samples = int(rows["sample"].max()) + 1
    counts = rows[row.column].reshape(samples, -1).astype(np.float64)
    start, end = (rows[name].reshape(samples, -1)[:, 0] for name in ("start_us", "end_us"))
    lasted = (end - start)[:, None]
    rates = counts / lasted * (100.0 if "%" in row.unit else 1.0)
    return rates.T, np.append(start, end[-1])


def in_use(tables: Mapping[str, Any], row: Row, run: int) -> tuple[float, int]:
    """Return how many parts are in use at once, and how many there are.

    Parts that share the traffic of a sample evenly count one each, (sum x)^2 / sum x^2 in general; the mean
    is over samples, by traffic.
    """
    image, edges = image_of(tables, row, run)
    counts = image * np.diff(edges)
    total, squares = counts.sum(axis=0), (counts**2).sum(axis=0)
    each = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
    return float(np.average(each, weights=total)) if total.sum() else 0.0, len(image)


def format_camping(tables: Mapping[str, Any], labels: Mapping[int, str]) -> str:
    """Write a line a run: time, bandwidth, and how many slices, channels and banks are in use at once."""
    heads = [f"{row.parts[-1]}s" for row in ROWS]
    lines: list[str] = []
    for run, label in labels.items():
        mine = tables["runs"][tables["runs"]["run"] == run][0]
        used = [in_use(tables, row, run) for row in ROWS]
        if not lines:
            wide = max(map(len, labels.values()))
            named = [f"{head} of {parts:,}" for head, (_, parts) in zip(heads, used, strict=True)]
            lines.append(f"{'':<{wide}}  {'time':>10}  {'DRAM GB/s':>9}  " + "  ".join(named))
            lines.append("-" * len(lines[0]))
        text = "  ".join(f"{use:>{len(name)},.1f}" for (use, _), name in zip(used, named, strict=True))
        speed = mine["dram_bytes"] / mine["time_us"] / 1e3
        lines.append(f"{label:<{wide}}  {format_time(mine['time_us']):>10}  {speed:9,.1f}  {text}")
    return "\n".join(lines)


def draw_camping(tables: Mapping[str, Any], labels: Mapping[int, str], title: str) -> bytes:
    """Draw, as PNG, a column of heat maps for each run of ``labels``: slices, channels and banks by time.

    The maps of a row share one colour scale; each column has the time axis of its run. Of more than 256 parts
    neighbours share a pixel, which shows the busiest of them.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    width = _LEFT + len(labels) * _WIDE + (len(labels) - 1) * _BETWEEN + 0.12 + _BAR + _RIGHT
    height = _TOP + sum(_HIGH) + _GAP * (len(_HIGH) - 1) + _BOTTOM
    figure = Figure(figsize=(width, height), dpi=_DPI)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot

    def place(left: float, top: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, 1 - (top + high) / height, wide / width, high / height))

    figure.text(_LEFT / width, 1 - 0.3 / height, title, fontsize=13, weight="bold", va="center")
    top = _TOP
    for number, row in enumerate(ROWS):
        images = {run: image_of(tables, row, run) for run in labels}
        most = max(float(image.max()) for image, _ in images.values()) or 1.0
        most = 100.0 if "%" in row.unit else most
        shown: Any = None
        for column, (run, (image, edges)) in enumerate(images.items()):
            axes = place(_LEFT + column * (_WIDE + _BETWEEN), top, _WIDE, _HIGH[number])
            shown = _draw(axes, image, edges, most)
            if number == 0:
                axes.set_title(_heading(tables, run, labels[run]), fontsize=10, loc="left", pad=5)
            last = number == len(ROWS) - 1
            axes.tick_params(labelbottom=last, labelleft=column == 0)
            if last:
                axes.set_xlabel("time since the first enqueue (us)", fontsize=9)
            if column == 0:
                axes.set_ylabel(row.label, fontsize=9)
                axes.yaxis.set_label_coords(-0.62 / _WIDE, 0.5)
        bar = place(width - _RIGHT - _BAR, top, _BAR, _HIGH[number])
        figure.colorbar(shown, cax=bar).set_label(row.unit, fontsize=9)
        bar.tick_params(labelsize=8)
        top += _HIGH[number] + _GAP
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI, metadata={"Software": None})
    return data.getvalue()


def _draw(axes: Axes, image: Image, edges: Image, most: float) -> Any:
    from matplotlib.ticker import MaxNLocator

    step = float(edges[1] - edges[0])
    extent = (0.0, step * image.shape[1], -0.5, len(image) - 0.5)  # the last sample may be cut short
    # the brightest of neighbours: where there are more parts than dots, a mean would hide single ones
    brightest = np.maximum.reduceat(image, np.arange(0, len(image), -(-len(image) // _DOTS)), axis=0)
    shown = axes.imshow(
        brightest, extent=extent, origin="lower", aspect="auto", cmap="viridis", vmin=0, vmax=most,
        interpolation="nearest",
    )  # fmt: skip
    axes.set_xlim(0, float(edges[-1]))
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.tick_params(labelsize=8)
    return shown


def _heading(tables: Mapping[str, Any], run: int, label: str) -> str:
    runs = np.asarray(tables["runs"])
    mine = runs[runs["run"] == run]
    return f"{label}   {format_time(float(decode(mine['time_us'])[0]))}"
