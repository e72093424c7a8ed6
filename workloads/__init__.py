"""Kernel templates, layers and networks that the simulator runs."""

from __future__ import annotations

from .registry import WORKLOADS, make

__all__ = ["WORKLOADS", "make"]
