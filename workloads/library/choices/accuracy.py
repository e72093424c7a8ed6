"""``python -m pysim.workloads.library.choices.accuracy``: the chosen kernels beside those that an H200 ran.

Rows are held out by group (a network's layer, a benchmark): a group is in the fold that the SHA-256 of its
name gives, modulo 3. What is fitted (constants of ``nvjet``, power law and trees of ``tiled``) is fitted anew
without the fold's groups. Rules that were read off rows (``small``, ``odd``, waves of ``cutlass``) and lists
of kernels know all rows: the figures of odd sizes, vectors and few columns are no forecast. The form of the
prices and the size of the trees were found with all rows in sight, too: the figures are a little kind.
The baseline is the nearest row of the other folds: same type and transposes, least distance of (log m, log n,
log k). ``later`` are rows measured after the rule, of shapes that the sweep lacks; most are of three networks
that it lacks, too. Nothing was fitted to them, but the list of kernels has six tiles from there.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import mean

from . import small
from .choice import DTYPES, GemmChoice, Problem
from .chooser import ALL, Fitted, tiled_choice
from .tiled import Rules

FOLDS = 3
FIGURES = ("unit", "family", "tile", "three", "stages", "cluster", "split_k", "tbs", "grid", "kernel")
# per cent of 532 rows each that are right, every row chosen without its fold
STATED = {
    "fp16": {
        "unit": 99.8,
        "family": 97.4,
        "tile": 76.7,
        "three": 94.0,
        "stages": 90.6,
        "cluster": 87.4,
        "split_k": 89.1,
        "tbs": 80.5,
        "kernel": 70.7,
    },
    "bf16": {
        "unit": 99.8,
        "family": 97.4,
        "tile": 79.9,
        "three": 95.9,
        "stages": 91.9,
        "cluster": 88.5,
        "split_k": 88.5,
        "tbs": 80.1,
        "kernel": 72.6,
    },
    "tf32": {
        "unit": 94.4,
        "family": 94.2,
        "tile": 75.2,
        "three": 86.7,
        "stages": 88.2,
        "cluster": 100,
        "split_k": 71.8,
        "tbs": 56.0,
        "kernel": 57.9,
    },
    "fp32": {
        "unit": 99.1,
        "family": 82.0,
        "tile": 70.1,
        "three": 86.7,
        "stages": 82.0,
        "cluster": 100,
        "split_k": 60.3,
        "tbs": 53.6,
        "kernel": 64.1,
    },
}
NEAREST = 3  # rows whose tiles are the baseline's best three
Answers = list[tuple["Measured", list[GemmChoice]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What the library launched for a problem."""

    problem: Problem
    group: str
    choice: GemmChoice

    @property
    def fold(self) -> int:
        """The fold of the row's group."""
        return int(hashlib.sha256(self.group.encode()).hexdigest(), 16) % FOLDS


def _table(name: str) -> list[dict[str, str]]:
    text = files("pysim.workloads").joinpath("measured", name).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def _problem(row: dict[str, str]) -> Problem:
    m, n, k = (int(row[name]) for name in "mnk")
    return Problem(m, n, k, row["trans"][0], row["trans"][1], row["dtype"])


def _measured(row: dict[str, str]) -> Measured:
    tile = (int(row["tile_m"]), int(row["tile_n"]), int(row["tile_k"]))
    choice = GemmChoice(
        row["kernel"],
        row["family"],
        tile,
        int(row["stages"]),
        (int(row["cluster_m"]), int(row["cluster_n"])),
        int(row["split_k"]),
        row["reduction"],
        grid=(int(row["grid_x"]), int(row["grid_y"]), int(row["grid_z"])),
    )
    return Measured(_problem(row), row["group"], choice)


def sweep() -> list[Measured]:
    """Return the rows that the rule was made from."""
    return [_measured(row) for row in _table("h200_library_gemm.csv")]


def later() -> list[Measured]:
    """Return rows of other shapes, measured later."""
    return [_measured(row) for row in _table("h200_gemm_later.csv")]


def without(fold: int) -> Fitted:
    """Return what the rows of the other folds alone give."""
    text = files("pysim.workloads").joinpath("measured", "h200_gemm_folds.json").read_text(encoding="utf-8")
    entry = json.loads(text)[f"without_{fold}"]
    trees = {name: "\n".join(lines) for name, lines in entry["trees"].items()}
    return Fitted(entry["nvjet"], Rules(tuple(entry["tf32_engine"]), trees))


def rule(problem: Problem, fitted: Fitted = ALL) -> list[GemmChoice]:
    """Return the rule's kernels of a problem, best first."""
    choice = small.choose(problem) or tiled_choice(problem, fitted)
    return [choice, *choice.runners_up]


def nearest(problem: Problem, rows: Iterable[Measured]) -> list[GemmChoice]:
    """Return the kernels of the nearest rows, nearest first; the baseline."""
    layout = (problem.dtype, problem.trans_a, problem.trans_b)

    def distance(row: Measured) -> float:
        other = row.problem
        pairs = ((problem.m, other.m), (problem.n, other.n), (problem.k, other.k))
        return sum(math.log(a / b) ** 2 for a, b in pairs)

    same = [row for row in rows if (row.problem.dtype, row.problem.trans_a, row.problem.trans_b) == layout]
    return [row.choice for row in sorted(same, key=distance)[:NEAREST]]


def hits(measured: GemmChoice, chosen: Sequence[GemmChoice]) -> dict[str, bool]:
    """Say which of FIGURES are right; ``three``: the tile is among those of the best three kernels."""
    if not chosen:
        return dict.fromkeys(FIGURES, False)
    first = chosen[0]
    return {
        "unit": first.unit == measured.unit,
        "family": first.family == measured.family,
        "tile": first.tile[:2] == measured.tile[:2],
        "three": measured.tile[:2] in [each.tile[:2] for each in chosen[:NEAREST]],
        "stages": first.stages == measured.stages,
        "cluster": first.cluster == measured.cluster,
        "split_k": first.split_k == measured.split_k,
        "tbs": first.tbs == measured.tbs,
        "grid": first.grid == measured.grid,
        "kernel": first.name == measured.name,
    }


def held_out(rows: Sequence[Measured], *, baseline: bool = False) -> Answers:
    """Return each row with the kernels that are chosen without its fold."""
    answers: Answers = []
    for fold in range(FOLDS):
        fitted = without(fold)
        others = [row for row in rows if row.fold != fold]
        for row in (row for row in rows if row.fold == fold):
            answers.append((row, nearest(row.problem, others) if baseline else rule(row.problem, fitted)))
    return answers


def figures(answers: Answers, dtype: str) -> dict[str, float]:
    """Return the shares of right answers among the rows of a type, and their number as ``rows``."""
    scores = [hits(row.choice, chosen) for row, chosen in answers if row.problem.dtype == dtype]
    shares = {name: mean(score[name] for score in scores) if scores else math.nan for name in FIGURES}
    return {"rows": len(scores), **shares}


def alternatives() -> dict[Problem, list[dict[str, str]]]:
    """Return the timed candidates of each GEMM that has some; ``rank`` -1: the library's own."""
    found: dict[Problem, list[dict[str, str]]] = {}
    for entry in _table("h200_gemm_alternatives.csv"):
        found.setdefault(_problem(entry), []).append(entry)
    return found


def slowdown(rows: Sequence[Measured]) -> dict[str, tuple[int, int, int, float]]:
    """Return what other tiles than the library's cost in time, each row chosen without its fold.

    Returns
    -------
    dict of str to tuple
        By type: shapes, those with another tile, those of the latter that were timed, and the mean excess of
        the time of the chosen tile over the library's, of all shapes but those not timed (0.03: 3 %).

    Notes
    -----
    The times are those of all candidates of cuBLASLt for 60 shapes. Other tiles were not timed.
    """
    folds = {row.problem: row.fold for row in rows}
    fitted = [without(fold) for fold in range(FOLDS)]
    times: dict[Problem, dict[tuple[str, int, int], float]] = {}
    taken: dict[Problem, tuple[str, int, int]] = {}
    for problem, entries in alternatives().items():
        mine = times.setdefault(problem, {})
        for entry in entries:
            tile, time = (
                (entry["family"], int(entry["tile_m"]), int(entry["tile_n"])),
                float(entry["time_us"]),
            )
            mine[tile] = min(time, mine.get(tile, time))
            if entry["rank"] == "-1":
                taken[problem] = tile
    found: dict[str, tuple[int, int, int, float]] = {}
    for dtype in DTYPES:
        shapes = [problem for problem in taken if problem.dtype == dtype]
        other, excess = 0, {}
        for problem in shapes:
            choice = rule(problem, fitted[folds[problem]])[0]
            tile = (choice.family, *choice.tile[:2])
            other += tile != taken[problem]
            if tile in times[problem]:
                excess[problem] = times[problem][tile] / times[problem][taken[problem]] - 1
        missed = len(shapes) - len(excess)
        found[dtype] = (len(shapes), other, other - missed, mean(excess.values()))
    return found


def _line(name: str, shares: dict[str, float]) -> str:
    cells = (f"{100 * shares[figure]:8.1f}" for figure in FIGURES)
    return f"{name:<32}{shares['rows']:5.0f}" + "".join(cells)


def main() -> None:
    """Print the shares in per cent, held out and of the later rows, and how much slower other tiles are."""
    rows, new = sweep(), later()
    print(f"{'%':<32}{'rows':>5}" + "".join(f"{name:>8}" for name in FIGURES))
    tests = (
        ("rule, fold held out", held_out(rows)),
        ("nearest row of other folds", held_out(rows, baseline=True)),
        ("rule, later rows", [(row, rule(row.problem)) for row in new]),
        ("nearest row, later rows", [(row, nearest(row.problem, rows)) for row in new]),
        ("rule, rows it was fitted to", [(row, rule(row.problem)) for row in rows]),
    )
    for dtype in DTYPES:
        for name, answers in tests:
            print(_line(f"{dtype} {name}", figures(answers, dtype)))
    for dtype, (shapes, other, timed, excess) in slowdown(rows).items():
        print(f"{dtype}: {shapes} shapes: {other} other tiles, {timed} timed: {100 * excess:+.1f} % time")


if __name__ == "__main__":
    main()
