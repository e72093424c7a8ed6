"""What is made once for all processes of a run of tests: pytest-xdist sets fixtures up anew in each."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that ``make`` has filled, for reading: the first process that asks does, others wait.

    A folder in which ``make`` failed is made anew by the next one: its test fails for the same reason.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # of all workers of this run
    whole, part = base / f"once-{name}", base / f"once-{name}-{os.getpid()}"
    with (base / f"once-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            part.mkdir()
            make(part)
            part.rename(whole)
    return whole
