"""Writes the tables of docs/validation.md and docs/validation/ from what configs/validate.py prints."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from .readme import write_truth
from .writing import DOCS, block, code, replace, shown, table

# which block of which page shows a suite or its quick subset
BLOCKS = {
    ("h200-kernels", "all"): ("kernels", "kernels"),
    ("h200-deps", "all"): ("chains", "chains"),
    ("h200-deps", "quick"): ("chains", "quick"),
    ("cusync-mlp", "all"): ("cusync", "cusync_mlp"),
    ("cusync-mlp-v100", "all"): ("cusync", "cusync_mlp_v100"),
    ("cusync-conv", "all"): ("cusync", "cusync_conv"),
}
FIGURES = ("mean", "p90", "worst", "bias")


class Times(NamedTuple):
    """A row of the first summary: where it is on a page, and the most that mean, p90 and worst may be."""

    suite: str
    title: str
    wanted: tuple[float, ...] = ()


class Orders(NamedTuple):
    """A row of the second summary: ``off`` is the most, ``sign`` (share) and ``losses`` the least wanted."""

    suite: str
    title: str
    line: str = "all"
    off: float | None = None
    sign: float | None = None
    losses: int | None = None


TIMES = (
    Times("h200-kernels", "`h200-kernels`", (8, 18, 40)),
    Times("h200-deps", "`h200-deps`", (6, 15, 60)),
    Times("cusync-mlp", "`cusync-mlp`", (6,)),
    Times("cusync-mlp-v100", "`cusync-mlp-v100`"),
    Times("cusync-conv", "`cusync-conv`"),
    Times("gemm fp32", "`deepbench-gemm`, fp32", (6,)),
    Times("gemm fp16", "`deepbench-gemm`, fp16", (9,)),
    Times("rnn fp32", "`deepbench-rnn`, fp32", (9,)),
    Times("rnn fp16", "`deepbench-rnn`, fp16", (16,)),
)
ORDERS = (
    Orders("h200-deps", "`h200-deps`: speedup", off=0.035, sign=0.88),
    Orders("cusync-mlp", "`cusync-mlp`: saving", off=0.05, losses=5),
    Orders("cusync-mlp", "`cusync-mlp`, listed tiles: saving", "tiles listed", off=0.035),
    Orders("cusync-mlp-v100", "`cusync-mlp-v100`: saving"),
    Orders("cusync-conv", "`cusync-conv`: saving", off=0.043),
)


def page(name: str) -> Path:
    """Return the path of a part of docs/validation.md."""
    return DOCS / "validation" / f"{name}.md"


def errors(text: str) -> str:
    """Return the tables of errors of what validate.py printed, without the rows before them."""
    found = re.search(r"^absolute error of time .*?(?=^wrote |\Z)", text, re.DOTALL | re.MULTILINE)
    if not found:
        raise SystemExit("no line 'absolute error of time': not what configs/validate.py prints")
    return found[0].rstrip()


def named(text: str) -> tuple[str, str]:
    """Return suite and subset of what validate.py printed."""
    found = re.search(r"^suite +(\S+): .*; (\d+) of (\d+) cases", text, re.MULTILINE)
    if not found:
        raise SystemExit("no line 'suite NAME: ...': not what configs/validate.py prints")
    return found[1], "all" if found[2] == found[3] else "quick"


def percents(line: str) -> list[float]:
    """Return the percentages of a line."""
    return [float(number) for number in re.findall(r"(-?[\d.]+)%", line)]


def figures_of(suite: str, parts: dict[str, str]) -> tuple[int, list[float]]:
    """Return the number of rows; mean, p90, worst and bias; and those of the baseline model but the bias."""
    if suite in parts:
        found = re.search(r"^all +(\d+) +\d+ (.*)$", parts[suite], re.MULTILINE)
    else:  # a row of docs/accuracy.md
        which, group = suite.split()
        found = re.search(rf"^\| all {group} \| (\d+) \|(.*)$", parts[which], re.MULTILINE)
    assert found, suite
    mean, _, p90, worst, bias, *baseline = percents(found[2])
    return int(found[1]), [mean, p90, worst, bias, *baseline]


def halves(parts: dict[str, str]) -> str:
    """Return mean error and bias of both halves of each suite, and of the baseline model."""
    made = []
    for row in TIMES:
        cells = [row.title]
        for half in ("fit", "check"):
            if row.suite in parts:
                line = re.search(rf"^half {half} +(\d+) +\d+ (.*)$", parts[row.suite], re.MULTILINE)
            else:
                which, group = row.suite.split()
                line = re.search(
                    rf"^\| all {group}, half {half} \| (\d+) \|(.*)$", parts[which], re.MULTILINE
                )
            assert line, (row.suite, half)
            mean, _, _, _, bias, baseline, *_ = percents(line[2])
            cells += [line[1], f"{mean:.1f}%", f"{bias:.1f}%", f"{baseline:.1f}%"]
        made.append(cells)
    heads = ["suite"]
    for half in ("fit", "check"):
        heads += [f"{half}: rows", "mean", "bias", "baseline"]
    return table(heads, [False, *[True] * 8], made)


def verdict(goods: list[bool]) -> str:
    """Say whether a target is met; nothing where there is none."""
    return "" if not goods else "met" if all(goods) else "**missed**"


def times(parts: dict[str, str]) -> str:
    """Return the summary of errors of time."""
    made = []
    for row in TIMES:
        number, found = figures_of(row.suite, parts)
        target = ", ".join(f"{name} {most:g}%" for name, most in zip(FIGURES, row.wanted, strict=False))
        met = verdict([mine <= most for mine, most in zip(found, row.wanted, strict=False)])
        made.append([row.title, f"{number:,}", *(f"{each:.1f}%" for each in found), target, met])
    heads = ["suite", "rows", *FIGURES, "baseline model: mean", "p90", "worst", "target", ""]
    return table(heads, [False, *[True] * 8, False, False], made)


def orders(parts: dict[str, str]) -> str:
    """Return the summary of speedups and savings."""
    made = []
    for row in ORDERS:
        text = parts[row.suite]
        first = re.search(r"^(speedup|saving) over ", text, re.MULTILINE)
        if first is None:
            raise SystemExit(f"{row.suite}: no table of speedups or savings")
        text = text[first.start() :]
        found = re.search(
            rf"^{row.line} +(\d+) +([\d.]+) +(\d+) of (\d+) +\d+%(?: +(\d+) of (\d+) +\d+%)?"
            r"  \| ([\d.]+)[,;] (\d+) of (\d+)",
            text,
            re.MULTILINE,
        )
        assert found, row.title
        off, right, losses = float(found[2]), int(found[3]) / int(found[4]), found[5]
        target, goods = [], []
        if row.off is not None:
            target.append(f"off by {row.off:g}")
            goods.append(off <= row.off)
        if row.sign is not None:
            target.append(f"sign {row.sign:.0%}")
            goods.append(right >= row.sign)
        if row.losses is not None:
            target.append(f"losses {row.losses} of {found[6]}")
            goods.append(int(losses) >= row.losses)
        seen = f"{losses} of {found[6]}" if losses else ""
        mine = [found[2], f"{found[3]} of {found[4]} ({right:.0%})", seen]
        other = [found[7], f"{found[8]} of {found[9]} ({int(found[8]) / int(found[9]):.0%})"]
        made.append([row.title, found[1], *mine, *other, ", ".join(target), verdict(goods)])
    heads = ["suite", "rows", "off by", "sign right", "losses seen"]
    heads += ["baseline model: off by", "sign right", "target", ""]
    return table(heads, [False, *[True] * 6, False, False], made)


def summaries() -> dict[str, str]:
    """Return the blocks of docs/validation.md, which follow from the tables of the other pages."""
    parts = {
        suite: block(page(name), mark) for (suite, which), (name, mark) in BLOCKS.items() if which == "all"
    }
    parts |= {name: block(DOCS / "accuracy.md", name) for name in ("gemm", "rnn")}
    return {"times": times(parts), "orders": orders(parts), "halves": halves(parts)}


def write(*paths: str) -> None:
    """Write the tables of saved output of validate.py (``paths``), or of all suites, which takes hours."""
    if paths:
        texts = [Path(path).read_text(encoding="utf-8") for path in paths]
    else:
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "rows.h5"
            more = ("--force",)
            texts = [
                shown("validate", out, "--suite", suite, "--subset", part, *more) for suite, part in BLOCKS
            ]
    for text in texts:
        if named(text) not in BLOCKS:
            raise SystemExit(f"{' '.join(named(text))}: no table of docs/validation/ shows it")
        name, mark = BLOCKS[named(text)]
        replace(page(name), {mark: code(errors(text))})
    replace(DOCS / "validation.md", summaries())
    write_truth()
