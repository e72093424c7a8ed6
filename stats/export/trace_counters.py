"""Counters of a trace from the samples of a run: pipes, warps, L2 and DRAM traffic, all SMs together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.schema import Table

from .trace_events import counter, units_of_us
from .trace_runs import TraceRun

SECTOR = 32  # bytes
PIPES = ("fp32", "int", "fp16", "fp64", "sfu", "tensor")


class _Intervals:
    """The samples of a table whose rows are of an interval and a part of the machine."""

    def __init__(self, rows: Table) -> None:
        _, first, self._interval = np.unique(rows["sample"], return_index=True, return_inverse=True)
        self.start = units_of_us(rows["start_us"][first])
        self.end = int(units_of_us(rows["end_us"][first[-1:]])[0])
        self._width_us = np.maximum(rows["end_us"][first] - rows["start_us"][first], 1e-9)

    def total(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over the rows of each interval."""
        return np.bincount(self._interval, values, len(self.start)).astype(np.float64)

    def a_us(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over the rows of each interval, a microsecond of it."""
        return np.asarray(self.total(values) / self._width_us)


def counters(run: TraceRun, pid: int) -> Iterator[str]:
    """Yield the counters of a run; none where the file has no samples."""
    for name, make in (("samples", _samples), ("l2_series", _l2), ("dram_series", _dram)):
        rows = run.series.get(name)
        if rows is not None and len(rows):
            times = _Intervals(rows)
            for label, series in make(rows, times).items():
                yield from counter(pid, label, times.start, times.end, series)


def _samples(rows: Table, times: _Intervals) -> dict[str, dict[str, NDArray[Any]]]:
    return {
        "warps": {"resident": times.total(rows["resident_warps"])},
        "pipes busy (share)": {name: times.total(rows[name]) for name in PIPES},
        "shared memory busy (share)": {"smem": times.total(rows["smem"])},
        "requests to L2 (1/us)": {"lines": times.a_us(rows["l2_requests"])},
    }


def _l2(rows: Table, times: _Intervals) -> dict[str, dict[str, NDArray[Any]]]:
    sectors = {"read": rows["sectors_read"], "written": rows["sectors_written"]}
    looked = {"hits": rows["hits"], "misses": rows["requests"] - rows["hits"]}
    return {
        "L2 (GB/s)": {way: times.a_us(count) * SECTOR / 1e3 for way, count in sectors.items()},
        "L2 look-ups (1/us)": {what: times.a_us(count) for what, count in looked.items()},
    }


def _dram(rows: Table, times: _Intervals) -> dict[str, dict[str, NDArray[Any]]]:
    sectors = {"read": rows["dram_read_sectors"], "written": rows["dram_write_sectors"]}
    return {
        "DRAM (GB/s)": {way: times.a_us(count) * SECTOR / 1e3 for way, count in sectors.items()},
        "DRAM reads queued (sectors)": {"queued": times.total(rows["queued"])},
    }
