"""What makes the pages: a make target for each, and tables that follow from others."""

import ast
import csv
import re

import numpy as np
import pytest

from pysim.cli.table_reference import known_tables, markdown
from tests.support.pages import ROOT, block, writer


def test_every_page_has_a_target():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    for page in writer("__main__").PAGES:
        assert f"\n{page.option}: $(FULL)\n\t$(PY) -m docs.builders --{page.option}" in makefile
        assert page.option in phony.split()
        assert f'@echo "make {page.option} ' in makefile


def test_published_means_come_from_the_tables():
    path = ROOT / "docs" / "acs.md"
    long, short = block(path, "long"), block(path, "short")
    made = writer("suites").published(long, short).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in made]
    assert all(len(row) == 5 for row in cells)
    # the mean of all is the last row; acs_hw stands where its heading does
    for table, at in ((long, 2), (short, 4)):
        rows = [line.strip("|").split("|") for line in table.splitlines()]
        heads = [cell.strip() for cell in rows[0]]
        assert cells[2][at] == rows[-1][heads.index("acs_hw")].strip(" *")
    assert cells[2][3] == long.splitlines()[-1].split("|")[-4].strip(" *")
    # groups, two of them in a cell; what was not run is empty
    assert re.fullmatch(r"\d\.\d\d, \d\.\d\d", cells[-1][2])
    assert cells[-1][3] == ""
    assert block(path, "published").splitlines() == made


def test_the_chains_are_off_by_what_their_page_says():
    """docs/h200_deps_rows.csv against the tables of docs/validation/chains.md."""
    with (ROOT / "docs" / "h200_deps_rows.csv").open(encoding="utf-8", newline="") as file:
        rows = {tuple(row["case"].rsplit("|", 1)): row for row in csv.DictReader(file)}
    times = {key: (float(row["measured_us"]), float(row["simulated_us"])) for key, row in rows.items()}
    errors = [abs(ours / real - 1) for real, ours in times.values()]
    off, sides = [], []
    for (group, mode), (real_us, our_us) in times.items():
        if mode != "1_stream":
            stream = times[group, "1_stream"]
            real, ours = stream[0] / real_us, stream[1] / our_us
            off.append(abs(ours - real))
            if abs(real - 1) > 0.03:
                sides.append((ours > 1) == (real > 1))
    page = (ROOT / "docs" / "validation" / "chains.md").read_text(encoding="utf-8")
    mean = f"{np.mean(errors):.1%}"
    assert re.search(rf"^all +{len(rows)} +0 +{mean} ", page, re.MULTILINE)
    right = f"{sum(sides)} of {len(sides)}"
    assert re.search(rf"^all +{len(off)} +{np.mean(off):.3f} {right} ", page, re.MULTILINE)
    assert len(rows) == 70 * 15
    readme = block(ROOT / "README.md", "truth")
    assert f" modes | time, mean absolute error | {len(rows):,} | {mean} |" in readme
    wrong = f"{1 - sum(sides) / len(sides):.0%}"
    assert f"| wrong sign of the speedup | {len(sides)} | {wrong} |" in readme


def test_the_readme_quotes_the_pages():
    assert block(ROOT / "README.md", "truth") == writer("readme").truth()
    assert block(ROOT / "README.md", "found") == writer("readme").found()


def test_the_summary_of_validation_follows_from_its_parts():
    made = writer("validation").summaries()
    assert len(made["times"].splitlines()) == 11
    assert "| `h200-deps` | 1,050 | 5.1% |" in made["times"]
    assert "| 564 of 620 (91%) |" in made["orders"]
    assert "| `h200-deps` | 585 | 4.8% | -3.6% | 8.8% | 465 |" in made["halves"]
    for name, text in made.items():
        assert block(ROOT / "docs" / "validation.md", name) == text


def test_what_validate_prints_becomes_a_table_of_its_suite():
    page = writer("validation")
    text = "suite     cusync-mlp: pairs; 69 of 69 cases, 0 rows left out\nnote\n\ncase a\n"
    text += "absolute error of time  x\nall 1\nwrote f\n"
    assert page.named(text) == ("cusync-mlp", "all")
    assert page.named(text.replace("69 of", "9 of")) == ("cusync-mlp", "quick")
    assert page.errors(text) == "absolute error of time  x\nall 1"
    with pytest.raises(SystemExit, match="absolute error of time"):
        page.errors("suite     cusync-mlp")


def test_a_page_without_the_line_is_refused(monkeypatch, tmp_path):
    readme = writer("readme")
    page = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    (tmp_path / "validation.md").write_text(page.replace("| `h200-kernels` | 164", "| - | 164"), "utf-8")
    monkeypatch.setattr(readme, "DOCS", tmp_path)
    with pytest.raises(SystemExit, match="no line '`h200-kernels`' in times"):
        readme.truth()


def test_the_reference_of_tables_is_that_of_the_columns():
    text = "\n".join(markdown(known_tables())).rstrip()
    assert block(ROOT / "docs" / "tables.md", "tables") == text, "python -m docs.builders"


PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def _anchors(page):
    """Return what a link to a heading of a page may name, as the usual renderers make it."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


TOPS = "pysim|workloads|stats|configs|tests|docs|core_c"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_exist(page):
    if page.name in ("rooms.md", "CHANGELOG.md"):  # they name what was
        return
    named = re.findall(rf"`((?:{TOPS})/[\w./-]+)`", page.read_text(encoding="utf-8"))
    assert not [path for path in named if not (ROOT / path).exists()]


def test_every_script_is_listed_with_its_question():
    """docs/scripts.md is the index of configs/: a script's docstring is one question and examples."""
    index = (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`(\w+\.py)`", index.partition("## Options")[0]))
    scripts = {path.name: path for path in (ROOT / "configs").glob("[!_]*.py")}
    assert listed == set(scripts)
    for path in scripts.values():
        question, empty, head, *_ = ast.get_docstring(
            ast.parse(path.read_text(encoding="utf-8"))
        ).splitlines()
        assert (question[-1], empty, head) == ("?", "", "examples:"), path.name
