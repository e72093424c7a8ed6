"""Gives tests the writers of docs/ and what stands between the marks of a page."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def writer(name: str) -> ModuleType:
    """Return a module of docs/builders/."""
    return importlib.import_module(f"docs.builders.{name}")


def block(path: Path, name: str) -> str:
    """Return what stands between the marks of a page."""
    marks = rf"<!-- begin {name} -->\n(.*?)\n<!-- end {name} -->"
    found = re.findall(marks, path.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 1, name
    return found[0]
