"""A worker: simulates the missing points of a sweep's folder, one after another, in this process."""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from pysim.cli.checkpointing import interruption
from pysim.cli.entry import keep_on_signals, raise_if_stopped
from pysim.cli.options import Options
from pysim.cli.script import Script
from pysim.engine.checkpoints import Checkpoints
from pysim.errors import CheckpointError, ConfigError, InternalError, SimError, TimeUp
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


def simulate_point(folder: SweepFolder, key: str, threads: int, until: float = math.inf) -> None:
    """Simulate a point, from its checkpoint if there is one, and write its result file.

    A signal writes a checkpoint, as in scripts. ``until``: when to write one and raise TimeUp, of
    ``time.monotonic``. Raises SimError, stats.StoreError or MemoryError where the point cannot be simulated.
    """
    from pysim import stats
    from pysim.results.graph_tables import graph_hash
    from pysim.workloads import make

    point = folder.point(key)
    script = Script(
        "sweep", options_of(folder, point, key, threads), point.config(), {"workload": point.workload}
    )
    script.finished.checkpoints = kept = _checkpoints(folder, key, script, until)
    job = make(point.workload, script.config)
    run = script.run(job, stats, stats.Log(quiet=True))
    if run.result.interrupted:
        raise interruption(kept)
    folder.check()
    tables = script.tables_to_write(run.listed)
    script.store(stats, tables, about={"graph": graph_hash(run.result.deps), "point": key}, beside=False)


def _checkpoints(folder: SweepFolder, key: str, script: Script, until: float) -> Checkpoints | None:
    """Return the checkpoints of a point; one that cannot be gone on from is reported, and left out."""
    if script.config["sim.oracle"]:
        return None
    seconds = None if until == math.inf else max(0.001, until - time.monotonic())
    where = folder.checkpoints(key)
    try:
        made = Checkpoints(where, resume=True, about=script.configuration, seconds=seconds)
    except CheckpointError as error:
        print(f"{folder.plan.name_of(key)} begins afresh: {error}", file=sys.stderr)
        made = Checkpoints(where, about=script.configuration, seconds=seconds)
    keep_on_signals(made)
    return made


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
    max_time: float | None = None,
) -> list[str]:
    """Simulate the missing points of a shard that nobody else simulates; return the keys of what failed.

    ``max_memory``: bytes that a point may take; ``retry``: also try points that have failed before;
    ``parent``: stop between two points once that process is gone; ``max_time``: seconds after which a
    checkpoint is written and TimeUp raised.
    """
    set_limit(max_memory)
    until = math.inf if max_time is None else time.monotonic() + max_time
    failed = []
    for key in shard.among(folder.plan.files()):
        if parent is not None and os.getppid() != parent:
            break
        if folder.is_done(key) or (not retry and folder.failure(key) is not None):
            continue
        with folder.claimed(key) as mine:
            if mine and time.monotonic() >= until:
                raise TimeUp
            if mine and (reason := _reason_of_failure(folder, key, threads, until)) is not None:
                folder.fail(key, reason)
                failed.append(key)
    return failed


def _reason_of_failure(folder: SweepFolder, key: str, threads: int, until: float) -> str | None:
    """Simulate a point; return None, or one line that says why it failed."""
    folder.clear_failure(key)
    try:
        simulate_point(folder, key, threads, until)
    except Exception as error:
        raise_if_stopped(error)
        return _reason(folder, key, error)
    return None


def _reason(folder: SweepFolder, key: str, error: Exception) -> str:
    """Return one line about an error; the traceback of one that no user caused goes to the point's log."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory"
    if not isinstance(error, InternalError):
        if isinstance(error, SimError) or getattr(error, "user_error", False):
            return text
        text = f"{type(error).__name__}: {text}"
    with suppress(OSError):
        folder.log(key).write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return f"{text} (traceback in {folder.log(key)})"
