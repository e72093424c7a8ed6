"""One run in the core: made, run in slices, its records and totals taken out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.results import time_series
from pysim.results.energy import operand_stall_cycles
from pysim.results.schema import SERIES

from .outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from pysim.program.ops import LoweredPrograms

    from .lower import Lowered

SLICE_SECONDS = 0.07
SLICE_QUANTA = 1 << 32  # at most


class Sim:
    """One simulation in the core, freed at the end of a ``with``.

    What the core refuses, when it is made or while it runs, is raised as the error of its code.
    """

    def __init__(self, lowered: Lowered) -> None:
        from pysim._ffi import error_of, ffi, lib, params_struct

        self.ffi, self.lib = ffi, lib
        code, text = ffi.new("int *"), ffi.new("char[512]")
        params = params_struct(lowered.values)
        self.sim = lib.gs_create(params, lowered.order, lowered.job, code, text)
        if self.sim == ffi.NULL:
            raise error_of(code[0], text)

    def __enter__(self) -> Sim:
        return self

    def __exit__(self, *_: object) -> None:
        self.lib.gs_free(self.sim)

    def totals(self) -> Any:
        """Return the core's ``gs_totals`` as they stand."""
        out = self.ffi.new("gs_totals *")
        self.lib.gs_totals_get(self.sim, out)
        return out

    def fetch(self, call: str, ctype: str, count: int) -> NDArray[np.void]:
        """Return the ``count`` rows that a function ``gs_..._get`` of the core fills in."""
        from pysim._ffi import dtype_of

        rows = np.zeros(count, dtype_of(ctype))
        if count:
            getattr(self.lib, call)(self.sim, self.ffi.cast(f"{ctype} *", rows.ctypes.data))
        return rows

    def series(
        self, values: Mapping[str, int], end: int, wanted: Collection[str] = SERIES
    ) -> time_series.Series | None:
        """Return the time series of a run that ended at ``end``, None if it has none or none is wanted."""
        from pysim._ffi import dtype_of

        totals = self.totals()
        slices = values["gpu.l2.slices"]
        shapes = {
            "gs_sm_series": (values["gpu.sms"],),
            "gs_slice_series": (slices,),
            "gs_bank_series": (slices, values["gpu.dram.banks"]),
        }
        sms, parts, banks = (
            np.zeros((int(totals.series), *shape), dtype_of(name)) for name, shape in shapes.items()
        )
        if not totals.series or not {*wanted} & {*SERIES}:
            return None
        places = (
            self.ffi.cast(f"{name} *", rows.ctypes.data)
            for name, rows in zip(shapes, (sms, parts, banks), strict=True)
        )
        self.lib.gs_series_get(self.sim, *places)
        return time_series.Series(sms, parts, banks, int(totals.series_interval), end)

    def outcome(
        self,
        lowered: Lowered,
        programs: LoweredPrograms,
        records: NDArray[np.void],
        ended: bool,
        wanted: Collection[str],
    ) -> Outcome:
        """Return what the run recorded; ``wanted``: tables of time series that may be asked for."""
        totals, values = self.totals(), lowered.values
        end = int(totals.end) if ended else int(totals.now)
        return Outcome(
            lowered=lowered,
            job=lowered.launched,
            number=lowered.number,
            tbs=records,
            kernels=self.fetch("gs_kernels_get", "gs_kernel_record", len(lowered.launched.kernels)),
            sms=self.fetch("gs_sms_get", "gs_sm_record", values["gpu.sms"]),
            slices=self.fetch("gs_slices_get", "gs_l2", values["gpu.l2.slices"]),
            samples=self.fetch("gs_samples_get", "gs_sample", int(totals.samples)),
            interval=int(totals.sample_interval),
            series=self.series(values, end, wanted),
            end=end,
            ended=ended,
            slowed=int(totals.slowed),
            totals=totals,
            late=operand_stall_cycles(lowered.launched, programs),
        )

    def take(self, room: int) -> NDArray[np.void]:
        """Return TB records that wait to be taken, the oldest first; at most ``room``."""
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
    ) -> tuple[NDArray[np.void], bool]:
        """Run to the end in slices; return the TB records and whether the job ended."""
        from pysim._ffi import check

        kept: list[NDArray[np.void]] = [self.take(0)]
        quanta, done = 64, False
        while not done:
            begin = time.perf_counter()
            done = check(self.lib.gs_run(self.sim, threads, quanta), self.sim) == self.lib.GS_DONE
            rows = self.take(every)
            while len(rows):
                if keep:
                    kept.append(rows)
                rows = self.take(every)
            spent = time.perf_counter() - begin
            # slices of about SLICE_SECONDS, so signals and the progress bar get their turn; one that ends
            # because its TB records are full says nothing of how many quanta would be right
            quanta = max(1, min(quanta * 4, int(quanta * SLICE_SECONDS / max(spent, 1e-6)) + 1, SLICE_QUANTA))
            progress(int(self.totals().tbs_done))
            if not done and stop():
                break
        return np.concatenate(kept)[:room], done
