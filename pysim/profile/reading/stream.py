"""Events of a Chrome trace, one by one, without holding the file: any size in some ten MB of memory.

The text is taken byte for byte as Latin-1, so that a position is a byte's offset in the file and a damaged
byte stops nothing; :func:`proper` makes UTF-8 of the strings that are kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pysim.errors import InputError
from pysim.profile.losses import Losses

from .repair import EVENT_END, UnreadableError, repaired
from .text import CUT, pieces

EVENTS = "traceEvents"
Scan = Callable[[str, int], tuple[Any, int]]
_AHEAD = 1 << 18  # bytes that are in memory after a position: more than nearly all events take
_LONGEST = 256 << 20  # bytes of one value
_BETWEEN = re.compile(r"[\s,\0]*")
_SCAN: Scan = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]
AFTER = "data after the end of the profile, left out"
REPAIRED = "events that are no proper JSON, read as they were meant"


def proper(text: str) -> str:
    """Return what a string of the file says: its bytes are UTF-8, or escapes gave its characters."""
    if text.isascii():
        return text
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


class EventStream:
    """Iterates over the events of a file; ``head``: the other values of its top object, as they are met.

    ``key``: what their list is called.
    """

    def __init__(self, path: Path, losses: Losses, key: str = EVENTS) -> None:
        self.path, self.losses, self.key = path, losses, key
        self.head: dict[str, object] = {}
        self._pieces = pieces(path, losses)
        self._text, self._at, self._base = "", 0, 0
        self._done = False

    def _where(self, at: int | None = None) -> str:
        return f"{self.path}: byte {self._base + (self._at if at is None else at)}"

    def _fill(self) -> bool:
        """Take one more piece; return False at the end."""
        piece = None if self._done else next(self._pieces, None)
        if piece is None:
            self._done = True
            return False
        self._base += self._at
        self._text = self._text[self._at :] + piece.decode("latin-1")
        self._at = 0
        return True

    def _next(self) -> str:
        """Skip white space and commas; return the next character, "" at the end."""
        while True:
            if len(self._text) - self._at < _AHEAD:
                self._fill()
            self._at = _BETWEEN.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if self._done:
                return ""

    def _value(self) -> object:
        """Read a value of the top object; None if the file ends inside it."""
        while True:
            try:
                value, self._at = _SCAN(self._text, self._at)
                return value
            except (StopIteration, ValueError, RecursionError) as error:
                if len(self._text) - self._at < _LONGEST and self._fill():
                    continue
                where = getattr(error, "pos", self._at)
                if self._done and where >= len(self._text) - 1:
                    return None
                raise InputError(f"{self._where(where)}: no JSON value") from error

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Yield the events. Raises InputError, with the byte, for what is no profile or cannot be read."""
        if self._text == "" and self._fill() and self._text.startswith("\xef\xbb\xbf"):
            self._at = 3
        first = self._next()
        if first == "[":
            self._at += 1
            yield from self._events()
            self._rest()
            return
        if first != "{":
            what = "an empty file" if not first else "neither an object nor a list of events"
            raise InputError(f"{self._where()}: {what}: no file of the PyTorch profiler")
        self._at += 1
        met = False
        while (char := self._next()) not in ("}", ""):
            key = self._value() if char == '"' else None
            if not isinstance(key, str) or self._next() != ":":
                raise InputError(f"{self._where()}: a key and a colon must stand here")
            self._at += 1
            if key == self.key and self._next() == "[":
                met = True
                self._at += 1
                yield from self._events()
                if self._done and self._at >= len(self._text):
                    return
            elif self._next():
                self.head[key] = self._value()
        if not met:
            raise InputError(f"{self.path}: no {self.key}: no file of the PyTorch profiler")
        self._at += bool(char)
        self._rest()

    def _rest(self) -> None:
        """Count what follows the last value: a second profile, or no part of one."""
        if self._next():
            self.losses.add(AFTER, f"from byte {self._base + self._at} on")

    def _events(self) -> Iterator[dict[str, object]]:
        """Yield events up to the end of their list."""
        scan = _SCAN
        while True:
            if (char := self._next()) == "]":
                self._at += 1
                return
            if not char:
                self.losses.add(CUT, f"at byte {self._base + len(self._text)}, between two events")
                return
            try:
                event, end = scan(self._text, self._at)
                if type(event) is not dict:
                    raise InputError(f"{self._where()}: an event must be an object")
            except (StopIteration, ValueError, RecursionError):
                found = self._broken()
                if found is None:
                    return
                event, end = found
            self._at = end
            yield event

    def _broken(self) -> tuple[dict[str, object], int] | None:
        """Read an event that ``json`` refuses, or that is not all in memory; None: the file ends in it."""
        while True:
            end = EVENT_END.search(self._text, self._at)
            # an end right at the end of what is in memory may be none
            whole = end is not None and (self._done or end.end() < len(self._text) - 64)
            if not whole and len(self._text) - self._at < _LONGEST and self._fill():
                try:
                    event, at = _SCAN(self._text, self._at)
                    if type(event) is dict:
                        return event, at
                except (StopIteration, ValueError, RecursionError):
                    pass
                continue
            break
        last = end.end() if end is not None else len(self._text)
        try:
            event = repaired(self._text[self._at : last])
        except (UnreadableError, RecursionError) as error:
            if end is None and self._done:
                self.losses.add(CUT, f"at byte {self._base + len(self._text)}, inside an event")
                self._at = len(self._text)
                return None
            at = error.args[0] if isinstance(error, UnreadableError) else 0
            raise InputError(
                f"{self._where(self._at + at)}: no JSON, and no reading of it is clear"
            ) from None
        self.losses.add(REPAIRED, f"the first at byte {self._base + self._at}")
        return event, last
