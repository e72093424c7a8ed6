"""Finds the Python versions of this machine that can run a wheel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
LISTED = "PYSIM_PYTHONS"  # executables or their folders, as in PATH
PATIENCE = 60
# a Debian Python without its package venv fails here
ASKED = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"


def _candidates(version: str) -> Iterator[Path]:
    """Give what may be Python of a version, listed ones first."""
    for variable in (LISTED, "PATH"):
        for text in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            path = Path(text)
            found = path / f"python{version}" if path.is_dir() else path
            if os.access(found, os.X_OK):
                yield found


def _version(python: Path) -> str:
    """Return the version of an executable that runs and makes environments, or nothing."""
    try:
        done = subprocess.run(
            [python, "-c", ASKED], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def python_of(version: str) -> Path | None:
    """Return the first Python of a version ("3.12") that runs: a shim on PATH may be there and not run."""
    return next((path for path in _candidates(version) if _version(path) == version), None)
