"""The study of the dependence table: sweeps around a configuration, and the descent to the smallest one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from pysim import Config
from pysim.workloads.studies.table_size import (
    ALL,
    CONSUMERS,
    COUNTS,
    DIMENSIONS,
    ENTRIES,
    LATENCY,
    NETWORKS,
    OPTIONS,
    OTHERS,
    TABLE,
    UPDATE,
    WINDOW,
    Dimension,
    Point,
    all_of,
    gains,
    price,
    structures,
    swept,
    thinned,
)
from pysim.workloads.validation.kept import Figures

KEPT = 0.95  # share of the best gain that the smallest configuration keeps
ROUNDS, QUICK_ROUNDS = 24, 2
_AT_ONCE = 4  # candidates that are simulated together
Run = Callable[[Iterable[Point]], Mapping[Point, Figures]]


@dataclass(slots=True)
class Search:
    """The descent of one network: ``at`` is the smallest configuration so far that keeps enough."""

    text: str
    least: float  # gain that must be kept
    at: Point
    best: float = float("nan")
    done: bool = False

    def candidates(self, config: Config) -> list[Point]:
        """Return smaller configurations next to where the search is, those of fewest bits first."""
        now = price(self.at, config)
        made = {self._moved(config, *move) for move in _MOVES}
        costs = {point: price(point, config) for point in made if point is not None}
        return sorted((p for p in costs if costs[p] < now), key=lambda p: (costs[p], p.settings))

    def _moved(self, config: Config, *steps: int) -> Point | None:
        point, values = self.at, self.at.config(config)
        for (path, grid), step in zip(_GRIDS.items(), steps, strict=True):
            now = int(values.number(path))
            at = int(np.searchsorted(grid, now)) + step
            if step and not 0 <= at < len(grid):
                return None
            if step:
                point = point.with_(path, grid[at])
        return point


# finer than the sweeps towards small tables
_GRIDS = {
    WINDOW: (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, ALL),
    ENTRIES: tuple(16 << i for i in range(13)),
    CONSUMERS: tuple(1 << i for i in range(7)),
}
_MOVES = (
    (-1, 0, 0), (0, -1, 0), (0, 0, -1), (-1, -1, 0), (0, -1, -1), (-1, 0, -1), (-1, -1, -1),
    (0, -1, 1), (-2, -2, 0), (0, 1, -1), (0, -3, 0),
)  # fmt: skip


def smallest(
    texts: Iterable[str],
    dimensions: Sequence[Dimension],
    config: Config,
    found: dict[Point, Figures],
    run: Run,
    rounds: int,
) -> dict[str, Search]:
    """Descend from the best known configuration of each network, all networks side by side.

    Every round tries the smaller neighbours of each and takes the smallest that keeps ``KEPT`` of the best
    gain; a network is done when none does. ``found`` grows by what ``run`` simulates.
    """
    searches: dict[str, Search] = {}
    for text in texts:
        gain = gains(found, text)
        tables = [
            Point(text, "tb_static"),
            *(p for d in dimensions if d.scheme == TABLE for p in swept(text, d, config).values()),
        ]
        tables = [point for point in tables if np.isfinite(gain(point))]
        if not tables:
            continue
        best = max(map(gain, tables))
        least = KEPT * best
        # speeds stay as the call has them
        kept = [
            point
            for point in tables
            if gain(point) >= least and not {UPDATE, LATENCY} & {*dict(point.settings)}
        ] or [max(tables, key=gain)]
        searches[text] = Search(text, least, min(kept, key=lambda p: (price(p, config), p.settings)), best)
    for _ in range(rounds):
        tried = {text: search.candidates(config) for text, search in searches.items() if not search.done}
        if not tried:
            break
        for begin in range(0, len(_MOVES), _AT_ONCE):
            # the smallest first, as larger ones are not asked for where one of these will do
            some = {text: points[begin : begin + _AT_ONCE] for text, points in tried.items()}
            found.update(run(point for points in some.values() for point in points if point not in found))
            for text, points in some.items():
                gain = gains(found, text)
                good = [point for point in points if gain(point) >= searches[text].least]
                if good:
                    searches[text].at = good[0]
                    del tried[text]
        for text in tried:
            searches[text].done = True
    return searches


def slowest(
    searches: Mapping[str, Search],
    config: Config,
    dimensions: Sequence[Dimension],
    found: dict[Point, Figures],
    run: Run,
) -> dict[str, dict[str, int]]:
    """Return, for the smallest configuration of each network, the slowest table that still keeps enough.

    By network and dimension in SM cycles, each alone; 0 where even a cycle is too slow.
    """
    scale = 1e3 / config.number("gpu.clock")
    slow = [dimension for dimension in dimensions if dimension.cycles]
    points = {
        (text, dim.name, value): search.at.with_(dim.path, value * scale)
        for text, search in searches.items()
        for dim in slow
        for value in dim.values
    }
    found.update(run(point for point in points.values() if point not in found))
    made: dict[str, dict[str, int]] = {}
    for text, search in searches.items():
        gain = gains(found, text)
        made[text] = {
            dim.name: max(
                (v for v in dim.values if gain(points[text, dim.name, v]) >= search.least), default=0
            )
            for dim in slow
        }
    return made


@dataclass(slots=True)
class Study:
    """What is to be run, and what it gave."""

    texts: dict[str, str]  # workload of each network
    dimensions: Sequence[Dimension]
    rounds: int
    config: Config
    found: dict[Point, Figures] = field(default_factory=dict)
    searches: dict[str, Search] = field(default_factory=dict)
    slow: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Sequence[str], quick: bool, config: Config) -> Study:
        """Return the study of some networks; ``quick``: small ones, few values, a short search."""
        texts = {name: NETWORKS[name].quick if quick else NETWORKS[name].text for name in names}
        rounds = QUICK_ROUNDS if quick else ROUNDS
        return cls(texts, thinned(DIMENSIONS) if quick else DIMENSIONS, rounds, config)

    def run(self, processes: int, fresh: bool, progress: Callable[[int, int], None]) -> Study:
        """Simulate sweeps, search and speeds; points that were simulated before are not again."""
        run = partial(all_of, config=self.config, processes=processes, fresh=fresh, progress=progress)
        points = [Point(text, scheme) for text in self.texts.values() for scheme in _SCHEMES]
        points += [point for _, _, point in self._sweeps()]
        self.found = dict(run(points))
        texts, known = self.texts.values(), self.found
        self.searches = smallest(texts, self.dimensions, self.config, known, run, self.rounds)
        self.slow = slowest(self.searches, self.config, self.dimensions, known, run)
        return self

    def _sweeps(self) -> list[tuple[str, int, Point]]:
        return [
            (dimension.name, value, point)
            for text in self.texts.values()
            for dimension in self.dimensions
            for value, point in swept(text, dimension, self.config).items()
        ]


_SCHEMES = ("stream", *OTHERS, *OPTIONS)


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _row(study: Study, point: Point, dimension: str, value: int) -> dict[str, Any]:
    own, got = point.config(study.config), study.found[point]
    network = next(name for name, text in study.texts.items() if text == point.text)
    row = {
        "run": 0, "network": network, "workload": point.text, "scheme": point.scheme,
        "dimension": dimension, "value": value, "window": own.integer(WINDOW),
        "entries": own.integer(ENTRIES), "consumers": own.integer(CONSUMERS),
        "update_ns": own.number(UPDATE), "latency_ns": own.number(LATENCY),
        "status": "refused" if got.reason else "ok", "time_us": got.values.get("time_us", np.nan),
        "gain": gains(study.found, point.text)(point), "bits": price(point, study.config, got),
    }  # fmt: skip
    row["spill_bytes"] = int(got.values.get("table_l2_bytes", 0))
    return row | {name: int(got.values.get(name, 0)) for name in COUNTS}


def tables_of(study: Study) -> dict[str, dict[str, list[Any]]]:
    """Return the columns of `table_size`, `smallest` and `hardware` (``stats/hardware_schema.py``)."""
    rows, small, parts = [], [], []
    for name, text in study.texts.items():
        gain = gains(study.found, text)
        for scheme in _SCHEMES:
            point = Point(text, scheme)
            rows.append(_row(study, point, "scheme", 0))
            for each in structures(point, study.config, study.found[point]):
                parts += [
                    {
                        "run": 0, "network": name, "scheme": scheme, "structure": each.name,
                        "on_chip": each.on_chip, "count": each.count, "field": field.name,
                        "bits": field.bits, "doc": field.doc,
                    }
                    for field in each.fields
                ]  # fmt: skip
        if text not in study.searches:
            continue
        search, table, pool = study.searches[text], Point(text, "tb_static"), Point(text, "pool")
        at = search.at.config(study.config)
        small.append(
            {
                "run": 0, "network": name, "window": at.integer(WINDOW), "entries": at.integer(ENTRIES),
                "consumers": at.integer(CONSUMERS), "bits": price(search.at, study.config),
                "gain": gain(search.at), "best": search.best, **study.slow[text],
                "default_bits": price(table, study.config), "default_gain": gain(table),
                "pool_bits": price(pool, study.config), "pool_gain": gain(pool),
            }
        )  # fmt: skip
    swept_points = study._sweeps()
    rows += [_row(study, point, dimension, value) for dimension, value, point in swept_points]
    known = {point for _, _, point in swept_points}
    tried = [p for p in study.found if p.settings and p not in known]
    rows += [_row(study, point, "search", 0) for point in tried]
    return {"table_size": _columns(rows), "smallest": _columns(small), "hardware": _columns(parts)}
