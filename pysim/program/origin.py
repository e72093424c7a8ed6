"""How a job was made, so that another process, or the reader of a result file, can make it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pysim.machine.config import Config


@dataclass(frozen=True, slots=True)
class Origin:
    """The call ``make(*args)`` that made a job.

    ``make``: a function of a module, which pickle finds by its name. ``about``: what a result file says of
    the job, from which ``pysim.cli.job_source`` makes it again. ``machine``: the one that a library chose its
    kernels for; None: none was named. ``renamed``: whether each value has its own memory.
    """

    make: Callable[..., Any]
    args: tuple[Any, ...]
    about: Mapping[str, Any]
    machine: Config | None = None
    renamed: bool = False


@dataclass(frozen=True, slots=True)
class MadeBy:
    """An origin with the very kernels and events that it made: a job of others has none."""

    origin: Origin
    kernels: Sequence[object]
    events: Sequence[tuple[int, int]]


def remade(make: Callable[..., Any], args: tuple[Any, ...], labels: Mapping[str, Any]) -> Any:
    """Return the job of a call with other labels (name, steps, arguments): what a pickled job becomes."""
    return replace(make(*args), **labels)
