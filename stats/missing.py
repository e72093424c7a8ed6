"""Says how to install an optional library; stats imports no other room: ``pysim.errors`` has its own."""

from __future__ import annotations

from pathlib import Path


def how_to_install(extra: str) -> str:
    """Return the command that installs the extra which has the library: of a checkout or of the package."""
    checkout = (Path(__file__).resolve().parents[1] / "pyproject.toml").is_file()
    return f'pip install -e ".[{extra}]"' if checkout else f'pip install "pysim-tb[{extra}]"'


def no_matplotlib() -> str:
    """Return the error of a picture where matplotlib is not installed."""
    return f"pictures need matplotlib: {how_to_install('plot')}"
