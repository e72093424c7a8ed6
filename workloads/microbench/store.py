"""Reads what the microbenchmarks of ``tests/hw`` wrote: one JSON object, a key a constant."""

from __future__ import annotations

import json
import math
from pathlib import Path

from pysim.errors import ConfigError

# GPU -> file of measured constants; workloads/measured/README.md says where they come from
MEASURED = {"h200": Path(__file__).resolve().parents[1] / "measured" / "h200_micro.json"}


def read_measured(path: Path) -> dict[str, float]:
    """Return key -> median (or value) of a measured file; texts are left out. Raises ConfigError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: must be a JSON object of constants")
    made: dict[str, float] = {}
    for key, entry in found.items():
        if isinstance(entry, str):
            continue
        value = entry.get("median", entry.get("value")) if isinstance(entry, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"{path}: {key} = {json.dumps(entry)[:80]}: needs a finite median or value")
        made[key] = float(value)
    return made
