"""The TB graph as text: which kernels depend on which, and how many TBs can start early."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pysim.stats.schema import Table

_BYTES = {"sector": "32 B", "line": "128 B", "page": "4 KiB"}
_MAX_LINES = 40
_MAX_RACES = 10
_HEADS = (
    *("times", "kernel", "waits for", "back", "TBs", "pattern", "free", "mean", "most"),
    *("RAW", "WAR", "WAW", "/entry", "/rule"),
)
_LEFT = {"kernel", "waits for", "pattern"}


def _names(tables: Mapping[str, Table], run: int) -> dict[int, str]:
    """Return the name of each kernel."""
    rows, kernels = (tables[name][tables[name]["run"] == run] for name in ("names", "dependence_kernels"))
    texts = {int(row["name"]): row["text"].decode() for row in rows}
    return {int(row["kernel"]): texts[int(row["name"])] for row in kernels}


def _percent(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.1%}"


def _layout(rows: list[tuple[str, ...]], heads: tuple[str, ...], left: set[str]) -> list[str]:
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = [
        "  ".join(
            cell.ljust(width) if head in left else cell.rjust(width)
            for cell, width, head in zip(row, widths, heads, strict=True)
        ).rstrip()
        for row in (heads, *rows)
    ]
    return [lines[0], "-" * max(map(len, lines)), *lines[1:]]


def format_dependences(tables: Mapping[str, Table], run: int = 0) -> str:
    """Lay out one graph: totals, pairs of kernels (equal ones once), kernels, races."""
    whole = tables["dependences"][tables["dependences"]["run"] == run][0]
    pairs = tables["dependence_pairs"][tables["dependence_pairs"]["run"] == run]
    kernels = tables["dependence_kernels"][tables["dependence_kernels"]["run"] == run]
    streams = len({int(row["stream"]) for row in kernels})
    unit = whole["granularity"].decode()
    wired = int((pairs["edges"] > 0).sum())
    lines = [
        f"job       {whole['workload'].decode()}: {whole['kernels']:,} kernels in {streams}"
        f" {'stream' if streams == 1 else 'streams'}, {whole['tbs']:,} TBs",
        f"edges     {whole['edges']:,} by {unit} ({_BYTES[unit]}) between {wired:,} pairs of kernels:"
        f" RAW {whole['raw']:,}, WAR {whole['war']:,}, WAW {whole['waw']:,}",
        f"reduced   {whole['nodes']:,} group nodes and {whole['ranges']:,} ranges:"
        f" {whole['compression']:.1f} edges for each",
        f"          pair by pair, with rules where these are fewer: {_least(pairs):,} entries:"
        f" {whole['edges'] / max(1, _least(pairs)):.1f} edges for each",
        f"free      {_percent(whole['free'], whole['tbs'])} of TBs need nothing of the kernel before theirs",
        "",
        *_pair_lines(pairs, _names(tables, run)),
        "",
        *_kernel_lines(kernels, _names(tables, run)),
        "",
        *_race_lines(pairs, kernels, _names(tables, run)),
    ]
    return "\n".join(lines) + "\n"


def _least(pairs: Table) -> int:
    """Return the entries of all pairs, each as nodes and ranges or as rules."""
    return int(np.minimum(pairs["nodes"] + pairs["ranges"], pairs["rules"]).sum())


def _pair_lines(pairs: Table, names: Mapping[int, str]) -> list[str]:
    """Lay out the pairs of kernels; equal pairs share a line."""
    counts: dict[tuple[str, ...], int] = {}
    for row in pairs:
        entries = int(row["nodes"] + row["ranges"])
        cells = (
            names[int(row["kernel"])],
            names[int(row["producer_kernel"])],
            str(row["kernel"] - row["producer_kernel"]),
            f"{row['tbs']:,}",
            row["pattern"].decode() + (f" ({row['step']})" if row["pattern"] == b"strided" else ""),
            _percent(int(row["tbs"] - row["waiting"]), int(row["tbs"])),
            f"{row['edges'] / row['tbs']:.1f}",
            *(f"{row[name]:,}" for name in ("most", "raw", "war", "waw")),
            f"{row['edges'] / entries:,.1f}" if entries else "-",
            f"{row['edges'] / row['rules']:,.1f}" if row["rules"] else "-",
        )
        counts[cells] = counts.get(cells, 0) + 1
    if not counts:
        return ["no kernel comes after another"]
    rows = [(f"{count:,}", *cells) for cells, count in counts.items()]
    lines = _layout(rows[:_MAX_LINES], _HEADS, _LEFT)
    if len(rows) > _MAX_LINES:
        lines.append(f"and {len(rows) - _MAX_LINES:,} other kinds of pairs: all are in --json and -o FILE.h5")
    return lines


def _kernel_lines(kernels: Table, names: Mapping[int, str]) -> list[str]:
    """Lay out how many TBs of each kernel can start before the preceding kernel has ended."""
    counts: dict[tuple[str, ...], int] = {}
    for row in kernels:
        text = _percent(row["free"], row["tbs"]) if row["before"] >= 0 else "first"
        before = names[int(row["before"])] if row["before"] >= 0 else "-"
        cells = (names[int(row["kernel"])], before, f"{row['tbs']:,}", text)
        counts[cells] = counts.get(cells, 0) + 1
    rows = [(f"{count:,}", *cells) for cells, count in counts.items()]
    heads = ("times", "kernel", "behind", "TBs", "free of it")
    lines = _layout(rows[:_MAX_LINES], heads, {"kernel", "behind"})
    if len(rows) > _MAX_LINES:
        lines.append(f"and {len(rows) - _MAX_LINES:,} other kinds of kernels")
    return lines


def _race_lines(pairs: Table, kernels: Table, names: Mapping[int, str]) -> list[str]:
    """List the pairs of kernels that conflict without an order between them."""
    races: Any = pairs[pairs["race"] == 1]
    if not len(races):
        return ["races     none: streams and events order all that conflict"]
    streams = dict(zip(kernels["kernel"].tolist(), kernels["stream"].tolist(), strict=True))
    lines = [f"races     {len(races):,}: kernels that conflict, with no event between their streams"]
    for row in races[:_MAX_RACES]:
        kinds = ", ".join(f"{name.upper()} {row[name]:,}" for name in ("raw", "war", "waw") if row[name])
        who = (
            f"kernel {k} ({names[k]}, stream {streams[k]})"
            for k in (int(row["producer_kernel"]), int(row["kernel"]))
        )
        lines.append(f"  {' and '.join(who)}: {kinds}")
    if len(races) > _MAX_RACES:
        lines.append(f"  and {len(races) - _MAX_RACES:,} others")
    return lines
