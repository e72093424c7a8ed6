"""Declaration of a column of a result table, and the columns that several tables share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class Column(NamedTuple):
    """One column of a table: name, numpy type, unit ("" if none) and meaning."""

    name: str
    dtype: str
    unit: str
    doc: str


def layout(columns: Iterable[Column]) -> np.dtype[Any]:
    """Return the type of a row of a table with these columns."""
    return np.dtype([(column.name, column.dtype) for column in columns])


RUN = Column("run", "<i4", "", "Row of `runs`.")
KERNEL = Column("kernel", "<i4", "", "Launch, in the order of enqueueing.")
STREAM = Column("stream", "<i4", "", "Stream of the launch.")
NAME = Column("name", "<i4", "", "Row of `names` with this `name`.")
TBS = Column("tbs", "<i8", "count", "Thread blocks.")
