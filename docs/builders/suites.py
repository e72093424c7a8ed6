"""Tables of docs/acs.md and docs/cusync.md from what their scripts print."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from .writing import DOCS, replace, run, table

GAP = re.compile(r" {2,}")

# of docs/acs.md: what, as published (Durvasula et al.), the scheme here, and groups whose means are shown
PUBLISHED = (
    ("`acs_hw`, all", "1.56", "acs_hw", ("all",)),
    ("`acs_hw`, rigid bodies", "up to 2.19", "acs_hw", ("rigid bodies",)),
    ("`acs_hw`, dynamic networks", "1.3", "acs_hw", ("dynamic networks",)),
    ("`acs_hw`, static networks", "1.31", "acs_hw", ("static networks",)),
    ("`acs_sw`, rigid bodies", "1.66", "acs_sw", ("rigid bodies",)),
    ("`acs_sw`, dynamic, static networks", "1.05, 1.16", "acs_sw", ("dynamic networks", "static networks")),
    (
        "CUDA graph, rigid bodies, dynamic networks",
        "slower",
        "graph:built",
        ("rigid bodies", "dynamic networks"),
    ),
)
CONDITION = ", launched when ready"  # a column beside that of the scheme


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


def means(made: str) -> dict[tuple[str, str], str]:
    """Return the cells of a table's rows of means by group and column."""
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in made.splitlines()]
    found: dict[tuple[str, str], str] = {}
    for row in rows[2:]:
        if row[0].startswith("mean of"):
            group = row[0].partition(": ")[2]
            found |= {(group, head): cell for head, cell in zip(rows[0], row, strict=True)}
    return found


def published(long: str, short: str) -> str:
    """Return the table of docs/acs.md that sets means beside those published."""
    slow, fast = means(long), means(short)
    rows = []
    for text, known, scheme, groups in PUBLISHED:
        columns = ((slow, scheme), (slow, scheme + CONDITION), (fast, scheme))
        ours = [", ".join(where.get((group, name), "") for group in groups) for where, name in columns]
        rows.append([text, known, *(cell.strip(", ") for cell in ours)])
    heads = ("", "published", "launches of 3.6 us", CONDITION.removeprefix(", "), "measured launches")
    return table(heads, (False, True, True, True, True), rows)


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
                words = ("--quiet", "--picture", "yes", "--out", out)
                path.write_text(run(f"configs/{script}.py", *words), encoding="utf-8")
            shutil.copyfile(path.with_suffix(".png"), DOCS / f"{page}.png")
            marks = ("long", "short", "h200") if page == "acs" else ("models",)
            blocks = dict(zip(marks, tables(path.read_text(encoding="utf-8")), strict=True))
            if page == "acs":
                blocks["published"] = published(blocks["long"], blocks["short"])
            replace(DOCS / f"{page}.md", blocks)
