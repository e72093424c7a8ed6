"""Placements of programmatic dependent launch: which kernels start early, where they wait and trigger."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from pysim.dependence.producer_tiles import may_wait
from pysim.errors import InputError, WorkloadError, brief

from .order import LaunchOrder
from .places import START, TRIGGERS, WAITS, Cuts, Moved, Place, has_code, parse_place, triggers_of

if TYPE_CHECKING:
    from pathlib import Path

    from pysim.program.job import Job


# a list of objects, or what was meant as one; a line may begin with a bracket, too: [gl]*; start
_JSON = re.compile(r"\s*\[(\s*[\[{\]]|[^;]*\Z)")
_DIGITS = 19  # of a number of a kernel, fewer


@dataclass(frozen=True, slots=True)
class Placed:
    """One launch: whether it is programmatic, and where its op lists wait and trigger (``places.Cuts``)."""

    early: bool
    waits: Cuts
    triggers: Cuts
    trigger_first: bool = True  # of a wait and a trigger at one place
    moved: Moved = field(default_factory=dict)  # loads that go before the wait

    @property
    def order(self) -> LaunchOrder:
        """What orders the launch."""
        some = any(at is not None for at in self.waits.values())
        behind = all(
            at is None or ((wait := self.waits.get(ops)) is not None and wait < at + (not self.trigger_first))
            for ops, at in self.triggers.items()
        )
        return LaunchOrder(self.early, some, behind)

    def waiting(self, waits: Cuts) -> Placed:
        """Return the same launch with other waits."""
        return replace(self, waits=waits, moved={})


NORMAL = Placed(False, {}, {})


def may_be_early(job: Job) -> list[bool]:
    """Return which launches may be programmatic: not first ones, copies, and those beside them.

    Raises WorkloadError for several streams, and for a kernel whose code is not known.
    """
    for number, kernel in enumerate(job.kernels):
        if kernel.copy is None and (kernel.footprint is not None or not has_code(kernel)):
            raise WorkloadError(
                f"job {job.name}: kernel {number} ({kernel.name}): its code is a trace or a measured time:"
                " what it touches before a wait is not known"
            )
    if len({kernel.stream for kernel in job.kernels}) > 1:
        raise WorkloadError(f"job {job.name}: kernels in several streams: the check takes jobs of one")
    after_event = {after for _, after in job.events}
    able = [may_wait(kernel) for kernel in job.kernels]
    return [
        number > 0 and able[number] and able[number - 1] and number not in after_event
        for number in range(len(able))
    ]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a plan: the kernels that it is for, and what it sets; None: as it is by default."""

    kernels: str | int = "*"
    early: bool = True
    wait: Place = START
    trigger: Place = START
    where: str = field(default="--plan", compare=False)  # file and row, for errors

    @property
    def lenient(self) -> bool:
        """Whether kernels without a place of the row wait and trigger at their start: it is for several."""
        return isinstance(self.kernels, str) and any(sign in self.kernels for sign in "*?[")

    def holds(self, number: int, name: str) -> bool:
        """Whether the row is for a kernel."""
        return self.kernels == number or (isinstance(self.kernels, str) and fnmatchcase(name, self.kernels))


def read_plan(path: Path) -> list[Row]:
    """Return the rows of a plan file: a JSON list of objects, or lines ``kernel; wait; trigger``.

    Raises InputError, which names file and row; also for a file without rows, and for two rows of the same
    kernels.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is no text in UTF-8: byte {error.start}") from None
    lines = ((n, line.partition("#")[0].strip()) for n, line in enumerate(text.splitlines(), 1))
    if _JSON.match(text):
        try:
            given = json.loads(text, object_pairs_hook=_object)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: {error}") from None
        rows = [(f"{path}: row {number}", row) for number, row in enumerate(given)]
    else:
        rows = [(where := f"{path}:{number}", _line(where, line)) for number, line in lines if line]
    made: dict[str | int, Row] = {}
    for where, each in rows:
        row = _row(where, each)
        if row.kernels in made:
            raise InputError(f"{where}: kernel {row.kernels!r} has a row already")
        made[row.kernels] = row
    if not made:
        raise InputError(f"{path}: has no row")
    return list(made.values())


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place]))
        raise ValueError(f"key {twice!r} twice in an object")
    return made


def _line(where: str, line: str) -> dict[str, object]:
    cells = [cell.strip() for cell in line.split(";")]
    if not 2 <= len(cells) <= 3:
        raise InputError(f"{where}: {brief(line)}: must be KERNEL; WAIT; TRIGGER")
    names = ("kernel", "wait", "trigger")
    number = cells[0].isdecimal() and len(cells[0]) < _DIGITS
    return dict(zip(names, [int(cells[0]) if number else cells[0], *cells[1:]], strict=False))


def _row(where: str, given: object) -> Row:
    known = ("kernel", "wait", "trigger", "launch")
    if not isinstance(given, Mapping) or (extra := [key for key in given if key not in known]):
        what = f"key {extra[0]!r}" if isinstance(given, Mapping) else repr(given)
        raise InputError(f"{where}: {what}: must be an object with keys {', '.join(known)}")
    if "kernel" not in given:
        raise InputError(f"{where}: no key kernel: a number, or a name with * and ?; * is all of them")
    kernel = given["kernel"]
    if not isinstance(kernel, str | int) or isinstance(kernel, bool):
        raise InputError(f"{where}: kernel = {kernel!r}: must be a number or a name with * and ?")
    launch = given.get("launch", "early")
    if launch not in ("early", "normal"):
        raise InputError(f"{where}: launch = {launch!r}: must be early or normal")
    return Row(
        kernel,
        launch == "early",
        parse_place(given.get("wait", "start"), WAITS, f"{where}: wait"),
        parse_place(given.get("trigger", "start"), TRIGGERS, f"{where}: trigger"),
        where,
    )


def row_of(rows: Sequence[Row], number: int, name: str) -> Row:
    """Return the last row for a kernel; a kernel without one waits and triggers at its start."""
    return next((row for row in reversed(rows) if row.holds(number, name)), Row())


def check_rows(job: Job, rows: Sequence[Row]) -> None:
    """Raise InputError for a row that is for no kernel of a job."""
    for row in rows:
        if not any(row.holds(number, kernel.name) for number, kernel in enumerate(job.kernels)):
            some = ", ".join(dict.fromkeys(kernel.name for kernel in job.kernels[:8]))
            there = f"0 to {len(job.kernels) - 1}" if isinstance(row.kernels, int) else some
            raise InputError(f"{row.where}: no kernel {brief(row.kernels)}: there are {there}")


def trigger_cuts(job: Job, number: int, place: Place, waits: Cuts) -> tuple[Cuts, bool]:
    """Return where a kernel triggers, and whether before a wait at the same place."""
    kernel = job.kernels[number]
    made = triggers_of(kernel, place, waits, f"kernel {number} ({kernel.name}): trigger")
    return made, place.word == "start"
