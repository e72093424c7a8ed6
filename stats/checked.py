"""Tables of runs, checked before they are drawn: a damaged file is one clear line, not a wrong picture.

A hash in a file finds bytes that changed, not a table that was written wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import StoreError
from .schema import SHARES, Table
from .store import Results

MOST_NS = 1e14  # 28 hours of simulated time; traces count it in 1e-4 ns, in 64 bits
LAST = 2**31 - 2
MOST_SLOTS = 1 << 22  # of all SMs of a run, each a row that a page can draw
Needs = Mapping[str, tuple[str, ...]]  # columns that must be there, by table


@dataclass(frozen=True, slots=True)
class _Kind:
    """Values that a column may have. ``least`` None: any, also NaN and infinities."""

    types: str
    least: float | None = None
    most: float = 1e300


_TEXT = _Kind("S")
_ANY = _Kind("iuf")
_NUMBER = _Kind("iu", 0, LAST)
_OR_NONE = _Kind("iu", -1, LAST)
_SM = _Kind("iu", 0, 2**16 - 1)
_COUNT = _Kind("iu", 0, 2**60)
_AMOUNT = _Kind("iuf", 0)
_SHARE = _Kind("f", -1e-6, 1 + 1e-6)
_NS = _Kind("f", 0, MOST_NS)
_US = _Kind("f", 0, MOST_NS / 1e3)
_SAMPLE = {"run": _NUMBER, "sample": _NUMBER, "start_us": _US, "end_us": _US}


def _columns(kind: _Kind, names: str) -> dict[str, _Kind]:
    return dict.fromkeys(names.split(), kind)


_KINDS: dict[str, dict[str, _Kind]] = {
    "runs": {
        "run": _NUMBER,
        **_columns(_TEXT, "workload arguments scheme gpu status reason submit coherence"),
        **_columns(
            _ANY, "time_us cycles speedup gap_won sm_idle alu_utilization energy_j bound_us estimate_us"
        ),
        **_columns(_COUNT, "tbs warp_instructions dram_bytes l2_bytes"),
    },
    "names": {"run": _NUMBER, "name": _NUMBER, "text": _TEXT},
    "kernels": {
        **_columns(_NUMBER, "run kernel name tbs"),
        "stream": _OR_NONE,
        **_columns(_US, "enqueued_us admitted_us ready_us first_dispatch_us last_end_us complete_us"),
        **_columns(_COUNT, "warp_instructions load_bytes store_bytes"),
    },
    "tbs": {
        **_columns(_NUMBER, "run kernel tb slot"),
        "sm": _SM,
        **_columns(_OR_NONE, "last_kernel last_tb"),
        **_columns(_NS, "ready_ns dispatch_ns start_ns end_ns"),
        "reason": _TEXT,
    },
    "stalls": {"run": _NUMBER, "level": _TEXT, "id": _OR_NONE, **_columns(_SHARE, " ".join(SHARES))},
    "sm": {
        "run": _NUMBER,
        "sm": _SM,
        **_columns(
            _AMOUNT, "fp32_cycles int_cycles fp16_cycles fp64_cycles sfu_cycles tensor_cycles smem_cycles"
        ),
        "load_sectors": _COUNT,
    },
    "edges": _columns(_NUMBER, "run kernel producer_kernel"),
    "samples": {
        **_SAMPLE,
        **_columns(_AMOUNT, "resident_warps alu_utilization fp32 int fp16 fp64 sfu tensor smem l2_requests"),
    },
    "l2_series": {**_SAMPLE, **_columns(_COUNT, "requests sectors_read sectors_written hits")},
    "dram_series": {**_SAMPLE, **_columns(_COUNT, "queued dram_read_sectors dram_write_sectors")},
}
_SERIES = ("samples", "l2_series", "dram_series")
NEEDS: Needs = {table: tuple(kinds) for table, kinds in _KINDS.items()}


def opened(path: str | os.PathLike[str], needs: Needs = NEEDS) -> Results:
    """Open a result file whose tables are to be drawn.

    Raises StoreError for tables that do not have the hash stored with them, and where :func:`check` does.
    """
    results = Results(path)
    tables = results.verify()
    check(tables, str(path), needs)
    results.keep(tables)
    return results


def check(tables: Mapping[str, Table], name: str, needs: Needs = NEEDS) -> None:
    """Raise StoreError, which begins with ``name``, for tables of runs that cannot be drawn as they are.

    ``needs``: columns that must be there, of tables that are. Tables that :data:`NEEDS` does not name may
    hold anything.
    """
    check_types(tables, name, needs)
    for table, kinds in _KINDS.items():
        for column in (tables[table].dtype.names or ()) if table in tables else ():
            if column not in kinds:
                continue
            what = f"{name} is damaged: table {table}, column {column}"
            _check_values(tables[table][column], kinds[column], what)
    if "runs" in tables:
        _check_runs(tables, f"{name} is damaged: ")


def check_types(tables: Mapping[str, Table], name: str, needs: Needs) -> None:
    """Raise StoreError for missing columns of tables of runs, and for texts in place of numbers."""
    for table, kinds in _KINDS.items():
        if table not in tables:
            continue
        held = tables[table].dtype
        for column in ("run", *needs.get(table, ())):
            if column not in (held.names or ()):
                raise StoreError(f"{name}: table {table} has no column {column}")
        for column in kinds:
            if column in (held.names or ()) and held[column].kind not in kinds[column].types:
                raise StoreError(
                    f"{name} is damaged: table {table}, column {column} has the type {held[column]}"
                )


def _check_values(values: NDArray[Any], kind: _Kind, what: str) -> None:
    if kind.least is None or not len(values):
        return
    wrong = ~((values >= kind.least) & (values <= kind.most))  # NaN, too
    if wrong.any():
        raise StoreError(f"{what}: {values[np.argmax(wrong)]} in row {np.argmax(wrong)} cannot be")


def _check_runs(tables: Mapping[str, Table], what: str) -> None:
    """Check rows of each run against one another."""
    runs = tables["runs"]
    numbers, counts = np.unique(runs["run"], return_counts=True)
    if np.any(counts > 1):
        raise StoreError(f"{what}runs has run {numbers[np.argmax(counts > 1)]} several times")
    if {"status", "time_us"} <= set(runs.dtype.names or ()):
        ran = runs[runs["status"] == b"ok"]
        _check_values(ran["time_us"], _US, f"{what}table runs, column time_us")
    by_run = {
        name: np.split(rows, np.flatnonzero(np.diff(rows["run"])) + 1)
        for name, rows in ((name, _by_run(tables[name])) for name in _KINDS if name in tables)
    }
    grouped = {
        name: {int(rows["run"][0]): rows for rows in parts if len(rows)} for name, parts in by_run.items()
    }
    for name, parts in grouped.items():
        for run in parts.keys() - set(numbers.tolist()):
            raise StoreError(f"{what}table {name} has rows of run {run}, which runs does not have")
    for run in numbers.tolist():
        mine = {name: parts[run] for name, parts in grouped.items() if run in parts}
        _check_run(mine, f"{what}run {run}: ")


def _by_run(rows: Table) -> Table:
    """Return rows sorted by run."""
    return rows if np.all(np.diff(rows["run"]) >= 0) else rows[np.argsort(rows["run"], kind="stable")]


def _check_run(tables: Mapping[str, Table], what: str) -> None:
    kernels, tbs = tables.get("kernels"), tables.get("tbs")
    if "names" in tables:
        _check_numbered(tables["names"]["name"], f"{what}names")
    if kernels is not None:
        _check_numbered(kernels["kernel"], f"{what}kernels")
    count = LAST if kernels is None else len(kernels)
    if tbs is not None:
        _check_tbs(tbs, kernels, what)
    if "edges" in tables:
        edges = tables["edges"]
        if np.any(edges["kernel"] >= count) or np.any(edges["producer_kernel"] > edges["kernel"]):
            raise StoreError(f"{what}edges name kernels that cannot depend on each other")
    for name in _SERIES:
        if name in tables:
            _check_samples(tables[name], f"{what}{name}")


def _check_numbered(numbers: NDArray[Any], what: str) -> None:
    if not np.array_equal(np.sort(numbers), np.arange(len(numbers))):
        raise StoreError(f"{what} are not numbered from 0 on")


def _check_tbs(tbs: Table, kernels: Table | None, what: str) -> None:
    names = set(tbs.dtype.names or ())
    if {"dispatch_ns", "start_ns", "end_ns"} <= names:
        wrong = (tbs["start_ns"] < tbs["dispatch_ns"]) | (tbs["end_ns"] < tbs["start_ns"])
        if wrong.any():
            raise StoreError(f"{what}{_tb(tbs, wrong)} does not start after its dispatch and before its end")
    order = np.lexsort((tbs["tb"], tbs["kernel"]))
    kernel, tb = tbs["kernel"][order], tbs["tb"][order]
    twice = np.append((kernel[1:] == kernel[:-1]) & (tb[1:] == tb[:-1]), False)
    if twice.any():
        raise StoreError(f"{what}{_tb(tbs[order], twice)} is there twice")
    if kernels is not None:
        for column in ("kernel", "last_kernel"):
            if column in names and np.any(tbs[column] >= len(kernels)):
                raise StoreError(f"{what}{_tb(tbs, tbs[column] >= len(kernels))}: there is no such {column}")
        most = np.zeros(len(kernels), np.int64)
        most[kernels["kernel"]] = kernels["tbs"]
        if np.any(tbs["tb"] >= most[tbs["kernel"]]):
            raise StoreError(f"{what}{_tb(tbs, tbs['tb'] >= most[tbs['kernel']])}: its kernel has fewer TBs")
    _check_slots(tbs, what)


def _check_slots(tbs: Table, what: str) -> None:
    if len(np.unique(tbs["sm"])) * (int(tbs["slot"].max()) + 1) > MOST_SLOTS:
        raise StoreError(f"{what}slot {tbs['slot'].max()} cannot be")
    if not {"dispatch_ns", "end_ns"} <= set(tbs.dtype.names or ()):
        return
    rows = tbs[np.lexsort((tbs["end_ns"], tbs["dispatch_ns"], tbs["slot"], tbs["sm"]))]
    same = (rows["sm"][1:] == rows["sm"][:-1]) & (rows["slot"][1:] == rows["slot"][:-1])
    over = np.append(same & (rows["dispatch_ns"][1:] < rows["end_ns"][:-1]), False)
    if over.any():
        row = rows[np.argmax(over)]
        raise StoreError(f"{what}TBs overlap on SM {row['sm']}, slot {row['slot']}")


def _tb(tbs: Table, wrong: NDArray[np.bool_]) -> str:
    row = tbs[np.argmax(wrong)]
    return f"TB {row['tb']} of kernel {row['kernel']}"


def _check_samples(rows: Table, what: str) -> None:
    order = np.argsort(rows["sample"], kind="stable")
    starts, ends, sample = (rows[name][order] for name in ("start_us", "end_us", "sample"))
    same = np.diff(sample) == 0
    moved = np.where(same, starts[1:] != starts[:-1], starts[1:] < ends[:-1])
    if np.any(ends < starts) or np.any(moved):
        raise StoreError(f"{what}: samples do not follow one another")
