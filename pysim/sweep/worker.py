"""A worker: simulates the missing points of a sweep's folder, one after another, in this process."""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pysim.cli.options import Options
from pysim.cli.script import Script
from pysim.errors import ConfigError, InternalError, SimError
from pysim.program.memory_budget import set_limit

from .folder import SweepFolder
from .point import Point


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a sweep: the points whose number modulo ``of`` is ``number``."""

    number: int = 0
    of: int = 1

    def __post_init__(self) -> None:
        if self.of < 1 or not 0 <= self.number < self.of:
            raise ConfigError(f"shard {self.number}/{self.of}: must be I/N, with I from 0 to N - 1")

    def among(self, keys: Sequence[str]) -> list[str]:
        """Return the shard's part of the keys of all points."""
        return list(keys[self.number :: self.of])


def simulate_point(folder: SweepFolder, key: str, threads: int) -> None:
    """Simulate a point and write its result file.

    Raises SimError, stats.StoreError or MemoryError where this cannot be done. After Ctrl-C nothing is
    written, and KeyboardInterrupt is raised.
    """
    import stats
    from pysim.results.graph_tables import graph_hash
    from workloads import make

    point = folder.point(key)
    script = Script(
        "sweep", options_of(folder, point, key, threads), point.config(), {"workload": point.workload}
    )
    job = make(point.workload, script.config)
    run = script.run(job, stats, stats.Log(quiet=True))
    if run.result.interrupted:
        raise KeyboardInterrupt
    tables = script.tables_to_write(run.listed)
    script.store(stats, tables, about={"graph": graph_hash(run.result.deps)}, beside=False)


def options_of(folder: SweepFolder, point: Point, key: str, threads: int) -> Options:
    """Return a point as the options of a script."""
    return Options(
        gpu=point.gpu,
        schemes=point.schemes,
        threads=threads,
        out=folder.result(key),
        settings=point.settings,
        without=(),
        tables=point.tables or None,
        sample_us=None,
        seed=None,
        rename=point.rename,
        replay="off",
        hypothetical=False,
        force=False,
        quiet=True,
        json=False,
        explain=None,
    )


def work(
    folder: SweepFolder,
    shard: Shard,
    threads: int,
    max_memory: int | None = None,
    retry: bool = True,
    parent: int | None = None,
) -> list[str]:
    """Simulate the missing points of a shard that nobody else simulates; return the keys of what failed.

    ``max_memory``: bytes that a point may take; ``retry``: also try points that have failed before;
    ``parent``: stop between two points once that process is gone.
    """
    set_limit(max_memory)
    failed = []
    for key in shard.among(folder.plan.files()):
        if parent is not None and os.getppid() != parent:
            break
        if folder.is_done(key) or (not retry and folder.failure(key) is not None):
            continue
        with folder.claimed(key) as mine:
            if mine and (reason := _reason_of_failure(folder, key, threads)) is not None:
                folder.fail(key, reason)
                failed.append(key)
    return failed


def _reason_of_failure(folder: SweepFolder, key: str, threads: int) -> str | None:
    """Simulate a point; return None, or one line that says why it failed."""
    folder.clear_failure(key)
    try:
        simulate_point(folder, key, threads)
    except InternalError as error:
        with suppress(OSError):
            folder.log(key).write_text(traceback.format_exc(), encoding="utf-8")
        return f"{error} (traceback in {folder.log(key)})"
    except MemoryError:
        return "not enough memory"
    except Exception as error:
        if isinstance(error, SimError) or getattr(error, "user_error", False):
            return " ".join(str(error).split())
        with suppress(OSError):
            folder.log(key).write_text(traceback.format_exc(), encoding="utf-8")
        return f"{type(error).__name__}: {' '.join(str(error).split())} (traceback in {folder.log(key)})"
    return None
