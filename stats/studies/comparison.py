"""What changed between two results: configuration, runs, kernels, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pysim.stats.missing import how_to_install
from pysim.stats.schema import Table
from pysim.stats.store import StoreError, decode
from pysim.stats.text.comparison import DURATION, format_comparison

from .compared import Comparable, Side, side

if TYPE_CHECKING:
    import pandas as pd

TICKS_US = 1024_000  # times are whole ticks of 1/1024 ns
FRAMES = ("configuration", "runs", "kernels", "tables")
_NO_NUMBER = ("text", "id", "flag", "code")  # units whose numbers have no difference
_NAMED = ("run", "kernel", "name")  # columns that match rows, and are not compared


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Comparison:
    """What differs between two results; printed, it shows the largest changes first.

    Frames have a row a value that differs. ``a`` and ``b`` name the results.

    ``configuration``: path, a, b; None: the side does not have it. ``runs``: the columns that match runs,
    then column, unit, a, b, difference (b less a) and ratio (b over a); the last two are NaN for texts and
    numbers that name something. ``kernels``: the same, with the kernel's name, its occurrence among the
    kernels of that name in the run, and its number on both sides; ``duration_us`` is from the first dispatch
    to the completion. ``tables``: of each table whose rows of matched runs differ, how many rows a and b
    have, and how many differ (NaN where a and b have not as many). ``only_a``, ``only_b``: table, run and
    kernel (their numbers there; -1: none), and what it is.
    """

    a: str
    b: str
    configuration: pd.DataFrame
    runs: pd.DataFrame
    kernels: pd.DataFrame
    tables: pd.DataFrame
    only_a: pd.DataFrame
    only_b: pd.DataFrame

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not any(len(getattr(self, name)) for name in (*FRAMES, "only_a", "only_b"))

    def __repr__(self) -> str:
        """Return the text."""
        return self.text()

    def text(self, limit: int | None = 10, frame: str | None = None) -> str:
        """Return lines for a terminal: at most ``limit`` of each frame (None: all), or of one, ``frame``.

        Changes of ``time_us`` and ``duration_us`` come first, by size, then all others by their ratio.
        """
        names = FRAMES if frame is None else (frame,)
        frames = {name: getattr(self, name) for name in names}
        lone = (self.only_a, self.only_b) if frame is None else None
        return format_comparison(self.a, self.b, frames, lone, limit)

    def as_dict(self, limit: int | None = None, frame: str | None = None) -> dict[str, Any]:
        """Return the same as lists of rows, for JSON; NaN and infinity are None."""
        made: dict[str, Any] = {"a": self.a, "b": self.b}
        for name in (*FRAMES, "only_a", "only_b") if frame is None else (frame,):
            rows = getattr(self, name)
            rows = rows.head(limit if limit is not None else len(rows)).astype(object)
            made[name] = [
                {str(key): _json(value) for key, value in zip(rows.columns, row, strict=True)}
                for row in rows.itertuples(index=False, name=None)
            ]
        return made


def compare(
    a: Comparable,
    b: Comparable,
    *,
    most_bytes: int | None = None,
) -> Comparison:
    """Return what differs between two results: files, sweeps, or a ``pysim.Result`` each.

    Runs are matched by the keys of a grid that both have and by scheme, and where these name several runs of
    a result also by workload, GPU and arguments; kernels of a run by name and occurrence, so that a kernel
    that was added shifts no other. NaN equals NaN. The table ``host`` is left out.

    ``most_bytes``: of the tables of each sweep. Raises StoreError for what is no result, is damaged or has no
    table ``runs``, and where pandas is not installed.

    >>> from pysim import stats, tempfile, numpy as np
    >>> runs = np.array([(0, b"stream", 2.0)], [("run", "<i4"), ("scheme", "S8"), ("time_us", "<f8")])
    >>> folder = tempfile.mkdtemp()
    >>> stats.write(f"{folder}/a.h5", {"runs": runs}, {}, {})
    >>> runs["time_us"] = 3
    >>> stats.write(f"{folder}/b.h5", {"runs": runs}, {}, {})
    >>> stats.compare(f"{folder}/a.h5", f"{folder}/b.h5").runs[["scheme", "column", "ratio"]].values.tolist()
    [['stream', 'time_us', 1.5]]
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise StoreError(f"a comparison needs pandas: {how_to_install('plot')}") from error

    left, right = (side(given, most_bytes) for given in (a, b))
    pairs = _matched_runs(left, right)
    keys = [name for name in pairs.both.columns if not name.startswith("_")]
    runs = _differences(left, right, "runs", pairs.both, keys)
    matched = _matched_kernels(left, right, pairs.both)
    named = [*keys, "name", "occurrence", "kernel_a", "kernel_b"]
    kernels = _differences(left, right, "kernels", matched.both, named)
    columns = ["table", "run", "kernel", "what"]
    only = [
        pd.DataFrame([*_lone(this, other), *runs_of, *kernels_of], columns=columns)
        for this, other, runs_of, kernels_of in (
            (left, right, pairs.only_a, matched.only_a),
            (right, left, pairs.only_b, matched.only_b),
        )
    ]
    return Comparison(
        left.label,
        right.label,
        _configurations(left, right),
        runs,
        kernels,
        _tables(left, right, pairs.both),
        *only,
    )


@dataclass(frozen=True, slots=True)
class _Matched:
    """Rows that both sides have: names, and row numbers ``_a`` and ``_b``; and descriptions of the others."""

    both: pd.DataFrame
    only_a: list[tuple[str, int, int, str]]
    only_b: list[tuple[str, int, int, str]]


def _matched_runs(a: Side, b: Side) -> _Matched:
    import pandas as pd

    sides = []
    for this in (a, b):
        columns = {key: [str(value) for value in this.grid[key]] for key in a.grid if key in b.grid}
        for name in ("scheme", "workload", "gpu", "arguments"):
            if name in (this.tables["runs"].dtype.names or ()):
                columns[name] = this.column("runs", name)
        sides.append(pd.DataFrame(columns, index=range(len(this.tables["runs"]))))
    given = [name for name in sides[0].columns if name in sides[1].columns]
    more = [name for name in ("workload", "gpu", "arguments") if name in given]
    keys = [name for name in given if name not in more]
    for name in more:
        if any(_repeated(frame, [*keys, name]) < _repeated(frame, keys) for frame in sides):
            keys.append(name)
    if any(_repeated(frame, keys) for frame in sides):  # the same simulated twice
        for frame in sides:
            frame["occurrence"] = _counted(frame, keys)
        keys.append("occurrence")
    both, alone = _merged([frame[keys] for frame in sides], keys)
    lone = []
    for this, at, frame in zip((a, b), ("_a", "_b"), alone, strict=True):
        numbers = this.tables["runs"]["run"][frame[at].to_numpy(np.int64)].tolist()
        lone.append(
            [("runs", run, -1, text) for run, text in zip(numbers, _labels(frame, keys), strict=True)]
        )
    return _Matched(both, *lone)


def _repeated(frame: pd.DataFrame, keys: Sequence[str]) -> int:
    """Return how many rows have the keys of an earlier one."""
    return int(frame.duplicated(list(keys)).sum()) if keys else max(0, len(frame) - 1)


def _counted(frame: pd.DataFrame, keys: Sequence[str]) -> Any:
    """Return how many earlier rows have the keys of each."""
    return frame.groupby(list(keys), sort=False).cumcount() if keys else np.arange(len(frame))


def _matched_kernels(a: Side, b: Side, runs: pd.DataFrame) -> _Matched:
    import pandas as pd

    keys = [name for name in runs.columns if not name.startswith("_")]
    sides = []
    for this, at in ((a, "_a"), (b, "_b")):
        if not (_has(this, "kernels", _NAMED) and _has(this, "names", ("name", "text"))):
            return _Matched(pd.DataFrame(columns=[*keys, "name", "occurrence", "_a", "_b"]), [], [])
        rows = this.tables["kernels"]
        texts = pd.DataFrame({name: this.column("names", name) for name in ("run", "name", "text")})
        frame = pd.DataFrame({name: rows[name] for name in _NAMED})
        texts = texts.drop_duplicates(["run", "name"])
        frame = frame.merge(texts, how="left", on=["run", "name"])[["run", "kernel", "text"]]
        frame.columns = ["run", "kernel", "name"]
        number = this.tables["runs"]["run"][runs[at].to_numpy(np.int64)]
        frame["_pair"] = frame["run"].map({run: pair for pair, run in enumerate(number.tolist())})
        frame["_row"] = np.arange(len(frame))
        frame = frame[frame["_pair"].notna()].sort_values(["_pair", "kernel"], kind="stable")
        frame["occurrence"] = _counted(frame, ["_pair", "name"])
        sides.append(frame)
    found, alone = _merged(sides, ["_pair", "name", "occurrence"])
    named = runs[keys].iloc[found["_pair"].to_numpy(np.int64)].reset_index(drop=True)
    both = pd.concat([named, found.drop(columns="_pair")], axis=1)
    labels, lone = _labels(runs, keys), []
    for this, at, frame in zip((a, b), ("_a", "_b"), alone, strict=True):
        rows = this.tables["kernels"]
        both[f"kernel{at}"] = rows["kernel"][both[at].to_numpy(np.int64)]
        rows = rows[frame[at].to_numpy(np.int64)]
        texts = [
            f"{labels[int(pair)]}: {name}, {occurrence}"
            for pair, name, occurrence in zip(frame["_pair"], frame["name"], frame["occurrence"], strict=True)
        ]
        numbers = zip(rows["run"].tolist(), rows["kernel"].tolist(), texts, strict=True)
        lone.append([("kernels", *row) for row in numbers])
    return _Matched(both, *lone)


def _has(this: Side, table: str, columns: Sequence[str]) -> bool:
    return table in this.tables and set(columns) <= set(this.tables[table].dtype.names or ())


def _labels(frame: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return the keys of each row as one text."""
    return [", ".join(map(str, row)) for row in frame[list(keys)].itertuples(index=False, name=None)]


def _merged(
    frames: Sequence[pd.DataFrame], keys: list[str]
) -> tuple[pd.DataFrame, tuple[pd.DataFrame, pd.DataFrame]]:
    """Match rows of two frames by keys; return those of both, then those of each alone.

    Columns ``_a`` and ``_b`` have the numbers of the rows: those in ``_row``, or their order.
    """
    numbered = []
    for frame, at in zip(frames, ("_a", "_b"), strict=True):
        rows = frame["_row"].to_numpy() if "_row" in frame else np.arange(len(frame))
        numbered.append(frame[keys].assign(**{at: rows}))
    every = numbered[0].merge(numbered[1], how="outer", on=keys, sort=False)
    mine, theirs = every["_a"].notna(), every["_b"].notna()
    both = every[mine & theirs].sort_values("_a", kind="stable").reset_index(drop=True)
    return both, (every[~theirs].sort_values("_a"), every[~mine].sort_values("_b"))


def _differences(a: Side, b: Side, table: str, matched: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return a row for each value that differs in matched rows, in their order."""
    import pandas as pd

    columns = [*keys, "column", "unit", "a", "b", "difference", "ratio"]
    parts, order = [], []
    if len(matched):
        rows = [this.tables[table][matched[at].to_numpy(np.int64)] for this, at in ((a, "_a"), (b, "_b"))]
        units = {**b.units.get(table, {}), **a.units.get(table, {}), DURATION: "us"}
        for number, (name, x, y) in enumerate(_shared(rows[0], rows[1])):
            if name in keys:
                continue
            at = np.flatnonzero(_unequal(x, y))
            part = matched[keys].iloc[at].copy()
            unit = units.get(name, "")
            plain = x.dtype.kind in "iuf" and y.dtype.kind in "iuf" and unit not in _NO_NUMBER
            part["column"], part["unit"] = name, unit
            for label, values in (("a", x[at]), ("b", y[at])):
                part[label] = pd.Series(values.tolist(), part.index, object)
            part["difference"], part["ratio"] = _change(x[at], y[at]) if plain else (math.nan, math.nan)
            parts.append(part)
            order.append(at * 1000 + number)  # a table has fewer columns
    if not parts:
        return pd.DataFrame(columns=columns)
    made = pd.concat(parts, ignore_index=True)[columns]
    return made.iloc[np.argsort(np.concatenate(order), kind="stable")].reset_index(drop=True)


def _shared(a: Table, b: Table) -> list[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Return the columns of both tables, texts decoded, and the durations of kernels."""
    names = [name for name in a.dtype.names or () if name in (b.dtype.names or ()) and name not in _NAMED]
    made = [(name, decode(a[name]), decode(b[name])) for name in names]
    if {"first_dispatch_us", "complete_us"} <= set(names):
        # of whole ticks: a difference of two times has an error of its own
        x, y = (
            np.rint((rows["complete_us"] - rows["first_dispatch_us"]) * TICKS_US) / TICKS_US
            for rows in (a, b)
        )
        made.append((DURATION, x, y))
    return made


def _unequal(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.bool_]:
    made: NDArray[np.bool_] = np.asarray(x != y, bool)
    if x.dtype.kind == "f" and y.dtype.kind == "f":
        made &= ~(np.isnan(x) & np.isnan(y))
    return made


def _change(x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if x.dtype.kind in "iu" and y.dtype.kind in "iu":
        change = (y.astype(np.int64) - x.astype(np.int64)).astype(np.float64)
    else:
        change = y.astype(np.float64) - x.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return change, y.astype(np.float64) / x.astype(np.float64)


def _configurations(a: Side, b: Side) -> pd.DataFrame:
    import pandas as pd

    mine, other = a.configuration, b.configuration
    paths = [*mine, *(path for path in other if path not in mine)]
    rows = [
        (path, mine.get(path), other.get(path))
        for path in paths
        if (path in mine) != (path in other) or mine[path] != other[path]
    ]
    return pd.DataFrame(rows, columns=["path", "a", "b"], dtype=object)


def _lone(this: Side, other: Side) -> list[tuple[str, int, int, str]]:
    """Return the tables and columns that the other side does not have."""
    found = []
    for name in sorted(this.tables):
        if name not in other.tables:
            found.append((name, -1, -1, "table"))
            continue
        theirs = other.tables[name].dtype.names or ()
        found += [
            (name, -1, -1, f"column {c}") for c in this.tables[name].dtype.names or () if c not in theirs
        ]
    return found


def _tables(a: Side, b: Side, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the tables whose rows of matched runs differ, whatever the numbers of the runs are."""
    import pandas as pd

    found = []
    for name in sorted(set(a.tables) & set(b.tables)):
        x, y = (_of_runs(this, name, runs[at].to_numpy(np.int64)) for this, at in ((a, "_a"), (b, "_b")))
        differ = math.nan
        if len(x) == len(y):
            columns = [c for c in x.dtype.names or () if c in (y.dtype.names or ()) and c != "run"]
            unequal = [_unequal(x[c], y[c]) for c in columns]
            differ = int(np.logical_or.reduce(unequal).sum()) if unequal else 0
        if differ:
            found.append((name, len(x), len(y), differ))
    return pd.DataFrame(found, columns=["table", "rows_a", "rows_b", "differ"])


def _of_runs(this: Side, name: str, chosen: NDArray[np.int64]) -> Table:
    """Return the rows of runs, in the order of ``chosen``: rows of ``runs``."""
    table, numbers = this.tables[name], this.tables["runs"]["run"][chosen]
    order = np.argsort(numbers, kind="stable")
    at = np.searchsorted(numbers, table["run"], sorter=order).clip(max=max(0, len(numbers) - 1))
    place = order[at] if len(numbers) else at
    kept = numbers[place] == table["run"] if len(numbers) else np.zeros(len(table), bool)
    rows: Table = table[kept]
    return rows[np.argsort(place[kept], kind="stable")]


def _json(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
