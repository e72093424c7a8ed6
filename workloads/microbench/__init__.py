"""Microbenchmarks of a GPU's constants, as ``tests/hw/suite/micro.cu`` measures them, on a simulated GPU.

``rows()`` lists them by the key that the measurement writes; ``measured(path)`` reads such a file.
"""

from __future__ import annotations

from .rows import Row, rows, skipped
from .store import MEASURED, read_measured

__all__ = ["MEASURED", "Row", "read_measured", "rows", "skipped"]
