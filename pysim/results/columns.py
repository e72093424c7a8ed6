"""Declaration of columns of result tables: what a column is, shared columns, columns of counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysim.counters import Counter
from pysim.params import TICKS_PER_NS


class Column(NamedTuple):
    """One column of a table: name, numpy type, unit and meaning.

    The unit of what has no dimension is ``text``, ``id`` (a number that names something), ``flag`` (0 or 1),
    ``share`` (1 is all), ``ratio`` or ``code`` (numbers that the meaning lists).
    """

    name: str
    dtype: str
    unit: str
    doc: str


class Shown(NamedTuple):
    """How tables show a unit of the core: what the column's name ends in, its type and unit.

    ``scale``: units of the core in one of the column's.
    """

    suffix: str
    dtype: str
    unit: str
    scale: int


# by unit of ``pysim.counters``
SHOWN = {
    "count": Shown("", "<i8", "count", 1),
    "tick": Shown("_us", "<f8", "us", TICKS_PER_NS * 1000),
    "cycle/64": Shown("_cycles", "<f8", "cycles", 64),
    "warp-cycle": Shown("_cycles", "<i8", "cycles", 1),
}


def counter_columns(*groups: tuple[Counter, ...]) -> tuple[Column, ...]:
    """Return the columns of counters, in units that readers expect."""
    rows = ((row, SHOWN[row.unit]) for group in groups for row in group)
    return tuple(Column(row.name + shown.suffix, shown.dtype, shown.unit, row.doc) for row, shown in rows)


def counter_values(group: tuple[Counter, ...], records: Any) -> dict[str, NDArray[Any]]:
    """Return the values of the columns of counters, by name of the column.

    ``records``: the values of each counter by its name, in units of the core.
    """
    made: dict[str, NDArray[Any]] = {}
    for row in group:
        shown = SHOWN[row.unit]
        made[row.name + shown.suffix] = (
            records[row.name] if shown.scale == 1 else records[row.name] / float(shown.scale)
        )
    return made


def layout(columns: Iterable[Column]) -> np.dtype[Any]:
    """Return the type of a row of a table with these columns."""
    return np.dtype([(column.name, column.dtype) for column in columns])


RUN = Column("run", "<i4", "id", "Row of `runs`.")
KERNEL = Column("kernel", "<i4", "id", "Launch, in the order of enqueueing.")
STREAM = Column("stream", "<i4", "id", "Stream of the launch.")
NAME = Column("name", "<i4", "id", "Row of `names` with this `name`.")
TBS = Column("tbs", "<i8", "count", "Thread blocks.")
