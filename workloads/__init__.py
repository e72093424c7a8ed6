"""Kernel templates, layers and networks that the simulator runs."""

from __future__ import annotations

from . import _moved
from .registry import WORKLOADS, make

_moved.install()

__all__ = ["WORKLOADS", "make"]
