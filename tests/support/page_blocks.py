"""The code of a page: its blocks of Python and of commands, which are run in order in one empty folder.

A block of ``python`` is executed; names live until the page ends. If it begins with ``# NAME.py``, it is a
file that is written instead. A block whose lines begin with programs is one of commands; a program that
cannot run here (``LEFT_OUT``) is left out. A block of ``text`` after code is what it prints: a line ``...``
stands for any lines, ``...`` in a line for anything. Comments of the page say the rest, on a line of their
own before a block:

``<!-- not run: REASON -->``
    the block is left out;
``<!-- nightly: REASON -->``
    it is run by ``make nightly`` only, and so is what follows it on its page and needs it;
``<!-- prepare: COMMAND -->``
    a command of the shell that makes what a reader has; ``$ROOT`` is the checkout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# by program: why it is left out; a line with several programs is left out for its first
LEFT_OUT = {
    "make": "other tests run what the targets run",
    "pip": "installs",
    "python3": "makes an environment",
    ".": "enters an environment",
    "apt-get": "installs",
    "nvcc": "needs a GPU",
    "scancel": "needs Slurm",
    "sbatch": "needs Slurm",
    "snakemake": "not an extra of pysim",
}
PROGRAMS = {"pysim", "python", *LEFT_OUT}
OTHER = ("toml", "json", "c", "cuda")  # what is no code to run
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_NOTE = re.compile(r"<!-- (not run|nightly|prepare): (.*?) -->", re.DOTALL)


class Block(NamedTuple):
    """A block of a page: ``python``, ``file``, ``command`` (one command each), ``text`` or ``prepare``."""

    kind: str
    line: int
    text: str
    skip: str = ""  # why it is left out
    nightly: bool = False


def first_word(line: str) -> str:
    """Return the program of a command, without values of its environment."""
    return next((word for word in line.split() if "=" not in word.partition("/")[0]), "")


def commands(text: str) -> list[str]:
    """Return the commands of a block: lines are joined at a backslash, comments go."""
    made = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            made.append(re.sub(r"\s{2,}#.*$", "", line).strip())
    return made


def file_name(block: Block) -> str:
    """Return the name of the file that a block is."""
    return block.text.partition("\n")[0].removeprefix("# ")


def left_out(command: str) -> str:
    """Return why a command cannot run here, or nothing."""
    program = first_word(command)
    if re.search(r"--engine (slurm|submitit|dask)\b(?!.*--dry-run)", command):
        return "submits to a batch system"
    return f"{program}: {LEFT_OUT[program]}" if program in LEFT_OUT else ""


def is_shell(kind: str, text: str) -> bool:
    """Return whether a block is one of commands: it says so, or its first word is a program."""
    lines = commands(text)
    return kind in ("sh", "console") or (not kind and bool(lines) and first_word(lines[0]) in PROGRAMS)


def blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a page in order, a block of commands as one for each command."""
    page = path.read_text(encoding="utf-8")
    at = 0
    for found in _BLOCK.finditer(page):
        notes, kind, text = page[at : found.start()], found[1], found[2]
        line = page.count("\n", 0, found.start()) + 2
        skip, nightly = "", False
        for note in _NOTE.finditer(notes):
            if note[1] == "prepare":
                yield Block("prepare", line, note[2])
            elif note[1] == "not run":
                skip = note[2]
            else:
                nightly = True
        at = found.end()
        if kind in OTHER:
            continue
        if kind == "python":
            yield Block("file" if _FILE.match(text) else "python", line, text, skip, nightly)
        elif is_shell(kind, text):
            for command in commands(text):
                yield Block("command", line, command, skip or left_out(command), nightly)
        elif kind == "text":
            yield Block("text", line, text, skip, nightly)


def matches(shown: str, printed: str) -> bool:
    """Return whether a page shows what was printed, but for what ``...`` stands for."""
    lines = []
    for line in shown.strip("\n").splitlines():
        rest = re.escape(line.rstrip()).replace(r"\.\.\.", r"[^\n]*?") + r"\n"
        lines.append(r"(?:[^\n]*\n)*?" if line.strip() == "..." else rest)
    text = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    return re.fullmatch("".join(lines), text) is not None
