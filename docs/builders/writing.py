"""What every page's writer shares: it runs a script and puts what comes out between the page's marks.

Text between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is output and belongs to the writers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"


def run(*args: str) -> str:
    """Run Python in the root of the checkout and return what it prints."""
    done = subprocess.run(
        [sys.executable, *args], cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=True
    )
    return done.stdout


def printed(program: Sequence[str], out: Path, *more: str) -> str:
    """Run Python on a program that writes to ``out``; return what it prints but for the files it names."""
    return run(*program, "--out", str(out), "--quiet", *more).partition("\nwrote ")[0]


def shown(script: str, out: Path, *more: str) -> str:
    """Run a script of configs/ that writes to ``out``; return what ``printed`` does."""
    return printed((f"configs/{script}.py",), out, *more)


def replace(path: Path, blocks: dict[str, str]) -> None:
    """Put each block between its marks."""
    text = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        marks = re.compile(rf"(?<=<!-- begin {name} -->\n).*?(?=<!-- end {name} -->)", re.DOTALL)
        found = list(marks.finditer(text))
        if len(found) != 1:
            raise SystemExit(f"{path}: no marks for {name}, or more than one pair")
        text = f"{text[: found[0].start()]}{block.rstrip()}\n{text[found[0].end() :]}"
    path.write_text(text, encoding="utf-8")


def block(path: Path, name: str) -> str:
    """Return what stands between the marks of a page."""
    found = re.findall(
        rf"<!-- begin {name} -->\n(.*?)\n?<!-- end {name} -->", path.read_text(encoding="utf-8"), re.DOTALL
    )
    if len(found) != 1:
        raise SystemExit(f"{path}: no marks for {name}, or more than one pair")
    return str(found[0])


def code(text: str) -> str:
    """Return a code block."""
    return f"```\n{text.rstrip()}\n```"


def table(heads: Sequence[str], right: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown; ``right`` says which columns are numbers."""
    rule = "|".join("--:" if number else "---" for number in right)
    lines = [f"| {' | '.join(heads)} |", f"|{rule}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def wrapped(text: str) -> str:
    """Return a paragraph in lines of the length that the pages have."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)
