"""Measured tables: CSV files with a line of column names; errors name file and line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pysim.errors import ConfigError

MAX_BYTES = 1 << 26
MAX_COUNT = 2**31 - 1


class Row:
    """One line of a table; its cells are read by the column's name."""

    __slots__ = ("_cells", "where")

    def __init__(self, where: str, cells: dict[str, str]) -> None:
        self.where = where
        self._cells = cells

    def text(self, column: str) -> str:
        """Return a cell as it is written."""
        return self._cells[column]

    def number(self, column: str) -> float:
        """Return a cell as a finite number above 0."""
        return self._positive(column, self._cells[column])

    def amount(self, column: str) -> float:
        """Return a cell as a finite number, 0 or more."""
        text = self._cells[column]
        return 0.0 if text.strip() in ("0", "0.0") else self._positive(column, text)

    def optional(self, column: str) -> float:
        """Return a number above 0, NaN where the cell is empty or the table has no such column."""
        text = self._cells.get(column, "")
        return self._positive(column, text) if text else math.nan

    def count(self, column: str) -> int:
        """Return a cell as a whole number above 0."""
        text = self._cells[column]
        if not (text.isascii() and text.isdigit()) or not 0 < int(text[:12]) <= MAX_COUNT or len(text) > 10:
            raise self._wrong(column, f"must be a whole number from 1 to {MAX_COUNT}, not {text[:40]!r}")
        return int(text)

    def _positive(self, column: str, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise self._wrong(column, f"must be a number above 0, not {text[:40]!r}")
        return value

    def _wrong(self, column: str, why: str) -> ConfigError:
        return ConfigError(f"{self.where}: {column} {why}")


def packaged(name: str) -> str:
    """Return the text of a table in ``workloads/measured``."""
    return files("pysim.workloads").joinpath("measured", name).read_text(encoding="utf-8")


def text_of(path: Path) -> str:
    """Return the text of a user's table."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: more than {MAX_BYTES >> 20} MiB is no table of measurements")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}:{line}: is not UTF-8 text") from None


def rows_of(name: str, text: str, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a table that has at least these columns; ``name`` is for messages."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    found: list[Row] = []
    heads: list[str] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if not heads:
                heads = _heads(f"{name}:{reader.line_num}", cells, columns)
            elif len(cells) != len(heads):
                raise ConfigError(f"{name}:{reader.line_num}: {len(cells)} cells, not {len(heads)}")
            else:
                found.append(Row(f"{name}:{reader.line_num}", dict(zip(heads, cells, strict=True))))
    except csv.Error as error:
        raise ConfigError(f"{name}:{reader.line_num}: is not CSV: {error}") from None
    if not found:
        raise ConfigError(f"{name}: has no rows")
    return found


def _heads(where: str, cells: list[str], columns: Sequence[str]) -> list[str]:
    heads = [cell.strip() for cell in cells]
    missing = [column for column in columns if column not in heads]
    if missing:
        raise ConfigError(
            f"{where}: no column {missing[0]}: the line of names must have {', '.join(columns)}"
        )
    twice = [head for head in heads if head and heads.count(head) > 1]
    if twice:
        raise ConfigError(f"{where}: column {twice[0]} is there twice")
    return heads
