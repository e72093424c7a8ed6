"""JSON as broken writers write it: one event that ``json`` refuses, read as it was meant."""

from __future__ import annotations

import re

# what may follow the quote that closes a key, a value of an object, an item of an array
_AFTER_KEY = re.compile(r"\s*:")
_AFTER_VALUE = re.compile(r'\s*(?:\}|,\s*"(?:[^"\\]|\\.)*"\s*:)|\s*$')
_AFTER_ITEM = re.compile(r'\s*(?:\]|,\s*(?:["\d\[{\-]|(?:true|false|null|NaN)\b))|\s*$')
_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\s,}\]]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?$")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_WORDS = {"true": True, "false": False}
_DEEPEST = 64

# where an event ends, whatever it holds: the next one begins, or the list of events ends
EVENT_END = re.compile(
    r'\}\s*,?\s*(?=\{\s*"(?:ph|name|cat|ts|dur|pid|tid|args|id|bp|s)"\s*:)|\}\s*(?=\]\s*(?:,\s*"|\}|\Z))'
)


class UnreadableError(ValueError):
    """The text is no JSON even so; ``args[0]``: where, in characters from its start."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def space(self) -> str:
        """Skip white space; return the next character, "" at the end."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def string(self, after: re.Pattern[str]) -> str:
        """Read a string: it ends at the first quote that something closes it for follows."""
        text, i = self.text, self.at + 1
        made: list[str] = []
        while i < len(text):
            char = text[i]
            if char == '"' and after.match(text, i + 1):
                self.at = i + 1
                return "".join(made)
            if char == "\\" and i + 1 < len(text):
                follows = text[i + 1]
                if follows == "u" and _HEX.match(text, i + 2):
                    made.append(chr(int(text[i + 2 : i + 6], 16)))
                    i += 6
                    continue
                # a lone backslash before the quote that closes
                closes = follows == '"' and after is not _AFTER_KEY and after.match(text, i + 2)
                if follows in _ESCAPES and not closes:
                    made.append(_ESCAPES[follows])
                    i += 2
                    continue
            made.append(char)
            i += 1
        raise UnreadableError(self.at)

    def value(self, depth: int, after: re.Pattern[str]) -> object:
        """Read a value; words that are neither number nor literal, such as N/A, are None."""
        char = self.space()
        if depth > _DEEPEST or not char:
            raise UnreadableError(self.at)
        if char == '"':
            return self.string(after)
        if char == "{":
            return self.fields(depth)
        if char == "[":
            return self.array(depth)
        found = _WORD.match(self.text, self.at)
        if found is None:
            raise UnreadableError(self.at)
        self.at = found.end()
        word = found.group()
        return float(word) if _NUMBER.match(word) else _WORDS.get(word)

    def fields(self, depth: int) -> dict[str, object]:
        made: dict[str, object] = {}
        self.at += 1
        while (char := self.space()) != "}":
            if char == ",":
                self.at += 1
                continue
            if char != '"':
                raise UnreadableError(self.at)
            begin = self.at
            key = self.string(_AFTER_KEY)
            if '"' in key:
                raise UnreadableError(begin)
            self.space()
            self.at += 1
            made[key] = value = self.value(depth + 1, _AFTER_VALUE)
            # they hold a letter or a word: a quote in them is one that this reader took for a part of a text
            if key in ("ph", "cat") and isinstance(value, str) and '"' in value:
                raise UnreadableError(begin)
        self.at += 1
        return made

    def array(self, depth: int) -> list[object]:
        made: list[object] = []
        self.at += 1
        while (char := self.space()) != "]":
            if char == ",":
                self.at += 1
                continue
            made.append(self.value(depth + 1, _AFTER_ITEM))
        self.at += 1
        return made


def repaired(text: str) -> dict[str, object]:
    """Read one event: bare words, lone backslashes, quotes and control characters inside strings.

    Raises UnreadableError.
    """
    reader = _Reader(text)
    if reader.space() != "{":
        raise UnreadableError(reader.at)
    made = reader.fields(0)
    if reader.space() not in ("", ","):
        raise UnreadableError(reader.at)
    return made
