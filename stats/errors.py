"""The error of result files; ``stats`` never imports pysim, so ``pysim.errors`` has its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class StoreError(Exception):
    """A result file cannot be written or read; the message is one clear line."""

    user_error = True  # scripts print the line and leave; no traceback


def as_path(given: Any) -> Path:
    """Return what a caller gave as a path; StoreError for what is none."""
    try:
        path = Path(given)
    except TypeError:
        raise StoreError(f"{type(given).__name__} is no path") from None
    if "\0" in str(path):
        raise StoreError(f"{str(path)!r} is no path")
    return path
