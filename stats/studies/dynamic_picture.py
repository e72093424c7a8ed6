"""What a scheme that decides for itself makes of each workload, as a picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.occupancy import PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

from .dynamic import AUTO, LOSS, PLAIN, RIVALS, ran, share_of, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _ROW = 13.0, 0.19
_TICKS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0)


def draw_dynamic(table: Table) -> bytes:
    """Draw, as PNG, the share of the gap by scheme and group, and tb_auto against the best of four by case.

    Raises StoreError without matplotlib, or if tb_auto has not been simulated.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    rows = ran(table, PLAIN)
    mine = rows[(rows["scheme"] == AUTO.encode()) & np.isfinite(rows["over_best"])]
    if not len(mine):
        raise StoreError(f"nothing to draw: {AUTO} has not been simulated")
    cases = list(dict.fromkeys(zip(words(mine, "group"), words(mine, "case"), strict=True)))
    figure = Figure(figsize=(_WIDTH, max(4.5, 1.4 + _ROW * len(cases))), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1, 1.2)})
    _shares(left, rows)
    _cases(right, mine, cases)
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()


def _shares(axes: Axes, rows: Table) -> None:
    """Draw bars of the share of the gap, by group and scheme."""
    groups = list(dict.fromkeys(words(rows, "group")))
    schemes = [name for name in dict.fromkeys(words(rows, "scheme")) if name != "stream"]
    high = 0.8 / len(schemes)
    for place, scheme in enumerate(schemes):
        own = rows[rows["scheme"] == scheme.encode()]
        shares = [share_of(own[own["group"] == group.encode()]) for group in groups]
        at = np.arange(len(groups)) + (place - (len(schemes) - 1) / 2) * high
        axes.barh(at, shares, high, color=PALETTE[place % len(PALETTE)], linewidth=0, label=scheme)
    axes.set_yticks(range(len(groups)), groups, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("share of the gap from stream order to the estimate (geometric mean)", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(visible=True, axis="x", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)


def _cases(axes: Axes, mine: Table, cases: list[tuple[str, str]]) -> None:
    """Draw a point for each case and GPU: the best of four schemes over tb_auto."""
    gpus = list(dict.fromkeys(words(mine, "gpu")))
    place = {case: number for number, case in enumerate(cases)}
    for number, gpu in enumerate(gpus):
        own = mine[mine["gpu"] == gpu.encode()]
        at = [place[each] for each in zip(words(own, "group"), words(own, "case"), strict=True)]
        axes.plot(own["over_best"], at, "o", color=PALETTE[(0, 3)[number % 2]], markersize=4, label=gpu)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.axvspan(1 - LOSS, 1.0, color="grey", alpha=0.2, linewidth=0)
    axes.set_xscale("log")
    ticks = [each for each in _TICKS if _inside(each, mine["over_best"])]
    axes.set_xticks(ticks, [f"{each:g}" for each in ticks], fontsize=8)
    axes.minorticks_off()
    axes.set_yticks(range(len(cases)), [case for _, case in cases], fontsize=7)
    axes.set_ylim(len(cases) - 0.4, -0.6)
    groups = [group for group, _ in cases]
    for group in dict.fromkeys(groups):
        first, count = groups.index(group), groups.count(group)
        if first:
            axes.axhline(first - 0.5, color="grey", linewidth=0.8, linestyle=":")
        middle = first + (count - 1) / 2
        axes.annotate(
            group, (1.01, middle), xycoords=("axes fraction", "data"), rotation=270, va="center", fontsize=8
        )
    axes.set_xlabel(
        f"time of the best of {', '.join(RIVALS)} / time of tb_auto\n"
        f"above 1: tb_auto is faster; grey: up to {LOSS:.0%} slower",
        fontsize=8,
    )
    axes.grid(visible=True, axis="x", linewidth=0.3)
    axes.legend(fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)


def _inside(value: float, found: np.ndarray) -> bool:
    """Whether a tick is near what is drawn."""
    return 0.95 * float(found.min()) <= value <= 1.05 * float(found.max())
