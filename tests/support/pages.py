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


def run_page(name, leave_out=()):
    """Run the Python code of a page, block after block, but blocks with a word; return its names."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        if not any(word in code for word in leave_out):
            exec(code, names)
    return names
