"""Reads the constants that the microbenchmarks of ``tests/hw`` write: one JSON object, a key a constant."""

from __future__ import annotations

import json
import math
from pathlib import Path

from pysim.errors import ConfigError

_BYTES = 1 << 24  # larger than any such file


def read_measured(path: Path) -> dict[str, float]:
    """Return key -> median (or value) of a measured file; texts are left out. Raises ConfigError."""
    try:
        if path.stat().st_size > _BYTES:
            raise ConfigError(f"{path}: larger than {_BYTES} B: no file of constants")
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


def gpu_name(path: Path) -> str:
    """Return the name that the driver gives the measured GPU, or an empty text; the file was read before."""
    name = json.loads(path.read_text(encoding="utf-8")).get("gpu_name", "")
    return "".join(c for c in str(name) if c.isprintable())[:60]
