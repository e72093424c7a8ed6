"""What engines share: the command of a worker, and paths that are safe in it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pysim.errors import ConfigError, OutputError, brief

ROOT = Path(__file__).resolve().parents[3]  # what holds the package: a checkout, or site-packages


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker takes. ``threads``: of one simulation; ``max_memory``: a size as ``4GiB``, or empty."""

    threads: int = 1
    max_memory: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 1024:
            raise ConfigError(f"threads = {brief(self.threads)}: must be in [1, 1024]")
        checked_text("max_memory", self.max_memory)


@dataclass(frozen=True, slots=True)
class Submission:
    """Workers that have been launched: a job of Slurm, or tasks of a Dask scheduler.

    ``tasks``: how many workers share the points; ``note``: why that is not what was asked for, or empty.
    """

    engine: str
    job: str
    tasks: int
    note: str = ""

    def __str__(self) -> str:
        count = f"{self.tasks:,} task" + "s" * (self.tasks != 1)
        return f"{self.engine} {self.job}: {count}{self.note and f' ({self.note})'}"


def checked_text(name: str, text: str) -> str:
    """Return a text that stays on one line of a script; ConfigError for one that does not."""
    if not text.isprintable():
        raise ConfigError(f"{name} = {text!r}: holds a character that does not print, such as a line break")
    return text


def checked_folder(folder: Path) -> Path:
    """Return the absolute path of a sweep; ConfigError if a batch script cannot name it."""
    path = folder.absolute()
    checked_text("folder", str(path))
    if "\\" in str(path):
        raise ConfigError(f"folder = {path}: Slurm does not take a backslash in the name of a log")
    return path


def package_root() -> Path:
    """Return the folder for PYTHONPATH; ConfigError if that variable cannot name it."""
    checked_text("folder of pysim", str(ROOT))
    if ":" in str(ROOT):
        raise ConfigError(f"{ROOT}: PYTHONPATH cannot name a folder with a colon: install pysim elsewhere")
    return ROOT


def worker_command(folder: Path, options: WorkerOptions) -> list[str]:
    """Return the command that runs the missing points of a sweep, without ``--shard``.

    ``-P`` keeps files of the working directory, such as a ``numpy.py``, out of the worker.
    """
    command = [sys.executable, "-P", "-m", "pysim", "work", str(folder), "--threads", str(options.threads)]
    return command + (["--max-memory", options.max_memory] if options.max_memory else [])


def run_worker(command: list[str]) -> int:
    """Run a worker in a process of its own and return its exit code.

    A caller that has to stop earlier, by an exception in a signal handler, stops it with SIGTERM. USR1 and
    USR2, which batch systems send to all processes of a job, do not end it.
    """
    process = subprocess.Popen(["/bin/sh", "-c", 'trap \'\' USR1 USR2; exec "$0" "$@"', *command])
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def record(folder: Path, submission: Submission, **more: Any) -> None:
    """Keep a submission as ``jobs/JOB.json``; OutputError names the job if that cannot be written.

    It is for people, and for ``scancel``. Whether a point is done never depends on it.
    """
    data = {"engine": submission.engine, "job": submission.job, "tasks": submission.tasks, **more}
    path = folder / "jobs" / f"{submission.job}.json"
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        try:
            part.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"{submission.engine}: submitted {submission.job}, but {path} cannot be written: {error.strerror}"
        ) from error
