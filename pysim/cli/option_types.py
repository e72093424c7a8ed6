"""Types of options: what reads the words of a command line; a wrong word is a one-line error."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from pysim.errors import ConfigError
from pysim.machine.mechanisms import without
from pysim.program.memory_budget import parse_size
from pysim.units import Value, parse, row_of, suggest


def _integer(text: str, least: int, kind: str) -> int:
    # int() also accepts 1_000 and non-ASCII digits; an option accepts only 0 to 9.
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a {kind} integer, not {text!r}")
    return int(text)


def positive_int(text: str) -> int:
    """Option type: 1, 2, ..."""
    return _integer(text, 1, "positive")


def natural_int(text: str) -> int:
    """Option type: 0, 1, 2, ..."""
    return _integer(text, 0, "non-negative")


def number_ranges(text: str, number: Callable[[str], int] = positive_int) -> tuple[tuple[int, int], ...]:
    """Option type: numbers and ranges, such as ``3-7,9``, as (first, last) pairs, last included."""
    made = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        made.append((number(first), number(last if dash else first)))
        if made[-1][0] > made[-1][1]:
            raise argparse.ArgumentTypeError(f"{part.strip()} is an empty range")
    return tuple(made)


def counts(text: str) -> tuple[int, ...]:
    """Option type: positive integers separated by commas."""
    return tuple(positive_int(part.strip()) for part in text.split(","))


def name_list(text: str) -> tuple[str, ...]:
    """Option type: names separated by commas, none empty, each once."""
    names = tuple(part.strip() for part in text.split(","))
    if not all(names):
        raise argparse.ArgumentTypeError(f"must be names separated by commas, not {text!r}")
    for name in names:
        if names.count(name) > 1:
            raise argparse.ArgumentTypeError(f"{name} is listed twice")
    return names


def names_of(what: str, known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """Return an option type: names separated by commas, all in ``known``; ``what``: the noun in errors."""
    listed = tuple(known)

    def read(text: str) -> tuple[str, ...]:
        names = name_list(text)
        for name in names:
            if name not in listed:
                hint = suggest(name, listed) or ": there are " + ", ".join(listed)
                raise argparse.ArgumentTypeError(f"no {what} {name!r}{hint}")
        return names

    return read


def mechanisms(text: str) -> tuple[str, ...]:
    """Option type: mechanisms of the model, separated by commas."""
    names = name_list(text)
    try:
        without(names)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return names


def table_list(text: str) -> tuple[str, ...]:
    """Option type: names of tables, or ``all`` or ``none`` alone."""
    names = name_list(text)
    if len(names) > 1 and {"all", "none"} & set(names):
        raise argparse.ArgumentTypeError("all and none stand alone")
    return names


def setting(text: str) -> tuple[str, Value]:
    """Option type: ``path=value`` of a parameter, checked against its row."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"must be path=value, not {text!r}")
    path = path.strip()
    try:
        return path, parse(path, row_of(path, value.strip()), value.strip())
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def parameter(path: str, value: object) -> Value:
    """Return the value of a parameter that an option sets, checked against its row."""
    try:
        return parse(path, row_of(path), value)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seed(text: str) -> int:
    """Option type: ``sim.seed``."""
    return int(parameter("sim.seed", natural_int(text)))


def sample(text: str) -> float:
    """Option type: ``sim.sample``, in microseconds."""
    return float(parameter("sim.sample", text))


def replay(text: str) -> str:
    """Option type: ``sim.replay``."""
    return str(parameter("sim.replay", text))


def hdf5(text: str) -> Path:
    """Option type: the path of a result file."""
    path = Path(text)
    if path.suffix != ".h5":
        raise argparse.ArgumentTypeError(f"must end in .h5, not {text!r}")
    return path


def size_option(text: str) -> int:
    """Option type: bytes, such as 12GiB."""
    try:
        return parse_size(text)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def thread_block(text: str) -> tuple[str, int]:
    """Option type: ``KERNEL:TB``."""
    kernel, colon, tb = text.rpartition(":")
    if not colon or not kernel:
        raise argparse.ArgumentTypeError(f"must be KERNEL:TB, not {text!r}")
    return kernel, natural_int(tb)


_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str) -> float:
    """Option type: a positive time such as ``90``, ``90s``, ``30m`` or ``1.5h``, in seconds."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)", text.strip())
    if found is None or not float(found[1]):
        raise argparse.ArgumentTypeError(f"must be a time such as 90, 30m or 2h, not {text!r}")
    return float(found[1]) * _SECONDS[found[2]]


def timer(text: str) -> float | None:
    """Option type: a time in seconds, or ``off``: None."""
    return None if text == "off" else duration(text)


def index_range(text: str) -> tuple[int, int]:
    """Option type: ``FIRST:LAST``, from 0 on, last included."""
    first, colon, last = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"must be FIRST:LAST, not {text!r}")
    made = natural_int(first), natural_int(last)
    if made[0] > made[1]:
        raise argparse.ArgumentTypeError(f"{text} is an empty range")
    return made


def shard(text: str) -> tuple[int, int]:
    """Option type: ``I/N``, share I of N, from 0 on."""
    number, slash, of = text.partition("/")
    if not slash or not number.isdecimal() or not of.isdecimal() or len(text) > 20:
        raise argparse.ArgumentTypeError(f"must be I/N, such as 0/4, not {text!r}")
    return int(number), int(of)
