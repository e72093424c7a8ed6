"""Tables of docs/acs.md and docs/cusync.md from what their scripts print."""

from __future__ import annotations

import re

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
