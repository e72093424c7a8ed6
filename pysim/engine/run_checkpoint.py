"""The checkpoint of one run: a hash of what decides it, its state on the way, its records at the end."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .checkpoint_file import CheckpointFile, damaged
from .recorded import Recorded
from .run_state import read_pages, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from .checkpoints import Checkpoints
    from .lower import Lowered
    from .session import Session
    from .simulation import Sim

    Rows = NDArray[np.void]

_STATE, _RECORDS = "state", "records"


def recorded_run(
    sim: Sim,
    lowered: Lowered,
    session: Session,
    room: int,
    keep: bool,
    series: bool,
    progress: Callable[[int], None],
    stop: Callable[[], bool],
) -> Recorded:
    """Run to the end, or from a checkpoint on; return what the core has recorded.

    ``session``: has the threads and the checkpoints of the call; ``series``: time series are read; the
    others: as in ``Sim.run``.
    """
    store = session.checkpoints
    saver = None if store is None else RunCheckpoint(store, sim, lowered, keep, series)

    def made() -> Recorded:
        rows, ended = sim.run(session.threads, room, lowered.job.tb_buffer, keep, progress, stop, saver)
        return sim.recorded(lowered, rows, ended, series)

    return made() if saver is None else saver.recorded(made)


class RunCheckpoint:
    """The checkpoint of one run: a ``Saver`` of its slices."""

    def __init__(self, store: Checkpoints, sim: Sim, lowered: Lowered, keep: bool, series: bool) -> None:
        self.store, self._sim, self._lowered, self._scheme = store, sim, lowered, lowered.scheme
        self._flags, self._key = (keep, series), ""

    @property
    def key(self) -> str:
        """The hash of all that decides the run."""
        self._key = self._key or run_key(self._lowered, *self._flags)
        return self._key

    def _header(self, kind: str) -> dict[str, Any]:
        from pysim._ffi import core_digest

        totals = self._sim.totals()
        return {
            "kind": kind,
            "key": self.key,
            "core": core_digest(),
            "about": self.store.about,
            "scheme": self._scheme,
            "time_us": int(totals.now) / 1024e3,
            "tbs_done": int(totals.tbs_done),
            "arena_bytes": int(totals.arena_bytes),
        }

    def _file(self, kind: str) -> CheckpointFile | None:
        file = self.store.found(self.key) if self.store.resumes else None
        return file if file is not None and file.header.get("kind") == kind else None

    def recorded(self, run: Callable[[], Recorded]) -> Recorded:
        """Return the records of the run: from its checkpoint if it has ended there, else of ``run()``."""
        with self.store.deferring():
            file = self._file(_RECORDS)
            if file is not None:
                made = self._read(CheckpointFile.open(file.path))
                self.store.say(f"{self._scheme}: has ended in {file.path}")
                return made
            made = run()
            if made.ended:
                self._add(made)
        return made

    def _read(self, file: CheckpointFile) -> Recorded:
        from pysim._ffi import ffi

        parts: dict[str, list[bytes]] = {}
        sums = b""
        for name, data in file.blocks():
            if name == b"sums":
                sums += data
            else:
                parts.setdefault(name.decode("ascii", "replace"), []).append(data)
        if len(sums) != ffi.sizeof("gs_totals"):
            raise damaged(file.path, "gs_totals has another length")
        return Recorded(read_rows(file.path, parts, self._lowered.values), sums, True)

    def restore(self) -> Rows:
        """Bring the simulation, just made, to the state that the call goes on from; return its TB records."""
        file = self._file(_STATE)
        if file is None:
            return self._sim.take_tb_records(0)
        file = CheckpointFile.open(file.path)
        if file.header.get("arena_bytes") != int(self._sim.totals().arena_bytes):
            raise damaged(file.path, "a state of another size")
        tbs = read_pages(file, self._sim)
        self.store.say(
            f"{self._scheme}: goes on at {self._sim.totals().now / 1024e3:,.1f} us from {file.path}"
        )
        return tbs

    def after_slice(self, kept: Sequence[Rows]) -> None:
        """Write a checkpoint if one is due, and raise what :meth:`Checkpoints.stop` asked for."""
        if self.store.is_due():
            self.store.write(self._sim, self._header(_STATE), kept)
            self.store.leave_if_asked()

    def _add(self, recorded: Recorded) -> None:
        """Keep the records of the run, which has ended."""
        self.store.add_ended(self._header(_RECORDS), recorded)
        if self.store.is_due():
            self.store.flush()
            self.store.leave_if_asked()


def run_key(lowered: Lowered, *flags: bool) -> str:
    """Return a hash of all that decides a run in the core: the core itself, parameters, order and tables.

    ``flags``: what is recorded of it.
    """
    from pysim._ffi import core_digest, ffi, params_struct

    digest = hashlib.sha256(f"{core_digest()} {flags}".encode())
    digest.update(ffi.buffer(params_struct(lowered.values)))
    digest.update(ffi.buffer(lowered.order))
    job = lowered.job
    counts = [name for name, field in ffi.typeof("gs_job").fields if field.type.kind == "primitive"]
    digest.update(" ".join(f"{name}={getattr(job, name)}" for name in counts).encode())
    for table in lowered.tables:
        digest.update(table.view(np.uint8).data)
    return digest.hexdigest()
