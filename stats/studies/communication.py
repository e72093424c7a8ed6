"""Communication in tensor-parallel layers as text: errors of projections, shares of the sweep."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pysim.stats.schema import Table

from .hardware import Section

SIZES = ["hidden", "seq", "batch", "shards"]
NAMES = ["features", "tokens", "batch", "shards"]


def _percent(value: float) -> str:
    return f"{100 * value:z.1f}"


def _text(value: bytes) -> str:
    return value.decode().replace("_", "-")


def errors(checks: Table, published: Mapping[str, float]) -> list[Section]:
    """Return simulated and projected values of each layer, and mean absolute errors of a kind.

    ``published``: mean errors of operator models. The baseline, the first layer, has no error and is left
    out of the means.
    """
    kinds = list(dict.fromkeys(checks["kind"].tolist()))
    points = list(dict.fromkeys(checks[SIZES].tolist()))
    body = []
    for number, point in enumerate(points):
        mine = checks[[row == point for row in checks[SIZES].tolist()]]
        cells = ["check" if number else "baseline", *(f"{size:,}" for size in point)]
        for row in mine:
            scale, digits = (100, 1) if row["unit"] == b"share" else (1, 0)
            cells.append(f"{scale * row['simulated']:,.{digits}f}")
            cells.append(f"{100 * row['error']:+z.1f}" if number else "")
        body.append(cells)
    heads = ["", *NAMES]
    for kind in kinds:
        heads += [f"{_text(kind)} {'%' if kind == b'share' else 'us'}", "err %"]
    title = "simulated layers, and errors of their projection from the baseline"
    made = [Section("checks", title, heads, body)]
    if len(points) > 1:
        made.append(_means(checks, points, published))
    return made


def _means(checks: Table, points: list[tuple[int, ...]], published: Mapping[str, float]) -> Section:
    """Return mean absolute errors of a kind, of all layers and of those longer than the baseline."""
    of = [row != points[0] for row in checks[SIZES].tolist()]
    away, base = checks[of], checks[~np.array(of)]
    times = away[away["kind"] == b"layer"]
    longer = times["simulated"] > base["simulated"][base["kind"] == b"layer"][0]
    rows = []
    for kind in dict.fromkeys(checks["kind"].tolist()):
        sizes = np.abs(away["error"][away["kind"] == kind])
        known = published.get(kind.decode())
        more = _percent(sizes[longer].mean()) if longer.any() else ""
        said = "" if known is None else _percent(known)
        rows.append([_text(kind), _percent(sizes.mean()), _percent(sizes.max()), more, said])
    title = f"absolute errors over {len(times)} layers, of which {longer.sum()} take longer than the baseline"
    return Section(
        "errors", title, ["kind", "mean %", "most %", "mean of longer %", "published mean %"], rows
    )


def under_rule(table: Table, seq: int, batch: int, features: int) -> Table:
    """Return the rows of a sequence length and batch in which a shard has so many features."""
    mine = (table["seq"] == seq) & (table["batch"] == batch)
    chosen: Table = table[mine & (table["hidden"] == features * table["shards"])]
    return chosen


def shares(rows: Table, title: str) -> Section:
    """Return a row a layer: times on today's hardware, then share and overlap for each ratio."""
    ratios = list(dict.fromkeys(rows["ratio"].tolist()))
    heads = ["features", "shards", "compute us", "all-reduce us", "by delay us"]
    heads += [f"share % x{ratio:g}" for ratio in ratios] + [f"DP hidden % x{ratio:g}" for ratio in ratios]
    body = []
    for hidden in dict.fromkeys(rows["hidden"].tolist()):
        mine = rows[rows["hidden"] == hidden]
        first = mine[0]
        cells = [f"{hidden:,}", f"{first['shards']}", f"{first['compute_us']:,.0f}"]
        cells += [f"{first['all_reduce_us']:,.0f}", f"{first['delay_us']:,.0f}"]
        cells += [_percent(row["share"]) for row in mine] + [_percent(row["overlapped"]) for row in mine]
        body.append(cells)
    return Section("shares", title, heads, body)


def ranges(table: Table, published: tuple[float, float]) -> Section:
    """Return a row a ratio: the range of shares over the sweep, and how many are in the published one."""
    heads = ["ratio", "layers", "least %", "median %", "most %", "in the published range %"]
    heads += ["DP all hidden %"]
    body = []
    for ratio in dict.fromkeys(table["ratio"].tolist()):
        mine = table[table["ratio"] == ratio]
        found = mine["share"]
        inside = (found >= published[0]) & (found <= published[1])
        cells = [f"x{ratio:g}", f"{len(mine):,}", *map(_percent, np.quantile(found, (0, 0.5, 1)))]
        body.append([*cells, _percent(inside.mean()), _percent((mine["overlapped"] >= 1).mean())])
    title = f"share of communication over the whole sweep (published: {_percent(published[0])} to"
    return Section("ranges", f"{title} {_percent(published[1])} %)", heads, body)
