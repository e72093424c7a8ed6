"""Events of the Trace Event format, in lines of JSON: what processes, tracks, slices and counters look like.

Viewers read times as decimal numbers of microseconds; some cut them to whole nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Units = NDArray[np.int64]  # times in 1e-7 us, see UNITS_US
UNITS_US = 1e7  # a tick of 1/1024 ns is about ten of them, so rounding to a tick gives the exact time
UNITS_NS = 10_000
CHUNK = 20_000  # rows that are text at once


def units_of_ns(values: NDArray[Any]) -> Units:
    """Return times in ns as whole units."""
    return np.asarray(np.rint(values * UNITS_NS), np.int64)


def units_of_us(values: NDArray[Any]) -> Units:
    """Return times in us as whole units."""
    return np.asarray(np.rint(values * UNITS_US), np.int64)


def text_of(value: Any) -> str:
    """Return JSON without spaces; letters beyond ASCII stay, as not every reader knows their escapes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def metadata(name: str, pid: int, tid: int | None, args: Mapping[str, Any]) -> str:
    """Return an event that names or sorts a process (``tid`` None) or a track."""
    track = {} if tid is None else {"tid": tid}
    return text_of({"ph": "M", "pid": pid, **track, "name": name, "args": args})


def track(pid: int, tid: int, name: str, place: int) -> Iterator[str]:
    """Yield the events that make a track; ``place``: where it stands in its process."""
    yield metadata("thread_name", pid, tid, {"name": name})
    yield metadata("thread_sort_index", pid, tid, {"sort_index": place})


def rows(pattern: str, columns: Sequence[NDArray[Any] | Sequence[Any]]) -> Iterator[str]:
    """Yield a line a row: ``pattern`` filled with the values of each column, thousands of rows at once."""
    count = len(columns[0])
    for first in range(0, count, CHUNK):
        part = (column[first : first + CHUNK] for column in columns)
        plain = (each.tolist() if isinstance(each, np.ndarray) else each for each in part)
        for row in zip(*plain, strict=True):
            yield pattern % row


def in_pattern(text: str) -> str:
    """Return a text as JSON that may stand in the ``pattern`` of :func:`rows`."""
    return text_of(text).replace("%", "%%")


def in_us(units: Units) -> NDArray[np.float64]:
    """Return times in us, for ``%.7f``."""
    return units / UNITS_US


def counter(pid: int, name: str, at: Units, end: int, values: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Yield a counter's events: its ``values`` by series from each time on, and 0 from ``end`` on.

    Series that are 0 throughout are left out.
    """
    shown = {series: each for series, each in values.items() if np.any(each)}
    if not shown:
        return
    head = f'{{"ph":"C","pid":{pid},"name":{in_pattern(name)},"cat":"sample","ts":%.7f,"args":{{'
    series = ",".join(f"{in_pattern(each)}:%.6g" for each in shown)
    times = in_us(np.append(at, end))
    yield from rows(head + series + "}}", [times, *(np.append(each, 0) for each in shown.values())])


def joined(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield lines as bytes, with commas between them, in pieces that are worth writing."""
    piece: list[str] = []
    comma = ""
    for line in lines:
        piece.append(line)
        if len(piece) == CHUNK:
            yield (comma + ",\n".join(piece)).encode()
            comma, piece = ",\n", []
    if piece:
        yield (comma + ",\n".join(piece)).encode()
