"""What synchronisation between TBs gives, network by network: tables as text or Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pysim.stats.schema import Table

from .hardware import Section, percent
from .suite import geometric

NOTHING = 0.02  # gains below this share count as nothing
BASE, IDEAL = "stream", "tb_ideal"
PASSES = ("forward", "training", "decode")


def text_of(value: bytes) -> str:
    """Return a text of a table."""
    return value.decode("utf-8", "replace")


@dataclass(frozen=True)
class Case:
    """A pass of a network on a GPU: its rows of the table ``networks``, one a scheme that could run.

    ``rows``: all have the status ok, and ``stream`` is among them.
    """

    gpu: str
    which: str
    network: str
    rows: Table

    def of(self, scheme: str) -> Any:
        """Return the row of a scheme; None: it could not run."""
        found = self.rows[self.rows["scheme"] == scheme.encode()]
        return found[0] if len(found) else None

    def value(self, scheme: str, column: str) -> float:
        """Return a number of a scheme's row; NaN: it could not run."""
        row = self.of(scheme)
        return float("nan") if row is None else float(row[column])

    def _best(self, finer: int) -> Any:
        apart = (BASE.encode(), IDEAL.encode())
        mine = [row for row in self.rows if row["finer"] == finer and row["scheme"] not in apart]
        return max(mine, key=lambda row: float(row["speedup"]), default=None)

    @cached_property
    def finer(self) -> Any:
        """The fastest scheme under which TBs wait for TBs."""
        return self._best(1)

    @cached_property
    def coarse(self) -> Any:
        """The fastest scheme under which kernels wait for kernels, stream order apart."""
        return self._best(0)

    @property
    def gain(self) -> float:
        """How many times as fast as stream order the finer schemes are at best; NaN without one."""
        return float("nan") if self.finer is None else float(self.finer["speedup"])

    @property
    def over_coarse(self) -> float:
        """How many times as fast as the best of the other schemes they are."""
        others = 1.0 if self.coarse is None else max(1.0, float(self.coarse["speedup"]))
        return self.gain / others

    @property
    def room(self) -> float:
        """How many times as fast as stream order the estimate is."""
        return self.value(BASE, "time_us") / self.value(BASE, "estimate_us")


def cases_of(table: Table) -> list[Case]:
    """Return the passes that have been simulated, by GPU, pass and network in the order of the table."""
    made = []
    good = table[table["status"] == b"ok"]
    for gpu in dict.fromkeys(good["gpu"].tolist()):
        for which in PASSES:
            mine = good[(good["gpu"] == gpu) & (good["run_pass"] == which.encode())]
            for network in dict.fromkeys(mine["network"].tolist()):
                rows = mine[mine["network"] == network]
                if (rows["scheme"] == BASE.encode()).any():
                    made.append(Case(text_of(gpu), which, text_of(network), rows))
    return made


def _ratio(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "-"


def _over_stream(case: Case, column: str) -> list[str]:
    return [percent(float("nan") if case.finer is None else float(case.finer[column]))]


def _speedups(cases: list[Case], schemes: Iterable[str], title: str) -> Section:
    shown = list(schemes)
    energies = any(np.isfinite(case.value(BASE, "energy_j")) for case in cases)
    heads = ["network", "kernels", "TBs", "stream us", *shown, "TB/kernel", "of estimate", "of bound"]
    heads += ["energy saved"] if energies else []
    body = []
    for case in cases:
        first = case.rows[0]
        cells = [case.network, f"{first['kernels']:,}", f"{first['tbs']:,}"]
        cells += [f"{case.value(BASE, 'time_us'):,.1f}"]
        cells += [*(_ratio(case.value(scheme, "speedup")) for scheme in shown), _ratio(case.over_coarse)]
        for column in ("gap_won", "bound_won", *(["energy_saved"] if energies else [])):
            cells += _over_stream(case, column)
        body.append([*cells, percent(float(first["stands_in"]))])
    if len(cases) > 1:
        means = [geometric(case.value(scheme, "speedup") for case in cases) for scheme in shown]
        means.append(geometric(case.over_coarse for case in cases))
        more = [""] * (3 + energies)
        body.append([f"mean of {len(cases)}", "", "", "", *map(_ratio, means), *more])
    return Section("speedups", title, [*heads, "stands in"], body)


def why_nothing(case: Case) -> str:
    """Say why TBs that wait give nothing over stream order, or over kernels that wait; "": they do."""
    if not np.isfinite(case.gain):
        return "no such scheme ran"
    ideal = case.value(IDEAL, "speedup")
    free = f"a table without cost gives {100 * (ideal - 1):z.1f} %" if np.isfinite(ideal) else ""
    if case.gain < 1 + NOTHING:
        idle = f"SMs have no TB for {case.value(BASE, 'sm_idle'):.0%} of the time"
        if free and ideal >= 1 + NOTHING:
            return f"the table costs what it gives: {free}"
        said = f"{free}, " if free else ""
        return f"{said}{idle}, and the estimate is {100 * (case.room - 1):z.1f} % faster"
    if case.over_coarse < 1 + NOTHING and case.coarse is not None:
        name, most = text_of(bytes(case.coarse["scheme"])), float(case.coarse["speedup"])
        much = "as much" if case.over_coarse > 1 - NOTHING else "more"
        return f"whole kernels that wait give {much}: {name} {most:.2f}, TBs {case.gain:.2f}" + (
            f"; {free}" if free and ideal > (1 + NOTHING) * max(most, case.gain) else ""
        )
    return ""


def without(cases: list[Case]) -> list[Section]:
    """Return where TBs that wait give nothing over stream order, or over kernels that wait, and why.

    Cases of which no scheme of TBs that wait ran say neither.
    """
    ran = [case for case in cases if np.isfinite(case.gain)]
    nowhere = [case for case in ran if case.gain < 1 + NOTHING]
    same = [case for case in ran if case not in nowhere and why_nothing(case)]
    made = []
    for name, title, mine in (
        ("nothing", f"nothing over stream order (less than {NOTHING:.0%})", nowhere),
        ("no_more", f"no more than edges between kernels (less than {NOTHING:.0%})", same),
    ):
        body = [[case.network, case.which, case.gpu, why_nothing(case)] for case in mine]
        made.append(
            Section(name, f"{title}: {len(mine)} of {len(ran)}", ["network", "pass", "GPU", "why"], body)
        )
    return made


def left_out(table: Table) -> list[Section]:
    """Return what did not run; what has one reason in many networks is one row."""
    names: dict[tuple[str, str, str], dict[tuple[str, str], None]] = {}
    for row in table[table["status"] != b"ok"]:
        gpu, scheme, status, reason = (text_of(row[key]) for key in ("gpu", "scheme", "status", "reason"))
        mine = names.setdefault((gpu, scheme, reason or status), {})
        mine[text_of(row["network"]), text_of(row["run_pass"])] = None
    body = []
    for (gpu, scheme, why), found in names.items():
        networks, passes = ([*dict.fromkeys(each)] for each in zip(*found, strict=True))
        what = networks[0] if len(networks) == 1 else f"{len(networks)} networks"
        body.append([what, ", ".join(passes), gpu, scheme or "all", why])
    return [Section("left_out", "not simulated", ["network", "pass", "GPU", "scheme", "why"], body)]


def _left(section: Section) -> set[int]:
    """Return the columns of text."""
    return {0} if section.name == "speedups" else set(range(len(section.heads)))


def plain(section: Section) -> str:
    """Lay out a section as text, with its title."""
    left, rows = _left(section), [section.heads, *section.rows]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    out = [
        "  ".join(c.ljust(wide[i]) if i in left else c.rjust(wide[i]) for i, c in enumerate(row)).rstrip()
        for row in rows
    ]
    return "\n".join([section.title, "", *out])


def summary(table: Table) -> Section:
    """Return one table of all GPUs and passes: what kernels that wait give at best, and what TBs do."""
    heads = ["GPU", "pass", "network", "stream, us", "kernels wait", "TBs wait", IDEAL, "TB/kernel"]
    heads += ["of estimate", "of bound", "energy saved", "stands in"]
    body, cases = [], cases_of(table)
    for gpu, which in dict.fromkeys((case.gpu, case.which) for case in cases):
        mine = [case for case in cases if (case.gpu, case.which) == (gpu, which)]
        for case in mine:
            cells = [gpu, which, case.network, f"{case.value(BASE, 'time_us'):,.1f}"]
            for best in (case.coarse, case.finer):
                known = None if best is None else (float(best["speedup"]), text_of(bytes(best["scheme"])))
                cells.append("-" if known is None else f"{known[0]:.2f} {known[1]}")
            cells += [_ratio(case.value(IDEAL, "speedup")), _ratio(case.over_coarse)]
            for column in ("gap_won", "bound_won", "energy_saved"):
                cells += _over_stream(case, column)
            body.append([*cells, percent(float(case.rows[0]["stands_in"]))])
        means = [
            geometric(float("nan") if row is None else float(row["speedup"]) for row in rows)
            for rows in ([case.coarse for case in mine], [case.finer for case in mine])
        ]
        means += [geometric(case.value(IDEAL, "speedup") for case in mine)]
        means += [geometric(case.over_coarse for case in mine)]
        if len(mine) > 1:
            body.append([gpu, which, f"mean of {len(mine)}", "", *map(_ratio, means), "", "", "", ""])
    return Section("summary", "speedup over stream order", heads, body)


def sections(table: Table) -> list[Section]:
    """Return the tables of a study: gains by GPU and pass, where there are none and why, what did not run."""
    cases, made = cases_of(table), []
    schemes = [
        name for name in dict.fromkeys(map(text_of, table["scheme"].tolist())) if name not in ("", BASE)
    ]
    for gpu in dict.fromkeys(case.gpu for case in cases):
        for which in PASSES:
            mine = [case for case in cases if (case.gpu, case.which) == (gpu, which)]
            if mine:
                title = f"{gpu}, {which}: speedup over stream order, and what the fastest TB scheme gives"
                made.append(_speedups(mine, schemes, title))
    everything = [*made, *(without(cases) if cases else []), *left_out(table)]
    return [section for section in everything if section.rows]
