"""Sampled GEMMs: the time of very many waves from a shorter run of the same kernel.

Thread blocks of a GEMM are equal, so past the first waves they are dispatched at a steady rate. A GEMM of
more than ``EXACT_WAVES`` waves is cut in our M (cuBLAS's N) to about ``WAVES`` waves that end on the same
part of a wave, the last row of tiles included. The TBs left out are added at the rate at which waves
3 to ``WAVES`` - 1 were dispatched. ``docs/accuracy.md`` compares sampled with full runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .gemm_choice import AnyTiling, occupancy
from .machine_hints import MachineHints

EXACT_WAVES = 8
WAVES = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """Cut a GEMM to ``rows`` rows, which leaves ``left_out`` TBs out; ``wave`` TBs run at once."""

    rows: int
    left_out: int
    wave: int

    def extrapolate(self, time_us: float, dispatch_us: NDArray[np.float64]) -> float:
        """Return the time of the whole GEMM from that of the cut one and when its TBs were dispatched."""
        order = np.sort(dispatch_us)
        first, last = 2 * self.wave, (WAVES - 1) * self.wave
        return time_us + self.left_out * float(order[last] - order[first]) / (last - first)


def plan(m: int, n: int, k: int, item: int, tiling: AnyTiling, hints: MachineHints) -> Plan | None:
    """Return how to sample C[m, n] = A[m, k] B[k, n] (row-major); None: few waves, simulate all of it.

    ``item``: bytes an element of A and B.
    """
    gx, gy, gz = tiling.grid(m, n, k)
    wave = hints.sms * occupancy(tiling, item, hints)
    if gx * gy * gz <= EXACT_WAVES * wave:
        return None
    row = gx * gz  # TBs of a row of tiles

    def off(rows: int) -> tuple[int, int]:
        """TBs by which the rows left out differ from whole waves."""
        return abs((row * (gy - rows) + wave // 2) % wave - wave // 2), rows

    kept = min(range(-(-WAVES * wave // row), -(-(WAVES + 1) * wave // row) + 1), key=off)
    return Plan(m - (gy - kept) * tiling.tm, row * (gy - kept), wave)
