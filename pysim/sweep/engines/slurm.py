"""Slurm: one job array whose tasks share the points of a sweep. Needs no library but Slurm's own commands."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pysim.errors import ConfigError, WorkloadError, brief

from .launching import (
    Submission,
    WorkerOptions,
    checked_folder,
    checked_text,
    package_root,
    record,
    worker_command,
)

DEFAULT_MAX_ARRAY = 1001  # MaxArraySize where slurm.conf does not state it
MOST_SIGNAL_S = 65535
ANSWER_S = 300
_TIME = re.compile(r"\d{1,8}(:\d{1,8}){0,2}|\d{1,5}-\d{1,2}(:\d{1,2}){0,2}")
_NAME = re.compile(r"[\w.,@+-]+", re.ASCII)
_LINE = re.compile(r"(--[a-z][a-z0-9-]*|-[A-Za-z])([= ].*)?")
# directives that the shards, the logs or the worker depend on
_OURS = ("-a", "--array", "-o", "--output", "-e", "--error", "--wrap", "--open-mode", "-c", "--cpus-per-task")


@dataclass(frozen=True, slots=True)
class SlurmOptions(WorkerOptions):
    """How an array runs.

    ``time``: limit of a task as Slurm writes it (``30``: minutes; ``2:00:00``; ``1-12``), or empty: the
    partition's. ``throttle``: most tasks at once, 0: as many as fit. ``signal_s``: seconds before the limit
    at which USR1 comes; Slurm may send it a minute earlier. ``directives``: further lines after ``#SBATCH``.
    """

    time: str = ""
    throttle: int = 0
    signal_s: int = 120
    partition: str = ""
    account: str = ""
    name: str = ""
    directives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # a dataclass with slots is made anew: super() without arguments would name the class before that
        WorkerOptions.__post_init__(self)
        if self.time and not _TIME.fullmatch(self.time):
            raise ConfigError(
                f"time = {brief(self.time)}: must be minutes, [hours:]minutes:seconds or days-hours[:minutes]"
            )
        if not 0 <= self.throttle <= 1_000_000:
            raise ConfigError(f"throttle = {brief(self.throttle)}: must be in [0, 1000000]")
        if not 1 <= self.signal_s <= MOST_SIGNAL_S:
            raise ConfigError(f"signal_s = {brief(self.signal_s)} s: must be in [1, {MOST_SIGNAL_S}]")
        for key in ("partition", "account", "name"):
            value = getattr(self, key)
            if value and (not _NAME.fullmatch(value) or value.startswith("-")):
                raise ConfigError(f"{key} = {brief(value)}: must be of letters, digits and . , @ + - _")
        for line in self.directives:
            _check_directive(line)


def _check_directive(line: str) -> None:
    checked_text("directive", line)
    if not _LINE.fullmatch(line):
        raise ConfigError(f"directive {brief(line)}: must be an option of sbatch, such as --qos=low")
    option = re.split("[= ]", line, maxsplit=1)[0]
    if option in _OURS:
        raise ConfigError(f"directive {brief(line)}: pysim sets {option} itself")


def job_name(folder: Path, options: SlurmOptions) -> str:
    """Return the name that ``squeue`` shows."""
    return options.name or "pysim-" + re.sub(r"[^\w.-]", "_", folder.absolute().name, flags=re.ASCII)


def log_pattern(folder: Path) -> str:
    """Return the log of a task as a value of ``--output``: quoted, a percent sign of the path doubled."""
    path = str(folder / "logs").replace("%", "%%").replace('"', '\\"')
    return f'"{path}/slurm-%A_%a.log"'


def script(folder: Path, tasks: int, options: SlurmOptions) -> str:
    """Return the batch script of an array of workers; ConfigError for a path that it cannot name."""
    import jinja2

    if tasks < 1:
        raise ConfigError(f"tasks = {brief(tasks)}: must be at least 1")
    path = checked_folder(folder)
    throttle = f"%{options.throttle}" if options.throttle else ""
    directives = [
        f"--job-name={job_name(path, options)}",
        f"--array=0-{tasks - 1}{throttle}",
        f"--output={log_pattern(path)}",
        "--open-mode=append",  # a task that is requeued keeps the log of its first run
        "--requeue",
        f"--signal=B:USR1@{options.signal_s}",
        "--ntasks=1",
        f"--cpus-per-task={options.threads}",
        *(
            f"--{key}={value}"
            for key in ("time", "partition", "account")
            if (value := str(getattr(options, key)))
        ),
        *options.directives,
    ]
    text = resources.files("pysim.sweep.engines").joinpath("sbatch.sh.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(text).render(
        directives=directives,
        root=shlex.quote(str(package_root())),
        worker=shlex.join(worker_command(path, options)),
        tasks=tasks,
    )


def max_array_size() -> int:
    """Return the MaxArraySize of this Slurm, above all indices; Slurm's default if it does not answer."""
    try:
        done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return DEFAULT_MAX_ARRAY
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)\s*$", done.stdout, re.MULTILINE)
    return max(int(found[1]), 1) if found else DEFAULT_MAX_ARRAY


def fitting(tasks: int, limit: int) -> tuple[int, str]:
    """Return how many tasks an array of at most ``limit`` has, and a note if that is fewer than asked for.

    Fewer tasks run the same points: each takes more of them.
    """
    if tasks <= limit:
        return tasks, ""
    return limit, f"not {tasks:,}: MaxArraySize is {limit:,}, so a task takes more points"


def _submit(text: str) -> str:
    try:
        done = subprocess.run(
            ["sbatch", "--parsable"], input=text, capture_output=True, text=True, timeout=ANSWER_S
        )
    except FileNotFoundError:
        raise WorkloadError(
            "there is no sbatch here: submit from a login node; --dry-run prints the script"
        ) from None
    except OSError as error:
        raise WorkloadError(f"sbatch cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise WorkloadError(
            f"sbatch has not answered for {ANSWER_S} s: squeue shows whether it submitted"
        ) from None
    job = done.stdout.strip().partition(";")[0]
    if done.returncode or not job.isdigit():
        lines = [line.removeprefix("sbatch: ").strip() for line in done.stderr.splitlines()]
        said = brief("; ".join(filter(None, lines)), 400)
        raise WorkloadError(f"sbatch: {said or 'failed without a word'}")
    return job


def launch(folder: Path, tasks: int, options: SlurmOptions) -> Submission:
    """Submit an array of ``tasks`` workers, fewer where Slurm's MaxArraySize is smaller.

    Raises ConfigError for what a script cannot name, WorkloadError with the words of ``sbatch``.
    """
    tasks, note = fitting(tasks, max_array_size())
    text = script(folder, tasks, options)
    try:
        (folder / "logs").mkdir(exist_ok=True)  # without it Slurm ends each task without a word
    except OSError as error:
        raise WorkloadError(f"{folder / 'logs'} cannot be made: {error.strerror}") from None
    made = Submission("slurm", _submit(text), tasks, note)
    record(folder, made, script=text)
    return made
