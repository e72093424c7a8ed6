"""Pictures of results. matplotlib is imported only when a picture is drawn."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.errors import StoreError
from pysim.stats.missing import no_matplotlib
from pysim.stats.whole_file import write_bytes

from .occupancy import (
    OTHER,
    PALETTE,
    ZOOM_LAUNCHES,
    Held,
    Image,
    Panel,
    Window,
    full_residency,
    heaviest,
    kernel_names,
    occupancy_image,
    of_run,
    rank_kinds,
    table_columns,
    zoom_window,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHES = ("", "////", "....")  # of bars that share a colour, first to last
_ZOOM_SHARE = 0.27  # of the width

# inches
_WIDTH, _LEFT, _RIGHT = 12.0, 0.85, 0.25
_TOP, _PANEL, _SPACE, _STRIP, _GAP, _AXIS, _LEGEND_ROW = 0.75, 1.55, 0.1, 0.42, 0.42, 0.6, 0.18
_ZOOM_LEFT = _WIDTH - _RIGHT - _ZOOM_SHARE * (_WIDTH - _LEFT - _RIGHT)
_STEP = _PANEL + _SPACE + _STRIP + _GAP  # from a panel to the next
_DPI = 120


def bar_style(number: int) -> dict[str, Any]:
    """Return colour and hatch of the bars of series ``number``: the first of each colour have none."""
    turn = number // len(PALETTE) % len(HATCHES)
    return {"color": PALETTE[number % len(PALETTE)], "hatch": HATCHES[turn], "edgecolor": "white"}


def occupancy_picture(path_png: str | os.PathLike[str], results: Mapping[str, Any], title: str) -> None:
    """Write the picture that `draw_occupancy` makes."""
    write_bytes(path_png, draw_occupancy(results, title))


def draw_occupancy(results: Mapping[str, Any], title: str) -> bytes:
    """Draw, as PNG, which kernel held each SM over time, a panel a scheme, with ALU utilisation below each.

    `results` maps table names to data frames or structured arrays; runs whose status is not ok are left out.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    runs = table_columns(results, "runs")
    good = [row for row, status in enumerate(runs.get("status", ())) if status == "ok"]
    if not good:
        raise StoreError("no run to draw: none has status ok")
    tbs = table_columns(results, "tbs")
    panels = _make_panels(results, runs, tbs, good)
    names = kernel_names(results)
    kinds = rank_kinds(panels, names)
    shown = kinds if len(kinds) <= len(PALETTE) + 1 else kinds[: len(PALETTE)]
    sms = _sm_count(results, tbs)
    span = max(float(np.max(runs["time_us"][good])), *(_last(panel) for panel in panels)) or 1.0
    zooms = {panel.run: zoom for panel in panels if (zoom := zoom_window(panel, span))}

    wide = 4 if all(len(kind) <= 30 for kind in shown) else 3
    entries = min(len(kinds), len(shown) + 1)
    legend = _LEGEND_ROW * (-(-entries // wide) + 1) + 0.1 if entries else 0.05
    height = _TOP + len(panels) * _STEP - _GAP + _AXIS + legend
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.text(_LEFT / _WIDTH, 1 - 0.3 / height, title, fontsize=13, weight="bold", va="center")
    most_warps = max(
        (float(np.max(p.samples["resident_warps"], initial=0.0)) for p in panels if p.samples), default=0
    )
    whole = Window(0.0, span)
    held = {panel.run: heaviest(panel, whole) for panel in panels if panel.tbs}
    full = full_residency(panels, held, names)

    def image(panel: Panel, cells: Held, window: Window) -> Image:
        return occupancy_image(panel, cells, names, shown, sms, full, window)

    for number, panel in enumerate(panels):
        last, zoom, top = number == len(panels) - 1, zooms.get(panel.run), _TOP + number * _STEP
        part = 0.985 - _ZOOM_SHARE if zooms else 1.0
        upper = _place(figure, height, _LEFT, part, top, _PANEL)
        lower = _place(figure, height, _LEFT, part, top + _PANEL + _SPACE, _STRIP)
        upper.set_title(panel.title, fontsize=10, loc="left", pad=4)
        if panel.tbs:
            _draw_image(upper, image(panel, held[panel.run], whole), whole)
        else:
            _draw_warps(upper, panel.samples, most_warps)
        _draw_alu(lower, panel.samples)
        _time_axes(upper, lower, span, float(runs["time_us"][good[number]]), last=last)
        if zoom:
            upper.axvspan(zoom.start, zoom.end, fill=False, edgecolor="black", linewidth=0.9)
            inset = _place(figure, height, _ZOOM_LEFT, _ZOOM_SHARE, top, _PANEL)
            _draw_image(inset, image(panel, heaviest(panel, zoom), zoom), zoom)
            _zoom_axes(inset, zoom, last=last)
    if entries:
        _legend(figure, shown, len(kinds) - len(shown), wide, height)
    # the file is made in memory so that an interrupted run leaves no half of it; no version or date inside
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI, metadata={"Software": None})
    return data.getvalue()


def _place(figure: Figure, height: float, left: float, share: float, top: float, tall: float) -> Axes:
    """Add axes; ``share``: of the width, all else in inches, ``top`` from the upper edge."""
    wide = share * (_WIDTH - _LEFT - _RIGHT)
    return figure.add_axes((left / _WIDTH, 1 - (top + tall) / height, wide / _WIDTH, tall / height))


def _make_panels(
    results: Mapping[str, Any], runs: dict[str, NDArray[Any]], tbs: dict[str, NDArray[Any]], rows: list[int]
) -> list[Panel]:
    samples = table_columns(results, "samples")
    panels = []
    for row in rows:
        run = int(runs["run"][row])
        panels.append(Panel(run, _title(runs, row), of_run(tbs, run), of_run(samples, run)))
    if not any(panel.tbs or panel.samples for panel in panels):
        raise StoreError("nothing to draw: neither TBs nor samples in this file")
    return panels


def _zoom_axes(axes: Axes, zoom: Window, *, last: bool) -> None:
    axes.set_title(f"zoom: {ZOOM_LAUNCHES} launches, {zoom.end - zoom.start:,.0f} us", fontsize=9, pad=4)
    axes.set_ylabel("")
    axes.tick_params(labelsize=8, labelleft=False)
    axes.locator_params(axis="x", nbins=4)
    if last:
        axes.set_xlabel("time (us)", fontsize=9)


def _time_axes(upper: Axes, lower: Axes, span: float, end: float, *, last: bool) -> None:
    """Give both parts of a panel the common time axis; only the last panel has its labels."""
    for axes in (upper, lower):
        axes.set_xlim(0, span)
        axes.tick_params(labelsize=8)
        axes.yaxis.set_label_coords(-0.42 / (_WIDTH - _LEFT - _RIGHT), 0.5)
        axes.axvline(end, color="black", linewidth=0.9, linestyle=":")
    upper.tick_params(labelbottom=False)
    lower.tick_params(labelbottom=last)
    if last:
        lower.set_xlabel("time since the first enqueue (us)", fontsize=9)


def _legend(figure: Figure, shown: list[str], others: int, columns: int, height: float) -> None:
    """Name the colours at the bottom of the figure."""
    from matplotlib.patches import Patch

    handles = [
        Patch(color=PALETTE[i] if i < len(PALETTE) else OTHER, label=_short(k)) for i, k in enumerate(shown)
    ]
    if others:
        handles.append(Patch(color=OTHER, label=f"{others} other kernels"))
    figure.legend(
        handles=handles, ncols=columns, loc="lower left", bbox_to_anchor=(_LEFT / _WIDTH, 0.05 / height),
        fontsize=8, frameon=False, borderaxespad=0, borderpad=0, handlelength=1.4,
        title="white: no TB; pale: fewer TBs than the kernel's most on an SM; dark and light: successive "
        "launches; dotted: end; box: what the zoom shows",
        title_fontsize=8, alignment="left",
    )  # fmt: skip


def _draw_image(axes: Axes, image: Image, window: Window) -> None:
    from matplotlib.ticker import MaxNLocator

    sms = len(image)
    extent = (window.start, window.end, -0.5, sms - 0.5)
    axes.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="nearest")
    axes.set_ylim(-0.5, sms - 0.5)
    axes.set_ylabel("SM (index)", fontsize=9)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))


def _draw_warps(axes: Axes, samples: dict[str, NDArray[Any]], most: float) -> None:
    """Draw resident warps over time, for results without the table ``tbs``."""
    if samples:
        _steps(axes, samples, "resident_warps", 1.0, "#56B4E9")
        axes.set_ylim(0, 1.08 * most or 1.0)
        axes.set_ylabel("warps, all SMs", fontsize=9)
    else:
        axes.set_yticks([])
        _missing(axes, "neither TBs nor samples in this file")


def _draw_alu(axes: Axes, samples: dict[str, NDArray[Any]]) -> None:
    if samples:
        _steps(axes, samples, "alu_utilization", 100.0, "#4D4D4D")
    else:
        _missing(axes, "no samples in this file")
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100])
    axes.set_ylabel("ALU (%)", fontsize=9)


def _title(runs: dict[str, NDArray[Any]], row: int) -> str:
    text = f"{runs['scheme'][row]}   {float(runs['time_us'][row]):,.2f} us"
    speedup = float(runs["speedup"][row])
    name = str(runs["workload"][row]) if len(set(runs["workload"])) > 1 else ""
    text = f"{name}   {text}" if name else text
    return text + (f"   {speedup:.3f}x the speed of stream" if np.isfinite(speedup) and speedup > 0 else "")


def _sm_count(results: Mapping[str, Any], tbs: dict[str, NDArray[Any]]) -> int:
    seen = [int(part["sm"].max()) + 1 for part in (table_columns(results, "sm"), tbs) if part]
    return max(seen, default=1)


def _last(panel: Panel) -> float:
    ends = [0.0]
    if panel.tbs:
        ends.append(float(panel.tbs["end_ns"].max()) / 1e3)
    if panel.samples:
        # a last interval may reach past the end of the run by less than its length: that is not shown
        ends.append(float(panel.samples["start_us"].max()))
    return max(ends)


def _steps(axes: Axes, samples: dict[str, NDArray[Any]], name: str, scale: float, colour: str) -> None:
    edges = np.append(samples["start_us"], samples["end_us"][-1])
    axes.stairs(samples[name] * scale, edges, fill=True, color=colour, linewidth=0)


def _missing(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=9, color="#606060")


def _short(name: str, most: int = 44) -> str:
    # matplotlib leaves labels with a leading underscore out of a legend, and reads $ as mathematics
    name = name.replace("$", r"\$")
    name = name if len(name) <= most else f"{name[: most // 2]}...{name[-(most // 2 - 3) :]}"
    return f" {name}" if name.startswith("_") else name
