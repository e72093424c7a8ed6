"""The report: one HTML file that shows results and needs no network."""

from __future__ import annotations

from .edges import Edges
from .report import Page, Recording, write_report
from .run import MOST_TBS
from .sources import open_sources, report

__all__ = ["MOST_TBS", "Edges", "Page", "Recording", "open_sources", "report", "write_report"]
