"""The table ``validation`` as text: errors by class and by half, beside those of baseline models.

A case that could not be simulated counts as an error of 100 %, and its speedup or saving as off by 1 with the
wrong sign; none is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysim.stats.schema import Table

Mask = NDArray[np.bool_]
Values = NDArray[np.float64]

NEAR = 0.03  # a speedup nearer to 1 has no sign
LOSS = 0.01  # a saving below minus this is a loss
FEW = 4
HALVES = ("fit", "check")
FIGURES = ("mean", "median", "p90", "worst", "bias")
BESIDE = ("mean", "p90", "worst")


def summary(errors: Values) -> dict[str, float]:
    """Return mean, median, 90th percentile and worst of the absolute errors, and the mean with its sign.

    The percentile is the element below it, so that it is an error that some case has. NaN without cases.
    """
    if not len(errors):
        return dict.fromkeys(FIGURES, float("nan"))
    size = np.sort(np.abs(errors))
    return {
        "mean": float(size.mean()),
        "median": float(np.median(size)),
        "p90": float(size[9 * (len(size) - 1) // 10]),
        "worst": float(size[-1]),
        "bias": float(errors.mean()),
    }


def words(table: Table, column: str) -> list[str]:
    """Return a text column as strings."""
    return [text.decode() for text in table[column].tolist()]


def parts(table: Table) -> dict[str, Mask]:
    """Return which rows make all, each half, each of a few groups, each mode and each kind of a suite."""
    found = {"all": np.ones(len(table), bool)}
    titles = {"split": "half {}", "group": "group {}", "mode": "mode {}", "kind": "{}"}
    if len(set(words(table, "group"))) > FEW:
        del titles["group"]  # they are single problems
    for column, title in titles.items():
        values = np.array(words(table, column))
        names = dict.fromkeys(HALVES if column == "split" else values.tolist())
        if len(names) > 1:
            found |= {title.format(name): values == name for name in names if name in values}
    return found


class Baseline(NamedTuple):
    """A baseline model: its name and its time (us) for each row of the table, NaN where it has none."""

    name: str
    times: Values


def baseline_errors(table: Table, baseline: Baseline, where: Mask | None = None) -> Values:
    """Return the errors of a baseline model where it has a time."""
    errors = baseline.times / table["measured"] - 1
    if where is not None:
        errors = errors[where]
    return np.asarray(errors[np.isfinite(errors)], np.float64)


def format_rows(table: Table) -> str:
    """Lay out one line a case."""
    cases = words(table, "case")
    wide = max([len(case) for case in cases] + [4])
    cycles = bool(np.isfinite(table["measured_cycles"]).any())
    head = f"{'case':<{wide}}{'measured us':>13}{'simulated us':>14}{'error':>9}{'baseline':>10}"
    if cycles:
        head += f"{'measured cycles':>17}{'simulated':>13}"
    lines = [head + "  half   simulated as"]
    schemes, details = words(table, "scheme"), words(table, "detail")
    for row, case, scheme, detail in zip(table, cases, schemes, details, strict=True):
        baseline = row["null"] / row["measured"] - 1
        line = f"{case:<{wide}}{row['measured']:13,.2f}{row['simulated']:14,.2f}{row['error']:9.1%}"
        line += f"{baseline:10.1%}" if np.isfinite(baseline) else f"{'-':>10}"
        if cycles:
            known = np.isfinite(row["measured_cycles"])
            line += f"{row['measured_cycles']:17,.0f}" if known else f"{'-':>17}"
            line += f"{row['simulated_cycles']:13,.0f}"
        status = row["status"].decode()
        what = ", ".join(filter(None, (scheme, detail))) if status == "ok" else f"{status}: {detail}"
        lines.append(f"{line}  {row['split'].decode():<5}  {what}")
    return "\n".join(lines) + "\n"


def format_errors(table: Table, baselines: Sequence[Baseline]) -> str:
    """Lay out the errors of time of all cases, halves, modes and kinds; then those of the baseline models."""
    masks = parts(table)
    wide = max(len(name) for name in masks) + 2
    head = f"{'absolute error of time':<{max(wide, 24)}}{'cases':>6}{'none':>6}"
    wide = max(wide, 24)
    head += (
        "".join(f"{name:>9}" for name in FIGURES) + "  | baseline" + "".join(f"{name:>9}" for name in BESIDE)
    )
    lines = [head]
    bad = table["status"] != b"ok"
    for name, where in masks.items():
        mine = summary(table["error"][where])
        other = summary(baseline_errors(table, baselines[0], where)) if baselines else summary(np.zeros(0))
        lines.append(
            f"{name:<{wide}}{int(where.sum()):6d}{int((bad & where).sum()):6d}"
            + "".join(f"{_percent(mine[key]):>9}" for key in FIGURES)
            + "  |         "
            + "".join(f"{_percent(other[key]):>9}" for key in BESIDE)
        )
    lines.append("none: cases without a simulated time, each counted as an error of 100 %")
    for baseline in baselines:
        errors = baseline_errors(table, baseline)
        found = summary(errors)
        figures = ", ".join(f"{key} {_percent(found[key])}" for key in BESIDE)
        lines.append(f"baseline model: {baseline.name}: {figures} over {len(errors)} cases")
    return "\n".join(lines) + "\n"


def _percent(value: float) -> str:
    return f"{value:.1%}" if np.isfinite(value) else "-"


class Ratios(NamedTuple):
    """Speedups or gains of rows against the base of their group; `simulated` is NaN where there is none."""

    rows: NDArray[np.int64]
    measured: Values
    simulated: Values

    @property
    def off(self) -> Values:
        """How far each is off; 1 where it could not be simulated."""
        return np.asarray(np.nan_to_num(np.abs(self.simulated - self.measured), nan=1.0), np.float64)


def ratios(table: Table, base: str, compare: str) -> Ratios:
    """Return base over mode ("speedup") or 1 less mode over base ("saving") where the group has a base."""
    groups, modes = words(table, "group"), words(table, "mode")
    known = {group: row for row, (group, mode) in enumerate(zip(groups, modes, strict=True)) if mode == base}
    mine = [row for row, mode in enumerate(modes) if mode != base and groups[row] in known]
    rows = np.array(mine, np.int64)
    bases = np.array([known[groups[row]] for row in mine], np.int64)
    good = table["status"] == b"ok"
    with np.errstate(divide="ignore", invalid="ignore"):
        measured = table["measured"][bases] / table["measured"][rows]
        simulated = table["simulated"][bases] / table["simulated"][rows]
        if compare == "saving":
            measured, simulated = 1 - 1 / measured, 1 - 1 / simulated
    simulated = np.where(good[rows] & good[bases], simulated, np.nan)
    return Ratios(rows, np.asarray(measured, np.float64), np.asarray(simulated, np.float64))


def middle(values: Values) -> float:
    """Return the upper middle of the values."""
    return float(np.sort(values)[len(values) // 2])


def constants(values: Values, groups: Sequence[str]) -> Values:
    """Return for each value the upper middle of its group: the best that one constant a group can do."""
    names = np.array(groups)
    made = np.zeros(len(values))
    for name in dict.fromkeys(groups):
        made[names == name] = middle(values[names == name])
    return made


def sides(known: Values, guess: Values, border: float) -> Mask:
    """Return which guesses lie on the side of the border that is known; NaN never does."""
    return np.asarray(np.isfinite(guess) & ((guess > border) == (known > border)), bool)


def format_speedups(table: Table, base: str) -> str:
    """Lay out how well speedups over `base` are met, beside one constant a mode."""
    found = ratios(table, base, "speedup")
    if not len(found.rows):
        return f"no speedups: no group has both {base} and another mode\n"
    part = table[found.rows]
    guess = constants(found.measured, words(part, "mode"))
    big = np.abs(found.measured - 1) > NEAR
    right, guessed = sides(found.measured, found.simulated, 1), sides(found.measured, guess, 1)
    masks = parts(part)
    wide = max(24, *(len(name) + 2 for name in masks))
    head = f"{f'speedup over {base}':<{wide}}{'cases':>6}{'off by':>9}{'sign right':>16}"
    lines = [f"{head}  | one constant a mode: off by, sign right"]
    for name, where in masks.items():
        here = big & where
        off = np.abs(guess - found.measured)[where].mean()
        lines.append(
            f"{name:<{wide}}{int(where.sum()):6d}{found.off[where].mean():9.3f}"
            f"{_share(right[here]):>16}  | {off:.3f}, {_share(guessed[here])}"
        )
    lines.append(f"sign right: of the cases whose measured speedup differs from 1 by more than {NEAR:.0%}")
    return "\n".join(lines) + "\n"


def _share(right: Mask) -> str:
    return f"{int(right.sum())} of {len(right)}" + (f" {right.mean():4.0%}" if len(right) else "")


def format_savings(table: Table, base: str) -> str:
    """Lay out how well savings over `base` are met, beside one constant and the guess that all save."""
    found = ratios(table, base, "saving")
    if not len(found.rows):
        return f"no savings: no group has both {base} and another mode\n"
    part = table[found.rows]
    masks = parts(part)
    wide = max(24, *(len(name) + 2 for name in masks))
    lines = [
        f"{f'saving over {base}':<{wide}}{'cases':>6}{'off by':>9}{'sign right':>16}{'losses seen':>16}"
        "  | one constant: off by; always wins: right"
    ]
    losing = found.measured < -LOSS
    right = sides(found.measured, found.simulated, 0)
    for name, where in masks.items():
        known = found.measured[where]
        lines.append(
            f"{name:<{wide}}{int(where.sum()):6d}{found.off[where].mean():9.3f}{_share(right[where]):>16}"
            f"{_share(right[where & losing]):>16}  | {np.abs(known - middle(known)).mean():.3f};"
            f" {_share(known > 0)}"
        )
    lines.append(f"losses: cases that lose more than {LOSS:.0%}; saving: 1 less the time over that of {base}")
    return "\n".join(lines) + "\n"


COMPARISONS: Mapping[str, Any] = {"speedup": format_speedups, "saving": format_savings}
