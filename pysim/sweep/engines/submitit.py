"""Slurm through submitit. It is not asked for the state of a job: the result files are the truth."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import ConfigError, MissingLibraryError, WorkloadError, brief

from .launching import (
    Submission,
    checked_folder,
    forget_failures,
    package_root,
    record,
    run_worker,
    worker_command,
)
from .slurm import Slurm, job_name

if TYPE_CHECKING:
    import submitit

    from pysim.sweep.folder import SweepFolder


class Worker:
    """A worker as submitit calls it, with its share of the points as ``I/N``.

    submitit stores it as a pickle in ``logs/submitit``, for its own use; no result is read from there. With
    ``checkpoint`` it requeues a task that reaches its time limit, three times at most.
    """

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def __call__(self, shard: str) -> int:
        """Run the worker and return its exit code."""
        return run_worker([*self.command, "--shard", shard])

    def checkpoint(self, shard: str) -> Any:
        """Return what a requeued task runs: the same, which skips the points that are done."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, shard)


def minutes(time: str) -> int:
    """Return a time limit as Slurm writes it in whole minutes, rounded up, at least 1."""
    days, dash, rest = time.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    # after days the first number is hours; otherwise one number is minutes, and two are minutes:seconds
    hours = parts.pop(0) if dash or len(parts) == 3 else 0
    left, seconds = (*parts, 0, 0)[:2]
    return max(1, (int(days or 0) * 24 + hours) * 60 + left + math.ceil(seconds / 60))


def parameters_of(options: Slurm, name: str) -> dict[str, Any]:
    """Return the options as submitit's ``update_parameters`` takes them; ConfigError for what it does not."""
    further: dict[str, Any] = {"requeue": True}
    for line in options.directives:
        found = re.fullmatch(r"--([a-z][a-z0-9-]*)(?:[= ](.*))?", line)
        if found is None:
            raise ConfigError(f"directive {brief(line)}: submitit takes long options only, such as --qos=low")
        further[found[1]] = True if found[2] is None else found[2]
    chosen: dict[str, Any] = {
        "time": minutes(options.time),
        "job_name": name,
        "cpus_per_task": options.threads,
        "signal_delay_s": options.signal_s,
        "stderr_to_stdout": True,
        "setup": [f"export PYTHONPATH={shlex.quote(str(package_root()))}${{PYTHONPATH:+:$PYTHONPATH}}"],
        "additional_parameters": further,
    }
    if options.throttle:
        chosen["array_parallelism"] = options.throttle
    for key in ("partition", "account"):
        if value := getattr(options, key):
            chosen[key] = value
    return chosen


def _executor(folder: Path) -> submitit.SlurmExecutor:
    try:
        import submitit
    except ImportError as error:
        raise MissingLibraryError("the engine submitit", "submitit", "slurm") from error
    try:
        return submitit.SlurmExecutor(folder=folder)
    except RuntimeError as error:
        raise WorkloadError(f"submitit: {brief(error.args[0], 400)}") from None


class Submitit(Slurm):
    """A job array through submitit's ``map_array``; its options are those of :class:`Slurm`."""

    def launch(self, folder: SweepFolder) -> Submission | None:
        """Submit the array and return at once; None: no point is missing.

        Raises MissingLibraryError without submitit, ConfigError for an option or folder that it cannot take,
        WorkloadError with the words of submitit.
        """
        path = checked_folder(folder)
        if found := re.search("[%']", str(path)):
            raise ConfigError(f"folder = {path}: submitit does not take {found[0]} in the name of a folder")
        if not self.time:
            raise ConfigError("the engine submitit needs a time limit: submitit's own is 5 minutes")
        parameters = parameters_of(self, job_name(path, self))
        executor = _executor(path / "logs" / "submitit")
        shares = self.shares(folder)
        if not shares.numbers:
            return None
        worker = Worker(worker_command(path, self.threads, self.max_memory))
        try:
            executor.update_parameters(**parameters)
            jobs = executor.map_array(worker, shares.names())
        except (RuntimeError, OSError) as error:  # all errors of submitit are RuntimeErrors
            raise WorkloadError(f"submitit: {brief(str(error), 400)}") from None
        forget_failures(folder)
        job = str(jobs[0].job_id).partition("_")[0]
        made = Submission("submitit", job, len(shares.numbers), shares.note())
        record(path, made)
        return made
