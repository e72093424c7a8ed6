"""Size of the dependence table against speedup: tables as text or Markdown, and a picture."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.occupancy import PALETTE
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FLOOR, _SHOWN = -0.5, 0.6  # lowest and highest lower end of the gain axis
MOST = 1 << 20  # a window of this many kernels holds every job
LABELS = {
    "entries": "entries of the table",
    "consumers": "consumer ranges an entry",
    "window": "kernels in the window",
    "latency": "from update to ready (SM cycles)",
    "update": "a counter's update (SM cycles)",
}
# sweeps that are reported in numbers alone
_MORE = {"fetch": "entries on the chip, the others in memory until a producer runs"}


class Section(NamedTuple):
    """A table for readers: the first column is text, the others are aligned right."""

    name: str
    title: str
    heads: list[str]
    rows: list[list[str]]


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _names(rows: Table, column: str = "network") -> list[str]:
    return list(dict.fromkeys(_text(v) for v in rows[column].tolist()))


def percent(gain: float) -> str:
    """Write a share as a whole percentage."""
    return "-" if not np.isfinite(gain) else f"{100 * gain:z.0f} %"


def kilobytes(bits: float) -> str:
    """Write bits in KB."""
    size = bits / 8192
    return f"{size:.2f}" if size < 1 else f"{size:.1f}" if size < 100 else f"{size:,.0f}"


def _value(value: int) -> str:
    return "all" if value == MOST else f"{value // 1024}k" if value >= 1024 else f"{value:,}"


def _where(rows: Table, **wanted: str) -> Table:
    keep = np.ones(len(rows), bool)
    for column, text in wanted.items():
        keep &= rows[column] == text.encode()
    return rows[keep]


def _gain(rows: Table, network: str, scheme: str) -> float:
    found = _where(rows, network=network, scheme=scheme, dimension="scheme")
    return float(found["gain"][0]) if len(found) else float("nan")


def _sweep(rows: Table, name: str) -> Section:
    mine = _where(rows, dimension=name)
    values = sorted({int(v) for v in mine["value"]})
    body = []
    for network in _names(mine):
        cells = [network, percent(_gain(rows, network, "pool"))]
        for value in values:
            found = _where(mine, network=network)
            found = found[found["value"] == value]
            cells.append(percent(float(found["gain"][0])) if len(found) else "-")
        body.append(cells)
    return Section(name, f"gain: {(LABELS | _MORE)[name]}", ["network", "pool", *map(_value, values)], body)


def _spills(rows: Table, name: str, dimension: str) -> Section:
    mine = _where(rows, dimension=dimension)
    values = sorted({int(v) for v in mine["value"]})
    body = []
    for network in _names(mine):
        own = _where(mine, network=network)
        cells = [network]
        for value in values:
            found = own[own["value"] == value]
            if not len(found):
                cells.append("-")
                continue
            row = found[0]
            spilt = f"{row['spill_bytes'] / 1024:,.0f}"
            cells.append(f"{row['table_shared']:,} / {row['table_coarse']:,} / {spilt}")
        body.append(cells)
    title = f"{dimension}: kernels whose TBs shared counters / that waited for whole kernels / KB read"
    return Section(name, title, ["entries", *map(_value, values)], body)


def _networks(rows: Table) -> Section:
    body = []
    for network in _names(rows):
        own = _where(rows, network=network, dimension="scheme")
        time = {_text(row["scheme"]): float(row["time_us"]) for row in own}
        stream, ideal = time.get("stream", np.nan), time.get("tb_ideal", np.nan)
        gains = [percent(_gain(rows, network, s)) for s in ("graph", "pool", "tb_static")]
        body.append([network, f"{stream:,.1f}", f"{ideal:,.1f}", f"{stream / ideal:.2f}x", *gains])
    heads = ["network", "stream us", "tb_ideal us", "speedup", "graph", "pool", "tb_static"]
    return Section("networks", "what is to be won, and the baseline models", heads, body)


def _smallest(table: Table) -> Section:
    body = []
    for row in table:
        best = float(row["best"])
        share = [float(row[name]) / best for name in ("default_gain", "pool_gain", "gain")]
        verdict = "pool" if share[1] >= share[2] or share[1] >= 0.95 else "table"
        body.append(
            [
                _text(row["network"]), percent(best), percent(share[0]), kilobytes(row["default_bits"]),
                percent(share[1]), kilobytes(row["pool_bits"]), _value(int(row["window"])),
                f"{row['entries']:,}", f"{row['consumers']}", kilobytes(row["bits"]), percent(share[2]),
                f"{row['latency']:,}", f"{row['update']:,}", verdict,
            ]
        )  # fmt: skip
    heads = [
        "network", "best gain", "default keeps", "KB", "pool keeps", "KB", "window", "entries", "ranges",
        "KB", "keeps", "latency", "update", "enough",
    ]  # fmt: skip
    return Section("smallest", "the smallest table that keeps 95 % of the best gain", heads, body)


def _schemes(rows: Table, names: Iterable[str], name: str, title: str) -> Section:
    networks, body = _names(rows), []
    for scheme in names:
        own = _where(rows, scheme=scheme, dimension="scheme")
        if not len(own):
            continue
        low, high = int(own["bits"].min()), int(own["bits"].max())
        size = "-" if not high else kilobytes(high)
        if kilobytes(low) != kilobytes(high):
            size = f"{kilobytes(low)}-{kilobytes(high)}"
        body.append([scheme, size, *(percent(_gain(rows, network, scheme)) for network in networks)])
    return Section(name, title, ["scheme", "KB", *networks], body)


def _fields(table: Table) -> Section:
    body: list[list[str]] = []
    seen: set[tuple[str, str, int]] = set()
    first = _names(table)[0]
    mine = _where(table, network=first)
    # the table first, then what others add
    for row in [*_where(mine, scheme="tb_static"), *mine]:
        structure, field, bits = _text(row["structure"]), _text(row["field"]), int(row["bits"])
        if (structure, field, bits) in seen:
            continue
        seen.add((structure, field, bits))
        where = "" if row["on_chip"] else " (in memory)"
        cells = [_text(row["scheme"]), structure + where, f"{row['count']:,}", field, f"{bits:,}"]
        body.append([*cells, _text(row["doc"])])
    heads = ["of", "structure", "entries", "field", "bits", "says"]
    return Section("fields", f"fields; entries as {first} under the defaults", heads, body)


def sections(tables: Mapping[str, Table]) -> list[Section]:
    """Return all tables for readers, from those of `stats/hardware_schema.py`."""
    rows = tables["table_size"]
    schemes = _names(_where(rows, dimension="scheme"), "scheme")
    options = [s for s in schemes if ":" in s or s in ("tb_static", "pool")]
    others = [s for s in schemes if s not in options and s not in ("stream", "tb_ideal")]
    made = [_networks(rows), _smallest(tables["smallest"])]
    made += [_sweep(rows, name) for name in LABELS | _MORE if len(_where(rows, dimension=name))]
    made += [
        _spills(rows, "spills", "entries"),
        _spills(rows, "fetched", "fetch"),
        _schemes(rows, options, "options", "placement and prologue: bits on the chip and gain"),
        _schemes(rows, ["tb_static", "pool", *others], "schemes", "schemes: bits on the chip and gain"),
        _fields(tables["hardware"]),
    ]
    return made


def plain(section: Section) -> str:
    """Lay out a section as text."""
    lines = [section.heads, *section.rows]
    wide = [max(len(line[i]) for line in lines) for i in range(len(section.heads))]
    last = len(wide) - 1
    left = {0, 1, 3, last} if section.name == "fields" else {0}
    out = [
        "  ".join(
            c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, wide, strict=True))
        )
        for line in lines
    ]
    return "\n".join([section.title, "", *(line.rstrip() for line in out)])


def markdown(section: Section) -> str:
    """Lay out a section as a Markdown table."""
    left = {0, 1, 3, 5} if section.name == "fields" else {0}
    rule = "|".join("---" if i in left else "--:" for i in range(len(section.heads)))
    rows = [f"| {' | '.join(row)} |" for row in section.rows]
    return "\n".join([f"| {' | '.join(section.heads)} |", f"|{rule}|", *rows])


def draw_table_size(tables: Mapping[str, Table], title: str) -> bytes:
    """Draw, as PNG, the gain over each size and speed, a line a network, and what small tables keep.

    Open marks are the default configuration; short dashes at the left edge are `pool`.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    rows, small = tables["table_size"], tables["smallest"]
    figure = Figure(figsize=(13, 7.4), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.suptitle(title, x=0.05, ha="left", fontsize=11)
    panels = figure.subplots(2, 3).reshape(-1)
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(_names(rows))}
    for axes, name in zip(panels, LABELS, strict=False):
        _lines(axes, _where(rows, dimension=name), rows, colours)
        axes.set_xlabel(LABELS[name])
        axes.set_ylabel("gain: 0 stream, 1 tb_ideal", fontsize=8)
    _bars(panels[-1], small)
    for axes in panels:
        axes.tick_params(labelsize=8)
        axes.xaxis.label.set_fontsize(8)
        axes.grid(visible=True, linewidth=0.3)
        axes.set_axisbelow(True)
    panels[0].legend(
        ncols=min(7, len(colours)), fontsize=8, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0)
    )
    panels[0].get_legend().set_in_layout(False)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()


def _lines(axes: Axes, mine: Table, rows: Table, colours: Mapping[str, str]) -> None:
    ticks = sorted({int(v) for v in mine["value"]})
    # a window of all kernels is drawn one step after the largest
    shown = {v: (2 * ticks[-2] if v == MOST and len(ticks) > 1 else v) for v in ticks}
    for network, colour in colours.items():
        own = np.sort(_where(mine, network=network), order="value")
        axes.plot(
            [shown[int(v)] for v in own["value"]], own["gain"], color=colour, marker="o", markersize=3,
            linewidth=1.2, label=network,
        )  # fmt: skip
        pool = _gain(rows, network, "pool")
        axes.plot(
            [-0.015, 0.02], [pool, pool], color=colour, transform=axes.get_yaxis_transform(), linewidth=2.5
        )
    axes.set_xscale("log")  # before the ticks, as it sets its own
    axes.set_xticks([shown[v] for v in ticks], [_value(v) for v in ticks])
    axes.set_xticks([], minor=True)
    gains = mine["gain"][np.isfinite(mine["gain"])]
    floor, top = float(gains.min(initial=_SHOWN)), float(gains.max(initial=1.0))
    axes.set_ylim(max(_FLOOR, floor) - 0.04, top + 0.04)


def _bars(axes: Axes, small: Table) -> None:
    names = [_text(row["network"]) for row in small]
    at: Any = np.arange(len(small))
    series = (("default_bits", "default"), ("bits", "smallest"), ("pool_bits", "pool"))
    keeps = {"default_bits": "default_gain", "bits": "gain", "pool_bits": "pool_gain"}
    for number, (column, label) in enumerate(series):
        where = at + (number - 1) * 0.27
        axes.bar(where, small[column] / 8192, 0.25, color=PALETTE[number], label=label)
        for x, row in zip(where, small, strict=True):
            share = percent(float(row[keeps[column]]) / float(row["best"]))
            axes.annotate(
                share, (x, row[column] / 8192), fontsize=6, ha="center", va="bottom", rotation=90,
                xytext=(0, 2), textcoords="offset points",
            )  # fmt: skip
    axes.set_yscale("log")
    top = float(small["default_bits"].max(initial=8192)) / 8192
    axes.set_ylim(top=12 * top)
    axes.set_xticks(at, names, rotation=20, ha="right")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylabel("KB on the chip; above: share of the best gain", fontsize=8)
    axes.legend(fontsize=7, frameon=False, ncols=3, loc="upper left").set_in_layout(False)
