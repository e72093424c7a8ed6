"""Columns of ``runs`` that compare a scheme with ``stream``, and why one of them may be empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.void]


def compared(runs: Table) -> Table:
    """Return rows of ``runs`` with the columns ``speedup`` and ``gap_won``; as they are without ``stream``.

    ``gap_won`` is NaN where the estimate is not below the time of ``stream``: there is no gap to close.
    """
    rows = runs.copy()
    good = rows["status"] == b"ok"
    base = rows["time_us"][good & (rows["scheme"] == b"stream")]
    if len(base):
        times = rows["time_us"][good]
        room = base[0] - rows["estimate_us"][good]
        rows["speedup"][good] = base[0] / times
        rows["gap_won"][good] = np.divide(
            base[0] - times, room, out=np.full(len(times), np.nan), where=room > 0
        )
    return rows


def gap_notes(runs: Table) -> list[str]:
    """Return a line that says why ``gap_won`` is NaN in compared rows of ``runs``, one an estimate.

    Schemes whose pins change the machine may have other estimates.
    """
    good = runs[(runs["status"] == b"ok") & np.isfinite(runs["speedup"]) & np.isnan(runs["gap_won"])]
    good = good[np.isfinite(good["estimate_us"])]
    lines = []
    for estimate in dict.fromkeys(good["estimate_us"].tolist()):
        rows = good[good["estimate_us"] == estimate]
        base = float(rows["time_us"][0] * rows["speedup"][0])
        names = ", ".join(name.decode() for name in rows["scheme"].tolist())
        lines.append(
            f"no gap won for {names}: the estimate, {estimate:,.2f} us, is not below the time of stream,"
            f" {base:,.2f} us, so there is no gap to close (errors of the estimate: docs/estimates.md)"
        )
    return lines
