"""Layout of a picture of a TB graph: a column a kernel, a node a TB, edges from left to right.

In a long column, TBs with the same producers and consumers share a node. Where several TBs wait for the same
set of TBs, their edges meet in a small diamond, a group node.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

import numpy as np

from pysim.stats.schema import Table
from pysim.stats.store import StoreError

MOST_NODES = 24  # of a column; beyond it TBs share nodes, and if that is not enough, some are left out
FREE, REUSE, VALUE = 0, 1, 2  # column `wait`
_STEP, _GAP, _LEFT, _TOP, _BOTTOM = 26.0, 210.0, 110.0, 96.0, 80.0
_HIGH, _CHARACTER = 18.0, 6.6


class Node(NamedTuple):
    """A TB, or several with equal edges, as a box around (x, y). ``wait`` -1: stands for TBs left out."""

    kernel: int
    label: str
    wait: int
    x: float
    y: float
    wide: float
    outside: bool


class Edge(NamedTuple):
    """A curve through points, horizontal at each; ``raw``: at least one of its edges is RAW."""

    points: tuple[tuple[float, float], ...]
    raw: bool
    arrow: bool


class Picture(NamedTuple):
    """Everything that is drawn; coordinates are in points from the upper left corner."""

    wide: float
    high: float
    title: str
    heads: list[tuple[float, tuple[str, ...]]]
    nodes: list[Node]
    edges: list[Edge]
    hubs: list[tuple[float, float, bool]]
    links: list[tuple[int, int, bool]]  # producer and consumer node, raw: the same without positions


def _runs(numbers: list[int]) -> str:
    """Write 0, 1, 2, 5 as 0-2, 5; many runs shortened."""
    parts = []
    for _, group in groupby(enumerate(numbers), lambda item: item[1] - item[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    return ", ".join(parts) if len(parts) <= 3 else f"{parts[0]}, … ({len(numbers)} TBs)"


def layout(tables: Mapping[str, Table], title: str, run: int = 0) -> Picture:
    """Lay out the window of one run."""
    tbs, edges, names, every = (
        tables[name][tables[name]["run"] == run]
        for name in ("window_tbs", "window_edges", "names", "dependence_kernels")
    )
    if not len(tbs):
        raise StoreError("a picture needs a window of kernels")
    kernels = sorted(set(tbs["kernel"].tolist()))
    of, nodes = _columns(tbs, edges, kernels)
    links = _links(edges, of)
    hubs, lines = _lines(nodes, links)
    texts = {int(row["name"]): row["text"].decode() for row in names}
    heads: list[tuple[float, tuple[str, ...]]] = []
    for number, kernel in enumerate(kernels):
        row = every[every["kernel"] == kernel][0]
        state = f"{row['free']:,} free to start early" if row["before"] >= 0 else "first in its stream"
        name = texts[int(row["name"])]
        name = name if len(name) <= 28 else name[:27] + "…"
        heads.append((_LEFT + _GAP * number, (f"kernel {kernel}: {name}", f"{row['tbs']:,} TBs, {state}")))
    high = max((node.y for node in nodes), default=_TOP) + _BOTTOM
    wide = max(2 * _LEFT + _GAP * (len(kernels) - 1) + 60, 620.0)
    return Picture(wide, high, title, heads, nodes, lines, hubs, links)


def _columns(tbs: Table, edges: Table, kernels: list[int]) -> tuple[dict[tuple[int, int], int], list[Node]]:
    """Return the node of each (kernel, TB), and the nodes."""
    needs: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    gives: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for _, kernel, tb, source, before, kinds in edges.tolist():
        needs.setdefault((kernel, tb), []).append((source, before, kinds))
        gives.setdefault((source, before), []).append((kernel, tb))
    of: dict[tuple[int, int], int] = {}
    nodes: list[Node] = []
    for column, kernel in enumerate(kernels):
        rows = tbs[tbs["kernel"] == kernel]
        members: dict[object, list[int]] = {}
        for _, _, tb, wait, outside in rows.tolist():
            me = (kernel, tb)
            alike = (wait, outside > 0, tuple(needs.get(me, ())), tuple(gives.get(me, ())))
            members.setdefault(alike if len(rows) > MOST_NODES else tb, []).append(tb)
        shown = list(members.values())
        left = [tb for group in shown[MOST_NODES:] for tb in group]
        places = [(group, False) for group in shown[:MOST_NODES]] + [(left, True)] * bool(left)
        state = {int(row["tb"]): (int(row["wait"]), int(row["outside"]) > 0) for row in rows}
        for place, (group, rest) in enumerate(places):
            label = f"… {len(group):,} more" if rest else _runs(group)
            wait, outside = state[group[0]]
            x, y = _LEFT + _GAP * column, _TOP + _STEP * place
            wide = max(_HIGH, _CHARACTER * len(label) + 10)
            nodes.append(Node(kernel, label, -1 if rest else wait, x, y, wide, outside))
            of |= {(kernel, tb): len(nodes) - 1 for tb in group}
    return of, _centred(nodes)


def _centred(nodes: list[Node]) -> list[Node]:
    """Move short columns towards the middle of the longest one, by whole rows: lines run between these."""
    ends = {node.kernel: node.y for node in nodes}
    low = max(ends.values())
    return [node._replace(y=node.y + (low - ends[node.kernel]) // (2 * _STEP) * _STEP) for node in nodes]


def _links(edges: Table, of: Mapping[tuple[int, int], int]) -> list[tuple[int, int, bool]]:
    """Return which nodes have an edge, and whether any of it is a read after a write."""
    made: dict[tuple[int, int], bool] = {}
    for _, kernel, tb, source, before, kinds in edges.tolist():
        key = (of[source, before], of[kernel, tb])
        made[key] = made.get(key, False) or bool(kinds & 1)
    return [(before, after, raw) for (before, after), raw in sorted(made.items())]


def _lines(
    nodes: list[Node], links: list[tuple[int, int, bool]]
) -> tuple[list[tuple[float, float, bool]], list[Edge]]:
    """Return diamonds and lines; a diamond stands between the producers and consumers that share it."""
    needs: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    for before, after, raw in links:
        needs.setdefault((after, nodes[before].kernel), []).append((before, raw))
    shared: dict[tuple[int, tuple[tuple[int, bool], ...]], list[int]] = {}
    for (after, _), mine in needs.items():
        shared.setdefault((nodes[after].kernel, tuple(mine)), []).append(after)
    hubs: list[tuple[float, float, bool]] = []
    lines: list[Edge] = []
    taken: set[tuple[float, float]] = set()
    for (_, sources), users in shared.items():
        mine, raw = list(sources), any(raw for _, raw in sources)
        if len(mine) < 2 or len(users) < 2 or len(mine) * len(users) <= len(mine) + len(users):
            for after in users:
                for before, kind in mine:
                    end = nodes[after].x - nodes[after].wide / 2, nodes[after].y
                    lines.append(Edge(_way(nodes[before], *end), kind, True))
            continue
        right = min(nodes[after].x - nodes[after].wide / 2 for after in users)
        x = right - _GAP * 0.22
        y = float(np.mean([nodes[number].y for number in (*users, *(before for before, _ in mine))]))
        # on rows, so that no line that passes by between two rows seems to end here
        y = _TOP + round((y - _TOP) / _STEP) * _STEP
        while (x, y) in taken:
            y += _STEP
        taken.add((x, y))
        hubs.append((x, y, raw))
        for before, kind in mine:
            lines.append(Edge(_way(nodes[before], x, y), kind, False))
        for after in users:
            b = nodes[after]
            lines.append(Edge(((x, y), (b.x - b.wide / 2, b.y)), raw, True))
    return hubs, lines


def _way(start: Node, x: float, y: float) -> tuple[tuple[float, float], ...]:
    """Return the points of a line to (x, y): past columns between, it runs between two rows."""
    first = start.x + start.wide / 2, start.y
    between = int((x - start.x - 1) / _GAP)  # columns
    if not between:
        return first, (x, y)
    lane = _TOP + (np.floor((y - _TOP) / _STEP) + 0.5) * _STEP
    near, far = start.x + 0.68 * _GAP, start.x + (between + 0.32) * _GAP
    return first, (near, float(lane)), (far, float(lane)), (x, y)
