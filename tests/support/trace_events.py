"""Reads traces in the Trace Event format by its rules, and as viewers that cut times to ns do."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]
NEEDS = {  # by phase: members that an event must have, beside pid and name
    "X": {"tid", "ts", "dur", "args", "cat"},
    "B": {"tid", "ts", "args", "cat"},
    "E": {"tid", "ts"},
    "C": {"ts", "args", "cat"},
    "M": {"args"},
    "s": {"tid", "ts", "id", "cat"},
    "f": {"tid", "ts", "id", "cat", "bp"},
}
MAY = {"M": {"tid"}}
NAMES = {"process_name": "name", "process_labels": "labels", "thread_name": "name"}
SORTS = ("process_sort_index", "thread_sort_index")
Track = tuple[int, int]  # process and track


def to_exact(value: Decimal) -> Decimal:
    """Return a time in ns as it stands."""
    return value * 1000


def cut_text(value: Decimal) -> Decimal:
    """Return a time in whole ns, as a reader that moves the decimal point of the text cuts it."""
    return Decimal(int(value * 1000))


def cut_double(value: Decimal) -> Decimal:
    """Return a time in whole ns, as a reader that calculates in double precision cuts it."""
    return Decimal(int(float(value) * 1000.0))


@dataclass(slots=True)
class Slice:
    """A slice on a track, times in ns; ``depth``: of the slices that it lies in."""

    name: str
    track: Track
    begin: Decimal
    end: Decimal
    depth: int
    event: Event


@dataclass(slots=True)
class Read:
    """A trace. ``names``: of processes and tracks; ``places``: their sort indices; ``flows``: from, to."""

    slices: list[Slice] = field(default_factory=list)
    flows: dict[int, tuple[Slice, Slice]] = field(default_factory=dict)
    counters: dict[tuple[int, str], list[Event]] = field(default_factory=dict)
    names: dict[int | Track, str] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    places: dict[int | Track, int] = field(default_factory=dict)

    def of(self, category: str, pid: int | None = None) -> list[Slice]:
        """Return the slices of a category, of one process."""
        return [
            each for each in self.slices if each.event.get("cat") == category and pid in (None, each.track[0])
        ]


def load_trace(path: Path) -> dict[str, Any]:
    """Return the content of a file; times are exact."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    assert text.startswith('{"displayTimeUnit":"ns"')  # readers look for it at the start alone

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    made = json.loads(text, parse_float=Decimal, parse_constant=no_constant)
    assert set(made) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert isinstance(made["traceEvents"], list)
    return made


def read_trace(events: list[Event], ns: Callable[[Decimal], Decimal] = to_exact) -> Read:
    """Return what events mean; raise AssertionError where they break a rule of the format.

    ``ns``: how times become ns. Events are taken by time, those of one time in the order of the file.
    """
    made = Read()
    for event in events:
        _check(event)
    timed = [each for each in events if each["ph"] != "M"]
    for event in events:
        if event["ph"] == "M":
            _name(made, event)
    stacks: dict[Track, list[Slice]] = defaultdict(list)
    open_flows: dict[int, Slice] = {}
    for event in sorted(timed, key=lambda each: ns(Decimal(each["ts"]))):
        _take(made, event, ns, stacks, open_flows)
    assert not open_flows, f"{len(open_flows)} arrows have no end"
    for track, stack in stacks.items():
        assert all(each.event["ph"] == "X" for each in stack), f"a slice of {track} has no end"
    _check_names(made)
    return made


def _check(event: Event) -> None:
    phase = event["ph"]
    assert phase in NEEDS, f"phase {phase}"
    assert set(event) - MAY.get(phase, set()) == NEEDS[phase] | {"ph", "pid", "name"}, event
    assert isinstance(event["name"], str)
    for number in ("pid", "tid", "id"):
        assert type(event.get(number, 1)) is int
        assert 0 < event.get(number, 1) < 2**31, event
    for time in ("ts", "dur"):
        assert isinstance(event.get(time, 0), int | Decimal)
        assert event.get(time, 0) >= 0, event
    if phase == "C":
        assert event["args"]
        assert all(isinstance(value, int | Decimal) for value in event["args"].values()), event


def _name(made: Read, event: Event) -> None:
    """Take what a metadata event says; nothing is said twice."""
    key = event["pid"] if event["name"].startswith("process") else (event["pid"], event["tid"])
    if event["name"] in SORTS:
        assert key not in made.places
        assert type(event["args"]["sort_index"]) is int
        made.places[key] = event["args"]["sort_index"]
        return
    text = event["args"][NAMES[event["name"]]]
    said = made.labels if event["name"] == "process_labels" else made.names
    assert key not in said
    assert text
    said[key] = text


def _take(
    made: Read,
    event: Event,
    ns: Callable[[Decimal], Decimal],
    stacks: dict[Track, list[Slice]],
    flows: dict[int, Slice],
) -> None:
    """Take an event that has a time."""
    at, phase = ns(Decimal(event["ts"])), event["ph"]
    if phase == "C":
        made.counters.setdefault((event["pid"], event["name"]), []).append(event)
        return
    track = (event["pid"], event["tid"])
    stack = stacks[track]
    if phase in "XBE":
        while stack and stack[-1].event["ph"] == "X" and stack[-1].end <= at:
            stack.pop()
    if phase == "E":
        assert stack, f"an end without a begin: {event}"
        last = stack.pop()
        assert (last.name, last.event["ph"]) == (event["name"], "B")
        last.end = at
    elif phase in "XB":
        end = at + ns(Decimal(event["dur"])) if phase == "X" else Decimal("Infinity")
        if phase == "X" and stack:
            assert end <= stack[-1].end, f"{event} overlaps {stack[-1].event}"
        new = Slice(event["name"], track, at, end, len(stack), event)
        stack.append(new)
        made.slices.append(new)
    elif phase == "s":
        assert event["id"] not in flows
        assert event["id"] not in made.flows
        flows[event["id"]] = _enclosing(stack, at, event)
    else:
        assert event["bp"] == "e"
        made.flows[event["id"]] = (flows.pop(event["id"]), _enclosing(stack, at, event))


def _enclosing(stack: list[Slice], at: Decimal, event: Event) -> Slice:
    """Return the innermost slice at an end of an arrow."""
    assert stack, f"no slice at {event}"
    last = stack[-1]
    assert last.begin <= at < last.end or at == last.begin == last.end, f"{event} is not in {last.event}"
    return last


def _check_names(made: Read) -> None:
    """Check that what is drawn has a name and a place of its own, and no number is used twice."""
    pids = {pid for pid in made.names if isinstance(pid, int)}
    tracks = {track for track in made.names if isinstance(track, tuple)}
    numbers = [*pids, *(tid for _, tid in tracks)]
    assert len(set(numbers)) == len(numbers), "readers take a track with the number of a process for its own"
    assert {each.track for each in made.slices} <= tracks
    assert {pid for pid, _ in tracks} | {pid for pid, _ in made.counters} <= pids
    assert set(made.labels) == pids
    assert set(made.places) == set(made.names)
    for pid in pids:
        mine = [made.places[track] for track in tracks if track[0] == pid]
        assert sorted(mine) == list(range(len(mine)))
    for events in made.counters.values():
        times = [Decimal(each["ts"]) for each in events]
        assert times == sorted(times)
        assert all(set(each["args"]) == set(events[0]["args"]) for each in events)
