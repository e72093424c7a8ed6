"""A sweep as the report shows it: the runs of all points of a grid, and the files of one point to draw."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.checked import check
from pysim.stats.schema import Table
from pysim.stats.store import Results, StoreError, decode
from pysim.stats.sweep import PLAN, POINTS, SweepResults

VALUES = ("time_us", "speedup", "gap_won", "sm_idle", "alu_utilization", "dram_bytes", "l2_bytes", "energy_j")
NEEDS = {"runs": ("scheme", "status")}
MOST_RUNS = 200_000  # of all points: 12 MB of the page


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs of a grid. ``keys``: of the grid; ``grid``: a column of values a key; ``runs``: their rows.

    ``chosen``: files whose runs are drawn, which are of one point, with ``labels``; ``missing``: points of
    ``points`` without a result.
    """

    keys: tuple[str, ...]
    grid: tuple[NDArray[Any], ...]
    runs: Table
    chosen: tuple[Path, ...]
    labels: tuple[str, ...]
    points: int
    missing: int

    @classmethod
    def of(cls, folder: str | os.PathLike[str], point: int | None = None) -> Sweep:
        """Read the folder of a sweep, or a folder of result files, each of which is a point then.

        ``point``: number of the one to draw (default: the first that has a result). Raises StoreError for a
        folder without results, and for a point that there is not or that has no result.
        """
        path = Path(folder)
        if not (path / PLAN).is_file():
            return cls._of_files(path, point)
        results = SweepResults(path)
        done = {part.place for part in results.parts}
        _check_point(path, point, results.points, done)
        tables, _ = results.merged(("runs",))
        chosen = min(done) if point is None else point
        parts = [part for part in results.parts if part.place == chosen]
        text = ", ".join(f"{key}={value}" for key, value in zip(results.keys, parts[0].values, strict=True))
        return cls(
            results.keys,
            tuple(decode(tables[POINTS][key]) for key in results.keys),
            tables["runs"],
            tuple(part.path for part in parts),
            tuple(text or part.path.stem for part in parts),
            results.points,
            results.missing,
        )

    @classmethod
    def _of_files(cls, path: Path, point: int | None) -> Sweep:
        files, tables = [], []
        for file in sorted(path.glob("*.h5")):
            try:
                results = Results(file)
            except StoreError:
                continue  # not ours, or not complete
            if "runs" not in results:
                continue
            runs = results.array("runs")
            check({"runs": runs}, str(file), NEEDS)
            if len(runs):
                files.append(file)
                tables.append(runs)
        if not files:
            raise StoreError(f"{path} holds neither a sweep nor result files")
        _check_point(path, point, len(files), set(range(len(files))))
        names = [
            name for name in tables[0].dtype.names or () if all(name in (t.dtype.names or ()) for t in tables)
        ]
        chosen = files[point or 0]
        return cls(
            ("file",),
            (np.repeat([file.stem for file in files], [len(table) for table in tables]).astype(object),),
            np.concatenate([table[names] for table in tables]),
            (chosen,),
            (chosen.stem,),
            len(files),
            0,
        )

    @classmethod
    def of_results(cls, results: Results) -> Sweep | None:
        """Return the sweep that ``pysim collect`` wrote to a file; None: the file is no such one."""
        if POINTS not in results or "runs" not in results:
            return None
        points, runs = results.array(POINTS), results.array("runs")
        keys = tuple(name for name in points.dtype.names or () if name != "run")
        if len(points) != len(runs):
            raise StoreError(f"{results.path} is damaged: {POINTS} and runs do not have as many rows")
        known = results.configuration
        return cls(
            keys,
            tuple(decode(points[key]) for key in keys),
            runs,
            (results.path,),
            (results.path.stem,),
            int(known.get("points", 0)),
            int(known.get("missing", 0)),
        )

    def title(self) -> str:
        """Return workloads, GPUs and the number of points as a title."""
        names = [text.partition(":")[0] for text in decode(self.runs["workload"]).tolist()]
        points = self.points or len(set(zip(*(column.tolist() for column in self.grid), strict=True)))
        return (
            f"Sweep of {_few(names, 'workloads')} on {_few(decode(self.runs['gpu']).tolist(), 'GPUs')}:"
            f" {points:,} point{'' if points == 1 else 's'}"
        )

    def data(self) -> dict[str, Any]:
        """Return the runs for JSON: texts by number, NaN as null. Raises StoreError for too many runs."""
        if len(self.runs) > MOST_RUNS:
            raise StoreError(f"{len(self.runs):,} runs are too many for a page: at most {MOST_RUNS:,}")
        schemes = decode(self.runs["scheme"])
        names = [name for name in VALUES if name in (self.runs.dtype.names or ())]
        return {
            "keys": list(self.keys),
            "grid": [_numbered(column) for column in self.grid],
            "scheme": _numbered(schemes),
            "status": _numbered(decode(self.runs["status"])),
            "values": {name: _rounded(self.runs[name]) for name in names},
            "points": self.points,
            "missing": self.missing,
        }


def _check_point(path: Path, point: int | None, points: int, done: set[int]) -> None:
    if not done:
        raise StoreError(f"{path}: no point is done")
    if point is None or point in done:
        return
    if point >= points:
        raise StoreError(f"{path} has no point {point}: there are 0 to {points - 1}")
    raise StoreError(f"{path}: point {point} has no result yet")


def _few(names: list[str], what: str) -> str:
    """Return distinct names, or how many there are where they are many."""
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct) if 0 < len(distinct) < 4 else f"{len(distinct)} {what}"


def _numbered(column: NDArray[Any]) -> dict[str, list[Any]]:
    """Return distinct values in the order in which they come, and the number of each row's value."""
    known: dict[Any, int] = {}
    index = [known.setdefault(value, len(known)) for value in column.tolist()]
    return {"values": list(known), "index": index}


def _rounded(column: NDArray[Any]) -> list[float | None]:
    """Return numbers with the seven digits that a chart can use."""
    return [float(f"{value:.7g}") if np.isfinite(value) else None for value in column.tolist()]
