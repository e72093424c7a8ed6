"""Text tables for terminals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from pysim.stats.schema import Table


def format_time(us: float) -> str:
    """Write a time with a unit that keeps it readable."""
    if not math.isfinite(us):
        return "-"
    for limit, scale, unit in ((1e3, 1.0, "us"), (1e6, 1e3, "ms")):
        if abs(us) < limit:
            return f"{us / scale:.2f} {unit}"
    return f"{us / 1e6:.3f} s"


def format_limits(runs: Table) -> str:
    """Return the line with bound and estimate of a job, which all its runs share."""
    bound, estimate = (format_time(runs[name][0]) for name in ("bound_us", "estimate_us"))
    said = "speedup: over stream; gap won: share saved of the time from stream to the estimate"
    return f"limits    bound {bound}, estimate {estimate} ({said})"


def format_coherence(runs: Table) -> str:
    """Return the line that says how L1 is kept coherent (``scheme.coherence``) under which schemes.

    Of variants of a scheme (``NAME, SETTING``) the name counts.
    """
    schemes: dict[str, dict[str, None]] = {}
    for row in runs:
        if row["status"] == b"ok":
            name = _text(row["scheme"]).partition(", ")[0]
            schemes.setdefault(_text(row["coherence"]), {})[name] = None
    return "coherence " + "; ".join(f"{policy}: {', '.join(names)}" for policy, names in schemes.items())


def _number(digits: int, scale: float = 1.0, suffix: str = "") -> Callable[[Any], str]:
    def text(value: Any) -> str:
        number = float(value) * scale
        return f"{number:,.{digits}f}{suffix}" if math.isfinite(number) else "-"

    return text


# heading, column of `runs`, how it is shown
_COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("time", "time_us", format_time),
    ("a step", "time_us", format_time),
    ("speedup", "speedup", _number(3, suffix="x")),
    ("gap won", "gap_won", _number(1, 100, " %")),
    ("ALU", "alu_utilization", _number(1, 100, " %")),
    ("SM idle", "sm_idle", _number(1, 100, " %")),
    ("DRAM MB", "dram_bytes", _number(1, 1e-6)),
    ("L2 MB", "l2_bytes", _number(1, 1e-6)),
    ("energy mJ", "energy_j", _number(2, 1e3)),
    ("entries", "table_entries", _number(0)),
    ("table KB", "table_bytes", _number(1, 1 / 1024)),
)


def format_runs(runs: Table, header: Iterable[str] = (), steps: int = 1) -> str:
    """Lay out rows of `runs` as a table under the header lines; `steps` divides the time a step."""
    steps = max(int(steps), 1)
    # most GPUs have no table of energy per event
    shown = [column for column in _COLUMNS if column[1] != "energy_j" or np.isfinite(runs["energy_j"]).any()]
    lines = [["scheme", *(heading for heading, _, _ in shown)]]
    notes: dict[int, str] = {}
    for row in runs:
        cells = [_text(row["scheme"])]
        status, reason = _text(row["status"]), _text(row["reason"])
        if status == "ok":
            for heading, name, show in shown:
                cells.append(show(row[name] / steps if heading == "a step" else row[name]))
        else:
            notes[len(lines)] = f"{status}: {reason}" if reason else status
        lines.append(cells)
    drop = 2 if steps == 1 else None  # with one step its time is the time
    if drop is not None:
        lines = [cells[:drop] + cells[drop + 1 :] for cells in lines]
    count = len(lines[0])
    widths = [max(len(cells[i]) if i < len(cells) else 0 for cells in lines) for i in range(count)]
    out = list(header)
    for number, cells in enumerate(lines):
        texts = [cells[0].ljust(widths[0])]
        if number in notes:
            texts.append(notes[number])
        else:
            texts += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        out.append("  ".join(texts).rstrip())
        if number == 0:
            out.append("-" * (sum(widths) + 2 * (count - 1)))
    return "\n".join(out) + "\n"


def format_edge_discovery(tables: Mapping[str, Table]) -> str:
    """Return a line a run that learns edges or finds them by hints; empty if there is none."""
    runs = {int(row["run"]): row for row in tables["runs"] if row["status"] == b"ok"}
    lines = {
        int(row["run"]): say(row, runs)
        for name, say in (("learned", _learned), ("bloom", _bloom), ("chosen", _chosen))
        for row in tables.get(name, ())
        if int(row["run"]) in runs
    }
    names = {run: _text(runs[run]["scheme"]) for run in sorted(lines)}
    width = max(map(len, names.values()), default=0)
    return "".join(f"{name.ljust(width)}  {lines[run]}\n" for run, name in names.items())


def _learned(row: Any, _: Mapping[int, Any]) -> str:
    share = row["served"] / max(1, row["launches"])
    return (
        f"edges learned: {row['served']:,} of {row['launches']:,} launches served ({100 * share:.1f} %),"
        f" {row['recorded_bytes'] / 1024:,.1f} KB recorded, {row['fetched_bytes'] / 1024:,.1f} KB fetched,"
        f" {row['mispredicted']:,} mispredicted"
    )


def _bloom(row: Any, runs: Mapping[int, Any]) -> str:
    own = runs[int(row["run"])]
    options = _options(own)
    if "exact" in options:
        return f"edges by exact hints: {row['edges']:,}, no false positives"
    text = (
        f"edges by hints: {row['edges']:,}, {row['false_edges']:,} of them from false positives,"
        f" {100 * row['false_rate']:.3g} % of tests (analytic {100 * row['analytic_rate']:.3g} %)"
    )
    for other in runs.values():
        if _options(other) == options | {"exact"}:
            text += f"; speedup lost to them {100 * (1 - other['time_us'] / own['time_us']):.1f} %"
            if math.isfinite(other["speedup"]):
                text += f" of {other['speedup']:.3f}x"
    return text


def _chosen(row: Any, _: Mapping[int, Any]) -> str:
    pairs = [row[f"{form}_pairs"] for form in ("tb", "kernel", "none")]
    each = row["hint_bytes"] / max(1, row["hinted"])
    return (
        f"edges by hints of {each:.0f} B a launch: of {sum(pairs):,} pairs of kernels {pairs[0]:,} by TB,"
        f" {pairs[1]:,} by kernel, {pairs[2]:,} need none of their own"
    )


def _options(run: Any) -> set[str]:
    return set(_text(run["scheme"]).replace(":", "+").split("+"))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, (bytes, np.bytes_)) else str(value)
