"""Files of measured constants, by GPU."""

from __future__ import annotations

from pathlib import Path

from pysim.machine.measured import read_measured

__all__ = ["MEASURED", "read_measured"]

# GPU -> file of measured constants; workloads/measured/README.md says where they come from
MEASURED = {"h200": Path(__file__).resolve().parents[1] / "measured" / "h200_micro.json"}
