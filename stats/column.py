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
        """Its unit, as in :class:`Column`."""

    @property
    def doc(self) -> str:
        """Its meaning."""


class Column(NamedTuple):
    """One column of a table: name, numpy type, unit and meaning.

    The unit of what has no dimension is ``text``, ``id`` (a number that names something), ``flag`` (0 or 1),
    ``share`` (1 is all), ``ratio`` or ``code`` (numbers that the meaning lists).
    """

    name: str
    dtype: str
    unit: str
    doc: str


RUN = Column("run", "<i4", "id", "Row of `runs`.")
