"""What a script keeps of its results when Ctrl-C ends it."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

    from .options import Options


class Stores(Protocol):
    """What is asked of a ``script.Script``."""

    @property
    def options(self) -> Options:
        """Options of the call."""

    @property
    def path(self) -> Path:
        """Path of the result file."""

    def store(
        self,
        stats: ModuleType,
        tables: Mapping[str, Any],
        picture: bytes | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write tables to the result file."""


def keep(script: Stores, stats: ModuleType, tables: Mapping[str, Any]) -> None:
    """Write tables of what has finished; a whole run of the same configuration replaces the file."""
    script.store(stats, tables, about={stats.INTERRUPTED: "yes"})
    if not script.options.quiet:
        print(f"wrote {script.path}: the runs that have finished", file=sys.stderr)


@contextmanager
def keeping(script: Stores, stats: ModuleType, tables: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Keep ``tables()`` if Ctrl-C ends the block, nothing if there are none, and let it go on."""
    try:
        yield
    except KeyboardInterrupt:
        if made := tables():
            keep(script, stats, made)
        raise
