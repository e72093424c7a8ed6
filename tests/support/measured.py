"""Finds measured tables by name: those the product reads, and those beside the program that measured them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "workloads" / "measured", ROOT / "tests" / "hw")


@cache
def measured_table(name: str) -> Path:
    """Return the path of a measured table such as ``h200_flood.csv``."""
    found = [path for folder in FOLDERS for path in folder.rglob(name)]
    if len(found) != 1:
        raise FileNotFoundError(f"{len(found)} measured tables are called {name}: one is meant")
    return found[0]
