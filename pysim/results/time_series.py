"""Time series of SMs, L2 slices, DRAM channels and banks: counters of each interval, as tables.

One row an interval and unit. The rows of a unit add up to its row of table ``sm`` or ``l2``. An event counts
in one interval: a compute block when it begins, a wait when it ends, a request at a slice when it arrives, a
DRAM row when it opens, a DRAM access at the end of its transfer. Writes still buffered when the run ends
count at its end.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pysim.counters import BANKS, CHANNEL, HELD, SLICE, STALLS, WORK
from pysim.errors import ConfigError

from .columns import counter_values
from .schema import SERIES
from .tables import TICKS_NS, TICKS_US, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.counters import Counter

    Table = NDArray[np.void]

MIN_INTERVAL_US = 0.001


class Series(NamedTuple):
    """Records of the core, (samples, units): counters since the start of the run, by interval end."""

    sms: Table
    slices: Table
    banks: Table  # (samples, slices, banks)
    interval: int  # ticks
    end: int  # ticks; the last interval may be cut short


def _per_interval(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return counts of each interval from counts since the start, (samples, ...)."""
    return np.asarray(np.diff(counts.astype(np.int64), axis=0, prepend=np.int64(0)), np.int64)


def _counts(records: Table, group: tuple[Counter, ...]) -> dict[str, NDArray[Any]]:
    return {row.name: _per_interval(records[row.name]) for row in group}


def _table(
    name: str, run: int, series: Series, parts: tuple[str, ...], values: Mapping[str, NDArray[Any]]
) -> Table:
    """Return rows by sample, then unit; ``values``: a (samples, units...) array a counter."""
    shape = next(iter(values.values())).shape
    at = np.indices(shape).reshape(1 + len(parts), -1)
    start = at[0] * series.interval
    return table(
        name,
        int(np.prod(shape)),
        run=run,
        sample=at[0],
        start_us=start / TICKS_US,
        end_us=np.minimum(start + series.interval, max(series.end, 1)) / TICKS_US,
        **{part: at[1 + axis] for axis, part in enumerate(parts)},
        **{counter: value.reshape(-1) for counter, value in values.items()},
    )


def sm_table(run: int, series: Series) -> Table:
    """Return the rows of ``sm_series``."""
    values: dict[str, NDArray[Any]] = {}
    for group, rows in (("held", HELD), ("stalls", STALLS), ("work", WORK)):
        values |= counter_values(rows, _counts(series.sms[group], rows))
    return _table("sm_series", run, series, ("sm",), values)


def _limited_rate(booked: NDArray[np.int64], interval: int) -> NDArray[np.int64]:
    """Return the work of a port in each sample: at most ``interval`` ticks, the excess in later samples."""
    whole = interval * np.arange(1, len(booked) + 1, dtype=np.int64)[:, None]
    ahead = np.cumsum(booked, axis=0) - whole
    done = whole + np.minimum(np.minimum.accumulate(ahead, axis=0), 0)
    done[-1] = booked.sum(axis=0)
    return np.asarray(np.diff(done, axis=0, prepend=np.int64(0)), np.int64)


def l2_table(run: int, series: Series) -> Table:
    """Return the rows of ``l2_series``; ``busy_us`` is time the port worked, not time booked on it."""
    counts = _counts(series.slices["count"], SLICE)
    counts["busy"] = _limited_rate(counts["busy"], series.interval)
    values = {"backlog_ns": series.slices["backlog"] / TICKS_NS} | counter_values(SLICE, counts)
    return _table("l2_series", run, series, ("slice",), values)


def dram_table(run: int, series: Series) -> Table:
    """Return the rows of ``dram_series``."""
    counts = _counts(series.slices["count"], CHANNEL)
    values = {"queued": series.slices["queued"]} | counter_values(CHANNEL, counts)
    return _table("dram_series", run, series, ("channel",), values)


def bank_table(run: int, series: Series) -> Table:
    """Return the rows of ``bank_series``."""
    counts = _counts(series.banks["count"], BANKS)
    values = {"backlog_ns": series.banks["backlog"] / TICKS_NS} | counter_values(BANKS, counts)
    return _table("bank_series", run, series, ("channel", "bank"), values)


def check_interval(interval: float, tables: str | Sequence[str]) -> None:
    """Raise ConfigError for too short an interval (us; 0: none) or for series tables without an interval."""
    if 0 < interval < MIN_INTERVAL_US:
        raise ConfigError(f"sim.sample = {interval:g} us: must be 0 or at least {MIN_INTERVAL_US:g} us")
    for word in tables.split(",") if isinstance(tables, str) else tables:
        if word in SERIES and not interval:
            raise ConfigError(f"table {word} needs an interval: sim.sample, or --sample-us")


def table_makers(run: int, series: Series | None) -> dict[str, Callable[[], Table]]:
    """Return a function for each of the series tables, by name; none without series."""
    if series is None:
        return {}
    each = (sm_table, l2_table, dram_table, bank_table)
    return {name: partial(make, run, series) for name, make in zip(SERIES, each, strict=True)}


def interval_notes(series: Series | None, scheme: str, asked: int) -> list[str]:
    """Return a note if the interval is longer than ``asked`` (ticks), else an empty list."""
    if series is None or series.interval == asked:
        return []
    got, wanted = series.interval / TICKS_US, asked / TICKS_US
    return [f"{scheme}: time series every {got:g} us, not {wanted:g}: at most a million rows a run"]
