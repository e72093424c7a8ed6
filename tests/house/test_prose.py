"""README.md and docs/ stay short enough to be read: words of prose are counted, and may only become fewer.

``prose.json`` holds the most words that are allowed; ``python -m tests.house.test_prose`` lowers it to what
there is. Prose is what is neither code, table, comment, picture nor output of a builder; notes do not count,
nor does the reference that builders make.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORED = Path(__file__).with_name("prose.json")
GOAL = 20_000
STEP = 1_000  # fewer by so many words: the limit is lowered
HOW_TO = 350


def prose(text):
    """Return the words of prose of a page."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"(?<=\])\([^)]*\)", "", text)  # a link is its words
    return [word for word in text.split() if re.search(r"\w", word)]


def pages():
    """Return the pages that count."""
    notes = ROOT / "docs" / "notes"
    return [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if notes not in p.parents)]


def counted():
    """Return the words of each page by its path."""
    return {p.relative_to(ROOT).as_posix(): len(prose(p.read_text(encoding="utf-8"))) for p in pages()}


def test_prose_gets_no_longer():
    found, most = counted(), json.loads(STORED.read_text(encoding="utf-8"))["most"]
    total = sum(found.values())
    longest = sorted(found, key=found.get)[:-6:-1]
    said = ", ".join(f"{name} {found[name]:,}" for name in longest)
    assert total <= most, f"{total:,} words, at most {most:,}: shorten a page ({said})"
    assert total > most - STEP or most <= GOAL, "python -m tests.house.test_prose"


def test_how_to_pages_are_short():
    longer = {name: words for name, words in counted().items() if "/how-to/" in name and words > HOW_TO}
    assert not longer


def test_what_is_prose():
    text = "# A head\n\nOne *two* [three](four.md), `five six` - 7.\n\n```\nno\n```\n| no |\n<!-- no -->\n"
    text += "<!-- begin a -->\nno\n<!-- end a -->\n![no](no.png)\n"
    assert prose(text) == ["A", "head", "One", "*two*", "[three],", "`five", "six`", "7."]
    assert sum("/how-to/" in name for name in counted()) >= 6


def main():
    """Lower the limit to what there is; refuse to raise it."""
    total = sum(counted().values())
    most = json.loads(STORED.read_text(encoding="utf-8"))["most"]
    if total > most:
        print(f"{total:,} words of prose: at most {most:,}", file=sys.stderr)
        return 1
    STORED.write_text(json.dumps({"most": max(total, GOAL)}) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
