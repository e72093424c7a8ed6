"""A command of ``pysim`` with a parser of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A command: its name, what runs its words, what it does and takes.

    ``run`` gets the words after the name and returns an exit status (None: 0).
    """

    name: str
    run: Callable[[list[str]], int | None]
    doc: str
    operands: tuple[str, ...]
