"""Batches: the points of a sweep, the folder that knows which are done, and the engines that launch workers.

>>> from pysim.sweep import Sweep
>>> sweep = Sweep("gru", {"hidden": [256, 512], "batch": [8, 16]}, schemes="stream,graph", gpu="titan_v")
>>> len(sweep.points())
4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folder import Status, SweepFolder
    from .sweep import Sweep

# found at first use, so that the command reads its options without numpy
_LAZY = {"Status": "folder", "Sweep": "sweep", "SweepFolder": "folder"}

__all__ = ["Status", "Sweep", "SweepFolder"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public API."""
    return sorted(__all__)
