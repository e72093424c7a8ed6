"""Values with units: what a user writes (``96KiB``, ``1.2GHz``, ``2.5us``) to the unit of its parameter."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from numbers import Integral, Rational, Real

from .errors import ConfigError, brief
from .params import PARAMS, Param

Value = float | int | str

#: Every parameter by its full path, such as ``gpu.l2.size``.
ROWS: dict[str, Param] = {f"{group}.{row.name}": row for group, rows in PARAMS.items() for row in rows}

_BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
_CYCLES = {"cycle": 1, "cycles": 1}

# Suffixes that a value of each unit may carry, as multiples of that unit (None: the number stands alone).
_SUFFIXES: dict[str, dict[str, Fraction]] = {
    "count": {},
    "B": {name: Fraction(size) for name, size in _BYTES.items()},
    "cycle": {name: Fraction(size) for name, size in _CYCLES.items()},
    "cycle/64": {name: Fraction(size) for name, size in _CYCLES.items()},
    "ns": {
        "ps": Fraction(1, 1000),
        "ns": Fraction(1),
        "us": Fraction(1000),
        "ms": Fraction(10**6),
        "s": Fraction(10**9),
    },
    "us": {"ns": Fraction(1, 1000), "us": Fraction(1), "ms": Fraction(1000), "s": Fraction(10**6)},
    "MHz": {
        "Hz": Fraction(1, 10**6),
        "kHz": Fraction(1, 1000),
        "MHz": Fraction(1),
        "GHz": Fraction(1000),
    },
    "GB/s": {
        **{f"{name}/s": Fraction(size, 10**9) for name, size in _BYTES.items()},
        "TB/s": Fraction(1000),
    },
    "W": {"mW": Fraction(1, 1000), "W": Fraction(1), "kW": Fraction(1000)},
    "share": {"%": Fraction(1, 100)},
}
_INTEGERS = ("count", "B", "cycle")
_WORDS = {"true": 1, "yes": 1, "on": 1, "1": 1, "false": 0, "no": 0, "off": 0, "0": 0}

# An exponent of at most three digits keeps the exact arithmetic small whatever a user types.
_NUMBER = re.compile(
    r"([+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z%][A-Za-z/]*)?", re.ASCII
)

_LONGEST = 60  # characters of a value that are read and quoted


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``: did you mean X?`` for the nearest known name, or an empty string."""
    import difflib  # for errors alone

    # what all options begin with makes none of them near
    by_key = {key.lower().lstrip("-"): key for key in known}
    near = difflib.get_close_matches(brief(name).lower().lstrip("-"), by_key, n=1, cutoff=0.6)
    return f": did you mean {by_key[near[0]]}?" if near else ""


def row_of(path: str, value: object = None) -> Param:
    """Return the row of a parameter; an unknown path is an error with the nearest valid one.

    ``value``: what it is to be set to. Where ``path`` is a part of longer paths, the error names one of them
    that takes the value.
    """
    given: object = path
    if not isinstance(given, str):
        raise ConfigError(f"unknown parameter {brief(given)}: paths are texts, such as gpu.sms")
    row = ROWS.get(path)
    if row is None:
        inside = [known for known in ROWS if f".{path}." in f".{known}."]
        taken = [known for known in inside if value is None or _takes(known, value)]
        # a group's size is what a user means by its name
        near = next((known for known in taken if known.endswith(".size")), taken[0] if taken else "")
        raise ConfigError(
            f"unknown parameter {brief(path)}" + (f": did you mean {near}?" if near else suggest(path, ROWS))
        )
    return row


def _takes(path: str, value: object) -> bool:
    try:
        parse(path, ROWS[path], value)
    except ConfigError:
        return False
    return True


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def show(row: Param, value: Value) -> str:
    """Return a value as a user would write it; ``parse`` reads it back unchanged."""
    if row.unit in ("choice", "bool", "count", "share"):
        return value if isinstance(value, str) else _plain(value)
    number = float(value)
    if row.unit == "B":
        for suffix in ("GiB", "MiB", "KiB"):
            size = _BYTES[suffix]
            if number >= size and number % size == 0:
                return f"{int(number) // size}{suffix}"
    suffix = "cycle" if row.unit == "cycle/64" else row.unit
    return f"{_plain(number)} {suffix}" if suffix == "cycle" else f"{_plain(number)}{suffix}"


def allowed(row: Param) -> str:
    """Return the end of an error message: what values the row takes."""
    if row.unit == "choice":
        return "must be one of " + ", ".join(row.choices)
    if row.unit == "bool":
        return "must be 0 or 1"
    kind = "an integer in" if row.unit == "count" else "in"
    if row.unit == "B":
        return f"must be in [{show(row, row.lo)}, {show(row, row.hi)}]"
    return f"must be {kind} [{_plain(row.lo)}, {_plain(row.hi)}]"


def _refuse(path: str, row: Param, value: object, why: str = "") -> ConfigError:
    # A bare number gets its unit, so that the reader sees what the number was taken for.
    shown = brief(value, _LONGEST)
    if not isinstance(value, str | Real | None):
        shown += f" ({type(value).__name__})"  # an array of one element prints as its element
    bare = row.unit not in ("count", "choice", "bool", "share")
    if bare and re.fullmatch(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", shown):
        shown += " " + ("cycle" if row.unit == "cycle/64" else row.unit)
    return ConfigError(f"{path} = {shown}: {why or allowed(row)}")


def _number(path: str, row: Param, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (Real, str)):
        raise _refuse(path, row, value)
    if isinstance(value, Integral):
        return Fraction(int(value))  # an integer of numpy would make fractions of 64 bits
    if isinstance(value, Rational):
        return Fraction(value)
    if not isinstance(value, str):
        if not math.isfinite(value):
            raise _refuse(path, row, value)
        return Fraction(float(value))
    match = _NUMBER.fullmatch(value.strip().replace("\u00b5", "u").replace("\u03bc", "u"))
    if match is None or len(value) > _LONGEST:
        raise _refuse(path, row, value, f"not a number; {allowed(row)}")
    suffixes = _SUFFIXES[row.unit]
    digits, suffix = match.groups()
    if suffix is None:
        scale = Fraction(1)
    elif suffix in suffixes:
        scale = suffixes[suffix]
    else:
        use = "takes no unit" if not suffixes else "use " + ", ".join(suffixes)
        raise _refuse(path, row, value, f"unknown unit {suffix}; {use}")
    return Fraction(digits.replace("_", "")) * scale


def parse(path: str, row: Param, value: object) -> Value:
    """Return ``value`` in the unit of ``row``, checked against its range.

    A number is one of Python's or of numpy's; a text may carry a unit. The result is an ``int``, a ``float``
    or a ``str``. Integer units (count, B, cycle) refuse fractions. Errors are one line with path, value and
    range.
    """
    if row.unit == "choice":
        if not isinstance(value, str) or value not in row.choices:
            raise _refuse(path, row, value, allowed(row) + suggest(brief(value), row.choices))
        return str(value)
    if row.unit == "bool":
        whole = isinstance(value, Integral) or type(value).__name__ in ("bool", "bool_")  # numpy's, too
        word = brief(int(value) if whole else value).lower()  # type: ignore[call-overload]
        if word not in _WORDS:
            raise _refuse(path, row, value)
        return _WORDS[word]
    number = _number(path, row, value)
    if not Fraction(row.lo) <= number <= Fraction(row.hi):
        raise _refuse(path, row, value)
    if row.unit in _INTEGERS:
        if number.denominator != 1:
            raise _refuse(path, row, value, allowed(row).replace("must be in", "must be an integer in"))
        return int(number)
    return float(number)
