"""Counts instructions inside the core with valgrind's callgrind."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CASE = Path(__file__).with_name("case.py")
# counting starts and ends with this function: Python's start, the lowering and the tables stay outside
INSIDE = "gs_run_until"
NAME = re.compile(r"(?:\((\d+)\))? ?(.*)")
COST = re.compile(r"[0-9+*-]")


class MeasureError(Exception):
    """Instructions could not be counted; the text is one line."""


def parse(lines: Iterable[str]) -> Counter[tuple[str, str]]:
    """Return own instructions by (function, source file) of a callgrind file with line positions.

    Code that was inlined counts for the function it ended up in, under the file it was written in. A name
    is written out once and is a number in brackets from then on. The line after ``calls=`` holds the cost
    of the callee, which is not our own.
    """
    names: dict[str, dict[str, str]] = {"file": {}, "function": {}}
    own: Counter[tuple[str, str]] = Counter()
    function = file = ""
    called, total = False, None

    def name(kind: str, text: str) -> str:
        number, written = NAME.fullmatch(text).groups()  # type: ignore[union-attr]
        if number is None:
            return str(written)
        if written:
            names[kind][number] = written
        if number not in names[kind]:
            raise MeasureError(f"callgrind: {kind} ({number}) has no name")
        return names[kind][number]

    for line in map(str.rstrip, lines):
        key, equals, value = line.partition("=")
        if equals and key in ("fl", "fi", "fe"):
            file = name("file", value)
        elif equals and key == "fn":
            function = name("function", value)
        elif equals and key in ("cfi", "cfl"):
            name("file", value)
        elif equals and key == "cfn":
            name("function", value)
        elif equals and key == "calls":
            called = True
        elif line.startswith(("summary:", "totals:")):
            total = int(line.split()[1])
        elif COST.match(line):
            fields = line.split()
            if not called and len(fields) > 1:
                # 'name is a recursive call, .part.0 and the like a piece that the compiler split off
                own[re.split(r"['.]", function)[0] or function, Path(file).name] += int(fields[1])
            called = False
    if total is None or sum(own.values()) != total:
        raise MeasureError(f"callgrind: functions add up to {sum(own.values())}, the file says {total}")
    return own


def count(workload: str) -> tuple[dict[str, Any], Counter[tuple[str, str]]]:
    """Run a workload under callgrind; return its counters and own instructions by (function, file)."""
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise MeasureError("valgrind is not installed: apt install valgrind (Debian, Ubuntu)")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        tool = ("--tool=callgrind", "--collect-atstart=no", f"--toggle-collect={INSIDE}")
        command = [valgrind, "-q", *tool, f"--callgrind-out-file={out}", sys.executable, str(CASE), workload]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not out.exists():
            last = (done.stderr.strip() or "no message").splitlines()[-1]
            raise MeasureError(f"{workload}: valgrind ended with {done.returncode}: {last}")
        own = parse(out.read_text(encoding="utf-8", errors="replace").splitlines())
    if not own.total():
        raise MeasureError(f"{workload}: no instruction was seen in {INSIDE}: is the core stripped?")
    return json.loads(done.stdout), own
