"""A plain table of kernels (CSV, also packed with gzip) as a recording: one row a kernel, copy or memset."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pysim.errors import InputError, brief
from pysim.profile.events import COPY, KERNEL, MEMSET, Ran, Recording
from pysim.profile.losses import Losses

from .text import pieces

# what a column is called; a unit may follow: start_us, duration_ns
_COLUMNS = {
    "name": ("name", "kernel"),
    "stream": ("stream",),
    "start": ("start", "ts"),
    "duration": ("duration", "dur"),
    "grid": ("grid",),
    "block": ("block",),
    "registers": ("registers_per_thread", "registers"),
    "smem": ("shared_memory_B", "shared_memory", "smem"),
    "kind": ("category", "kind"),
    "size": ("bytes",),
}
_NEEDED = ("name", "stream", "start", "duration")
_UNITS = {"": 1.0, "_us": 1.0, "_ns": 1e-3, "_ms": 1e3, "_s": 1e6}
# columns that keep several recordings of one file apart
_APART = ("card", "workload", "network", "mode", "run", "iteration")
_KINDS = {"kernel": KERNEL, "gpu_memcpy": COPY, "memcpy": COPY, "copy": COPY, "gpu_memset": MEMSET}
_KINDS["memset"] = MEMSET
_MOST = 1 << 20  # characters of a line


def _lines(path: Path, losses: Losses) -> Iterator[str]:
    rest = ""
    for piece in pieces(path, losses):
        *whole, rest = (rest + piece.decode("utf-8", "replace")).split("\n")
        yield from (line + "\n" for line in whole)
        if len(rest) > _MOST:
            raise InputError(f"{path}: a line of more than {_MOST} characters: no table of kernels")
    if rest:
        yield rest


def _found(path: Path, heads: list[str]) -> dict[str, tuple[int, float]]:
    """Return the place of each column that is there, and the us of its unit."""
    made: dict[str, tuple[int, float]] = {}
    for column, names in _COLUMNS.items():
        timed = column in ("start", "duration")
        for at, head in enumerate(heads):
            for unit, scale in (_UNITS if timed else {"": 1.0}).items():
                if head in [name + unit for name in names]:
                    made.setdefault(column, (at, scale))
    if missing := [column for column in _NEEDED if column not in made]:
        raise InputError(
            f"{path}: neither a Kineto file nor a table of kernels: no column {', '.join(missing)}"
            f" (a table has {', '.join(_NEEDED)}, grid)"
        )
    return made


def _dimensions(text: str) -> int:
    """Return the product of 8x1x1, 8 or (8, 1, 1); 0: empty."""
    sizes = [int(size) for size in re.findall(r"\d+", text)]
    return math.prod(sizes) if sizes else 0


class _Rows:
    def __init__(self, path: Path, heads: list[str], where: Mapping[str, str]) -> None:
        self.path, self.at = path, _found(path, heads)
        self.apart = {name: heads.index(name) for name in _APART if name in heads}
        self.where = {}
        for name, value in where.items():
            if name not in heads:
                raise InputError(f"{path}: no column {brief(name, 40)}: there are {', '.join(heads)}")
            self.where[heads.index(name)] = value
        self.seen: dict[tuple[str, ...], None] = {}

    def _text(self, row: list[str], column: str) -> str:
        place = self.at.get(column)
        return row[place[0]].strip() if place is not None and place[0] < len(row) else ""

    def _time(self, row: list[str], column: str, line: int) -> float:
        text = self._text(row, column)
        try:
            value = float(text) * self.at[column][1]
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InputError(f"{self.path}:{line}: {column} {brief(text or 'empty', 40)}: must be a number")
        return value

    def _count(self, row: list[str], column: str, other: int = 0) -> int:
        text = self._text(row, column)
        return int(text) if text.isdecimal() else other

    def ran(self, row: list[str], line: int) -> Ran | None:
        """Return what a row says ran; None: it is not of the chosen recording."""
        if any(at >= len(row) or row[at] != value for at, value in self.where.items()):
            return None
        self.seen.setdefault(tuple(row[at] if at < len(row) else "" for at in self.apart.values()))
        kind, stream = self._text(row, "kind").lower(), self._text(row, "stream")
        if kind and kind not in _KINDS:
            raise InputError(f"{self.path}:{line}: kind {brief(kind, 40)}: must be kernel, memcpy or memset")
        if not stream.isdecimal():
            raise InputError(
                f"{self.path}:{line}: stream {brief(stream or 'empty', 40)}: must be a whole number"
            )
        return Ran(
            _KINDS[kind or "kernel"],
            self._text(row, "name"),
            int(stream),
            self._time(row, "start", line),
            self._time(row, "duration", line),
            tbs=_dimensions(self._text(row, "grid")),
            threads=_dimensions(self._text(row, "block")),
            registers=self._count(row, "registers"),
            smem=self._count(row, "smem"),
            size=self._count(row, "size", -1),
        )


def read_table(path: Path, losses: Losses, where: Mapping[str, str] | None = None) -> Recording:
    """Read a table with the columns name, stream, start, duration and, if known, grid, block and resources.

    Times are us, or what ``_ns``, ``_ms`` after the column's name says. ``where``: of each of these columns
    only rows of this value count. Raises InputError, with the line, for what cannot be read, and where rows
    of several recordings are left.
    """
    made = Recording(str(path))
    lines = _lines(path, losses)
    rows: _Rows | None = None
    reader = csv.reader(lines)
    try:
        for row in reader:
            if not row:
                continue
            if rows is None:
                rows = _Rows(path, [head.strip().lstrip("\ufeff") for head in row], where or {})
                continue
            ran = rows.ran(row, reader.line_num)
            if ran is None:
                continue
            if ran.duration < 0:
                losses.add("rows that end before they start, left out", f"line {reader.line_num}")
                continue
            made.ran.append(ran)
    except csv.Error as error:
        what = f"{path}: neither a Kineto file nor a table of kernels" if rows is None else str(path)
        raise InputError(f"{what}: line {reader.line_num} is no row of a CSV file") from error
    if rows is None:
        raise InputError(f"{path}: an empty file")
    if not made.ran:
        raise InputError(f"{path}: no row of a kernel" + (" that --where chooses" if where else ""))
    if len(rows.seen) > 1:
        names = ",".join(rows.apart)
        first = ", ".join(",".join(values) for values in list(rows.seen)[:3])
        raise InputError(
            f"{path}: {len(rows.seen)} recordings by {names}: --where {next(iter(rows.apart))}=... chooses"
            f" one ({first}{', ...' if len(rows.seen) > 3 else ''})"
        )
    return made
