"""Tables in memory, used as those of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import schema
from .schema import Table
from .store import Results, Tables, hash_tables


class Held(Results):
    """Tables that no file holds yet, as :class:`Results`.

    ``name``: stands for the path; ``declared``: columns by table, beside those of ``pysim.stats.schema``.
    """

    def __init__(
        self,
        name: str,
        tables: Mapping[str, Table],
        attributes: Mapping[str, str | int | float],
        configuration: dict[str, Any],
        declared: Tables,
    ) -> None:
        self.path = Path(name)
        self._frames = {}
        self._kept = dict(tables)
        self._names = tuple(sorted(tables))
        known = {**schema.TABLES, **declared}
        self.attrs = {
            table: {
                "units": {column.name: column.unit for column in known.get(table, ())},
                "docs": {column.name: column.doc for column in known.get(table, ())},
            }
            for table in tables
        }
        self.configuration = configuration
        self.attributes = {**attributes, "schema": schema.VERSION, "hash": hash_tables(tables)}

    def array(self, name: str) -> Table:
        """Return a table."""
        if name not in self._kept:
            raise KeyError(f"{self.path} has no table {name}; it has {', '.join(self._names)}")
        return self._kept[name]
