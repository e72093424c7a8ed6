"""What a scheme that decides for itself makes of each workload: tables as text or Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pysim.stats.schema import Table

from .hardware import Section, percent
from .suite import FLOOR, geometric, lines

AUTO, PLAIN = "tb_auto", "-"
RIVALS = ("graph", "pool", "tb_static", "tb_static:reduced")
STENCILS = ("fdtd2d", "hotspot")
LOSS = 0.02  # more time than the best of the rivals by this share is a loss


def words(table: Table, column: str) -> list[str]:
    """Return a column of texts."""
    return [value.decode("utf-8", "replace") for value in table[column].tolist()]


def ran(table: Table, variant: str | None = None) -> Table:
    """Return the rows of runs that ended, of one variant if it is given."""
    some = table["status"] == b"ok"
    if variant is not None:
        some &= table["variant"] == variant.encode()
    made: Table = table[some]
    return made


def times(table: Table) -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the time of each scheme, in us, by group, case and GPU; without variants."""
    made: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in ran(table, PLAIN).tolist():
        named = dict(zip(table.dtype.names or (), row, strict=True))
        place = tuple(named[key].decode() for key in ("group", "case", "gpu"))
        made.setdefault((place[0], place[1], place[2]), {})[named["scheme"].decode()] = named["time_us"]
    return made


def share_of(rows: Table) -> float:
    """Return the geometric mean of the shares of the gap; one below FLOOR counts as FLOOR."""
    shares = rows["share"][np.isfinite(rows["share"])]
    return geometric(np.maximum(shares, FLOOR))


def _number(value: float, digits: int = 2) -> str:
    return f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def _worst(rows: Table) -> str:
    """Say where rows lose most to the best of the rivals."""
    known = rows[np.isfinite(rows["over_best"])]
    if not len(known):
        return "-"
    row = known[np.argmin(known["over_best"])]
    return f"{row['over_best']:.3f} {row['case'].decode()}, {row['gpu'].decode()}"


def _others(rows: Table) -> Table:
    cases = np.array([case.encode() for case in STENCILS])
    return rows[~np.isin(rows["case"], cases)]


def by_workload(table: Table, group: str) -> Section:
    """Return the times of a group, a row for each workload on each GPU."""
    mine = table[table["group"] == group.encode()]
    schemes = list(dict.fromkeys(words(ran(mine, PLAIN), "scheme")))
    body = []
    for (_, case, gpu), known in times(mine).items():
        rows = ran(mine, PLAIN)
        row = rows[(rows["case"] == case.encode()) & (rows["gpu"] == gpu.encode())]
        auto = row[row["scheme"] == AUTO.encode()]
        first = row[0]
        cells = [case, gpu, first["half"].decode(), _number(first["estimate_us"], 1)]
        cells += [_number(known.get(scheme, float("nan")), 1) for scheme in schemes]
        if len(auto):
            cells += [percent(auto[0]["share"]), _number(auto[0]["over_best"], 3)]
            cells += [_number(auto[0]["hint_bytes"], 0), percent(auto[0]["tb_pairs"])]
        else:
            cells += ["-"] * 4
        body.append(cells)
    heads = ["case", "GPU", "half", "estimate us", *schemes, "share", "best / tb_auto", "hint B", "TB pairs"]
    return Section(f"group_{group}", f"{group}: simulated times, us", heads, body)


def summary(table: Table) -> Section:
    """Return shares of the gap and the worst case of each scheme by group, and of tb_auto by half."""
    body = []
    rows = ran(table, PLAIN)
    for group in dict.fromkeys(words(rows, "group")):
        mine = rows[rows["group"] == group.encode()]
        own = mine[mine["scheme"] == AUTO.encode()]
        parts = [(group, mine)]
        if len(_others(mine)) < len(mine):
            parts.append((f"{group}, no stencils", _others(own)))
        parts += [(f"{group}, {half}", own[own["half"] == half.encode()]) for half in ("tuning", "apart")]
        for label, part in parts:
            for scheme in dict.fromkeys(words(part, "scheme")):
                own = part[part["scheme"] == scheme.encode()]
                if scheme == "stream":
                    continue
                lost = int((own["over_best"] < 1 - LOSS).sum())
                faster = geometric(own["over_best"].tolist())
                cells = [label, scheme, str(len(own)), _number(share_of(own), 3), _number(faster, 3)]
                body.append([*cells, str(lost), _worst(own)])
    heads = ["workloads", "scheme", "cases", "share", "best / this", f"lose over {LOSS:.0%}", "worst"]
    return Section("summary", "share of the gap to the estimate, and the best of four over this", heads, body)


def variants(table: Table, labels: Sequence[str] | None = None, name: str = "variants") -> Section:
    """Return what is left of tb_auto's share with one thing changed; ``labels``: these alone."""
    plain = ran(table, PLAIN)
    plain = plain[plain["scheme"] == AUTO.encode()]
    changed = ran(table)
    changed = changed[changed["variant"] != PLAIN.encode()]
    found = list(dict.fromkeys(words(changed, "variant")))
    groups = dict.fromkeys(words(changed, "group"))
    base = plain[np.isin(plain["group"], [group.encode() for group in groups])]
    clock = {(r["case"], r["gpu"]): float(r["time_us"]) for r in base}
    body = []
    for label in [PLAIN, *(found if labels is None else [each for each in labels if each in found])]:
        rows = base if label == PLAIN else changed[changed["variant"] == label.encode()]
        if not len(rows):
            continue
        ratio = [float(r["time_us"]) / clock.get((r["case"], r["gpu"]), float("nan")) for r in rows]
        cells = ["as it is" if label == PLAIN else label, str(len(rows)), _number(share_of(rows), 3)]
        cells += [_number(share_of(_others(rows)), 3), _number(geometric(ratio), 3)]
        body.append([*cells, _number(max(ratio), 3), _worst(rows)])
    heads = ["changed", "cases", "share", "no stencils", "time, mean", "time, most", "worst"]
    return Section(name, "tb_auto with one thing changed; times over those as it is", heads, body)


def losses(table: Table) -> Section:
    """Return each case where tb_auto takes over ``LOSS`` more time than the best of the rivals."""
    rows = ran(table, PLAIN)
    rows = rows[(rows["scheme"] == AUTO.encode()) & (rows["over_best"] < 1 - LOSS)]
    known = times(table)
    body = []
    for row in rows[np.argsort(rows["over_best"], kind="stable")]:
        group, case, gpu = (row[key].decode() for key in ("group", "case", "gpu"))
        mine = {name: time for name, time in known[group, case, gpu].items() if name in RIVALS}
        best = min(mine, key=lambda name: mine[name])
        cells = [group, case, gpu, f"{best} {mine[best]:,.1f}", _number(row["time_us"], 1)]
        body.append([*cells, _number(row["over_best"], 3)])
    heads = ["group", "case", "GPU", "best, us", "tb_auto us", "best / tb_auto"]
    return Section("losses", f"where tb_auto loses over {LOSS:.0%}: {len(body)}", heads, body)


def left_out(table: Table) -> Section:
    """Return what did not run, and why."""
    bad = table[table["status"] != b"ok"]
    keys = ("group", "case", "gpu", "variant", "scheme", "reason")
    body = [[row[key].decode("utf-8", "replace") for key in keys] for row in bad]
    return Section("left_out", "not simulated", [*keys], body)


def plain(section: Section) -> str:
    """Lay out a section as text, with its title."""
    return "\n".join([section.title, "", *lines(section.heads, section.rows)])


def sections(table: Table) -> list[Section]:
    """Return all tables that have rows."""
    groups = dict.fromkeys(words(ran(table, PLAIN), "group"))
    made = [by_workload(table, group) for group in groups]
    found = [*made, summary(table), losses(table), variants(table), left_out(table)]
    return [
        section for section in found if section.rows and (section.name != "variants" or len(section.rows) > 1)
    ]
