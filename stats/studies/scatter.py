"""Picture of the table `validation`: simulated against measured, and the error over what was measured."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.occupancy import OTHER, PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

from .validation import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = ("o", "s", "^", "D")  # a second, third, ... round through the colours
_DPI = 120
_DECADES = 3.5
_MOST = 1.5  # errors beyond are drawn at the border


def draw_scatter(table: Table, title: str) -> bytes:
    """Draw, as PNG, each case that was simulated; colour and shape by kind, full for the half `fit`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    kinds = list(dict.fromkeys(words(table, "kind")))
    columns = 4
    legend = 0.19 * (-(-(len(kinds) + 2) // columns)) + 0.15
    height = 6.2 + legend
    figure = Figure(figsize=(12, height), dpi=_DPI)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.subplots_adjust(
        left=0.07, right=0.98, top=1 - 0.62 / height, bottom=(0.62 + legend) / height, wspace=0.2
    )
    left, right = figure.subplots(1, 2)
    good = table["status"] == b"ok"
    missing = int((~good).sum())
    told = f"{title}: {int(good.sum())} of {len(table)} cases"
    figure.suptitle(told + (f", {missing} could not be simulated" if missing else ""), x=0.07, ha="left")
    _axes(left, right, table, good)
    handles = []
    for number, kind in enumerate(kinds):
        colour = PALETTE[number % len(PALETTE)]
        mark = _MARKS[number // len(PALETTE) % len(_MARKS)]
        here = good & (np.array(words(table, "kind")) == kind)
        for split, face in ((b"fit", colour), (b"check", "none")):
            rows = table[here & (table["split"] == split)]
            style: dict[str, Any] = {
                "marker": mark,
                "color": colour,
                "markerfacecolor": face,
                "linestyle": "none",
            }
            style |= {"markersize": 5, "markeredgewidth": 1.0, "alpha": 0.85}
            left.plot(rows["measured"], rows["simulated"], **style)
            right.plot(rows["measured"], 100 * np.clip(rows["error"], -_MOST, _MOST), **style)
        handles.append((colour, mark, colour, kind))
    handles += [(OTHER, "o", OTHER, "full: half fit"), (OTHER, "o", "none", "open: half check")]
    _legend(figure, handles, columns)
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI, metadata={"Software": None})
    return data.getvalue()


def _axes(left: Axes, right: Axes, table: Table, good: NDArray[np.bool_]) -> None:
    """Set scales, lines and labels; both panels show the same measured times."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ends = [float(table["measured"].min()) / 1.3, float(table["measured"].max()) * 1.3]
    times = table["simulated"][good]
    low, high = min([ends[0], *times / 1.3]), max([ends[1], *times * 1.3])
    for factor, style in ((1.0, "-"), (1.2, ":"), (1 / 1.2, ":")):
        left.plot(ends, [end * factor for end in ends], style, color="black", linewidth=0.8)
    left.set(xscale="log", yscale="log", xlim=ends, ylim=(low, high))
    left.set(xlabel="measured (us)", ylabel="simulated (us)", title="dotted: 20 % more and less")
    for at, style in ((0.0, "-"), (20.0, ":"), (-20.0, ":")):
        right.axhline(at, color="black", linewidth=0.8, linestyle=style)
    right.set(xscale="log", xlim=ends, xlabel="measured (us)", ylabel="simulated over measured, less 1 (%)")
    worst = 100 * float(np.clip(np.abs(table["error"][good]), 0, _MOST).max(initial=0.2))
    right.set(ylim=(-1.08 * worst, 1.08 * worst), title="error")
    for axis in (left.xaxis, left.yaxis, right.xaxis):
        # 1, 2, 5 of each decade as plain numbers; over many decades the labels of 2 and 5 would collide
        many = np.log10(ends[1] / ends[0]) > _DECADES
        axis.set_major_locator(LogLocator(subs=(1.0,) if many else (1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_formatter(NullFormatter())
    for axes in (left, right):
        axes.title.set_fontsize(9)
        axes.tick_params(labelsize=8)
        axes.grid(visible=True, which="major", linewidth=0.3)


def _legend(figure: Figure, handles: list[tuple[str, str, str, str]], columns: int) -> None:
    from matplotlib.lines import Line2D

    made = [
        Line2D([], [], marker=mark, color=colour, markerfacecolor=face, linestyle="none", label=text)
        for colour, mark, face, text in handles
    ]
    figure.legend(handles=made, ncols=columns, loc="lower left", fontsize=8, frameon=False)
