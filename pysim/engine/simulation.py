"""One run in the core: it is created, run in slices, and its records are read."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pysim.errors import DeadlockError
from pysim.results import time_series

from .recorded import CTYPES, SERIES_ROWS, Recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from .lower import Lowered

SLICE_SECONDS = 0.07  # wall time of a call of the core
NEVER = (1 << 64) - 1  # GS_NEVER
SLICE_QUANTA = 1 << 32  # of such a call, at most


class Saver(Protocol):
    """Keeps the state of a run."""

    def restore(self) -> NDArray[np.void]:
        """Bring the run to the state that it goes on from, if there is one; return its TB records so far."""

    def after_slice(self, kept: Sequence[NDArray[np.void]]) -> None:
        """Write the state if it is time to; ``kept``: the TB records so far."""


class Sim:
    """One simulation in the core, freed at the end of a ``with``.

    Errors of the core, on creation or in a run, are raised as the SimError of their code.
    """

    def __init__(self, lowered: Lowered) -> None:
        from pysim._ffi import error_of, ffi, lib, params_struct

        self.ffi, self.lib = ffi, lib
        code, text = ffi.new("int *"), ffi.new("char[512]")
        params = params_struct(lowered.values)
        self.sim = lib.gs_create(params, lowered.order, lowered.job, code, text)
        if self.sim == ffi.NULL:
            raise error_of(code[0], text)
        self.tbs_done = 0  # when the last slice ended
        self.stopped = False  # by a rule of the user's (user_rule): nothing is dispatched any more

    def __enter__(self) -> Sim:
        return self

    def __exit__(self, *_: object) -> None:
        self.lib.gs_free(self.sim)

    def totals(self) -> Any:
        """Return the present ``gs_totals`` of the core."""
        out = self.ffi.new("gs_totals *")
        self.lib.gs_totals_get(self.sim, out)
        return out

    def fetch(self, call: str, ctype: str, count: int) -> NDArray[np.void]:
        """Return ``count`` rows of the C struct ``ctype`` from the core's function ``call`` (gs_..._get)."""
        from pysim._ffi import dtype_of

        rows = np.zeros(count, dtype_of(ctype))
        if count:
            getattr(self.lib, call)(self.sim, self.ffi.cast(f"{ctype} *", rows.ctypes.data))
        return rows

    def _series_rows(self, values: Mapping[str, int]) -> list[NDArray[np.void]]:
        """Return the time series of SMs, slices and banks, (samples, units)."""
        from pysim._ffi import dtype_of

        samples, slices = int(self.totals().series), values["gpu.l2.slices"]
        units = ((values["gpu.sms"],), (slices,), (slices, values["gpu.dram.banks"]))
        names = [CTYPES[name] for name in SERIES_ROWS]
        made = [np.zeros((samples, *shape), dtype_of(name)) for name, shape in zip(names, units, strict=True)]
        places = (
            self.ffi.cast(f"{name} *", rows.ctypes.data) for name, rows in zip(names, made, strict=True)
        )
        self.lib.gs_series_get(self.sim, *places)
        return made

    def series(self, values: Mapping[str, int], end: int) -> time_series.Series | None:
        """Return the time series of a run that ended at tick ``end``; None: none is recorded."""
        totals = self.totals()
        if not totals.series:
            return None
        sms, slices, banks = self._series_rows(values)
        return time_series.Series(sms, slices, banks, int(totals.series_interval), end)

    def recorded(self, lowered: Lowered, tbs: NDArray[np.void], ended: bool, series: bool) -> Recorded:
        """Return what the core has recorded of the run.

        ``tbs``: its TB records; ``ended``: whether it ran to the end; ``series``: time series are read.
        """
        totals, values = self.totals(), lowered.values
        rows = {
            "tbs": tbs,
            "kernels": self.fetch("gs_kernels_get", "gs_kernel_record", len(lowered.launched.kernels)),
            "sms": self.fetch("gs_sms_get", "gs_sm_record", values["gpu.sms"]),
            "slices": self.fetch("gs_slices_get", "gs_l2", values["gpu.l2.slices"]),
            "samples": self.fetch("gs_samples_get", "gs_sample", int(totals.samples)),
        }
        if series and totals.series:
            rows |= zip(SERIES_ROWS, self._series_rows(values), strict=True)
        return Recorded(rows, bytes(self.ffi.buffer(totals)), ended)

    def take_tb_records(self, room: int) -> NDArray[np.void]:
        """Remove and return the oldest TB records of the core's buffer, at most ``room``."""
        from pysim._ffi import dtype_of

        rows = np.zeros(room, dtype_of("gs_tb_record"))
        got = self.lib.gs_take_tbs(self.sim, self.ffi.cast("gs_tb_record *", rows.ctypes.data), room)
        return rows[:got]

    def run(
        self,
        threads: int,
        room: int,
        every: int,
        keep: bool,
        progress: Callable[[int], None],
        stop: Callable[[], bool],
        saver: Saver | None = None,
        until: int = NEVER,
    ) -> tuple[NDArray[np.void], bool]:
        """Run to the end in slices; return (TB records, whether the job ended).

        ``threads``: of the core; ``room``: most records to return; ``every``: records taken from the core at
        once; ``keep``: whether records are kept at all; ``progress(TBs done)`` is called after each slice;
        the run ends early once ``stop()`` is true, and with the first quantum that begins at tick ``until``
        or later. ``saver``: writes checkpoints between slices, and has the one to go on from.
        """
        from pysim._ffi import check

        kept: list[NDArray[np.void]] = [self.take_tb_records(0)]
        if saver is not None:
            kept.append(saver.restore())
        quanta, done = min(64, SLICE_QUANTA), False
        while not done:
            begin = time.perf_counter()
            try:
                code = self.lib.gs_run_until(self.sim, threads, quanta, until)
                done = check(code, self.sim) == self.lib.GS_DONE
            except DeadlockError:
                if not self.stopped:
                    raise
            rows = self.take_tb_records(every)
            while len(rows):
                if keep:
                    kept.append(rows)
                rows = self.take_tb_records(every)
            spent = time.perf_counter() - begin
            # slices of about SLICE_SECONDS, so signals and the progress bar are served; a slice that ends
            # early on a full record buffer misleads the estimate, hence the limit of 4 times
            quanta = max(1, min(quanta * 4, int(quanta * SLICE_SECONDS / max(spent, 1e-6)) + 1, SLICE_QUANTA))
            totals = self.totals()
            self.tbs_done = int(totals.tbs_done)
            progress(self.tbs_done)
            if saver is not None and not done:
                saver.after_slice(kept)
            if not done and (self.stopped or stop() or totals.now >= until):
                break
        return np.concatenate(kept)[:room], done
