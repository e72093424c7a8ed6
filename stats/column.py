"""The type of a column of a result table, and the column ``run``, with which all tables begin."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Declared(Protocol):
    """A column as the maker of a table declares it."""

    @property
    def name(self) -> str:
        """Name of the column."""

    @property
    def dtype(self) -> str:
        """Its numpy type."""

    @property
    def unit(self) -> str:
        """Its unit, "" if none."""

    @property
    def doc(self) -> str:
        """Its meaning."""


class Column(NamedTuple):
    """One column of a table: name, numpy type, unit ("" if none) and meaning."""

    name: str
    dtype: str
    unit: str
    doc: str


RUN = Column("run", "<i4", "", "Row of `runs`.")
