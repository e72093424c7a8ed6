"""Batches: the points of a sweep, the folder that knows which are done, and the engines that launch workers.

>>> from pysim.sweep import Sweep
>>> sweep = Sweep("gru", {"hidden": [256, 512], "batch": [8, 16]}, schemes="stream,graph", gpu="titan_v")
>>> len(sweep.points())
4
"""

from __future__ import annotations

from .folder import Status, SweepFolder
from .sweep import Sweep

__all__ = ["Status", "Sweep", "SweepFolder"]
