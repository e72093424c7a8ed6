"""The tables of result files and their columns, as ``pysim tables`` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Tables = Mapping[str, Sequence[Any]]  # by table: columns as pysim or stats declare them


def known_tables() -> Tables:
    """Return the columns of all tables by name: of a run, of a graph, and of those that scripts make."""
    from pysim.results import graph_schema, schema
    from pysim.stats import schema as stats_schema

    return {**schema.TABLES, **graph_schema.TABLES, **stats_schema.TABLES}


def column_cells(columns: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return name, type, unit and meaning of each column as text."""
    return [(column.name, column.dtype.lstrip("<|"), column.unit, column.doc) for column in columns]


def listing(tables: Tables) -> list[tuple[str, ...]]:
    """Return the cells of each column of one table; of several, name and names of columns of each."""
    if len(tables) == 1:
        return [cells for columns in tables.values() for cells in column_cells(columns)]
    return [(name, ", ".join(column.name for column in columns)) for name, columns in tables.items()]


def markdown(tables: Tables) -> Iterator[str]:
    """Yield the lines of a page: a heading and a table of columns for each table."""
    for name, columns in tables.items():
        yield from (f"## {name}", "", "| column | type | unit | meaning |", "|---|---|---|---|")
        for column, kind, unit, doc in column_cells(columns):
            yield f"| `{column}` | {kind} | {unit} | {doc} |"
        yield ""
