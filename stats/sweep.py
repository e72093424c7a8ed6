"""Results of a sweep: many files of one folder as one frame, or as one file.

The folder's ``sweep.json`` names the points of the grid in order and the files of each;
``pysim.sweep.folder`` describes it.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import schema
from .column import RUN, Column
from .errors import as_path
from .missing import how_to_install
from .schema import Table
from .store import Results, StoreError, decode, write
from .waits import KERNEL_LEVEL

if TYPE_CHECKING:
    import pandas as pd

PLAN = "sweep.json"
POINTS = "points"  # the table of a collected file that holds the grid's keys of each run
LEFT_OUT = ("host",)  # differs between two runs of the same thing


@dataclass(frozen=True, slots=True)
class Part:
    """A result file that holds runs of a point of the grid. ``place``: number of the point."""

    place: int
    values: tuple[Any, ...]
    path: Path


class SweepResults:
    """The results of a sweep's folder.

    Raises StoreError if the folder holds no sweep. ``keys``: of the grid; ``missing``: points without a file.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.path = Path(folder)
        file = self.path / PLAN
        try:
            plan = json.loads(file.read_text(encoding="utf-8"))
            self.workload, self.code = str(plan["workload"]), str(plan["code"])
            self.keys = tuple(str(key) for key in plan["keys"])
            self.schemes = tuple(str(name) for name in plan["schemes"])
            places = [(tuple(row["values"]), tuple(row["files"])) for row in plan["places"]]
            if len({RUN.name, *self.keys}) != len(self.keys) + 1:
                raise ValueError("keys that are not different")
            for values, keys in places:
                if len(values) != len(self.keys) or not all(isinstance(v, int | float | str) for v in values):
                    raise ValueError(f"values {values}")
                if not keys or not all(isinstance(key, str) for key in keys):
                    raise ValueError(f"files {keys}")
        except FileNotFoundError:
            raise StoreError(f"{self.path} holds no sweep: there is no {PLAN}") from None
        except OSError as error:
            raise StoreError(f"{file} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreError(f"{file} is damaged: {error}") from error
        parts = [
            Part(number, values, self.path / "points" / f"{Path(key).name}.h5")
            for number, (values, keys) in enumerate(places)
            for key in keys
        ]
        self.parts = tuple(part for part in parts if part.path.is_file())
        self.points = len(places)
        self._kernel_level: set[str] = set()  # of the files read
        self.missing = len({part.place for part in parts if part not in set(self.parts)})

    def frame(self) -> pd.DataFrame:
        """Return the runs of all points that are done in grid order, the grid's keys first.

        A key that is named like a column of ``runs`` and differs from it is the column ``grid.KEY``.
        ``attrs`` holds the units and meanings of columns and the number of points that are ``missing``. Warns
        of missing points.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise StoreError(f"data frames need pandas: {how_to_install('plot')}") from error
        if self.missing:
            warnings.warn(f"{self.path}: {self.missing} of {self.points} points are missing", stacklevel=3)
        tables, columns = self.merged(("runs",))
        runs, places = tables["runs"], tables[POINTS]
        names = runs.dtype.names or ()
        made = {}
        for key in self.keys:
            values = decode(places[key])
            if key not in names:
                made[key] = values
            elif not np.array_equal(values, decode(runs[key])):  # another thing than the column of that name
                made[f"grid.{key}"] = values
        made |= {name: decode(runs[name]) for name in runs.dtype.names or ()}
        frame = pd.DataFrame(made)
        frame.attrs["units"] = {column.name: column.unit for column in columns.get("runs", ())}
        frame.attrs["docs"] = {column.name: column.doc for column in columns.get("runs", ())}
        frame.attrs["missing"] = self.missing
        return frame

    @property
    def configuration(self) -> dict[str, Any]:
        """What a file of the whole sweep says of its making."""
        return {
            "sweep": self.workload,
            "keys": list(self.keys),
            "schemes": list(self.schemes),
            "points": self.points,
            "missing": self.missing,
            "code": self.code,
        }

    def check_complete(self, partial: bool = False) -> None:
        """Raise StoreError if points are missing; with ``partial`` only if no point is done."""
        if self.missing and not partial:
            raise StoreError(
                f"{self.path}: {self.missing} of {self.points} points are missing:"
                " run pysim sweep again, or take those there are with --partial"
            )
        if not self.parts:
            raise StoreError(f"{self.path}: no point is done")

    def names(self) -> list[str]:
        """Return the names of the tables that the files have, but for those that differ between runs."""
        found: dict[str, None] = {}
        for part in self.parts:
            found |= dict.fromkeys(name for name in Results(part.path) if name not in LEFT_OUT)
        return list(found)

    def kernel_level(self) -> dict[str, str]:
        """Return the attribute that lists schemes that order whole kernels; empty until tables are merged."""
        return {KERNEL_LEVEL: json.dumps(sorted(self._kernel_level))} if self._kernel_level else {}

    def merged(
        self, wanted: Sequence[str], most_bytes: int | None = None
    ) -> tuple[dict[str, Table], dict[str, tuple[Column, ...]]]:
        """Return tables of all points, with runs numbered in grid order, and their columns.

        A scheme that several files of a point hold counts once. ``most_bytes``: of all tables; StoreError
        beyond it.
        """
        rows: dict[str, list[Table]] = {name: [] for name in wanted}
        columns: dict[str, tuple[Column, ...]] = {}
        values: dict[int, tuple[Any, ...]] = {}
        size = 0
        for part, results, held, number in self._runs():
            for name in set(wanted) & set(results):
                table = held[name]
                if name not in columns:
                    columns[name] = results.columns(name)
                kept = table[np.isin(table["run"], list(number))]
                kept["run"] = [number[run] for run in kept["run"].tolist()]
                size += kept.nbytes
                if most_bytes is not None and size > most_bytes:
                    raise StoreError(
                        f"{self.path}: the tables take more than {most_bytes >> 20:,} MiB: choose fewer"
                    )
                rows[name].append(kept)
            values |= dict.fromkeys(number.values(), part.values)
        order = sorted(values)
        tables = {name: _joined(name, parts, order) for name, parts in rows.items() if parts}
        if "runs" in wanted:
            tables.setdefault("runs", np.zeros(0, [("run", "<i4")]))
        tables[POINTS] = _grid_table(self.keys, [values[number] for number in order])
        columns[POINTS] = (
            RUN,
            *(
                Column(key, tables[POINTS].dtype[key].str, "", "Value of the grid's key.")
                for key in self.keys
            ),
        )
        return tables, columns

    def _runs(self) -> Iterator[tuple[Part, Results, dict[str, Table], dict[int, int]]]:
        """Yield each file, its tables and the runs to take from it: new numbers by those in the file.

        Numbers ascend in grid order, and with the schemes of the plan inside a point. Raises StoreError for a
        file whose tables do not have the hash that was stored with them, and for one of another point.
        """
        seen: set[int] = set()
        wanted = {name.encode(): at for at, name in enumerate(self.schemes)}
        for part in self.parts:
            try:
                results = Results(part.path)
                held = results.verify()
            except StoreError as error:
                raise StoreError(f"{error}: delete it and run pysim sweep again") from error
            if results.attributes.get("point") != part.path.stem:
                raise StoreError(f"{part.path} holds another point: delete it and run pysim sweep again")
            self._kernel_level |= set(json.loads(str(results.attributes.get(KERNEL_LEVEL, "[]"))))
            runs = held["runs"]
            number = {}
            for run, scheme in zip(runs["run"].tolist(), runs["scheme"].tolist(), strict=True):
                new = part.place * len(wanted) + wanted.get(scheme, 0)
                if scheme in wanted and new not in seen:
                    seen.add(new)
                    number[run] = new
            yield part, results, held, number


def collect(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    tables: Sequence[str] = (),
    partial: bool = False,
    force: bool = False,
    most_bytes: int | None = None,
) -> int:
    """Write the results of a sweep to one file; return its number of runs.

    The rows stand in grid order, the last key fastest, schemes fastest of all; the table ``points`` holds the
    grid's keys of each run. The bytes are the same whoever simulated the points, in whatever order: ``host``
    is left out. ``tables``: names (default: all that the files have). Raises StoreError for missing points
    (without ``partial``), and for what :func:`write` refuses.
    """
    results = SweepResults(folder)
    results.check_complete(partial)
    known = results.names()
    for name in tables:
        if name not in known:
            raise StoreError(f"{results.path} has no table {name}: there are {', '.join(sorted(known))}")
    chosen = [name for name in known if not tables or name in (*tables, "runs", "names")]
    made, columns = results.merged(chosen, most_bytes)
    # strings are as long as the longest of all files
    declared = {
        name: [Column(c.name, made[name].dtype[c.name].str, c.unit, c.doc) for c in columns[name]]
        for name in made
        if name not in schema.TABLES
    }
    about = {"script": "sweep", "workload": results.workload, **results.kernel_level()}
    write(out, made, about, results.configuration, force, declared=declared)
    return len(made["runs"])


def _joined(name: str, parts: Sequence[Table], order: Sequence[int]) -> Table:
    """Return the rows of several files as one table, with runs numbered as ``order`` sorts them."""
    if any(part.dtype.names != parts[0].dtype.names for part in parts):
        raise StoreError(f"table {name}: files have different columns")
    made = np.concatenate(parts)
    made["run"] = np.searchsorted(order, made["run"])
    return made[np.argsort(made["run"], kind="stable")]


def _grid_table(keys: Sequence[str], values: Sequence[tuple[Any, ...]]) -> Table:
    """Return the table ``points``: run, then a column for each key of the grid."""
    columns: dict[str, Any] = {}
    for at, key in enumerate(keys):
        mine = [row[at] for row in values]
        plain = all(isinstance(value, int | float) for value in mine)
        columns[key] = np.array(mine if plain else [str(value).encode() for value in mine] or [b""][:0])
    kinds = [("run", "<i4")]
    for key, column in columns.items():
        kind = column.dtype if len(column) else np.dtype("S1")
        kinds.append((key, kind.str))
    made = np.zeros(len(values), kinds)
    made["run"] = np.arange(len(values))
    for key, column in columns.items():
        made[key] = column
    return made


def load(path: str | os.PathLike[str]) -> Any:
    """Open a result file, or a sweep's folder.

    A file gives its :class:`Results`; tables are read when they are asked for. A folder gives one data frame:
    the runs of all points that are done (:meth:`SweepResults.frame`).
    """
    return SweepResults(path).frame() if as_path(path).is_dir() else Results(path)
