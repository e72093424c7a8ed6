"""The two sides of a comparison: a result file or a sweep's folder as tables, keys of runs, configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pysim.stats.checked import check_types
from pysim.stats.column import Declared
from pysim.stats.schema import Table
from pysim.stats.store import Results, StoreError, decode
from pysim.stats.sweep import LEFT_OUT, POINTS, SweepResults

# names of a comparison's own columns: a grid's key of such a name is grid.KEY
TAKEN = (
    "run",
    "name",
    "occurrence",
    "kernel_a",
    "kernel_b",
    "column",
    "unit",
    "a",
    "b",
    "difference",
    "ratio",
)


class Simulated(Protocol):
    """A result that is in memory, such as a ``pysim.Result``."""

    @property
    def configuration(self) -> dict[str, Any]:
        """What a file of it says of its making."""

    def tables(self) -> Mapping[str, Table]:
        """Return structured arrays by name."""

    def columns(self, name: str) -> Sequence[Declared]:
        """Return the columns of a table."""


Comparable = str | os.PathLike[str] | Results | SweepResults | Simulated


@dataclass(frozen=True, slots=True)
class Side:
    """One of two things that are compared.

    ``grid``: the values of each key of a sweep, a row a run; ``units``: of columns, by table.
    """

    label: str
    tables: Mapping[str, Table]
    units: Mapping[str, Mapping[str, str]]
    grid: Mapping[str, list[Any]]
    configuration: Mapping[str, Any]

    def column(self, table: str, name: str) -> Any:
        """Return a column, texts as ``str``."""
        return decode(self.tables[table][name])


def side(given: Comparable, most_bytes: int | None = None) -> Side:
    """Read a result file or a sweep's folder, after checking that its tables have their hash, or a result.

    ``most_bytes``: of the tables of a sweep. Raises StoreError for what is no such thing, or damaged.
    """
    if isinstance(given, str | os.PathLike):
        given = SweepResults(given) if Path(given).is_dir() else Results(given)
    if isinstance(given, SweepResults):
        return _of_sweep(given, most_bytes)
    if not isinstance(given, Results):
        return _of_result(given)
    given.verify()
    tables = {name: given.array(name) for name in given if name not in LEFT_OUT}
    check_types(tables, str(given.path), {})
    if "runs" not in tables:
        raise StoreError(f"{given.path} has no table runs: only results of simulations can be compared")
    units = {name: given.attrs[name]["units"] for name in tables}
    places = tables.pop(POINTS, None)
    return Side(str(given.path), tables, units, _grid(tables, places), dict(flat(given.configuration)))


def _of_result(given: Simulated) -> Side:
    if not all(hasattr(given, name) for name in ("tables", "columns", "configuration")):
        raise StoreError(f"{type(given).__name__} is no result: give a path, stats.load(path) or a Result")
    tables = {name: rows for name, rows in given.tables().items() if name not in LEFT_OUT}
    units = {name: {column.name: column.unit for column in given.columns(name)} for name in tables}
    runs = tables["runs"]
    label = " on ".join(", ".join(dict.fromkeys(decode(runs[name]).tolist())) for name in ("workload", "gpu"))
    return Side(label, tables, units, {}, dict(flat(given.configuration)))


def _of_sweep(given: SweepResults, most_bytes: int | None) -> Side:
    tables, columns = given.merged(given.names(), most_bytes)
    places = tables.pop(POINTS)
    units = {name: {column.name: column.unit for column in columns.get(name, ())} for name in tables}
    configuration = {**_constant(given), **dict(flat(given.configuration))}
    return Side(str(given.path), tables, units, _grid(tables, places), configuration)


def _constant(given: SweepResults) -> dict[str, Any]:
    """Return what the configurations of all points share; the grid's keys are what differs."""
    shared: dict[str, Any] | None = None
    for part in given.parts:
        mine = dict(flat(Results(part.path).configuration))
        if shared is None:
            shared = mine
        shared = {path: value for path, value in shared.items() if path in mine and mine[path] == value}
    return shared or {}


def _grid(tables: Mapping[str, Table], places: Table | None) -> dict[str, list[Any]]:
    """Return the values of a grid's keys, in the order of the table ``runs``."""
    if places is None or not len(places):
        return {}
    runs = tables["runs"]
    taken = (*TAKEN, *(runs.dtype.names or ()))
    at = np.searchsorted(places["run"], runs["run"])
    made = {}
    for key in places.dtype.names or ():
        if key != "run":
            values = decode(places[key])[at].tolist()
            made[f"grid.{key}" if key in taken else key] = [_plain(value) for value in values]
    return made


def _plain(value: Any) -> Any:
    """Return a value of a grid so that 64 and 64.0 are one, and True (of a folder) and 1 (of a file)."""
    return int(value) if isinstance(value, bool | float) and float(value).is_integer() else value


def flat(configuration: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings by path; parameters have the paths that ``--set`` takes."""
    for key, value in configuration.items():
        if isinstance(value, Mapping):
            yield from flat(value, "" if key == "parameters" and not prefix else f"{prefix}{key}.")
        else:
            yield prefix + key, ", ".join(map(str, value)) if isinstance(value, list) else value
