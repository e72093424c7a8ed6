"""Errors of the package. User errors carry one clear line; an InternalError is a bug of ours."""

from __future__ import annotations

from numbers import Real
from pathlib import Path


class SimError(Exception):
    """Base of all errors of this package."""


class ConfigError(SimError):
    """A parameter, device, scheme or option is unknown or out of range."""


class WorkloadError(SimError):
    """A kernel, tensor or job cannot be run."""


class TimeLimitError(WorkloadError):
    """A run has reached the end of simulated time."""


class PickleError(WorkloadError, TypeError):
    """A job, or the result of one, cannot be pickled; the message says what to do instead."""


class InputError(WorkloadError):
    """A user names what cannot be made or read: a workload or its arguments, a trace, a result file."""


class CheckpointError(InputError):
    """A checkpoint is damaged, or not of this run, build or version."""


class OutputError(WorkloadError):
    """A file is there already, or cannot be written."""


class DependenceError(SimError):
    """The oracle saw a true dependence broken, or the dependences have a cycle."""


class DeadlockError(SimError):
    """Nothing can make progress any more."""


class MissingLibraryError(SimError, ImportError):
    """A library that is optional is not installed; the message says how to install it.

    ``what`` needs the library, which ``extra`` of pyproject.toml installs.
    """

    def __init__(self, what: str, library: str, extra: str) -> None:
        checkout = (Path(__file__).resolve().parents[1] / "pyproject.toml").is_file()
        how = f'pip install -e ".[{extra}]"' if checkout else f'pip install "pysim-tb[{extra}]"'
        super().__init__(f"{what} needs {library}: {how}")


class TimeUp(KeyboardInterrupt):
    """The time that a call may take is over; what it has simulated is in its checkpoint."""


class CoreVersionError(SimError):
    """The compiled core is missing, or older than the Python files: ``python build.py`` makes it."""


class InternalError(SimError):
    """A bug in the simulator: please report it."""


def brief(value: object, longest: int = 80) -> str:
    """Return a value for an error message: one line of at most ``longest`` characters, then ``...``.

    A text or a number stands as it prints, anything else as its ``repr``. White space becomes one space, and
    a character that does not print becomes its escape.
    """
    try:
        text = str(value) if isinstance(value, str | Real) else repr(value)
    except Exception:  # a repr of the user's, or an integer of more digits than Python prints
        what = f"integer of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__
        text = f"<{what}>"
    start = " ".join(text[: 4 * longest].split())
    start = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start)
    return start[:longest] + "..." if len(start) > longest or len(text) > 4 * longest else start
