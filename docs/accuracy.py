"""Renders what docs/accuracy.md and README.md say of DeepBench from the rows of configs/v100_deepbench.py."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workloads import deepbench

WORST = 16
COLUMNS = ("mean", "median", "p90", "worst", "bias")
BESIDE = ("mean", "p90", "worst")
Rows = Sequence[Mapping[str, Any]]


def table(heads: Sequence[str], right: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; ``right`` says which columns are numbers."""
    rule = "|".join("--:" if number else "---" for number in right)
    lines = [f"| {' | '.join(heads)} |", f"|{rule}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def chosen(rows: Rows, suite: str) -> tuple[list[Mapping[str, Any]], list[deepbench.Row]]:
    """Return the rows of a suite and what was measured; refuse a part of it."""
    found = [row for row in rows if row["suite"] == suite]
    measured = deepbench.rows(suite)
    if [row["case"] for row in found] != [row.case for row in measured]:
        raise SystemExit(f"{suite}: {len(found)} rows that are not the {len(measured)} of the whole suite")
    return found, measured


def classes(rows: Rows, suite: str) -> str:
    """Return the errors of each class of rows beside those of the roofline."""
    found, measured = chosen(rows, suite)
    errors, null = np.array([row["error"] for row in found]), deepbench.roofline(measured)[1]
    made = []
    every = {"all that were simulated": np.ones(len(found), bool)}
    for name, here in (deepbench.classes(measured) | every).items():
        mine, other = deepbench.summary(errors[here]), deepbench.summary(null[here])
        figures = [f"{mine[key]:.1%}" for key in COLUMNS] + [f"{other[key]:.1%}" for key in BESIDE]
        made.append([name, str(int(here.sum())), *figures])
    heads = ["rows", "n", *COLUMNS, f"roofline {BESIDE[0]}", *BESIDE[1:]]
    return table(heads, [False] + [True] * (len(heads) - 1), made)


def every_row(rows: Rows, suite: str, most: int | None = None) -> str:
    """Return the rows one by one, or the ``most`` worst of them."""
    found, measured = chosen(rows, suite)
    null = deepbench.roofline(measured)[1]
    order = list(range(len(found)))
    if most is not None:
        order = sorted(order, key=lambda at: -abs(found[at]["error"]))[:most]
    details = any(row["detail"] for row in found)
    made = []
    for at in order:
        row = found[at]
        figures = [f"{row['measured']:,.1f}", f"{row['simulated']:,.1f}", f"{row['error']:.1%}"]
        why = row["detail"] if row["status"] == "ok" else row["status"]
        made.append([row["case"], *figures, f"{null[at]:.1%}", *([why] if details else [])])
    heads = ["case", "measured us", "simulated us", "error", "roofline", *(["tile"] if details else [])]
    return table(heads, [False, *[True] * 4, *[False] * details], made)


def null_model(rows: Rows) -> str:
    """Say how the roofline does when it is fitted to each pair of transposes."""
    _, measured = chosen(rows, "gemm")
    part = float(np.abs(deepbench.roofline_by_group(measured)).mean())
    return _wrapped(
        "The null model is a roofline, launch + max(work / rate, bytes / bandwidth), with constants fitted"
        " to all rows of the suite: it has seen every answer. Fitted to the rows of each pair of transposes"
        f" alone, its mean on the GEMMs is {part:.1%}."
    )


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def readme(rows: Rows) -> str:
    """Return the paragraph of README.md."""
    mine, null = {}, {}
    for suite in ("gemm", "rnn"):
        found, measured = chosen(rows, suite)
        errors, roofline = np.array([row["error"] for row in found]), deepbench.roofline(measured)[1]
        for name, here in deepbench.classes(measured).items():
            mine[name], null[name] = (deepbench.summary(e[here]) for e in (errors, roofline))
        mine[suite], null[suite] = deepbench.summary(errors), deepbench.summary(roofline)
    measured = deepbench.rows("gemm")
    part = float(np.abs(deepbench.roofline_by_group(measured)).mean())

    def both(name: str) -> str:
        return f"{mine[name]['mean']:.1%} against {null[name]['mean']:.1%}"

    gemm, rnn = mine["gemm"], mine["rnn"]
    return _wrapped(
        "A first look, against the published DeepBench times of a V100 in fp32: mean absolute error over the"
        f" {len(measured)} GEMM rows {gemm['mean']:.1%} (median {gemm['median']:.1%}, worst"
        f" {gemm['worst']:.1%}). A roofline of three constants that was fitted to the same rows scores"
        f" {null['gemm']['mean']:.1%}, one fitted to each pair of transposes {part:.1%}. Products with N"
        f" above 128 come out at {both('NN, N > 128')} of the roofline for NN and {both('TN, N > 128')} for"
        f" TN, narrow ones at {both('NN, N <= 128')} and {both('TN, N <= 128')}. The"
        f" {len(deepbench.rows('rnn'))} rows of recurrent networks come out at {both('rnn')}, with a bias of"
        f" {rnn['bias']:.1%}: which kernels cuDNN launches a step is not modelled. No row was held out, so"
        " the figure is no proof of anything yet."
    )


def blocks(rows: Rows) -> dict[str, str]:
    """Return every block of docs/accuracy.md by its mark."""
    return {
        "null": null_model(rows),
        "gemm": classes(rows, "gemm"),
        "worst": every_row(rows, "gemm", WORST),
        "rnn": classes(rows, "rnn"),
        "gemm_rows": every_row(rows, "gemm"),
        "rnn_rows": every_row(rows, "rnn"),
    }
