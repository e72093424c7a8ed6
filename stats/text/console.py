"""Terminal output of scripts: progress, stall stacks, JSON."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

import numpy as np

from pysim.stats.schema import SHARES, Table

_BAR = 30
_SECONDS_A_LINE = 10.0
_SECONDS_OF_A_RATE = 2.0


class Log:
    """Progress and remarks on standard error: a bar on a terminal, lines elsewhere, nothing if quiet."""

    def __init__(self, quiet: bool = False, stream: TextIO | None = None, unit: str = "TBs") -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._unit = unit
        self._terminal = self._stream.isatty()
        self._drawn = 0
        self._scheme = ""
        self._begin = self._told = 0.0

    def __call__(self, scheme: str, done: int, total: int) -> None:
        """Show how many of the TBs (or whatever `unit` says) of a scheme are done."""
        if self._quiet:
            return
        now = time.monotonic()
        if scheme != self._scheme:
            self._scheme, self._begin, self._told = scheme, now, now
            if not self._terminal:
                self._put(f"{scheme}: simulating {total:,} {self._unit}\n")
        share = done / max(total, 1)
        if self._terminal:
            full = int(share * _BAR)
            text = f"{scheme:<12} [{'#' * full}{'.' * (_BAR - full)}] {share:4.0%} of {total:,} {self._unit}"
            text += self._left(now, share)
            self._put("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
        elif done >= total:
            self._put(f"{scheme}: done in {now - self._begin:.1f} s\n")
        elif now - self._told >= _SECONDS_A_LINE:
            self._told = now
            self._put(f"{scheme}: {share:.0%}{self._left(now, share)}\n")

    def _left(self, now: float, share: float) -> str:
        """Return the time left at the rate so far; nothing before there is a rate."""
        spent = now - self._begin
        if spent < _SECONDS_OF_A_RATE or not 0 < share < 1:
            return ""
        seconds = spent / share - spent
        hours, minutes = divmod(int(seconds) // 60, 60)
        return f", {hours} h {minutes} min left" if hours else f", {minutes} min {int(seconds) % 60} s left"

    def say(self, text: str) -> None:
        """Write a line."""
        if not self._quiet:
            self.clear()
            self._put(text + "\n")

    def clear(self) -> None:
        """Erase the progress bar."""
        if self._drawn:
            self._put("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def format_stalls(tables: Mapping[str, Table]) -> str:
    """Lay out the stall stack of each run, one line a scheme; empty without the table."""
    stalls = tables.get("stalls")
    if stalls is None or not len(stalls):
        return ""
    names = {int(row["run"]): row["scheme"].decode() for row in tables["runs"]}
    width = max(len(name) for name in names.values())
    heads = [share.replace("no_tb", "no TB") for share in SHARES]
    lines = ["SM time in %".ljust(width) + "".join(f"  {head:>10}" for head in heads)]
    width = max(width, len("SM time in %"))
    for row in stalls[stalls["level"] == b"run"]:
        cells = "".join(f"  {100 * row[share]:10.1f}" for share in SHARES)
        lines.append(names[int(row["run"])].ljust(width) + cells)
    return "\n".join(lines) + "\n"


def to_json(tables: Mapping[str, Table], more: Mapping[str, Any] | None = None) -> str:
    """Write tables as one JSON object of lists of rows; NaN and infinity become null."""
    made: dict[str, Any] = {name: [_plain(row) for row in _rows(rows)] for name, rows in tables.items()}
    return json.dumps(made | dict(more or {}), allow_nan=False)


def _rows(table: Table) -> Iterable[dict[str, Any]]:
    names = table.dtype.names or ()
    for row in np.asarray(table).tolist():
        yield dict(zip(names, row, strict=True))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value
