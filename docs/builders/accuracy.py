"""Renders what docs/accuracy.md says of DeepBench from the rows of configs/validate.py."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pysim import stats
from pysim.stats.studies.budget import markdown_budget
from pysim.stats.studies.validation import BESIDE, FIGURES, HALVES, summary
from pysim.workloads.validation.cases import Baseline, Case
from pysim.workloads.validation.suites import SUITES, cases_of

from . import validation
from .readme import write_truth
from .writing import DOCS, replace, run, shown, table, wrapped

WORST = {"fp32": 16, "fp16": 8}  # the types of the page, and how many of their worst rows are shown
Rows = Sequence[Mapping[str, Any]]


@cache
def measured(suite: str) -> tuple[list[Case], list[Baseline]]:
    """Return the cases of a suite that the page shows, and baseline models of them."""
    cases = [case for case in cases_of(SUITES[suite])[0] if case.group in WORST]
    return cases, SUITES[suite].baselines(cases)


def chosen(rows: Rows, suite: str) -> list[Mapping[str, Any]]:
    """Return the rows of a suite in its order; refuse a part of it."""
    found = [row for row in rows if row["suite"] == suite and row["group"] in WORST]
    cases, _ = measured(suite)
    if [row["case"] for row in found] != [case.case for case in cases]:
        raise SystemExit(f"{suite}: {len(found)} rows that are not the {len(cases)} of the whole suite")
    return found


def baseline_errors(suite: str, number: int = 0) -> np.ndarray:
    """Return the errors of a baseline model."""
    cases, baselines = measured(suite)
    errors: np.ndarray = baselines[number].times_us / np.array([case.measured_us for case in cases]) - 1
    return errors


def classes(rows: Rows, suite: str) -> str:
    """Return the errors of each class of rows, of each type and its halves, beside the baseline model's."""
    found = chosen(rows, suite)
    cases, _ = measured(suite)
    errors, baseline = np.array([row["error"] for row in found]), baseline_errors(suite)
    columns = ("kind", "group", "split")
    kinds, groups, splits = (np.array([getattr(case, name) for case in cases]) for name in columns)
    masks = {name: kinds == name for name in dict.fromkeys(kinds.tolist())}
    for group in dict.fromkeys(groups.tolist()):
        masks[f"all {group}"] = groups == group
        masks |= {f"all {group}, half {half}": (groups == group) & (splits == half) for half in HALVES}
    made = []
    for name, here in masks.items():
        mine, other = summary(errors[here]), summary(baseline[here])
        figures = [f"{mine[key]:.1%}" for key in FIGURES] + [f"{other[key]:.1%}" for key in BESIDE]
        made.append([name, str(int(here.sum())), *figures])
    heads = ["rows", "n", *FIGURES, f"roofline {BESIDE[0]}", *BESIDE[1:]]
    return table(heads, [False] + [True] * (len(heads) - 1), made)


def every_row(rows: Rows, suite: str, worst: str = "") -> str:
    """Return the rows one by one, or the worst of a type."""
    found, baseline = chosen(rows, suite), baseline_errors(suite)
    order = list(range(len(found)))
    if worst:
        mine = [at for at in order if found[at]["case"].startswith(f"{worst}|")]
        order = sorted(mine, key=lambda at: -abs(found[at]["error"]))[: WORST[worst]]
    details = any(row["detail"] for row in found)
    made = []
    for at in order:
        row = found[at]
        figures = [f"{row['measured']:,.1f}", f"{row['simulated']:,.1f}", f"{row['error']:.1%}"]
        why = row["detail"] if row["status"] == "ok" else f"{row['status']}: {row['detail']}"
        case = row["case"].replace("|", " ")
        made.append([case, *figures, f"{baseline[at]:.1%}", *([why] if details else [])])
    heads = ["case", "measured us", "simulated us", "error", "roofline", *(["tile"] if details else [])]
    return table(heads, [False, *[True] * 4, *[False] * details], made)


def baseline_model(rows: Rows) -> str:
    """Say what the rooflines know, and how one does that knows less."""
    chosen(rows, "deepbench-gemm")
    cases, _ = measured("deepbench-gemm")
    one = np.abs(baseline_errors("deepbench-gemm", 1))
    part = [f"{one[[case.group == group for case in cases]].mean():.1%} ({group})" for group in WORST]
    return wrapped(
        "The baseline model is a roofline, launch + max(work / rate, bytes / bandwidth), with constants"
        " fitted to all rows of a type and pair of transposes (recurrent networks: of a type), so it has seen"
        " every answer."
        f" One roofline for all GEMMs of a type has a mean error of {' and '.join(part)}."
    )


def blocks(rows: Rows) -> dict[str, str]:
    """Return every block of docs/accuracy.md by its mark."""
    return {
        "baseline": baseline_model(rows),
        "gemm": classes(rows, "deepbench-gemm"),
        "worst": every_row(rows, "deepbench-gemm", "fp32"),
        "worst_fp16": every_row(rows, "deepbench-gemm", "fp16"),
        "rnn": classes(rows, "deepbench-rnn"),
        "gemm_rows": every_row(rows, "deepbench-gemm"),
        "rnn_rows": every_row(rows, "deepbench-rnn"),
    }


def write(*paths: str) -> None:
    """Write the page and what README.md quotes of it; ``paths``: saved JSON of validate.py, a suite each."""
    if paths:
        texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    else:
        with tempfile.TemporaryDirectory() as name:
            out = str(Path(name) / "rows.h5")
            texts = [
                run("configs/validate.py", "--suite", suite, "--json", "--force", "--out", out)
                for suite in ("deepbench-gemm", "deepbench-rnn")
            ]
    rows = [row for text in texts for row in json.loads(text)["validation"]]
    replace(DOCS / "accuracy.md", blocks(rows))
    replace(DOCS / "validation.md", validation.summaries())
    write_truth()


def budget() -> None:
    """Write the error budget of docs/accuracy.md."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "budget.h5"
        shown("error_budget", path)
        rows = stats.load(path).array("budget")
    replace(DOCS / "accuracy.md", {"budget": markdown_budget(rows)})
