"""Says how to install an optional library; stats never imports pysim, so ``pysim.errors`` has its own."""

from __future__ import annotations

from pathlib import Path


def how_to_install(library: str, extra: str) -> str:
    """Return the command: the extra of a checkout, or the library beside an installed package."""
    checkout = (Path(__file__).resolve().parents[1] / "pyproject.toml").is_file()
    return f'pip install -e ".[{extra}]"' if checkout else f"pip install {library}"


def no_matplotlib() -> str:
    """Return the error of a picture where matplotlib is not installed."""
    return f"pictures need matplotlib: {how_to_install('matplotlib', 'plot')}"
