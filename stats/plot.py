"""Pictures of results. matplotlib is imported only when a picture is drawn."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .missing import no_matplotlib
from .store import StoreError, decode, write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# distinguishable for colour-blind readers, too (after Okabe and Ito, and Tol); none is near white or grey
PALETTE = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9",
    "#882255", "#999933", "#332288", "#44AA99", "#6B4423",
)  # fmt: skip
HATCHES = ("", "////", "....")  # of bars that share a colour, first to last
OTHER = "#808080"
BINS = 1200
_DARKER = 0.74  # every second launch of a kernel
_PALEST = 0.35

# inches
_WIDTH, _LEFT, _RIGHT = 12.0, 0.85, 0.25
_TOP, _PANEL, _SPACE, _STRIP, _GAP, _AXIS, _LEGEND_ROW = 0.75, 1.55, 0.1, 0.42, 0.42, 0.6, 0.18
_DPI = 120

Image = NDArray[np.float64]


def bar_style(number: int) -> dict[str, Any]:
    """Return colour and hatch of the bars of series ``number``: the first of each colour have none."""
    turn = number // len(PALETTE) % len(HATCHES)
    return {"color": PALETTE[number % len(PALETTE)], "hatch": HATCHES[turn], "edgecolor": "white"}


class _Panel(NamedTuple):
    run: int
    title: str
    tbs: dict[str, NDArray[Any]]
    samples: dict[str, NDArray[Any]]


class _Held(NamedTuple):
    """Filled cells of the picture: SM * BINS + bin, the kernel shown there, and its mean number of TBs."""

    cell: NDArray[np.int64]
    kernel: NDArray[np.int64]
    tbs: NDArray[np.float64]


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

    runs = _columns(results, "runs")
    good = [row for row, status in enumerate(runs.get("status", ())) if status == "ok"]
    if not good:
        raise StoreError("no run to draw: none has status ok")
    tbs = _columns(results, "tbs")
    panels = _make_panels(results, runs, tbs, good)
    names = _kernel_names(results)
    kinds = _rank_kinds(panels, names)
    shown = kinds if len(kinds) <= len(PALETTE) + 1 else kinds[: len(PALETTE)]
    sms = _sm_count(results, tbs)
    span = max(float(np.max(runs["time_us"][good])), *(_last(panel) for panel in panels))
    span = span or 1.0

    columns = 4 if all(len(kind) <= 30 for kind in shown) else 3
    entries = len(shown) + (len(kinds) > len(shown))
    legend_rows = -(-entries // columns)
    legend = _LEGEND_ROW * (legend_rows + 1) + 0.1 if entries else 0.05
    panel_height = _PANEL + _SPACE + _STRIP
    height = _TOP + len(panels) * (panel_height + _GAP) - _GAP + _AXIS + legend
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot

    def place(top: float, tall: float) -> Axes:
        wide = _WIDTH - _LEFT - _RIGHT
        return figure.add_axes((_LEFT / _WIDTH, 1 - (top + tall) / height, wide / _WIDTH, tall / height))

    figure.text(_LEFT / _WIDTH, 1 - 0.3 / height, title, fontsize=13, weight="bold", va="center")
    most_warps = max(
        (float(np.max(p.samples["resident_warps"], initial=0.0)) for p in panels if p.samples), default=0
    )
    top = _TOP
    held = {panel.run: _heaviest(panel, span) for panel in panels if panel.tbs}
    full = _full_residency(panels, held, names)
    for number, panel in enumerate(panels):
        upper, lower = place(top, _PANEL), place(top + _PANEL + _SPACE, _STRIP)
        upper.set_title(panel.title, fontsize=10, loc="left", pad=4)
        if panel.tbs:
            image = _occupancy_image(panel, held[panel.run], names, shown, sms, full)
            _draw_image(upper, image, span)
        else:
            _draw_warps(upper, panel.samples, most_warps)
        _draw_alu(lower, panel.samples)
        end = float(runs["time_us"][good[number]])
        _time_axes(upper, lower, span, end, last=number == len(panels) - 1)
        top += panel_height + _GAP
    if entries:
        _legend(figure, shown, len(kinds) - len(shown), columns, height)
    # the file is made in memory so that an interrupted run leaves no half of it; no version or date inside
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI, metadata={"Software": None})
    return data.getvalue()


def _make_panels(
    results: Mapping[str, Any], runs: dict[str, NDArray[Any]], tbs: dict[str, NDArray[Any]], rows: list[int]
) -> list[_Panel]:
    samples = _columns(results, "samples")
    panels = []
    for row in rows:
        run = int(runs["run"][row])
        panels.append(_Panel(run, _title(runs, row), _of_run(tbs, run), _of_run(samples, run)))
    return panels


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
        "launches; dotted: end",
        title_fontsize=8, alignment="left",
    )  # fmt: skip


def _draw_image(axes: Axes, image: Image, span: float) -> None:
    from matplotlib.ticker import MaxNLocator

    sms = len(image)
    extent = (0.0, span, -0.5, sms - 0.5)
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


def _columns(tables: Mapping[str, Any], name: str) -> dict[str, NDArray[Any]]:
    """Columns of a table as arrays, strings decoded; empty if the table is missing or has no rows."""
    if name not in tables or not len(tables[name]):
        return {}
    table = tables[name]
    fields = table.dtype.names or () if isinstance(table, np.ndarray) else list(table.columns)
    return {str(field): decode(np.asarray(table[field])) for field in fields}


def _of_run(columns: dict[str, NDArray[Any]], run: int) -> dict[str, NDArray[Any]]:
    if not columns:
        return {}
    mask = columns["run"] == run
    return {name: values[mask] for name, values in columns.items()} if mask.any() else {}


def _title(runs: dict[str, NDArray[Any]], row: int) -> str:
    text = f"{runs['scheme'][row]}   {float(runs['time_us'][row]):,.2f} us"
    speedup = float(runs["speedup"][row])
    return text + (f"   {speedup:.3f}x" if np.isfinite(speedup) and speedup > 0 else "")


def _kernel_names(results: Mapping[str, Any]) -> dict[int, NDArray[Any]]:
    """For each run the name of each of its kernels, by number."""
    kernels, names = _columns(results, "kernels"), _columns(results, "names")
    out: dict[int, NDArray[Any]] = {}
    texts = {}
    if names:
        texts = {
            (int(r), int(n)): str(t)
            for r, n, t in zip(names["run"], names["name"], names["text"], strict=True)
        }
    for run in np.unique(kernels["run"]) if kernels else ():
        part = _of_run(kernels, int(run))
        mine = np.full(int(part["kernel"].max()) + 1, "kernel", dtype=object)
        for kernel, name in zip(part["kernel"], part["name"], strict=True):
            mine[int(kernel)] = (
                name if isinstance(name, str) else texts.get((int(run), int(name)), f"kernel {name}")
            )
        out[int(run)] = mine
    return out


def _names_of(panel: _Panel, names: dict[int, NDArray[Any]]) -> NDArray[Any]:
    """Names by kernel number, long enough for all kernels that the TBs speak of."""
    size = int(panel.tbs["kernel"].max()) + 1
    mine = names.get(panel.run, np.empty(0, object))[:size]
    return np.concatenate([mine, np.full(size - len(mine), "kernel", dtype=object)])


def _rank_kinds(panels: list[_Panel], names: dict[int, NDArray[Any]]) -> list[str]:
    """Kernel names, those with most TB time first."""
    total: dict[str, float] = {}
    for panel in panels:
        if panel.tbs:
            mine = _names_of(panel, names)
            held = np.bincount(panel.tbs["kernel"], panel.tbs["end_ns"] - panel.tbs["dispatch_ns"], len(mine))
            for name, time in zip(mine, held, strict=True):
                if time > 0:
                    total[name] = total.get(name, 0.0) + float(time)
    return sorted(total, key=lambda name: (-total[name], name))


def _full_residency(
    panels: list[_Panel], held: dict[int, _Held], names: dict[int, NDArray[Any]]
) -> dict[str, float]:
    """Most TBs of each kernel name on one SM in any bin, over all panels."""
    most: dict[str, float] = {}
    for panel in panels:
        if panel.tbs:
            mine, part = _names_of(panel, names), held[panel.run]
            top = np.zeros(len(mine))
            np.maximum.at(top, part.kernel, part.tbs)
            for kernel in np.unique(part.kernel):
                most[mine[kernel]] = max(most.get(mine[kernel], 0.0), float(top[kernel]))
    return most


def _sm_count(results: Mapping[str, Any], tbs: dict[str, NDArray[Any]]) -> int:
    seen = [int(part["sm"].max()) + 1 for part in (_columns(results, "sm"), tbs) if part]
    return max(seen, default=1)


def _last(panel: _Panel) -> float:
    ends = [0.0]
    if panel.tbs:
        ends.append(float(panel.tbs["end_ns"].max()) / 1e3)
    if panel.samples:
        # a last interval may reach past the end of the run by less than its length: that is not shown
        ends.append(float(panel.samples["start_us"].max()))
    return max(ends)


def _heaviest(panel: _Panel, span: float) -> _Held:
    """For each SM and time bin the kernel whose TBs hold most time in it."""
    tbs = panel.tbs
    kernels_here = int(tbs["kernel"].max()) + 1
    width = span * 1e3 / BINS
    start, end = tbs["dispatch_ns"] / width, tbs["end_ns"] / width
    first = np.clip(start.astype(np.int64), 0, BINS - 1)
    last = np.clip(np.ceil(end).astype(np.int64) - 1, first, BINS - 1)
    # one row for each bin that a TB touches
    spans = last - first + 1
    which = np.repeat(np.arange(len(spans)), spans)
    bins = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(spans) - spans, spans)
    held = np.minimum(end[which], bins + 1) - np.maximum(start[which], bins)
    cell = tbs["sm"][which].astype(np.int64) * BINS + bins
    key, inverse = np.unique(cell * kernels_here + tbs["kernel"][which], return_inverse=True)
    weight = np.bincount(inverse, held, len(key))
    # the heaviest kernel of each cell comes last
    order = np.lexsort((weight, key // kernels_here))
    key, weight = key[order], weight[order]
    cells = key // kernels_here
    final = np.append(cells[1:] != cells[:-1], True)
    return _Held(cells[final], key[final] % kernels_here, weight[final])


def _occupancy_image(
    panel: _Panel,
    held: _Held,
    names: dict[int, NDArray[Any]],
    shown: list[str],
    sms: int,
    full: dict[str, float],
) -> Image:
    """Colours by SM and time bin: that of the kernel that holds the bin, paler with fewer TBs."""
    mine = _names_of(panel, names)
    place = {kind: index for index, kind in enumerate(shown)}
    colours = np.empty((len(mine), 3))
    most = np.array([full.get(name) or 1.0 for name in mine])
    launches: dict[str, int] = {}
    for kernel in np.unique(panel.tbs["kernel"]):
        name = mine[kernel]
        index = place.get(name, len(PALETTE))
        launches[name] = launches.get(name, 0) + 1
        colours[kernel] = _rgb(PALETTE[index] if index < len(PALETTE) else OTHER)
        if launches[name] % 2 == 0:
            colours[kernel] *= _DARKER
    strength = _PALEST + (1 - _PALEST) * np.clip(held.tbs / most[held.kernel], 0, 1)
    strength[held.tbs < 1e-3] = 0.0
    image = np.ones((sms * BINS, 3))
    image[held.cell] = 1 - strength[:, None] * (1 - colours[held.kernel])
    return image.reshape(sms, BINS, 3)


def _steps(axes: Axes, samples: dict[str, NDArray[Any]], name: str, scale: float, colour: str) -> None:
    edges = np.append(samples["start_us"], samples["end_us"][-1])
    axes.stairs(samples[name] * scale, edges, fill=True, color=colour, linewidth=0)


def _missing(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", fontsize=9, color="#606060")


def _rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _short(name: str, most: int = 44) -> str:
    # matplotlib leaves labels with a leading underscore out of a legend, and reads $ as mathematics
    name = name.replace("$", r"\$")
    name = name if len(name) <= most else f"{name[: most // 2]}...{name[-(most // 2 - 3) :]}"
    return f" {name}" if name.startswith("_") else name
