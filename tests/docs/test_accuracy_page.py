"""What docs/accuracy.md says of DeepBench: one set of rows, rendered by docs/builders/accuracy.py."""

from __future__ import annotations

import re

import pytest

from tests.support.pages import ROOT, block, writer

NUMBER = re.compile(r"-?\d[\d,]*\.?\d*")


@pytest.fixture(scope="module")
def accuracy():
    return writer("accuracy")


@pytest.fixture(scope="module")
def rows():
    """The rows of the page, as the script would give them but for rounding."""
    made = []
    for suite in ("gemm", "rnn"):
        for line in block(ROOT / "docs" / "accuracy.md", f"{suite}_rows").splitlines()[2:]:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            measured, simulated = (float(cell.replace(",", "")) for cell in cells[1:3])
            group, _, case = cells[0].partition(" ")
            made.append(
                {"suite": f"deepbench-{suite}", "group": group, "case": f"{group}|{case}"}
                | {"measured": measured, "simulated": simulated, "error": simulated / measured - 1}
                | {"status": "ok", "detail": "".join(cells[5:])}
            )
    return made


def words_and_numbers(text):
    numbers = [float(word.replace(",", "")) for word in NUMBER.findall(text)]
    return NUMBER.sub("#", text).split(), numbers


def alike(shown, made):
    """Equal but for what rounding of the times does to percentages."""
    (words, numbers), (other_words, other_numbers) = words_and_numbers(shown), words_and_numbers(made)
    assert words == other_words
    assert numbers == pytest.approx(other_numbers, abs=0.7)


def test_the_page_agrees_with_its_rows(accuracy, rows):
    made = accuracy.blocks(rows)
    for name, text in made.items():
        shown = block(ROOT / "docs" / "accuracy.md", name)
        if not name.startswith("worst"):  # rounding may change the order there
            alike(shown, text)
    for name, group in (("worst", "fp32"), ("worst_fp16", "fp16")):
        assert len(block(ROOT / "docs" / "accuracy.md", name).splitlines()) == accuracy.WORST[group] + 2


def test_a_part_of_the_rows_is_refused(accuracy, rows):
    with pytest.raises(SystemExit, match="deepbench-gemm: 319 rows that are not the 320"):
        accuracy.blocks(rows[1:])


def test_what_could_not_be_simulated_says_so(accuracy, rows):
    bad = [rows[0] | {"status": "unsupported", "detail": "no", "simulated": 0.0, "error": 1.0}, *rows[1:]]
    assert "100.0%" in accuracy.classes(bad, "deepbench-gemm")
    line = "| fp32 1760x16x1760 NN | 38.5 | 0.0 | 100.0% | -22.0% | unsupported: no |"
    assert line in accuracy.every_row(bad, "deepbench-gemm")
