"""One run as the report draws it: its TBs by SM and slot, and its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.schema import SHARES, Table
from pysim.stats.store import Results, decode
from pysim.stats.waits import orders_kernels, ready_together, tb_waits

from .blob import Blob, blob

TICK_NS = 1 / 1024  # result files have times in this unit; longer runs take a multiple
LAST_TICK = 0xFFFFFFFF
MOST_TBS = 300_000  # of a run; beyond it some SMs are left out
MOST_SMS = 4096  # of a GPU, of which all have a row, also those without a TB
KERNEL_TIMES = ("enqueued", "admitted", "ready", "first_dispatch", "last_end", "complete")
KERNEL_SUMS = ("warp_instructions", "load_bytes", "store_bytes")


@dataclass(frozen=True, slots=True)
class RunPart:
    """What the page needs of a run. ``about``: plain values for JSON; ``blobs``: by name."""

    about: dict[str, Any]
    blobs: dict[str, Blob]


def rows_of(results: Results, name: str, run: int) -> Table:
    """Return the rows of a table that belong to a run; none where the file lacks the table."""
    if name not in results:
        return np.zeros(0, [("run", "<i4")])
    return results.of_run(name, run)


def run_part(results: Results, row: Table, number: int, most: int = MOST_TBS) -> RunPart:
    """Return a run of a file. ``row``: its row of ``runs``; ``number``: of the run in the page."""
    run = int(row["run"])
    tbs, kernels = rows_of(results, "tbs", run), rows_of(results, "kernels", run)
    names = rows_of(results, "names", run)
    stalls = rows_of(results, "stalls", run)
    about: dict[str, Any] = {
        "row": {name: _plain(row[name]) for name in row.dtype.names or ()},
        "names": [] if not len(names) else decode(names["text"]).tolist(),
        "stalls": _shares(stalls, "run"),
        "kernels": len(kernels),
        "tbs": len(tbs),
        "shown": 0,
        "sms": [],
        "slots": 0,
    }
    blobs = {}
    if len(kernels):
        blobs[f"kernels{number}"] = blob(_kernel_columns(kernels, stalls))
    if len(tbs) and len(kernels):  # without kernels nothing divides waits, or names what is drawn
        whole = orders_kernels(results, about["row"]["scheme"])
        about["inferred"] = whole is None
        waits = tb_waits(tbs, kernels, ready_together(tbs) if whole is None else whole)
        kept, sms = chosen_sms(tbs["sm"], most)
        used = len(np.unique(tbs["sm"]))
        if len(sms) == used:
            sms = _all_sms(results, sms)
        columns, about["tick_ns"] = _tb_columns(tbs[kept], waits[kept], sms)
        about |= {"shown": len(columns["start"]), "sms": sms.tolist(), "end_ns": float(tbs["end_ns"].max())}
        about["slots"] = int(tbs["slot"].max()) + 1
        about["all_sms"] = used  # with a TB
        blobs[f"tbs{number}"] = blob(columns)
    return RunPart(about, blobs)


def chosen_sms(sm: NDArray[Any], most: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which TBs to draw, and the SMs that they ran on, so that at most ``most`` TBs are drawn.

    Whole SMs are left out, evenly over the chip: what is drawn of the others stays true. At least one SM is
    kept, and of it the first ``most`` rows.
    """
    sms, counts = np.unique(sm, return_counts=True)
    keep = len(sms)
    while keep > 1 and int(counts[_evenly(len(sms), keep)].sum()) > most:
        keep -= 1
    kept = sms[_evenly(len(sms), keep)]
    mask = np.isin(sm, kept)
    mask[np.flatnonzero(mask)[most:]] = False
    return mask, kept.astype(np.int64)


def _all_sms(results: Results, used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all SMs of the GPU from 0 on, those of ``used`` at the least, so that idle ones show as idle."""
    parameters = results.configuration.get("parameters")
    known = parameters.get("gpu.sms") if isinstance(parameters, Mapping) else None
    count = max(int(used.max()) + 1, known if isinstance(known, int) else 0)
    return np.arange(count, dtype=np.int64) if count <= MOST_SMS else used


def _evenly(count: int, keep: int) -> NDArray[np.int64]:
    return np.arange(keep, dtype=np.int64) * count // keep


def _tb_columns(tbs: Table, waits: Any, sms: NDArray[np.int64]) -> tuple[dict[str, NDArray[Any]], float]:
    """Return TBs sorted by SM, slot and time, and the unit of their times in ns."""
    order = np.lexsort((tbs["dispatch_ns"], tbs["slot"], tbs["sm"]))
    tbs, waits = tbs[order], waits[order]
    slots = int(tbs["slot"].max()) + 1
    tick = TICK_NS
    while float(tbs["end_ns"].max()) / tick > LAST_TICK:
        tick *= 2
    dispatch, start, end, ready = (
        np.rint(tbs[f"{name}_ns"] / tick).astype(np.int64) for name in ("dispatch", "start", "end", "ready")
    )
    row = np.searchsorted(sms, tbs["sm"]) * slots + tbs["slot"]
    return {
        "first": np.searchsorted(row, np.arange(len(sms) * slots + 1)),
        "start": dispatch,
        "length": end - dispatch,
        "lag": start - dispatch,  # from the dispatch until warps start
        "slot_wait": np.maximum(dispatch - ready, 0),
        "dependence_wait": np.rint(waits[:, 1] / tick).astype(np.int64),
        "kernel": tbs["kernel"].astype(np.int64),
        "tb": tbs["tb"].astype(np.int64),
        "last_kernel": tbs["last_kernel"].astype(np.int64),
        "last_tb": tbs["last_tb"].astype(np.int64),
    }, tick


def _kernel_columns(kernels: Table, stalls: Table) -> dict[str, NDArray[Any]]:
    """Return the kernels of a run in order: numbers, times in us, sums, and a share a kind of stall."""
    kernels = kernels[np.argsort(kernels["kernel"], kind="stable")]
    made: dict[str, NDArray[Any]] = {
        name: kernels[name].astype(np.int64) for name in ("kernel", "stream", "name", "tbs")
    }
    made |= {name: kernels[f"{name}_us"].astype(np.float64) for name in KERNEL_TIMES}
    made |= {name: kernels[name].astype(np.float64) for name in KERNEL_SUMS}
    rows = stalls[stalls["level"] == b"kernel"] if len(stalls) else stalls
    if len(rows) == len(kernels):
        rows = rows[np.argsort(rows["id"], kind="stable")]
        made |= {f"stall_{name}": rows[name].astype(np.float32) for name in SHARES}
    return made


def _shares(stalls: Table, level: str) -> list[float] | None:
    rows = stalls[stalls["level"] == level.encode()] if len(stalls) else stalls
    return [float(rows[name][0]) for name in SHARES] if len(rows) else None


def _plain(value: Any) -> Any:
    """Return a value of a table for JSON, where NaN is null."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
