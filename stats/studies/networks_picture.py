"""What synchronisation between TBs gives, as a picture: speedup and energy, network by network."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.occupancy import PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

from .networks import BASE, IDEAL, Case, cases_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SERIES = (
    ("coarse", "best of kernels that wait", PALETTE[5]),
    ("finer", "best of TBs that wait", PALETTE[0]),
)
_WIDTH, _BAR = 15.0, 0.38
_TALL, _LOW = 2.9, 1.6  # inches of a panel of speedups, and of energies


def draw_networks(table: Table, title: str) -> bytes:
    """Draw, as PNG, a panel of speedups a GPU, and one of saved energy where energies are known.

    Raises StoreError without matplotlib, or if nothing has been simulated.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    cases = cases_of(table)
    if not cases:
        raise StoreError("no network to draw: none has been simulated")
    panels: list[tuple[str, list[Case], bool]] = []
    for gpu in dict.fromkeys(case.gpu for case in cases):
        mine = [case for case in cases if case.gpu == gpu]
        panels.append((gpu, mine, False))
        if any(np.isfinite(case.value(BASE, "energy_j")) for case in mine):
            panels.append((gpu, mine, True))
    heights = [_LOW if energy else _TALL for _, _, energy in panels]
    figure = Figure(figsize=(_WIDTH, 0.6 + sum(heights)), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.suptitle(title, x=0.05, ha="left", fontsize=11)
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for number, (axes, (gpu, mine, energy)) in enumerate(zip(grid, panels, strict=True)):
        (_energy if energy else _speedup)(axes, mine)
        axes.set_ylabel(f"{gpu}: energy saved, %" if energy else f"{gpu}: speedup", fontsize=8)
        _networks(axes, mine)
        if number == 0:
            axes.legend(ncols=4, fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.1))
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()


def _bars(axes: Axes, cases: list[Case], column: str, scale: float) -> None:
    for number, (which, label, colour) in enumerate(_SERIES):
        rows = [getattr(case, which) for case in cases]
        values = [float("nan") if row is None else scale * float(row[column]) for row in rows]
        at = np.arange(len(cases)) + (number - 0.5) * _BAR
        axes.bar(at, values, _BAR, color=colour, linewidth=0, label=label)


def _speedup(axes: Axes, cases: list[Case]) -> None:
    _bars(axes, cases, "speedup", 1.0)
    at = np.arange(len(cases))
    ideal = [case.value(IDEAL, "speedup") for case in cases]
    if np.isfinite(ideal).any():
        axes.plot(at, ideal, "x", color="black", markersize=5, label=f"{IDEAL}: a table without cost")
    room = [max(1.0, case.room) if np.isfinite(case.room) else case.room for case in cases]
    axes.plot(at, room, "_", color=PALETTE[3], markersize=12, markeredgewidth=2, label="estimate")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_ylim(bottom=0.0)


def _energy(axes: Axes, cases: list[Case]) -> None:
    _bars(axes, cases, "energy_saved", 100.0)
    axes.axhline(0.0, color="black", linewidth=0.8)


def _networks(axes: Axes, cases: list[Case]) -> None:
    """Name the networks below a panel, with a line between passes, which are named above."""
    axes.set_xticks(range(len(cases)), [case.network for case in cases], rotation=30, ha="right", fontsize=7)
    axes.set_xlim(-0.6, len(cases) - 0.4)
    first = {case.which: at for at, case in reversed([*enumerate(cases)])}
    for which, at in first.items():
        if at:
            axes.axvline(at - 0.5, color="grey", linewidth=0.8, linestyle=":")
        axes.text(
            at - 0.4,
            1.02,
            which,
            transform=axes.get_xaxis_transform(),
            fontsize=8,
            va="bottom",
            color="#404040",
        )
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(visible=True, axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
