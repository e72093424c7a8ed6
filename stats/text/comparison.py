"""What differs between two results, as text: the largest changes first."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

DURATION = "duration_us"  # of a kernel, from its first dispatch to its completion
MAIN = ("time_us", DURATION)  # their changes are shown first
_WIDEST = 60  # characters of a text that differs


def format_comparison(
    a: str,
    b: str,
    frames: Mapping[str, pd.DataFrame],
    lone: tuple[pd.DataFrame, pd.DataFrame] | None,
    limit: int | None,
) -> str:
    """Return lines: the two results, then each frame that has rows; ``lone``: what one side alone has.

    ``limit``: of lines of a frame; None: all. The frames are those of ``pysim.stats.Comparison``.
    """
    sides = () if lone is None else (("a", lone[0]), ("b", lone[1]))
    if not any(map(len, frames.values())) and not any(len(frame) for _, frame in sides):
        what = "configuration and tables" if lone is not None else ", ".join(frames)
        return f"equal: {what} of {a} and {b}"
    lines = [f"a  {a}", f"b  {b}"]
    for name, frame in frames.items():
        if len(frame):
            cells = [[str(column) for column in frame.columns]] + [
                [_cell(column, value) for column, value in zip(frame.columns, row, strict=True)]
                for row in _largest(frame).head(limit if limit is not None else len(frame)).values.tolist()
            ]
            lines += ["", f"{name}: {_said(name, frame)}", *_aligned(cells), *_more(frame, limit)]
        else:
            lines += ["", f"{name}: equal"]
    for side, frame in sides:
        if len(frame):
            lines += ["", f"only in {side}: {len(frame):,}"]
            shown = frame.head(limit if limit is not None else len(frame))
            lines += [f"  {_lone(*row)}" for row in shown.itertuples(index=False, name=None)]
            lines += _more(frame, limit)
    return "\n".join(lines)


def _said(name: str, frame: pd.DataFrame) -> str:
    if name == "tables":
        return f"{len(frame):,} with other rows"
    return f"{len(frame):,} value{'s' if len(frame) > 1 else ''} differ{'' if len(frame) > 1 else 's'}"


def _more(frame: pd.DataFrame, limit: int | None) -> list[str]:
    return [] if limit is None or len(frame) <= limit else [f"  ... and {len(frame) - limit:,} more"]


def _lone(table: str, run: int, kernel: int, what: str) -> str:
    if run < 0:
        return f"table {table}" if what == "table" else f"{table}: {what}"
    return f"run {what}" if kernel < 0 else f"{what} (kernel {kernel})"


def _largest(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the largest changes first; those without numbers keep their order."""
    if "ratio" not in frame:
        return frame
    main = frame["column"].isin(MAIN).to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.abs(np.log(np.abs(frame["ratio"].to_numpy(np.float64))))
    size = np.where(main, np.abs(frame["difference"].to_numpy(np.float64)), size)
    size = np.where(np.isnan(size), -1.0, size)
    return frame.iloc[np.lexsort((-size, ~main))]


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if column == "ratio":
        return f"{value:,.3f}x" if math.isfinite(value) else "-"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "-"
        whole = value.is_integer() and abs(value) < 1e15
        text = f"{value:,.0f}" if whole else f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"
        return f"+{text}" if column == "difference" and value > 0 else text
    text = f"{value:,}" if isinstance(value, int) and column in ("a", "b") else " ".join(str(value).split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def _aligned(cells: list[list[str]]) -> list[str]:
    """Lay out cells in columns: texts to the left, numbers to the right."""
    numbers = [name in ("a", "b", "difference", "ratio", "rows_a", "rows_b", "differ") for name in cells[0]]
    wide = [max(len(row[i]) for row in cells) for i in range(len(numbers))]
    return [
        "  "
        + "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, wide, numbers, strict=True)
        ).rstrip()
        for row in cells
    ]
