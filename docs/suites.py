"""Tables of docs/acs.md and docs/cusync.md from what their scripts print."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from writing import DOCS, replace, run

GAP = re.compile(r" {2,}")


def tables(text: str) -> list[str]:
    """Return each table of a script's output as Markdown: a heading and its rows between empty lines."""
    made = []
    for block in text.split("\n\n"):
        rows = [GAP.split(line.strip()) for line in block.strip().splitlines()]
        if len(rows) < 2 or len(rows[0]) < 4 or any(len(row) != len(rows[0]) for row in rows):
            continue
        head = ["| " + " | ".join(rows[0]) + " |", "|---|" + "--:|" * (len(rows[0]) - 1)]
        made.append("\n".join(head + ["| " + " | ".join(_cells(row)) + " |" for row in rows[1:]]))
    return made


def _cells(row: list[str]) -> list[str]:
    """Set the rows of means and sums apart."""
    if row[0].startswith("mean of") or row[1] == "all":
        return [cell if cell == "-" else f"**{cell}**" for cell in row]
    return row


def write(*saved: str) -> None:
    """Write the pages; ``saved``: what their scripts printed, pictures beside it."""
    with tempfile.TemporaryDirectory() as name:
        for script, page in (("acs_suite", "acs"), ("cusync_models", "cusync")):
            path = next((Path(text) for text in saved if Path(text).stem == page), None)
            if path is None and saved:
                continue
            if path is None:
                path = Path(name) / f"{page}.txt"
                out = str(path.with_suffix(".h5"))
                path.write_text(run(f"configs/{script}.py", "--quiet", "--out", out), encoding="utf-8")
            shutil.copyfile(path.with_suffix(".png"), DOCS / f"{page}.png")
            marks = ("long", "short", "h200") if page == "acs" else ("models",)
            made = tables(path.read_text(encoding="utf-8"))
            replace(DOCS / f"{page}.md", dict(zip(marks, made, strict=True)))
