"""The site of mkdocs.yml, checked without mkdocs: pages, links, anchors, nothing from elsewhere."""

import importlib.util
import re
import subprocess
import sys

import pytest

from tests.support.pages import ROOT, writer

SITE = writer("site_pages")


def _text(page):
    return SITE.shown((ROOT / SITE.file_of(page)).read_text(encoding="utf-8"), page)


def _anchors(page):
    return {SITE.slug(head) for head in re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)}


def test_the_navigation_has_every_page_once():
    pages = SITE.nav_pages()
    assert sorted(pages) == sorted(set(pages))
    assert set(pages) == set(SITE.written_pages())
    assert pages[0] == "index.md"


@pytest.mark.parametrize("page", list(SITE.written_pages()))
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
            good = target in SITE.nav_pages() and (not anchor or anchor in _anchors(target))
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
