"""Tracks of kernels in a trace: what each waited for, when its TBs ran, and how many were under way."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .trace_events import UNITS_US, Units, counter, text_of, track, units_of_us
from .trace_runs import TraceRun

MOST_LANES = 32
TIMES = ("enqueued", "admitted", "ready", "first_dispatch", "last_end", "complete")
SINCE = ("enqueue", "admission", "ready", "first dispatch")
PHASES = (  # what a kernel does from each of TIMES on
    "waits for admission",
    "waits for dependences",
    "waits for a slot",
    "runs",
    "completes",
)


@dataclass(slots=True)
class KernelTracks:
    """Slices of the kernels of a run, on as few tracks as they fit on without an overlap.

    ``begin``, ``end``: of each slice; ``lane``: its track; ``row``: place of a kernel's number in them.
    """

    run: TraceRun
    start: int = 0  # of TIMES, at which the slices begin
    begin: Units = field(default_factory=lambda: np.zeros(0, np.int64))
    end: Units = field(default_factory=lambda: np.zeros(0, np.int64))
    lane: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    times: Units = field(default_factory=lambda: np.zeros((0, len(TIMES)), np.int64))
    row: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, run: TraceRun) -> KernelTracks:
        """Return the tracks of a run: slices begin as early as few tracks allow.

        A window may admit thousands of kernels at once. Where the host enqueues all at one moment, slices
        begin with the admission.
        """
        made = cls(run)
        if not len(run.kernels):
            return made
        times = np.stack([units_of_us(run.kernels[f"{name}_us"]) for name in TIMES], axis=1)
        made.times = np.maximum.accumulate(times, axis=1)  # a copy from the host has no dispatch
        made.row = {number: row for row, number in enumerate(run.kernels["kernel"].tolist())}
        made.end = made.times[:, -1]
        at_once = len(times) > 1 and bool(np.all(times[:, 0] == times[0, 0]))
        for made.start in range(int(at_once), TIMES.index("first_dispatch") + 1):
            made.begin = made.times[:, made.start]
            made.lane = _lanes(made.begin, made.end)
            if int(made.lane.max()) < MOST_LANES:
                break
        return made

    @property
    def count(self) -> int:
        """How many tracks there are."""
        return int(self.lane.max()) + 1 if len(self.lane) else 0

    def events(self, pid: int, tid: int) -> Iterator[str]:
        """Yield tracks and slices; ``tid``: of the first track."""
        for lane in range(self.count):
            yield from track(pid, tid + lane, f"kernels from {SINCE[self.start]}, {lane}", lane)
        for row in np.lexsort((self.begin, self.lane)).tolist():
            yield from self._slices(row, pid, tid + int(self.lane[row]))
        yield from self._counter(pid)

    def _slices(self, row: int, pid: int, tid: int) -> Iterator[str]:
        """Yield the slice of a kernel and those of its phases.

        They are pairs of begin and end: of a slice with a duration, a reader that cuts both start and
        duration to ns can find that an inner slice ends after the outer one.
        """
        kernel = self.run.kernels[row]
        args = {name: int(kernel[name]) for name in ("kernel", "stream", "tbs")}
        exact = {f"{name}_us": float(kernel[f"{name}_us"]) for name in TIMES}
        times = self.times[row].tolist()
        name = self.run.kernel_name(args["kernel"])
        yield _edge("B", pid, tid, times[self.start], name, args | exact)
        for phase in range(self.start, len(PHASES)):
            if times[phase] < times[phase + 1]:
                yield _edge("B", pid, tid, times[phase], PHASES[phase], {})
                yield _edge("E", pid, tid, times[phase + 1], PHASES[phase])
        yield _edge("E", pid, tid, times[-1], name)

    def _counter(self, pid: int) -> Iterator[str]:
        """Yield how many kernels are admitted and not complete, and of how many TBs were dispatched."""
        if not len(self.times):
            return
        begins = {"admitted": self.times[:, 1], "with TBs dispatched": self.times[:, 3]}
        at = np.unique(np.concatenate([*begins.values(), self.end]))
        ended = np.searchsorted(np.sort(self.end), at, "right")
        held = {name: np.searchsorted(np.sort(times), at, "right") - ended for name, times in begins.items()}
        yield from counter(pid, "kernels", at, int(at[-1]), held)


def _edge(phase: str, pid: int, tid: int, at: int, name: str, args: object = None) -> str:
    tail = "" if args is None else f',"cat":"kernel","args":{text_of(args)}'
    return f'{{"ph":"{phase}","pid":{pid},"tid":{tid},"ts":{at / UNITS_US:.7f},"name":{text_of(name)}{tail}}}'


def _lanes(begin: Units, end: Units) -> NDArray[np.int64]:
    """Return the track of each slice: the lowest that is free when it begins."""
    lanes = np.zeros(len(begin), np.int64)
    free: list[int] = []
    used: list[tuple[int, int]] = []
    for row in np.lexsort((end, begin)).tolist():
        while used and used[0][0] <= begin[row]:
            heapq.heappush(free, heapq.heappop(used)[1])
        lane = heapq.heappop(free) if free else len(used)
        heapq.heappush(used, (int(end[row]), lane))
        lanes[row] = lane
    return lanes
