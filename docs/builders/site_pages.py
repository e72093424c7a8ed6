"""What the site makes of the pages: where they stand, their links and anchors. Needs no mkdocs.

A page is named by its path in the site's folder (``schemes.md``), a file by its path in the repository
(``docs/schemes.md``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator

from .writing import DOCS, ROOT

# pages that are kept where a reader of the repository looks for them
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "tests/hw/README.md": "notes/programs.md",
    "workloads/measured/README.md": "notes/measured-tables.md",
}
_FILES = {page: file for file, page in OUTSIDE.items()}
_FENCED = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_COMMENT = re.compile(r"^<!--.*?-->$", re.MULTILINE | re.DOTALL)


def file_of(page: str) -> str:
    """Return the file that a page is made of."""
    return _FILES.get(page, f"docs/{page}")


def page_of(file: str) -> str:
    """Return the page that shows a file, or what stands beside the pages (a picture, a table)."""
    return OUTSIDE.get(file) or file.removeprefix("docs/")


def slug(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading as GitHub makes it, so that one link serves there and on the site."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Change a page but for its code blocks."""
    made, at = [], 0
    for code in _FENCED.finditer(text):
        made += [change(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*made, change(text[at:])])


def relinked(text: str, page: str) -> str:
    """Return the text of a page with links between files turned into links between pages."""
    folder, own = posixpath.dirname(file_of(page)), posixpath.dirname(page)

    def link(found: re.Match[str]) -> str:
        path, mark, anchor = found[0].partition("#")
        if not path or "://" in path:
            return found[0]
        target = page_of(posixpath.normpath(posixpath.join(folder, path)))
        return posixpath.relpath(target, own or ".") + mark + anchor

    return outside_code(text, lambda part: _LINK.sub(link, part))


def shown(text: str, page: str) -> str:
    """Return a page as the site's Markdown reads it: no comments, and a list in a list by four spaces."""

    def plain(part: str) -> str:
        return re.sub(r"^  (?=- )", "    ", _COMMENT.sub("", part), flags=re.MULTILINE)

    return relinked(outside_code(text, plain), page)


def nav_pages() -> list[str]:
    """Return the pages of the navigation of mkdocs.yml in order, without a parser of YAML."""
    _, _, nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    return re.findall(r"^ +- [^\n]*: (\S+\.md)$", nav, re.MULTILINE)


def written_pages() -> Iterator[str]:
    """Yield the pages that somebody wrote: all of docs/ and those kept outside of it."""
    yield from sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    yield from OUTSIDE.values()
