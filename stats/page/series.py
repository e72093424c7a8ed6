"""Utilisation and traffic of a run over time, as the report draws them beside its timeline.

Each value is a mean over an interval. What TBs hold is computed from all TBs of the run, whether the timeline
draws them or not; the rest is what the file recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.schema import Table
from pysim.stats.store import Results

from .blob import Blob, blob
from .run import LAST_TICK, TICK_NS, RunPart, rows_of
from .spans import Spans, time_in_bins

TB_BINS = 2000  # intervals for what TBs hold
MOST_BINS = 4000  # samples; beyond it neighbours are merged
SECTOR = 32  # bytes
PIPES = {
    "fp32": "FP32 pipes busy",
    "int": "integer pipes busy",
    "fp16": "FP16 pipes busy",
    "fp64": "FP64 pipes busy",
    "sfu": "special-function pipes busy",
    "tensor": "tensor pipes busy",
    "smem": "shared memory busy",
}


@dataclass(frozen=True, slots=True)
class _Chart:
    """A quantity: one value an interval; NaN: there is none. ``edges``: name of its intervals."""

    key: str
    label: str
    unit: str
    edges: str
    values: NDArray[np.float64]
    most: float | None = None  # of the machine


def series_part(results: Results, row: Table, number: int) -> RunPart:
    """Return the time series of a run. ``row``: its row of ``runs``; ``number``: of the run in the page.

    ``about["series"]`` has key, label, unit and name of the intervals of each series, and ``max`` where the
    machine has one. The blob ``series<number>`` has the values by key, and the ends of the intervals in units
    of ``about["series_tick_ns"]``. ``about["series_sms"]``: SMs of the machine.
    """
    run = int(row["run"])
    parameters = results.configuration.get("parameters")
    tbs, samples = rows_of(results, "tbs", run), rows_of(results, "samples", run)
    known = parameters if isinstance(parameters, Mapping) else {}
    machine = _Machine(known, rows_of(results, "sm", run), tbs)
    traffic = {name: rows_of(results, f"{name}_series", run) for name in ("l2", "dram")}
    last = max(float(row["time_us"]) * 1e3, float(tbs["end_ns"].max()) if len(tbs) else 0.0)
    tick = TICK_NS
    while last / tick > LAST_TICK - 1:
        tick *= 2
    charts: list[_Chart] = []
    edges: dict[str, NDArray[np.int64]] = {}
    if len(tbs):
        edges["tbs"] = _even(int(np.ceil(last / tick)))
        charts += _tb_charts(tbs, edges["tbs"].astype(np.float64) * tick, machine)
    if len(samples):
        bins = _Bins.of(samples, tick)
        edges["samples"] = bins.edges
        charts += _sample_charts(samples, bins, machine)
    for name, rows in traffic.items():
        if len(rows):
            bins = _Bins.of(rows, tick)
            edges[name] = bins.edges
            charts += _l2_charts(rows, bins) if name == "l2" else _dram_charts(rows, bins, machine)
    about = {
        "series": [_about(chart) for chart in charts],
        "series_tick_ns": tick,
        "series_sms": machine.sms,
    }
    columns = {f"edges_{name}": values for name, values in edges.items()}
    columns |= {chart.key: chart.values.astype(np.float32) for chart in charts}
    blobs: dict[str, Blob] = {f"series{number}": blob(columns)} if charts else {}
    return RunPart(about, blobs)


class _Machine:
    """What the series are measured against; None where neither parameters nor tables say it."""

    def __init__(self, parameters: Mapping[str, Any], sms: Table, tbs: Table) -> None:
        self._parameters = parameters
        self.sms = len(sms) or self._number("gpu.sms") or (len(np.unique(tbs["sm"])) if len(tbs) else None)
        self.bandwidth = self._number("gpu.dram.bandwidth")
        warps = self._number("gpu.sm.warps")
        self.warps = warps * self.sms if warps and self.sms else None

    def _number(self, path: str) -> float | None:
        value = self._parameters.get(path)
        return float(value) if isinstance(value, int | float) and value > 0 else None


@dataclass(frozen=True, slots=True)
class _Bins:
    """Intervals of samples. ``group``: the interval of each row of the table."""

    edges: NDArray[np.int64]  # ticks
    width: NDArray[np.float64]  # ns
    group: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Table, tick: float) -> _Bins:
        """Return the intervals of a table of samples, at most ``MOST_BINS``."""
        samples, first, inverse = np.unique(rows["sample"], return_index=True, return_inverse=True)
        merged = -(-len(samples) // MOST_BINS)
        starts = rows["start_us"][first[::merged]] * 1e3
        every = np.append(starts, rows["end_us"][first[-1]] * 1e3)
        return cls(np.rint(every / tick).astype(np.int64), np.diff(every), inverse // merged)

    def total(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sum over the rows of each interval."""
        return np.bincount(self.group, values, len(self.width)).astype(np.float64)

    def rate(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return sums per ns."""
        return _over(self.total(values), self.width)


def _about(chart: _Chart) -> dict[str, Any]:
    made = {"key": chart.key, "label": chart.label, "unit": chart.unit, "edges": f"edges_{chart.edges}"}
    return made if chart.most is None else made | {"max": chart.most}


def _over(values: NDArray[Any], by: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.divide(values, by, out=np.full(len(values), np.nan), where=by > 0))


def _even(last: int) -> NDArray[np.int64]:
    """Return ends of at most ``TB_BINS`` equal intervals from 0 to ``last``; the last one may be shorter."""
    width = max(1, -(-last // TB_BINS))
    return np.minimum(np.arange(-(-max(last, 1) // width) + 1) * width, max(last, 1))


def _tb_charts(tbs: Table, edges: NDArray[Any], machine: _Machine) -> list[_Chart]:
    width = np.diff(edges) * (machine.sms or 1)
    held = time_in_bins(tbs["dispatch_ns"], tbs["end_ns"], edges)
    on_sm = Spans(tbs["sm"], tbs["dispatch_ns"], tbs["end_ns"]).merged()
    busy = time_in_bins(on_sm.begin, on_sm.end, edges)
    return [
        _Chart("busy_sms", "SMs with a TB", "share", "tbs", _over(busy, width), 1.0),
        _Chart("resident_tbs", "resident TBs an SM", "TBs", "tbs", _over(held, width)),
    ]


def _sample_charts(samples: Table, bins: _Bins, machine: _Machine) -> list[_Chart]:
    lasting = (samples["end_us"] - samples["start_us"]) * 1e3

    def mean(name: str) -> NDArray[np.float64]:
        return bins.rate(samples[name] * lasting)

    made = [
        _Chart("resident_warps", "resident warps", "warps", "samples", mean("resident_warps"), machine.warps),
        _Chart("alu", "busiest arithmetic pipe", "share", "samples", mean("alu_utilization"), 1.0),
    ]
    for name, label in PIPES.items():
        if samples[name].any():
            made.append(_Chart(name, label, "share", "samples", mean(name), 1.0))
    requests = bins.rate(samples["l2_requests"]) * 1e3
    made.append(_Chart("l2_requests", "L2 requests", "a µs", "samples", requests))
    return made


def _l2_charts(rows: Table, bins: _Bins) -> list[_Chart]:
    sectors = rows["sectors_read"] + rows["sectors_written"]
    hits = _over(bins.total(rows["hits"]), bins.total(rows["requests"]))
    return [
        _Chart("l2_bandwidth", "L2 reads and writes", "GB/s", "l2", bins.rate(sectors * SECTOR)),
        _Chart("l2_hits", "L2 hits", "share", "l2", hits, 1.0),
    ]


def _dram_charts(rows: Table, bins: _Bins, machine: _Machine) -> list[_Chart]:
    read, written = (bins.rate(rows[f"dram_{way}_sectors"] * SECTOR) for way in ("read", "write"))
    made = [
        _Chart("dram_read", "DRAM reads", "GB/s", "dram", read, machine.bandwidth),
        _Chart("dram_write", "DRAM writes", "GB/s", "dram", written, machine.bandwidth),
    ]
    if machine.bandwidth:
        share = (read + written) / machine.bandwidth
        made.append(_Chart("dram_share", "DRAM bandwidth used", "share", "dram", share, 1.0))
    return made
