"""Checks of option values that scripts share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path

from pysim.errors import ConfigError
from pysim.units import suggest


def choice(*names: str) -> Callable[[str], str]:
    """Return an option type: one of the names; the error for another one suggests the nearest."""

    def read(text: str) -> str:
        if text not in names:
            hint = suggest(text, names) or f": must be one of {', '.join(names)}"
            raise argparse.ArgumentTypeError(f"unknown value {text!r}{hint}")
        return text

    return read


def check_tables(names: tuple[str, ...] | None) -> None:
    """Raise ConfigError for a name that is no table of result files."""
    from pysim.results.schema import TABLES

    known = ("all", "none", *TABLES)
    for name in names or ():
        if name not in known:
            hint = suggest(name, known) or f": there are {', '.join(known)}"
            raise ConfigError(f"no table {name!r}{hint}")


def chosen_tables(names: tuple[str, ...], known: Collection[str], path: Path) -> tuple[str, ...]:
    """Return the names of ``--tables``, none for ``all``; ConfigError for a table that ``path`` has not."""
    chosen = () if names == ("all",) else names
    for name in chosen:
        if name not in known:
            hint = suggest(name, known) or f": there are {', '.join(sorted(known))}"
            raise ConfigError(f"--tables: {path} has no table {name!r}{hint}")
    return chosen
