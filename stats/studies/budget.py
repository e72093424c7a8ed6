"""The table ``budget`` (errors with and without each mechanism) as text and as Markdown."""

from __future__ import annotations

from pysim.stats.schema import Table

from .validation import words

NONE = "none"


def _rows(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells: a row a mechanism, a column a class with the mean change of its times."""
    kinds = list(dict.fromkeys(words(table, "kind")))
    offs = list(dict.fromkeys(words(table, "off")))
    found = {(o, k): row for o, k, row in zip(words(table, "off"), words(table, "kind"), table, strict=True)}
    heads = ["switched off", "part", "error", "bias", "cost", *kinds[1:]]
    made = []
    for off in offs:
        all_ = found[off, kinds[0]]
        cells = [off, all_["part"].decode(), f"{all_['error']:.1%}", f"{all_['bias']:+.1%}"]
        # the cost of having the mechanism: the inverse of what is saved without it
        cells.append("" if off == NONE else f"{1 / max(float(all_['cost']), 1e-9):.2f}x")
        for kind in kinds[1:]:
            row = found[off, kind]
            value = float(row["error"] if off == NONE else row["change"])
            cells.append(f"{value:.1%}" if off == NONE else f"{value:+.1%}" if abs(value) >= 0.0005 else "")
        made.append(cells)
    return heads, made


def format_budget(table: Table) -> str:
    """Lay out a line a mechanism; the first line has the errors with all of them."""
    heads, rows = _rows(table)
    wide = [max(len(line[i]) for line in [heads, *rows]) for i in range(len(heads))]
    lines = []
    for line in [heads, *rows]:
        cells = [c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(line, wide, strict=True))]
        lines.append("  ".join(cells))
    return "\n".join(line.rstrip() for line in lines)


def markdown_budget(table: Table) -> str:
    """Lay out the rows of :func:`format_budget` as a Markdown table."""
    heads, rows = _rows(table)
    rule = "|".join("---" if i < 2 else "--:" for i in range(len(heads)))
    return "\n".join([f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)])
