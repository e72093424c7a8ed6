"""Gives tests the writers of docs/ and what stands between the marks of a page."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def writer(name: str) -> ModuleType:
    """Return a module of docs/; its neighbours are on the path only while it is read."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        spec.loader.exec_module(module)
    return module


def block(path: Path, name: str) -> str:
    """Return what stands between the marks of a page."""
    marks = rf"<!-- begin {name} -->\n(.*?)\n<!-- end {name} -->"
    found = re.findall(marks, path.read_text(encoding="utf-8"), re.DOTALL)
    assert len(found) == 1, name
    return found[0]
