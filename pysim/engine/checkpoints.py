"""Checkpoints of the runs of a call: when they are written, under which names, and what goes on from them.

A folder holds a file for each run, named by a hash of everything that decides the run
(``run_checkpoint.run_key``): the state of one that is under way, or the records of one that has ended. Set-up
is computed again; what has been simulated is not.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysim.errors import CheckpointError, ConfigError, OutputError, TimeUp, brief

from .checkpoint_file import CheckpointFile, writing
from .run_state import write_pages, write_rows

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from pysim.machine.config import Config

    from .recorded import Recorded
    from .simulation import Sim

    Rows = NDArray[np.void]

EVERY = 300.0  # seconds between checkpoints


class Checkpoints:
    """Where and when the runs of a call are kept, for ``simulate(..., checkpoints=...)``.

    Parameters
    ----------
    folder
        Folder of the files. It may serve many calls: a run is found by a hash of what decides it.
    every
        Seconds between two checkpoints, and before the first; None: only on :meth:`request` and :meth:`stop`.
    resume
        Go on from the checkpoints in the folder; where there is none, a run begins afresh.
    about
        What the call is, as JSON. A folder with checkpoints of another call is refused then.
    seconds
        Wall time from now on, after which the call writes a checkpoint and ends as if interrupted (TimeUp).
    say
        Called with a line for the user on each checkpoint.

    Raises
    ------
    CheckpointError
        ``resume``: a file is damaged, or of another version, build or call. Nothing is deleted.
    ConfigError
        A time that is not positive.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every: float | None = EVERY,
        *,
        resume: bool = False,
        about: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        for name, value in (("every", every), ("seconds", seconds)):
            if value is not None and not (isinstance(value, int | float) and 0 < value < math.inf):
                raise ConfigError(f"{name} = {brief(value)}: must be a positive number of seconds")
        self.folder, self.every, self.about, self.say = (
            Path(folder),
            every,
            json.loads(json.dumps(about or {})),
            say,
        )
        # monotonic: neither a clock that is set back nor one that jumps writes too often or never
        self._last = time.monotonic()
        self._until = math.inf if seconds is None else self._last + seconds
        self._asked = self._deferred = False
        self._leaving: BaseException | None = None
        self._ended: dict[str, tuple[dict[str, Any], Recorded]] = {}  # not written yet, by key
        self._resume = resume
        self._found = self._scan() if resume else {}
        self._replaces = not resume

    def _scan(self) -> dict[str, CheckpointFile]:
        """Return the files of the folder by key; CheckpointError: one of them is not of this call."""
        from pysim._ffi import core_digest

        made = {}
        for path in sorted(self.folder.glob("*.ckpt")):
            file = CheckpointFile.open(path)
            if file.header.get("core") != core_digest():
                raise CheckpointError(f"{path}: written by another build of the compiled core")
            about = file.header.get("about")
            if self.about and about != self.about:
                raise CheckpointError(f"{path}: of another call: {_difference(about, self.about)}")
            made[str(file.header.get("key"))] = file
        return made

    def check(self, config: Config, ruled: bool) -> None:
        """Raise ConfigError for a call that can have none; ``ruled``: a user's rule dispatches TBs."""
        if ruled:
            raise ConfigError("checkpoints: not with a rule of yours, whose state is not in them")
        if config["sim.oracle"]:
            raise ConfigError("checkpoints: not with sim.oracle = 1, whose state is not in them")

    def request(self) -> None:
        """Write a checkpoint after the present slice (0.1 s) and go on; a signal handler may call it."""
        self._asked = True

    def stop(self, error: BaseException) -> None:
        """Write a checkpoint at the end of the present slice, then raise ``error`` there.

        Where no run is under way, what has ended is written, and ``error`` raised, at once; so too where it
        is called again before that. A signal handler may call it.
        """
        if self._deferred and self._leaving is None:
            self._leaving = error
            return
        if not self._deferred:
            self.flush()
        raise error

    @property
    def time_is_up(self) -> bool:
        """Whether the call has used its time."""
        return isinstance(self._leaving, TimeUp)

    @contextmanager
    def deferring(self) -> Iterator[None]:
        """Let :meth:`stop` wait for the next checkpoint while a run is under way."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False
        if self._leaving is not None:
            self.flush()
        self.leave_if_asked()

    def is_due(self) -> bool:
        """Return whether a checkpoint is to be written now."""
        now = time.monotonic()
        if now >= self._until and self._leaving is None:
            self._leaving = TimeUp()
        timer = self.every is not None and now - self._last >= self.every
        return timer or self._asked or self._leaving is not None

    def leave_if_asked(self) -> None:
        """Raise what :meth:`stop` has asked for, once, or that the time is up."""
        error = self._leaving
        if error is None:
            return
        if not self.time_is_up:
            self._leaving = None
        raise error

    def flush(self) -> None:
        """Write the records of runs that have ended; what cannot be written is reported, not raised."""
        with self._reported():
            self._write_ended()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Report what cannot be written: the run goes on, and the checkpoint before stays."""
        try:
            yield
        except OutputError as error:
            if self.time_is_up:  # the caller relies on going on from it
                raise
            self.say(f"no checkpoint: {error}")
        finally:
            self._asked, self._last = False, time.monotonic()

    def _write_ended(self) -> None:
        for key, (header, recorded) in tuple(self._ended.items()):
            with writing(self._path(key), header) as out:
                out.add(b"sums", recorded.raw_totals)
                for name, rows in recorded.rows.items():
                    write_rows(out, name, rows)
            del self._ended[key]
        self._drop_others()

    def write(self, sim: Sim, header: Mapping[str, Any], tbs: Sequence[Rows]) -> None:
        """Write the state of a run that is under way, and the records of those that have ended."""
        begin = time.monotonic()
        with self._reported():
            self._write_ended()
            path = self._path(header["key"])
            with writing(path, header) as out:
                write_pages(out, sim)
                for rows in tbs:
                    write_rows(out, "tbs", rows)
            self._drop_others()
            at = f"{header['scheme']} at {header['time_us']:,.1f} us"
            spent = time.monotonic() - begin
            self.say(f"checkpoint {path}: {at}, {out.size / 1e6:,.1f} MB in {spent:.1f} s")

    def _path(self, key: str) -> Path:
        return self.folder / f"{key[:40]}.ckpt"

    def _drop_others(self) -> None:
        """Delete what other calls (``about``) left here, once this one, begun afresh, has written."""
        if not self._replaces:
            return
        self._replaces = False
        for path in self.folder.glob("*.ckpt"):
            try:
                kept = CheckpointFile.open(path).header.get("about") == self.about
            except CheckpointError:
                kept = False
            if not kept:
                with suppress(OSError):
                    path.unlink()

    def found(self, key: str) -> CheckpointFile | None:
        """Return the file of a run that the call goes on from."""
        return self._found.get(key)

    @property
    def resumes(self) -> bool:
        """Whether there is anything to go on from."""
        return bool(self._found)

    def add_ended(self, header: dict[str, Any], recorded: Recorded) -> None:
        """Keep the records of a run that has ended for the next checkpoint."""
        self._ended[header["key"]] = header, recorded

    def remove(self) -> None:
        """Delete the checkpoints, and the folder if nothing else is in it: the result is written."""
        self._ended.clear()
        for pattern in ("*.ckpt", ".*.ckpt.*.tmp"):
            for path in self.folder.glob(pattern):
                with suppress(OSError):
                    path.unlink()
        with suppress(OSError):
            self.folder.rmdir()


def _difference(theirs: object, ours: Mapping[str, Any]) -> str:
    """Return the names of what differs between two descriptions of a call."""
    if not isinstance(theirs, dict):
        return "it does not say of which"
    names = [name for name in sorted({*theirs, *ours}) if theirs.get(name) != ours.get(name)]
    return f"{', '.join(map(brief, names))} differ" if len(names) > 1 else f"{brief(names[0])} differs"
