"""Checks of a device's own fields, wherever they are given: in a script, in a device file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from numbers import Integral

from pysim.errors import ConfigError, brief
from pysim.params import Param
from pysim.units import parse

LONGEST = {"name": 64, "title": 160, "source": 1000}  # bytes; of names, a column of result tables
_BREAKS = ("Cc", "Cs", "Zl", "Zp")  # Unicode's control characters, surrogates, line and paragraph separators
_CARVEOUT = Param("carveouts", 0, "B", 0, 1 << 20, "One shared-memory carve-out.")
_MMA_RATE = Param("mma_rate", 128, "count", 1, 1 << 16, "Multiply-adds a cycle of a sub-core.")


def checked_text(field: str, value: object) -> str:
    """Return a name, a title or a source: one line that prints and can be written; a source may be empty."""
    shown = f"{field} = {brief(value) if value != '' else repr(value)}"
    if not isinstance(value, str) or not (value or field == "source"):
        raise ConfigError(f"{shown}: must be a text")
    if any(unicodedata.category(letter) in _BREAKS for letter in value):
        raise ConfigError(f"{shown}: must be one line, without control characters and lone surrogates")
    if len(value.encode()) > LONGEST[field]:
        raise ConfigError(f"{shown}: must be at most {LONGEST[field]} bytes of UTF-8")
    return value


def checked_capability(value: object) -> tuple[int, int]:
    """Return a compute capability that is given as (major, minor)."""
    if isinstance(value, tuple | list) and len(value) == 2:
        major, minor = value
        if all(isinstance(each, Integral) and not isinstance(each, bool) for each in value):
            if 1 <= major <= 99 and 0 <= minor <= 9:
                return int(major), int(minor)
            what = "must be (major, minor), major from 1 to 99 and minor from 0 to 9"
            raise ConfigError(f"compute_capability = {brief(value)}: {what}")
    raise ConfigError(f"compute_capability = {brief(value)}: must be (major, minor), such as (7, 0)")


def read_capability(text: object) -> tuple[int, int]:
    """Return a compute capability that is given as ``"7.0"`` or 7.0."""
    match = re.fullmatch(r"(\d{1,2})\.(\d)", brief(text), re.ASCII)
    if match is None:
        raise ConfigError(f"compute_capability = {brief(text)}: must look like 7.0")
    return checked_capability((int(match[1]), int(match[2])))


def checked_carveouts(given: object) -> tuple[int, ...]:
    """Return sizes of shared memory in bytes, ascending, each once."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not given:
        raise ConfigError(f'carveouts = {brief(given)}: must be a list of sizes, such as ["0B", "32KiB"]')
    return tuple(sorted({int(parse("carveouts", _CARVEOUT, size)) for size in given}))


def checked_rate(given: object) -> int:
    """Return a tensor rate: fp16 multiply-adds a cycle of one sub-core."""
    return int(parse("mma_rate", _MMA_RATE, given))
