"""Makes the rooms beside ``pysim`` importable where the package runs from a checkout.

The folders ``stats``, ``workloads`` and ``configs`` of a checkout are ``pysim.stats``, ``pysim.workloads``
and ``pysim.configs``. An installation has them inside ``pysim``, and nothing is done there. In a checkout
``stats`` and ``workloads`` are short names of the same modules.

The classes do without the bases of ``importlib.abc``, whose import takes longer than all else here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("stats", "workloads", "configs")
SHORT = ("stats", "workloads")


class _Finder:
    """Finds the rooms beside ``pysim``, and modules by their short names."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Return the specification of a room or of a short name; None for any other module."""
        package, _, name = fullname.partition(".")
        if package == "pysim" and name in ROOMS:
            folder = ROOT / name
            return spec_from_file_location(
                fullname, folder / "__init__.py", submodule_search_locations=[str(folder)]
            )
        if package not in SHORT or not name:
            return None
        loader: Any = _Same()
        return ModuleSpec(fullname, loader)


class _Same:
    """Loads a module of a short name: the module of the long one."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of the long name."""
        made = import_module(f"pysim.{spec.name}")
        self.spec = made.__spec__
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Give the module back its own specification, which the import system has replaced."""
        module.__spec__ = self.spec


def become_long(name: str) -> None:
    """Let a short name stand for the module of the long one; called while the short one is imported."""
    sys.modules[name] = import_module(f"pysim.{name}")


def install() -> None:
    """Make the rooms of a checkout importable; nothing in an installation."""
    inside, beside = (ROOT / folder / "stats" / "__init__.py" for folder in ("pysim", ""))
    if beside.is_file() and not inside.is_file():
        sys.meta_path.insert(0, _Finder())
