"""Pictures of a window of the graph of thread blocks: SVG and DOT as text, PNG by matplotlib."""

from __future__ import annotations

import io
from itertools import pairwise
from xml.sax.saxutils import escape

from pysim.stats.missing import no_matplotlib
from pysim.stats.store import StoreError

from .graph_layout import Edge, Picture

# by column `wait`: free to start early, waits as a buffer is used again, waits for a value; -1: left out
FILLS = {0: "#8fd19e", 1: "#f6c667", 2: "#d5dbe3", -1: "#ffffff"}
BORDERS = {0: "#1e7e34", 1: "#b9770e", 2: "#6b7a8c", -1: "#9aa5b1"}
LEGEND = (
    (0, "free to start early: needs nothing of the kernel before"),
    (1, "waits for it only as memory is used again"),
    (2, "waits for a value"),
)
NOTE = (
    "solid: read after write; dashed: write after read or write; diamond: several wait for the same;"
    " dotted: producers before the window"
)
VALUE, REUSE = "#3b4a5e", "#c77f0a"
_HIGH = 18.0


def _legend(picture: Picture) -> list[tuple[float, int, str]]:
    """Return x, number and text of the entries that occur."""
    used = {node.wait for node in picture.nodes}
    made, x = [], 24.0
    for number, text in LEGEND:
        if number in used:
            made.append((x, number, text))
            x += 34 + 5.6 * len(text)
    return made


def _curve(edge: Edge) -> list[tuple[float, float]]:
    """Return the first point, then two control points and the end of each cubic curve."""
    made = [edge.points[0]]
    for (x0, y0), (x1, y1) in pairwise(edge.points):
        bend = (x1 - x0) * 0.45
        made += [(x0 + bend, y0), (x1 - bend, y1), (x1, y1)]
    return made


def to_svg(picture: Picture) -> str:
    """Write the picture as SVG, which needs no library."""
    wide = max(picture.wide, *(x + 30 + 5.6 * len(text) for x, _, text in _legend(picture)), 0)
    wide = max(wide, 48 + 7.5 * len(picture.title), 48 + 5.6 * len(NOTE))
    high = picture.high
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{high:.0f}"'
        f' viewBox="0 0 {wide:.0f} {high:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="11">',
        f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>',
        f'<text x="24" y="26" font-size="14" font-weight="bold">{escape(picture.title)}</text>',
    ]
    for edge in picture.edges:
        dash = "" if edge.raw else ' stroke-dasharray="4 3"'
        start, *rest = (f"{x:.1f} {y:.1f}" for x, y in _curve(edge))
        made.append(
            f'<path d="M{start}C{" ".join(rest)}" fill="none" stroke="{VALUE if edge.raw else REUSE}"'
            f' stroke-width="0.9" stroke-opacity="0.6"{dash}/>'
        )
        if edge.arrow:
            x, y = edge.points[-1]
            made.append(
                f'<path d="M{x:.1f} {y:.1f}l-6 -2.6v5.2z" fill="{VALUE if edge.raw else REUSE}"'
                ' fill-opacity="0.8"/>'
            )
    for x, y, raw in picture.hubs:
        made.append(f'<path d="M{x - 5:.1f} {y:.1f}l5 -5l5 5l-5 5z" fill="{VALUE if raw else REUSE}"/>')
    for node in picture.nodes:
        left, top = node.x - node.wide / 2, node.y - _HIGH / 2
        made.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{node.wide:.1f}" height="{_HIGH:.0f}" rx="8"'
            f' fill="{FILLS[node.wait]}" stroke="{BORDERS[node.wait]}"/>'
            f'<text x="{node.x:.1f}" y="{node.y + 4:.1f}" text-anchor="middle">{escape(node.label)}</text>'
        )
        if node.outside:
            made.append(
                f'<path d="M{left - 16:.1f} {node.y:.1f}h14" stroke="{BORDERS[-1]}" stroke-dasharray="2 2"/>'
            )
    for x, texts in picture.heads:
        for line, text in enumerate(texts):
            weight = ' font-weight="bold"' if line == 0 else ""
            made.append(
                f'<text x="{x:.1f}" y="{54 + 15 * line}" text-anchor="middle"{weight}>{escape(text)}</text>'
            )
    made.append(f'<text x="24" y="{high - 14:.1f}" fill="{BORDERS[2]}">{escape(NOTE)}</text>')
    for x, number, text in _legend(picture):
        y = high - 44
        made.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="18" height="12" rx="5" fill="{FILLS[number]}"'
            f' stroke="{BORDERS[number]}"/><text x="{x + 24:.1f}" y="{y + 10:.1f}">{escape(text)}</text>'
        )
    return "\n".join([*made, "</svg>"]) + "\n"


def to_dot(picture: Picture) -> str:
    """Write nodes and edges for Graphviz: a rank a kernel."""

    def quoted(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    made = [
        "digraph dependences {",
        f"  label={quoted(picture.title)}; labelloc=t; rankdir=LR; ranksep=1.6; nodesep=0.1;",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, height=0.25];',
        "  edge [arrowsize=0.5];",
    ]
    heads = dict(zip(sorted({node.kernel for node in picture.nodes}), picture.heads, strict=True))
    for kernel, (_, texts) in heads.items():
        label = quoted("\n".join(texts)).replace("\n", "\\n")
        made.append(f"  subgraph cluster_{kernel} {{ label={label}; color=white; fontname=Helvetica;")
        for number, node in enumerate(picture.nodes):
            if node.kernel == kernel:
                look = f"fillcolor={quoted(FILLS[node.wait])}, color={quoted(BORDERS[node.wait])}"
                made.append(f"    n{number} [label={quoted(node.label)}, {look}];")
        made.append("  }")
    for before, after, raw in picture.links:
        look = f"color={quoted(VALUE)}" if raw else f"color={quoted(REUSE)}, style=dashed"
        made.append(f"  n{before} -> n{after} [{look}];")
    return "\n".join([*made, "}"]) + "\n"


def to_png(pictures: list[Picture]) -> bytes:
    """Draw pictures one below the other; raises StoreError where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyBboxPatch, PathPatch
        from matplotlib.path import Path
    except ImportError as error:
        raise StoreError(no_matplotlib()) from error

    wide = max(max(p.wide, 48 + 8.0 * len(p.title), 48 + 5.6 * len(NOTE)) for p in pictures)
    wide = max(wide, *(x + 40 + 6.2 * len(t) for p in pictures for x, _, t in _legend(p)))
    high = sum(p.high for p in pictures)
    figure = Figure(figsize=(wide / 72, high / 72), dpi=90)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, wide)
    axes.set_ylim(high, 0)
    axes.axis("off")
    top = 0.0
    for picture in pictures:
        axes.text(24, top + 26, picture.title, fontsize=12, fontweight="bold")
        for edge in picture.edges:
            points = [(x, y + top) for x, y in _curve(edge)]
            color, style = (VALUE, "-") if edge.raw else (REUSE, (0, (4, 3)))
            path = Path(points, [Path.MOVETO, *[Path.CURVE4] * (len(points) - 1)])
            axes.add_patch(PathPatch(path, fill=False, lw=0.8, alpha=0.6, color=color, ls=style))
            if edge.arrow:
                x, y = points[-1]
                axes.fill([x, x - 6, x - 6], [y, y - 2.6, y + 2.6], color=color, lw=0)
        for x, y, raw in picture.hubs:
            color = VALUE if raw else REUSE
            axes.fill([x - 5, x, x + 5, x], [y + top, y - 5 + top, y + top, y + 5 + top], color=color, lw=0)
        boxes = [(n.x, n.y, n.wide, _HIGH, n.wait, n.label, "center") for n in picture.nodes] + [
            (x + 9, picture.high - 38, 18, 12, number, text, "left") for x, number, text in _legend(picture)
        ]
        for x, y, w, h, wait, label, side in boxes:
            style = "round,pad=0,rounding_size=6"
            axes.add_patch(
                FancyBboxPatch(
                    (x - w / 2, y - h / 2 + top), w, h, boxstyle=style, fc=FILLS[wait], ec=BORDERS[wait]
                )
            )
            axes.text(
                x if side == "center" else x + 15, y + top, label, fontsize=8, ha=side, va="center_baseline"
            )
        axes.text(24, top + picture.high - 14, NOTE, fontsize=8, color=BORDERS[2])
        for node in picture.nodes:
            if node.outside:
                left = node.x - node.wide / 2
                axes.plot([left - 16, left - 2], [node.y + top] * 2, ":", color=BORDERS[-1], lw=1)
        for x, texts in picture.heads:
            for line, text in enumerate(texts):
                weight = "bold" if line == 0 else "normal"
                axes.text(x, top + 54 + 15 * line, text, fontsize=8.5, ha="center", fontweight=weight)
        top += picture.high
    out = io.BytesIO()
    figure.savefig(out, format="png", metadata={"Software": None})
    return out.getvalue()
