"""The report: one HTML file that shows results and needs no network."""

from __future__ import annotations

from .edges import Edges
from .report import Page, Recording, write_report
from .sweep import Sweep

__all__ = ["Edges", "Page", "Recording", "Sweep", "write_report"]
