"""Tables of models whose parts run one after another: the time that each scheme saves in parts and in sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.plot import bar_style
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

from .suite import lines

BASE, OURS, BEST = "stream", "cusync:", "cusync, best"
HOST, AGAINST = "host", "best against host"


@dataclass(frozen=True, slots=True)
class Layer:
    """A model at one size: parts as (workload of its runs, name, times), and ``published`` us of each part.

    ``published`` holds (baseline, best mode) or None; ``claim`` what the paper says of the whole model.
    """

    title: str
    parts: Sequence[tuple[str, str, int]]
    published: Sequence[tuple[float, float] | None]
    claim: str


def times_of(runs: Table, workload: str) -> dict[str, float]:
    """Return the time of each scheme (us) on a part; the best of cuSync's policies beside them."""
    mine = runs[(runs["workload"] == workload.encode()) & (runs["status"] == b"ok")]
    found = {row["scheme"].decode(): float(row["time_us"]) for row in mine}
    policies = [time for scheme, time in found.items() if scheme.startswith(OURS)]
    return found | ({BEST: min(policies)} if policies else {})


def _cut(base: float, time: float) -> str:
    return f"{1 - time / base:.1%}" if np.isfinite(time) and np.isfinite(base) and base else "-"


def layer_rows(
    runs: Table, layers: Sequence[Layer]
) -> tuple[list[str], list[list[str]], dict[str, dict[str, float]]]:
    """Return headings, cells (time in stream order, cut of each scheme) and the sums of each model.

    A scheme that cannot run a part takes that part in stream order.
    """
    schemes: list[str] = []
    for row in runs:
        name = row["scheme"].decode()
        if name not in schemes:
            schemes.append(name)
    shown = [scheme for scheme in (*schemes, BEST) if scheme != BASE]
    hosts = [AGAINST] if HOST in shown else []
    body, sums = [], {}
    for layer in layers:
        ran = {scheme for workload, _, _ in layer.parts for scheme in times_of(runs, workload)}
        total, theirs = dict.fromkeys((BASE, *shown), 0.0), [0.0, 0.0]
        for (workload, name, times), there in zip(layer.parts, layer.published, strict=True):
            took = times_of(runs, workload)
            base = took[BASE]
            cells = [_cut(base, took.get(scheme, np.nan)) for scheme in shown]
            cells += [_cut(took.get(HOST, np.nan), took.get(BEST, np.nan)) for _ in hosts]
            label = f"{name}, {times} of it" if times > 1 else name
            body.append([layer.title, label, f"{base:,.1f}", *cells, _cut(*there) if there else "-"])
            for scheme in total:
                total[scheme] += times * took.get(scheme, base)
            theirs = [
                x + times * (y if there else np.nan) for x, y in zip(theirs, there or (0, 0), strict=True)
            ]
        cells = [_cut(total[BASE], total[scheme]) if scheme in ran else "-" for scheme in shown]
        cells += [_cut(total[HOST], total[BEST]) if HOST in ran else "-" for _ in hosts]
        known = [there for there in layer.published if there]
        mean = _cut(*theirs) if len(known) == len(layer.published) else "-"
        body.append([layer.title, "all", f"{total[BASE]:,.1f}", *cells, f"{mean} ({layer.claim})"])
        sums[layer.title] = {scheme: total[scheme] for scheme in total if scheme in ran}
    return ["model", "part", "stream us", *shown, *hosts, "published"], body, sums


def format_layers(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Lay out the rows as text."""
    return "\n".join(lines(list(head), [list(row) for row in body])) + "\n"


def draw_layers(sums: Mapping[str, Mapping[str, float]], title: str) -> bytes:
    """Draw, as PNG, the share of time that each scheme cuts from each model in stream order."""
    import io

    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error
    models = list(sums)
    schemes = [s for s in dict.fromkeys(s for total in sums.values() for s in total) if s not in (BASE, HOST)]
    figure = Figure(figsize=(max(8.0, 1.6 * len(models)), 4.2), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.suptitle(title, x=0.05, ha="left", fontsize=11)
    axes = figure.subplots()
    width = 0.85 / max(len(schemes), 1)
    for number, scheme in enumerate(schemes):
        at = np.arange(len(models)) + (number - (len(schemes) - 1) / 2) * width
        cut = [100 * (1 - sums[model].get(scheme, np.nan) / sums[model][BASE]) for model in models]
        axes.bar(at, cut, width, linewidth=0, label=scheme, **bar_style(number))
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(models)), models)
    axes.set_ylabel("time cut from stream order, %", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, axis="y", linewidth=0.3)
    axes.set_axisbelow(True)
    axes.legend(ncols=4, fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0))
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()
