"""Result tables that scripts make from runs, each column declared once; and what all tables share.

The tables of a run are declared where they are made: a file carries their units and meanings
(:meth:`stats.store.Results.columns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import bert_schema, communication_schema, dynamic_schema, epoch_schema, hardware_schema
from .column import RUN, Declared
from .column import Column as Column

VERSION = 1

Table = NDArray[Any]  # a one-dimensional structured array

# the shares of `stalls`: five of resident warps, three of SMs without a TB
SHARES = ("issued", "scoreboard", "pipe", "memory", "barrier", "dependence", "launch", "no_tb")

VALIDATION = (
    RUN,
    Column("suite", "S32", "text", "Set of measurements."),
    Column("case", "S160", "text", "One measurement of it."),
    Column("group", "S128", "text", "What the modes of a case share, or the kind of case."),
    Column("mode", "S48", "text", "How it was measured, in the words of the table of measurements."),
    Column("kind", "S48", "text", "Class of kernel in summaries."),
    Column("scheme", "S48", "text", "Scheme of the mode."),
    Column("unit", "S8", "text", "Unit of `measured`, `simulated` and `null`."),
    Column("measured", "<f8", "as in `unit`", "Value on the real machine."),
    Column("simulated", "<f8", "as in `unit`", "Simulated value; 0 if it cannot be simulated."),
    Column("error", "<f8", "ratio", "Simulated over measured, less 1; 1 if it cannot be simulated."),
    Column("status", "S16", "text", "ok or unsupported."),
    Column("split", "S16", "text", "Half of the suite: fit (constants may be fitted to it) or check."),
    Column("null", "<f8", "as in `unit`", "Value of the first baseline model; NaN if it has none."),
    Column("measured_cycles", "<f8", "cycles", "SM cycles of the real machine; NaN if not measured."),
    Column("simulated_cycles", "<f8", "cycles", "SM cycles simulated; 0 if it cannot."),
    Column("detail", "S160", "text", "What was simulated (the tile; whether sampled), or why it cannot be."),
)

BUDGET = (
    RUN,
    Column("suite", "S32", "text", "Set of measurements."),
    Column("off", "S32", "text", "Mechanism that was switched off, none, or `all of` a part of the machine."),
    Column("part", "S16", "text", "Part of the machine that it belongs to."),
    Column("kind", "S48", "text", "Class of kernel, or all."),
    Column("cases", "<i8", "count", "Measurements of the class."),
    Column("error", "<f8", "ratio", "Mean absolute error of their times."),
    Column("bias", "<f8", "ratio", "Mean signed error."),
    Column("change", "<f8", "ratio", "Mean change of the simulated time against all mechanisms on."),
    Column("cost", "<f8", "ratio", "Processor time of simulating them over that with all mechanisms on."),
)

UTILIZATION = (
    RUN,
    Column("network", "S16", "text", "Kind of network: cell of a recurrent one, or cnn."),
    Column("label", "S48", "text", "hidden_batch_steps_cell, or width_height_channels_batch_filters."),
    Column("kernel", "S32", "text", "What is launched."),
    Column("detail", "S96", "text", "Tile of a GEMM, and to what it was cut."),
    Column("tbs", "<i8", "count", "Thread blocks of a launch."),
    Column("time_us", "<f8", "us", "From the first TB's dispatch until all of the launch has ended."),
    Column("alu", "<f8", "share", "Busy share of the busiest arithmetic pipe in that time."),
    Column("issue", "<f8", "share", "Share of issue slots used in that time."),
    Column("level", "<i4", "tenths", "1 to 10: tenths of `alu`, rounded up."),
)

NETWORKS = (
    RUN,
    Column("gpu", "S32", "text", "Name of the GPU."),
    Column("network", "S32", "text", "Name of the network."),
    Column("run_pass", "S16", "text", "forward, training or decode."),
    Column("workload", "S160", "text", "The network with its keys."),
    Column("scheme", "S64", "text", "Scheme with its options; empty without a result, and `run` is -1."),
    Column("finer", "|u1", "flag", "1: TBs wait for TBs; 0: kernels wait, or (`tb_ideal`) nothing costs."),
    Column("status", "S16", "text", "As in `runs`; missing: not simulated yet."),
    Column("reason", "S160", "text", "Why the status is not ok."),
    Column("kernels", "<i8", "count", "Launches."),
    Column("tbs", "<i8", "count", "Thread blocks."),
    Column("time_us", "<f8", "us", "Simulated time; NaN: there is none."),
    Column("speedup", "<f8", "ratio", "Time of `stream` over this time."),
    Column("estimate_us", "<f8", "us", "As in `runs`."),
    Column("bound_us", "<f8", "us", "As in `runs`."),
    Column("gap_won", "<f8", "share", "Saved share of the time from `stream` to the estimate; NaN: no gap."),
    Column("bound_won", "<f8", "share", "Saved share of the time from `stream` to the bound; NaN: no gap."),
    Column("sm_idle", "<f8", "share", "SM time without a TB, as a share."),
    Column("energy_j", "<f8", "J", "Energy; NaN if nobody measured what events take."),
    Column("energy_saved", "<f8", "share", "Saved share of the energy of `stream`; NaN without energies."),
    Column("stands_in", "<f8", "share", "Time of kernels that stand in for a library's, of all in `stream`."),
)

TABLES: dict[str, tuple[Column, ...]] = {
    **hardware_schema.TABLES,
    **epoch_schema.TABLES,
    **communication_schema.TABLES,
    **bert_schema.TABLES,
    **dynamic_schema.TABLES,
    "validation": VALIDATION,
    "budget": BUDGET,
    "utilization": UTILIZATION,
    "networks": NETWORKS,
}


def layout(columns: Sequence[Declared]) -> np.dtype[Any]:
    """Type of a row of a table with these columns."""
    return np.dtype([(column.name, column.dtype) for column in columns])


def dtype(table: str) -> np.dtype[Any]:
    """Type of a row of a declared table."""
    return layout(TABLES[table])


def empty(table: str, rows: int = 0) -> Table:
    """Array of zeros for a declared table."""
    return np.zeros(rows, dtype(table))


def from_columns(table: str, columns: Mapping[str, Any]) -> Table:
    """Array of a declared table from one sequence or scalar a column; all columns must be there."""
    wanted = [column.name for column in TABLES[table]]
    if set(wanted) != set(columns):
        wrong = ", ".join(sorted(set(wanted) ^ set(columns)))
        raise ValueError(f"table {table}: columns missing or unknown: {wrong}")
    values = {name: encode(np.asarray(columns[name])) for name in wanted}
    rows = max((len(value) for value in values.values() if value.ndim), default=1)
    out = empty(table, rows)
    for name in wanted:
        out[name] = clip(values[name], out.dtype[name])
    return out


def from_rows(table: str, rows: Sequence[Mapping[str, Any]], **same: Any) -> Table:
    """Array of a declared table from a mapping a row, with what is ``same`` in all of them."""
    columns = {name: [(same | dict(row))[name] for row in rows] for name in dtype(table).names or ()}
    return from_columns(table, columns)


def encode(values: NDArray[Any]) -> NDArray[Any]:
    """Python strings as fixed-length UTF-8; anything else as it is."""
    if values.dtype.kind == "O":
        values = values.astype(str)
    return np.char.encode(values, "utf-8") if values.dtype.kind == "U" else values


def clip(values: NDArray[Any], kind: np.dtype[Any]) -> NDArray[Any]:
    """Texts longer than `kind` cut between two characters, with a mark; anything else as it is."""
    if kind.kind != "S" or values.dtype.kind != "S" or values.dtype.itemsize <= kind.itemsize:
        return values
    room = kind.itemsize
    cut = [
        text if len(text) <= room else text[: room - 3].decode("utf-8", "ignore").encode() + b"..."
        for text in values.reshape(-1).tolist()
    ]
    return np.array(cut, kind).reshape(values.shape)
