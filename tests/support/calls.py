"""Calls scripts of configs/ and the command ``pysim`` as a user does, in another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
# a slow machine that does other things, too, takes no longer; in seconds
PATIENCE = 240
Done = subprocess.CompletedProcess[str]


def call(folder: Path, *args: object) -> Done:
    """Run Python in a folder, with the packages of this checkout."""
    return subprocess.run(
        [sys.executable, *map(str, args)],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip


def hear_ctrl_c() -> None:
    """Let SIGINT end a child (``preexec_fn``); a shell's background jobs and their children ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def caller(script: str, *always: object) -> Callable[..., Done]:
    """Return ``run(folder, *args)`` of a script, which adds the options ``always``."""

    def run(folder: Path, *args: object) -> Done:
        return call(folder, CONFIGS / f"{script}.py", *args, *always)

    return run


def pysim(*args: object, folder: Path = ROOT) -> Done:
    """Run the command."""
    return call(folder, "-m", "pysim", *args)


def refused(done: Done, text: str, status: int = 2) -> None:
    """Check that a call ended in one line on stderr with ``text``; status 2: of wrong options."""
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1), done.stderr
    assert done.stderr.startswith("error: ")
    assert text in done.stderr
