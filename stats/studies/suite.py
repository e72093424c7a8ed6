"""Many workloads under many schemes: a table of speedups with means, what a finite table costs, a picture."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from pysim.stats.missing import no_matplotlib
from pysim.stats.pictures.plot import bar_style
from pysim.stats.schema import Table
from pysim.stats.store import StoreError

FLOOR = 0.01  # a share of the gap below this counts as this in a geometric mean
TABLE, RIVAL = "tb_static", "blockmaestro"
SAME = 0.005  # speedups closer than this share are equal


def _words(runs: Table, name: str) -> list[str]:
    return [value.decode("utf-8", "replace") for value in runs[name].tolist()]


def geometric(values: Iterable[float]) -> float:
    """Return the geometric mean of those that are numbers; nan of none."""
    kept = np.array([v for v in values if np.isfinite(v)], float)
    return float(np.exp(np.log(kept).mean())) if len(kept) else float("nan")


def grid(runs: Table, column: str) -> tuple[list[str], list[str], np.ndarray]:
    """Return workloads, schemes and a matrix of a column; nan where a scheme could not run."""
    names, schemes = (_words(runs, key) for key in ("workload", "scheme"))
    rows, cols = list(dict.fromkeys(names)), list(dict.fromkeys(schemes))
    made = np.full((len(rows), len(cols)), np.nan)
    for row, name, scheme in zip(runs, names, schemes, strict=True):
        if row["status"] == b"ok":
            made[rows.index(name), cols.index(scheme)] = row[column]
    return rows, cols, made


def lines(head: list[str], body: list[list[str]]) -> list[str]:
    """Lay out cells in columns: the first to the left, the others to the right."""
    wide = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    return [
        "  ".join(
            c.ljust(w) if not i else c.rjust(w) for i, (c, w) in enumerate(zip(line, wide, strict=True))
        )
        for line in [head, *body]
    ]


def _short(scheme: str) -> str:
    """Abbreviate a heading: columns are many."""
    return scheme.replace("blockmaestro", "bm").replace("kernels", "k").replace("consumer", "cons")


def format_suite(runs: Table, counts: Mapping[str, tuple[int, int]], apart: Collection[str] = ()) -> str:
    """Lay out, for one machine, speedups over stream, shares of the gap won, and where the table loses.

    ``counts``: kernels and TBs of each workload; ``apart``: those that means leave out.
    Shares are of the way from stream to the estimate.
    """
    out: list[str] = []
    names, schemes, speedup = grid(runs, "speedup")
    share = grid(runs, "gap_won")[2]
    meant = np.array([name not in apart for name in names])
    for title, values, low in (("speedup", speedup, 0.0), ("gap won", share, FLOOR)):
        head = [title, "kernels", "TBs", *map(_short, schemes)]

        def text(value: float, kind: str = title) -> str:
            return "-" if not np.isfinite(value) else f"{value:.2f}" if kind == "speedup" else f"{value:.0%}"

        body = [
            [name, f"{counts[name][0]:,}", f"{counts[name][1]:,}", *map(text, values[i])]
            for i, name in enumerate(names)
        ]
        # the baseline's share is nothing by definition
        means = [
            float("nan") if low and scheme == "stream" else geometric(np.maximum(values[meant, j], low))
            for j, scheme in enumerate(schemes)
        ]
        body.append([f"geometric mean of {meant.sum()}", "", "", *map(text, means)])
        out += [*lines(head, body), ""]
    out += losses(runs)
    return "\n".join(out) + "\n"


def losses(runs: Table) -> list[str]:
    """Say for each workload where the table does not beat the best of the rival's forms, and why."""
    names, schemes, speedup = grid(runs, "speedup")
    rivals = [j for j, scheme in enumerate(schemes) if scheme.partition(":")[0] == RIVAL]
    if TABLE not in schemes or not rivals:
        return []
    mine = schemes.index(TABLE)
    relieved = [j for j, scheme in enumerate(schemes) if scheme.startswith(TABLE + ",")]
    coarse, shared = (grid(runs, name)[2][:, mine] for name in ("table_coarse", "table_shared"))
    out = [f"{TABLE} against the best form of {RIVAL}: where it does not win"]
    for i, name in enumerate(names):
        best = max(rivals, key=lambda j: -1.0 if np.isnan(speedup[i, j]) else float(speedup[i, j]))
        ours, theirs = speedup[i, mine], speedup[i, best]
        if not np.isfinite(ours) or not ours < theirs * (1 + SAME):
            continue
        line = f"  {name}: {ours:.2f} against {theirs:.2f} ({_short(schemes[best])})"
        if ours > theirs * (1 - SAME):
            line += ", equal"
        elif not coarse[i] and not shared[i]:
            line += "; all kernels fit in the table"
        if shared[i]:
            line += f"; TBs of {shared[i]:.0f} kernels share counters"
        if coarse[i]:
            line += f"; {coarse[i]:.0f} kernels did not fit in the table and waited for whole kernels"
        for j in relieved:
            if abs(speedup[i, j] / ours - 1) > SAME:
                line += f"; with{schemes[j].partition(',')[2]} {speedup[i, j]:.2f}"
        out.append(line)
    return [*out, *(["  nowhere"] if len(out) == 1 else [])]


def draw_suite(tables: Mapping[str, Table], title: str, apart: Collection[str] = ()) -> bytes:
    """Draw, as PNG, a panel a GPU: for each workload a bar a scheme, its speedup over stream."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    runs = tables["runs"]
    gpus = list(dict.fromkeys(_words(runs, "gpu")))
    figure = Figure(figsize=(14, 0.8 + 3.4 * len(gpus)), dpi=120)
    FigureCanvasAgg(figure)  # no window system and no state of pyplot
    figure.suptitle(title, x=0.05, ha="left", fontsize=11)
    panels = figure.subplots(len(gpus), 1, squeeze=False)[:, 0]
    for axes, gpu in zip(panels, gpus, strict=True):
        names, schemes, speedup = grid(runs[runs["gpu"] == gpu.encode()], "speedup")
        meant = [name not in apart for name in names]
        means = [geometric(speedup[meant, j]) for j in range(len(schemes))]
        values, labels = np.vstack([speedup, means]), [*names, "geometric mean"]
        shown = [j for j, scheme in enumerate(schemes) if scheme != "stream"]
        width = 0.85 / max(len(shown), 1)
        for number, j in enumerate(shown):
            at = np.arange(len(labels)) + (number - (len(shown) - 1) / 2) * width
            axes.bar(at, values[:, j], width, linewidth=0, label=schemes[j], **bar_style(number))
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_yscale("log", base=2)
        axes.set_xticks(range(len(labels)), labels)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_ylabel(f"speedup on {gpu}", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.grid(visible=True, axis="y", linewidth=0.3)
        axes.set_axisbelow(True)
    panels[0].legend(ncols=6, fontsize=7, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0))
    figure.tight_layout()
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
    return data.getvalue()
