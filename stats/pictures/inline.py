"""Pictures of a result that a notebook shows by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pysim.stats.checked import check
from pysim.stats.errors import StoreError
from pysim.stats.schema import SHARES, Table
from pysim.stats.store import Results
from pysim.stats.whole_file import write_bytes

from .bars import draw_schemes
from .plot import draw_occupancy

_DRAWN: dict[str, Callable[[Mapping[str, Table], str], bytes]] = {
    "occupancy": draw_occupancy,
    "schemes": draw_schemes,
}
_READ = ("runs", "kernels", "tbs", "samples", "names", "sm", "stalls")
_NEEDS = {
    "runs": ("workload", "scheme", "gpu", "status", "reason", "time_us", "speedup", "estimate_us"),
    "kernels": ("kernel", "name"),
    "tbs": ("kernel", "sm", "slot", "dispatch_ns", "end_ns"),
    "samples": ("start_us", "end_us", "resident_warps", "alu_utilization"),
    "names": ("name", "text"),
    "sm": ("sm",),
    "stalls": ("level", *SHARES),
}


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture as PNG (``data``): a notebook shows it, ``save`` writes it."""

    data: bytes

    def _repr_png_(self) -> bytes:
        return self.data

    def __repr__(self) -> str:
        return f"<Picture: PNG of {len(self.data):,} B; a notebook shows it, save(FILE.png) writes it>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture; StoreError if it cannot be written."""
        write_bytes(path, self.data)


def picture(
    results: str | os.PathLike[str] | Results | Mapping[str, Table],
    kind: str = "occupancy",
    title: str | None = None,
) -> Picture:
    """Return the picture of a result that scripts draw, for a notebook.

    ``results``: a result file, what ``pysim.stats.load`` returns, or tables as structured arrays by name.
    ``kind``: ``occupancy`` (which kernel held each SM over time, a panel a scheme) or ``schemes`` (the
    speedup of each scheme and what its SMs waited for). ``title``: default: workload and GPU. Raises
    StoreError for another kind, for no run to draw, and where matplotlib is not installed.
    """
    if not isinstance(kind, str) or kind not in _DRAWN:
        raise StoreError(f"no picture {kind!r}: there are {', '.join(_DRAWN)}")
    if isinstance(results, str | os.PathLike):
        results = Results(results)
    if isinstance(results, Results):
        name = str(results.path)
        results = {table: results.array(table) for table in _READ if table in results}
    elif isinstance(results, Mapping):
        name = "the result"
    else:
        raise StoreError(f"{type(results).__name__} is no result: give a path, stats.load(path) or tables")
    runs: Any = results.get("runs")
    if runs is None or not len(runs):
        raise StoreError("no run to draw: there are none")
    check(results, name, _NEEDS)
    if title is None:
        title = " on ".join(", ".join(dict.fromkeys(_texts(runs[name]))) for name in ("workload", "gpu"))
    return Picture(_DRAWN[kind](results, title))


def _texts(column: Any) -> list[str]:
    return [text.decode("utf-8", "replace") for text in column.tolist()]
