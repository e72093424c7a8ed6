"""What the engines of batch systems share: shares of the points, the command of a worker, safe paths."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, OutputError, brief

if TYPE_CHECKING:
    from pysim.sweep.folder import SweepFolder

ROOT = Path(__file__).resolve().parents[3]  # what holds the package: a checkout, or site-packages


@dataclass(frozen=True, slots=True)
class Submission:
    """Workers that have been launched: a job of Slurm, or tasks of a Dask scheduler.

    ``tasks``: how many were launched; ``note``: what else there is to say, or empty.
    """

    engine: str
    job: str
    tasks: int
    note: str = ""

    def __str__(self) -> str:
        count = f"{self.tasks:,} task" + "s" * (self.tasks != 1)
        return f"{self.engine} {self.job}: {count}{self.note and f', {self.note}'}"


@dataclass(frozen=True, slots=True)
class Shares:
    """The points of a folder in ``of`` shares, and the numbers of those in which points are missing."""

    of: int
    numbers: tuple[int, ...]
    points: int  # most points of a share

    @classmethod
    def of_folder(cls, folder: SweepFolder, tasks: int | None, limit: int | None = None) -> Shares:
        """Share out the points of a folder.

        ``tasks``: shares (None: one a point, or ``limit`` if that is fewer). A share is the same in each call
        with the same number of tasks: worker I of N takes the points whose number modulo N is I.
        """
        keys = folder.plan.files()
        if tasks is None:
            tasks = max(1, len(keys) if limit is None else min(len(keys), limit))
        if tasks < 1:
            raise ConfigError(f"tasks = {brief(tasks)}: must be at least 1")
        if limit is not None and tasks > limit:
            raise ConfigError(
                f"tasks = {tasks:,}: MaxArraySize of Slurm is {limit:,} here: use fewer, of more points"
            )
        missing = {number % tasks for number, key in enumerate(keys) if not folder.is_done(key)}
        return cls(tasks, tuple(sorted(missing)), -(-len(keys) // tasks))

    def names(self) -> list[str]:
        """Return the shares with missing points as ``--shard`` takes them: I/N."""
        return [f"{number}/{self.of}" for number in self.numbers]

    def note(self) -> str:
        """Return how many points a task runs, where that is more than one."""
        return f"up to {self.points:,} points each" if self.points > 1 else ""


def ranges(numbers: Iterable[int]) -> str:
    """Return ascending numbers in the form of ``--array``: 0-3,5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def checked_text(name: str, text: str) -> str:
    """Return a text that stays on one line of a script; ConfigError for one that does not."""
    if not text.isprintable():
        raise ConfigError(f"{name} = {text!r}: holds a character that does not print, such as a line break")
    return text


def checked_folder(folder: SweepFolder) -> Path:
    """Return the absolute path of a sweep; ConfigError if a batch script cannot name it."""
    path = folder.path.absolute()
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


def worker_command(folder: Path, threads: int, max_memory: int | None) -> list[str]:
    """Return the command that runs the missing points of a sweep, without ``--shard``.

    ``-P`` keeps files of the working directory, such as a ``numpy.py``, out of the worker.
    """
    command = [sys.executable, "-P", "-m", "pysim", "work", str(folder), "--threads", str(threads)]
    return command + (["--max-memory", str(max_memory)] if max_memory else [])


def run_worker(command: list[str]) -> int:
    """Run a worker in a process of its own and return its exit code.

    A caller that has to stop earlier, by an exception in a signal handler, stops it with SIGTERM. USR1 and
    USR2, which batch systems send to all processes of a job, do not end it.
    """
    process = subprocess.Popen(["/bin/sh", "-c", 'trap "" USR1 USR2; exec "$0" "$@"', *command])
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def forget_failures(folder: SweepFolder) -> None:
    """Forget why missing points failed: they are tried again."""
    for key in folder.missing():
        folder.clear_failure(key)


def record(folder: Path, submission: Submission, **more: Any) -> None:
    """Keep a submission as ``jobs/JOB.json``; OutputError names the job if that cannot be written.

    It is for people, and for ``scancel``. Whether a point is done never depends on it.
    """
    from pysim.sweep.folder import write_whole

    data = {"engine": submission.engine, "job": submission.job, "tasks": submission.tasks, **more}
    path = folder / "jobs" / f"{submission.job}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, (json.dumps(data, indent=2) + "\n").encode())
    except (OSError, OutputError) as error:
        name = f"{submission.engine} {submission.job}"
        why = getattr(error, "strerror", None) or error
        raise OutputError(f"submitted as {name}, but {path} cannot be written: {why}") from error
