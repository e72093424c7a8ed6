"""The site of mkdocs.yml, checked without mkdocs: pages, links, anchors, nothing from elsewhere."""

import importlib.util
import re
import subprocess
import sys

import pytest

from pysim.cli.commands import COMMANDS
from pysim.counters import GROUPS
from pysim.machine.devices import DEVICES
from pysim.machine.mechanisms import MECHANISMS
from pysim.schemes.registry import SCHEMES
from pysim.workloads.registry import WORKLOADS
from pysim.workloads.templates import KERNELS
from tests.support.pages import ROOT, writer

SITE = writer("site_pages")
REFERENCE = writer("reference")
MADE = REFERENCE.pages()


def _text(page):
    if page in MADE:
        return MADE[page]
    return SITE.shown((ROOT / SITE.file_of(page)).read_text(encoding="utf-8"), page)


def _anchors(page):
    return {SITE.slug(head) for head in re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)}


def test_the_navigation_has_every_page_once():
    pages = SITE.nav_pages()
    assert sorted(pages) == sorted(set(pages))
    assert set(pages) == {*SITE.written_pages(), *REFERENCE.PAGES}
    assert pages[0] == "index.md"


@pytest.mark.parametrize("page", [*SITE.written_pages(), *MADE])
def test_links_of_a_page_lead_to_pages(page):
    parts = []
    SITE.outside_code(_text(page), lambda part: parts.append(part) or part)
    here = (ROOT / "docs" / page).parent
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", "".join(parts)):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = (here / path).resolve().relative_to(ROOT / "docs").as_posix() if path else page
        if target.endswith(".md"):
            good = target in (*SITE.nav_pages(), *MADE) and (not anchor or anchor in _anchors(target))
        else:
            good = (ROOT / "docs" / target).is_file()
        if not good:
            broken.append(link)
    assert not broken


def test_links_between_files_become_links_between_pages():
    text = "[a](docs/b.md#c) `[x](docs/y.md)` [d](CONTRIBUTING.md) [e](#f) [g](https://h.org/docs/i.md)"
    made = "[a](b.md#c) `[x](y.md)` [d](contributing.md) [e](#f) [g](https://h.org/docs/i.md)"
    assert SITE.relinked(text, "index.md") == made
    code = "```\n[a](docs/b.md)\n```"
    assert SITE.relinked(code, "index.md") == code
    assert SITE.relinked("[a](../../README.md#b)", "validation/chains.md") == "[a](../index.md#b)"
    assert SITE.relinked("[a](../../CONTRIBUTING.md)", "notes/programs.md") == "[a](../contributing.md)"


def test_a_page_is_shown_without_comments_and_with_lists_in_lists():
    text = "<!-- begin a -->\n- b\n  - c\n```\n<!-- d -->\n  - e\n```\n"
    assert SITE.shown(text, "f.md") == "\n- b\n    - c\n```\n<!-- d -->\n  - e\n```\n"


def test_the_reference_has_every_entry():
    """A heading, or a row, for each entry of a table of the code."""
    heads = {page: set(re.findall(r"^## (.*)$", text, re.MULTILINE)) for page, text in MADE.items()}
    assert set(WORKLOADS) == heads["reference/workloads.md"]
    assert set(KERNELS) < heads["reference/kernels.md"]
    assert set(SCHEMES) == heads["reference/schemes.md"]
    commands = {f"pysim {name}" for name in COMMANDS}
    assert commands | {"Exit codes"} == heads["reference/commands.md"]
    rows = {page: re.findall(r"^\| `?\[?([\w.]+)`?[] ]", text, re.MULTILINE) for page, text in MADE.items()}
    assert set(MECHANISMS) < set(rows["reference/mechanisms.md"])
    assert set(DEVICES) < set(rows["reference/devices.md"])
    assert {row.name for group in GROUPS.values() for row in group} < set(rows["reference/counters.md"])
    assert {*SCHEMES["tb_static"].options} < set(rows["reference/schemes.md"])
    for name, made in DEVICES.items():
        assert set(made.values) < set(rows[f"reference/devices/{name}.md"])
        assert all(
            source in MADE[f"reference/devices/{name}.md"]
            for source in made.sources.values()
            if "|" not in source
        )
    # keys, defaults and options
    assert "| `hidden` | `1536` |" in MADE["reference/workloads.md"]
    assert "--engine {local,slurm,submitit,dask}" in MADE["reference/commands.md"]
    assert "```python\ngemm(name, a, b, c" in MADE["reference/kernels.md"]


def test_a_table_keeps_its_cells():
    assert REFERENCE._table(("a", "b"), [("x | y", "<z>\n w")]).splitlines()[-1] == "| x \\| y | &lt;z> w |"
    cells = {
        line.count("|") - line.count("\\|")
        for line in MADE["reference/devices/h200.md"].splitlines()
        if line[:3] == "| `"
    }
    assert cells == {4}


def test_nothing_comes_from_elsewhere():
    """Fonts, scripts and counting of visitors are what a theme would load."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert "font: false" in text
    assert "iframe-worker" in text  # without it the plugin offline takes a script from the network
    assert not re.search(r"https?://|analytics", text)
    for path in (ROOT / "docs" / "assets").iterdir():
        found = re.findall(r"https?://[^\"]*", path.read_text(encoding="utf-8"))
        assert set(found) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="make site installs mkdocs")
def test_the_site_builds(tmp_path):
    words = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(tmp_path / "site")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    assert {page.removesuffix(".md") + ".html" for page in SITE.nav_pages()} <= pages
