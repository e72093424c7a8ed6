"""Shares of the time of training steps of BERT, as a picture."""

from __future__ import annotations

import io

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.occupancy import PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

from .bert import cases, name_of

COLOURS = (*PALETTE, "#BBBBBB")
LEAST = 0.04  # share that has room for its number
PALE = ("#E69F00", "#56B4E9", "#BBBBBB", "#CC79A7", "#999933")  # colours on which white cannot be read


def draw_bert(table: Table, title: str) -> bytes:
    """Draw, as PNG, a bar a case of the table ``bert_breakdown``, of the shares of its classes.

    Raises StoreError without matplotlib, or without rows.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    found = cases(table)
    if not found:
        raise StoreError("no case to draw")
    kinds = [
        kind
        for kind in dict.fromkeys(table["kind"].tolist())
        if table[table["kind"] == kind]["kernels"].any()
    ]
    figure = Figure(figsize=(4.6 + 1.3 * len(found), 5.2), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    axes = figure.subplots()
    below = [0.0] * len(found)
    for number, kind in enumerate(kinds):
        shares = [100 * float(rows["share"][rows["kind"] == kind].sum()) for rows in found]
        colour = COLOURS[number % len(COLOURS)]
        axes.bar(
            range(len(found)),
            shares,
            0.7,
            below,
            color=colour,
            label=name_of(kind),
            edgecolor="white",
            linewidth=0.4,
        )
        for at, (share, start) in enumerate(zip(shares, below, strict=True)):
            if share >= 100 * LEAST:
                ink = "black" if colour in PALE else "white"
                middle = start + share / 2
                axes.text(at, middle, f"{share:.0f}", ha="center", va="center", fontsize=8, color=ink)
        below = [start + share for start, share in zip(below, shares, strict=True)]
    names = []
    for rows in found:
        first, ms = rows[0], rows["time_us"].sum() / 1e3
        names.append(f"{first['batch']} x {first['seq']}\n{first['dtype'].decode()}\n{ms:,.1f} ms")
    axes.set_xticks(range(len(found)), names, fontsize=9)
    axes.set_xlabel("sequences x tokens, types, time of a step", fontsize=9)
    axes.set_ylabel("share of the step's time, %", fontsize=9)
    axes.set_ylim(0, 100)
    axes.set_title(title.replace(" on ", "\non ", 1), loc="left", fontsize=10)  # one bar is narrow
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(
        handles[::-1], labels[::-1], fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5)
    )
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()
