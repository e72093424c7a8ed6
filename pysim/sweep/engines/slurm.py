"""Slurm: one job array whose tasks share the points of a sweep. Needs no library but Slurm's own commands."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pysim.errors import ConfigError, OutputError, WorkloadError, brief

from .launching import (
    Shares,
    Submission,
    checked_folder,
    checked_text,
    forget_failures,
    package_root,
    ranges,
    record,
    worker_command,
)

if TYPE_CHECKING:
    from pysim.sweep.folder import SweepFolder

DEFAULT_MAX_ARRAY = 1001  # MaxArraySize where slurm.conf does not state it
MOST_SIGNAL_S = 65535
ANSWER_S = 300
_TIME = re.compile(r"\d{1,8}(:\d{1,8}){0,2}|\d{1,5}-\d{1,2}(:\d{1,2}){0,2}")
_NAME = re.compile(r"[\w.,@+-]+", re.ASCII)
_LINE = re.compile(r"(--[a-z][a-z0-9-]*|-[A-Za-z])([= ].*)?")
# directives that the shards, the logs or the worker depend on
_OURS = ("-a", "--array", "-o", "--output", "-e", "--error", "--wrap", "--open-mode", "-c", "--cpus-per-task")


@dataclass(frozen=True)
class Slurm:
    """A job array.

    Parameters
    ----------
    tasks
        Tasks that share the points (None: one a point, or as many as Slurm takes in one array).
    threads
        Threads of a task, and its ``--cpus-per-task``.
    max_memory
        Bytes that a point may take (None: 80 % of what is free on its node). What Slurm grants is a
        directive, such as ``--mem=4G``.
    time
        Limit of a task as Slurm writes it (``30``: minutes; ``2:00:00``; ``1-12``); empty: the partition's.
    throttle
        Most tasks at once; 0: as many as fit.
    signal_s
        Seconds before the limit at which USR1 comes; Slurm may send it a minute earlier.
    partition, account, name
        As Slurm's options; empty: Slurm's default, and ``pysim-FOLDER`` as name.
    directives
        Further options of ``sbatch``, such as ``--qos=low``.

    Raises
    ------
    ConfigError
        An option that is out of range, or that does not stay on its line of the script.
    """

    tasks: int | None = None
    threads: int = 1
    max_memory: int | None = None
    time: str = ""
    throttle: int = 0
    signal_s: int = 120
    partition: str = ""
    account: str = ""
    name: str = ""
    directives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key, least, most in (
            ("threads", 1, 1024),
            ("throttle", 0, 1_000_000),
            ("signal_s", 1, MOST_SIGNAL_S),
        ):
            if not least <= getattr(self, key) <= most:
                raise ConfigError(f"{key} = {brief(getattr(self, key))}: must be in [{least}, {most}]")
        if self.time and not _TIME.fullmatch(self.time):
            raise ConfigError(
                f"time = {brief(self.time)}: must be minutes, [hours:]minutes:seconds or days-hours[:minutes]"
            )
        for key in ("partition", "account", "name"):
            value = getattr(self, key)
            if value and (not _NAME.fullmatch(value) or value.startswith("-")):
                raise ConfigError(f"{key} = {brief(value)}: must be of letters, digits and . , @ + - _")
        for line in self.directives:
            _check_directive(line)

    def shares(self, folder: SweepFolder) -> Shares:
        """Share out the points of a folder so that this Slurm takes them in one array."""
        return Shares.of_folder(folder, self.tasks, max_array_size())

    def script(self, folder: SweepFolder) -> str:
        """Return the batch script; it needs no Slurm. WorkloadError if no point is missing."""
        shares = self.shares(folder)
        if not shares.numbers:
            raise WorkloadError(f"{folder.path}: no point is missing")
        return render(checked_folder(folder), shares, self)

    def launch(self, folder: SweepFolder) -> Submission | None:
        """Submit the array and return at once; None: no point is missing.

        Raises ConfigError for what a script cannot name, WorkloadError with the words of ``sbatch``.
        """
        shares = self.shares(folder)
        if not shares.numbers:
            return None
        path = checked_folder(folder)
        text = render(path, shares, self)
        try:
            (path / "logs").mkdir(exist_ok=True)  # without it Slurm ends each task without a word
        except OSError as error:
            raise OutputError(f"{path / 'logs'} cannot be made: {error.strerror}") from None
        job = _submit(text)
        forget_failures(folder)
        made = Submission("slurm", job, len(shares.numbers), shares.note())
        record(path, made, script=text)
        return made


def _check_directive(line: str) -> None:
    checked_text("directive", line)
    if not _LINE.fullmatch(line):
        raise ConfigError(f"directive {brief(line)}: must be an option of sbatch, such as --qos=low")
    option = re.split("[= ]", line, maxsplit=1)[0]
    if option in _OURS:
        raise ConfigError(f"directive {brief(line)}: pysim sets {option} itself")


def job_name(folder: Path, options: Slurm) -> str:
    """Return the name that ``squeue`` shows."""
    return options.name or "pysim-" + re.sub(r"[^\w.-]", "_", folder.name, flags=re.ASCII)


def _log_pattern(folder: Path) -> str:
    """Return the log of a task as a value of ``--output``: quoted, a percent sign of the path doubled."""
    path = str(folder / "logs").replace("%", "%%").replace('"', '\\"')
    return f'"{path}/slurm-%A_%a.log"'


def render(folder: Path, shares: Shares, options: Slurm) -> str:
    """Return the batch script of an array with a task for each share."""
    import jinja2

    throttle = f"%{options.throttle}" if options.throttle else ""
    directives = [
        f"--job-name={job_name(folder, options)}",
        f"--array={ranges(shares.numbers)}{throttle}",
        f"--output={_log_pattern(folder)}",
        "--open-mode=append",  # a task that is requeued keeps the log of its first run
        "--requeue",
        f"--signal=B:USR1@{options.signal_s}",
        "--ntasks=1",
        f"--cpus-per-task={options.threads}",
    ]
    for key in ("time", "partition", "account"):
        if value := getattr(options, key):
            directives.append(f"--{key}={value}")
    text = resources.files("pysim.sweep.engines").joinpath("sbatch.sh.j2").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(text).render(
        directives=[*directives, *options.directives],
        root=shlex.quote(str(package_root())),
        worker=shlex.join(worker_command(folder, options.threads, options.max_memory)),
        shares=shares.of,
    )


def max_array_size() -> int:
    """Return MaxArraySize of this Slurm, above all indices; Slurm's default if it does not answer."""
    try:
        done = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return DEFAULT_MAX_ARRAY
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)\s*$", done.stdout, re.MULTILINE)
    return max(int(found[1]), 1) if found else DEFAULT_MAX_ARRAY


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
