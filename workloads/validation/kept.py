"""Cached simulations: outcomes of earlier runs are read back, the others run in processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from . import cache
from .cases import Outcome
from .parallel import run_all

Task = TypeVar("Task")


@dataclass(frozen=True, slots=True)
class Figures(Outcome):
    """What a simulation gave, by name."""

    values: Mapping[str, float] = field(default_factory=dict)


def all_of(
    work: Callable[[Task], Figures],
    keys: Mapping[Task, str],
    processes: int,
    fresh: bool,
    progress: Callable[[int, int], None],
) -> dict[Task, Figures]:
    """Return what ``work`` gives of each task; ``keys``: by ``validation.cache.key_of``.

    ``fresh``: nothing is read back. An outcome with a ``reason`` is not cached, nor one that killed its
    process.
    """
    known: dict[Task, Figures] = {}
    for task, key in keys.items():
        found = None if fresh else cache.get(key, kind=Figures)
        if isinstance(found, Figures) and found.values:
            known[task] = found
    # tasks with the same key share a simulation
    first: dict[str, Task] = {}
    for task, key in keys.items():
        first.setdefault(key, task)
    left: Sequence[Task] = [task for task, key in keys.items() if task not in known and first[key] is task]
    for done, (number, outcome) in enumerate(run_all(work, left, processes), 1):
        got = outcome if isinstance(outcome, Figures) else Figures(reason=outcome.reason, trace=outcome.trace)
        known[left[number]] = got
        if not got.reason:
            cache.put(keys[left[number]], got)
        progress(done, len(left))
    return {task: known[task] if task in known else known[first[key]] for task, key in keys.items()}
