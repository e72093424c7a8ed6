"""What the core has recorded of a run: rows of its structs, as they are kept in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pysim.results import time_series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# the core's type of each kind of rows
CTYPES = {
    "tbs": "gs_tb_record",
    "kernels": "gs_kernel_record",
    "sms": "gs_sm_record",
    "slices": "gs_l2",
    "samples": "gs_sample",
    "sm_series": "gs_sm_series",
    "slice_series": "gs_slice_series",
    "bank_series": "gs_bank_series",
}
SERIES_ROWS = ("sm_series", "slice_series", "bank_series")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records of one run.

    ``rows``: by names of ``CTYPES``, time series (samples, units) only where they are wanted; ``raw_totals``:
    bytes of ``gs_totals``; ``ended``: whether the job ran to its end.
    """

    rows: dict[str, NDArray[np.void]]
    raw_totals: bytes
    ended: bool

    def totals(self) -> Any:
        """Return the ``gs_totals *``."""
        from pysim._ffi import ffi

        made = ffi.new("gs_totals *")
        ffi.buffer(made)[:] = self.raw_totals
        return made

    def series(self, end: int) -> time_series.Series | None:
        """Return the time series of the run, which ended at tick ``end``; None: there are none."""
        if SERIES_ROWS[0] not in self.rows:
            return None
        sms, slices, banks = (self.rows[name] for name in SERIES_ROWS)
        return time_series.Series(sms, slices, banks, int(self.totals().series_interval), end)
