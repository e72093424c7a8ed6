"""The runs of a result file that a trace shows, with names of kernels and waits of TBs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pysim.stats.checked import opened
from pysim.stats.errors import StoreError, as_path
from pysim.stats.schema import Table
from pysim.stats.store import Results, decode
from pysim.stats.text.runs import format_time
from pysim.stats.waits import orders_kernels, ready_together, tb_waits

TABLES = ("runs", "tbs", "kernels", "names", "samples", "l2_series", "dram_series")
NEEDS = {
    "runs": ("scheme", "gpu", "status", "time_us"),
    "tbs": (
        *("kernel", "tb", "sm", "slot", "ready_ns", "dispatch_ns", "start_ns", "end_ns"),
        *("last_kernel", "last_tb", "reason"),
    ),
    "kernels": (
        *("kernel", "stream", "name", "tbs", "enqueued_us", "admitted_us", "ready_us"),
        *("first_dispatch_us", "last_end_us", "complete_us"),
    ),
    "names": ("name", "text"),
    "samples": (
        *("sample", "start_us", "end_us", "resident_warps", "fp32", "int", "fp16", "fp64", "sfu", "tensor"),
        *("smem", "l2_requests"),
    ),
    "l2_series": ("sample", "start_us", "end_us", "requests", "sectors_read", "sectors_written", "hits"),
    "dram_series": ("sample", "start_us", "end_us", "queued", "dram_read_sectors", "dram_write_sectors"),
}
Ranges = Sequence[tuple[int, int]]  # first and last number, both included


@dataclass(frozen=True, slots=True)
class TraceRun:
    """A run to be written.

    ``label``: GPU and time; ``tbs`` are sorted by time of dispatch; ``waits``: (n, 4), ns, see
    ``pysim.stats.waits.tb_waits``; ``names``: of kernels by their number; ``series``: tables of samples by
    name.
    """

    name: str
    label: str
    tbs: Table
    waits: NDArray[np.float64]
    kernels: Table
    names: dict[int, str]
    series: dict[str, Table]

    def kernel_name(self, kernel: int) -> str:
        """Return the name of a kernel, or its number where the file has no names."""
        return self.names.get(kernel, f"kernel {kernel}")


def open_runs(
    source: str | os.PathLike[str], schemes: Sequence[str] = (), kernels: Ranges = ()
) -> tuple[Results, list[TraceRun]]:
    """Return a result file and its runs that have TBs; ``schemes``: only these; ``kernels``: only their TBs.

    Raises StoreError for what is no result file, for a scheme without a run, and where nothing is left.
    """
    if as_path(source).is_dir():
        raise StoreError(f"{source} is a folder: a trace is made of a result file")
    results = opened(source, NEEDS)
    return results, _trace_runs(results, schemes, kernels)


def _trace_runs(results: Results, schemes: Sequence[str], kernels: Ranges) -> list[TraceRun]:
    tables = {name: results.array(name) for name in TABLES if name in results}
    if "runs" not in tables:
        raise StoreError(f"{results.path} has no table runs")
    ran = tables["runs"][tables["runs"]["status"] == b"ok"]
    known = list(dict.fromkeys(decode(ran["scheme"]).tolist()))
    for scheme in schemes:
        if scheme not in known:
            raise StoreError(f"{results.path} has no run of scheme {scheme}: there are {', '.join(known)}")
    if not len(tables.get("tbs", ())):
        raise StoreError(f"{results.path} has no rows in table tbs: run again with --tables all")
    if "kernels" not in tables:  # nothing else divides waits between launch and other TBs
        raise StoreError(f"{results.path} has no table kernels: run again with --tables all")
    runs = []
    for row, name, scheme in zip(ran, _labels(ran), decode(ran["scheme"]).tolist(), strict=True):
        if schemes and scheme not in schemes:
            continue
        mine = {table: rows[rows["run"] == row["run"]] for table, rows in tables.items()}
        run = _run(name, row, mine, kernels, orders_kernels(results, scheme))
        runs += [run] if len(run.tbs) else []
    if not runs:
        what = ", ".join(f"{first}-{last}" for first, last in kernels)
        raise StoreError(f"{results.path} has no TBs of {f'kernels {what}' if kernels else 'these runs'}")
    return runs


def _labels(ran: Table) -> list[str]:
    """Return a name a run: its scheme, with what else differs between the runs."""
    parts = [ran["scheme"]]
    for column in ("workload", "arguments", "gpu"):
        if column in (ran.dtype.names or ()) and len(np.unique(ran[column])) > 1:
            parts.append(ran[column])
    texts = zip(*(decode(part).tolist() for part in parts), strict=True)
    return [", ".join(filter(None, each)) for each in texts]


def _run(name: str, row: Table, mine: dict[str, Table], chosen: Ranges, whole: bool | None) -> TraceRun:
    """Return a run of its rows by table. ``whole``: its scheme orders whole kernels; None: unknown."""
    tbs, kernels = mine["tbs"], mine["kernels"]
    waits = tb_waits(tbs, kernels, ready_together(tbs) if whole is None else whole)
    if chosen:
        kept = _within(tbs["kernel"], chosen)
        tbs, waits = tbs[kept], waits[kept]
        kernels = kernels[_within(kernels["kernel"], chosen)]
    order = np.lexsort((tbs["tb"], tbs["kernel"], tbs["dispatch_ns"]))
    texts: dict[int, str] = {}
    if "names" in mine:
        texts = dict(zip(mine["names"]["name"].tolist(), decode(mine["names"]["text"]).tolist(), strict=True))
    numbers = zip(kernels["kernel"].tolist(), kernels["name"].tolist(), strict=True)
    names = {kernel: texts[number] for kernel, number in numbers if number in texts}
    series = {table: rows for table, rows in mine.items() if table.endswith(("samples", "_series"))}
    gpu = row["gpu"].item().decode("utf-8", "replace")
    label = f"{gpu},{format_time(float(row['time_us']))}"
    return TraceRun(name, label, tbs[order], waits[order], kernels, names, series)


def _within(numbers: NDArray[np.int32], ranges: Ranges) -> NDArray[np.bool_]:
    made = np.zeros(len(numbers), bool)
    for first, last in ranges:
        made |= (numbers >= first) & (numbers <= last)
    return made
