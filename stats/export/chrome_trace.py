"""Result files as Chrome traces (Trace Event format), for Perfetto and other viewers of such traces.

A run is a process; an SM, or a slot of one, is a track with a slice a TB. An arrow leads to each TB from the
last TB that it waited for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pysim.stats.errors import StoreError, as_path
from pysim.stats.store import Results, decode
from pysim.stats.waits import WAITS
from pysim.stats.whole_file import check_target, whole_file

from .trace_counters import counters
from .trace_events import (
    UNITS_NS,
    Units,
    in_us,
    joined,
    metadata,
    rows,
    text_of,
    track,
    units_of_ns,
)
from .trace_kernels import KernelTracks
from .trace_runs import Ranges, TraceRun, open_runs

MOST_TBS = 1_000_000
SUFFIXES = (".json", ".json.gz")
BYTES_A_TB = 460
BEFORE_END = 2 * UNITS_NS


class Trace(NamedTuple):
    """What a trace holds. ``runs``: their names; ``slices``: of TBs; ``arrows``: to TBs."""

    runs: tuple[str, ...]
    slices: int
    arrows: int


def to_chrome_trace(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    schemes: Sequence[str] = (),
    kernels: Ranges = (),
    most_tbs: int = MOST_TBS,
    force: bool = False,
) -> Trace:
    """Write the runs of a result file as a Chrome trace, whole or not at all; return what it holds.

    ``target``: *.json, or *.json.gz for a compressed file; ``schemes``: only these (default: all that ran);
    ``kernels``: only TBs of kernels with these numbers, as pairs of first and last. Raises StoreError for
    what cannot be read or written, for a target that exists (``force`` replaces it), for results without
    TBs, for schemes that the file does not have, and for more than ``most_tbs`` TBs.
    """
    results, runs = open_runs(source, schemes, kernels)
    return write_chrome_trace(results, runs, target, most_tbs, force)


def write_chrome_trace(
    results: Results,
    runs: Sequence[TraceRun],
    target: str | os.PathLike[str],
    most_tbs: int = MOST_TBS,
    force: bool = False,
) -> Trace:
    """Write runs of a result file as :func:`to_chrome_trace` does."""
    path = as_path(target)
    if not path.name.endswith(SUFFIXES):
        raise StoreError(f"{path}: the name of a trace ends in {' or '.join(SUFFIXES)}")
    check_target(path, force)
    slices = sum(len(run.tbs) for run in runs)
    if slices > most_tbs:
        raise StoreError(
            f"{slices:,} TBs are more than {most_tbs:,}, their trace would take"
            f" {slices * BYTES_A_TB / 1e6:,.0f} MB: choose schemes or kernels, or allow more TBs"
        )
    numbers = _Numbers()
    with whole_file(path, packed=path.suffix == ".gz") as file:
        # first: some readers look for it only at the start
        file.write(b'{"displayTimeUnit":"ns","otherData":' + text_of(_about(results)).encode())
        file.write(b',"traceEvents":[\n')
        for piece in joined(
            event for place, run in enumerate(runs) for event in _events(run, place, numbers)
        ):
            file.write(piece)
        file.write(b"\n]}\n")
    return Trace(tuple(run.name for run in runs), slices, numbers.arrows)


@dataclass(slots=True)
class _Numbers:
    """Numbers given so far in a file: of arrows, and of processes and tracks, which share them.

    A track with the number of its process is taken for its main thread.
    """

    arrows: int = 0
    tracks: int = 0

    def new(self, count: int) -> int:
        """Return the first of ``count`` numbers of processes or tracks."""
        self.tracks += count
        return self.tracks - count + 1


def _about(results: Results) -> dict[str, Any]:
    """Return what the file is; not its name, which may differ between equal files."""
    attributes = {name: results.attributes[name] for name in sorted(results.attributes)}
    return {"result": attributes, "configuration": results.configuration}


def _events(run: TraceRun, place: int, numbers: _Numbers) -> Iterator[str]:
    """Yield the events of a run; ``place``: of its process."""
    pid = numbers.new(1)
    yield metadata("process_name", pid, None, {"name": run.name})
    yield metadata("process_labels", pid, None, {"labels": run.label})
    yield metadata("process_sort_index", pid, None, {"sort_index": place})
    kernels = KernelTracks.of(run)
    first_kernel = numbers.new(kernels.count)
    yield from kernels.events(pid, first_kernel)
    yield from counters(run, pid)
    begin, end = units_of_ns(run.tbs["dispatch_ns"]), units_of_ns(run.tbs["end_ns"])
    names, lane = _lanes(run, begin, end)
    first = numbers.new(len(names))
    for number, name in enumerate(names):
        yield from track(pid, first + number, name, kernels.count + number)
    yield from _slices(run, pid, first + lane, begin, _durations(begin, end, lane))
    yield from _arrows(run, pid, _Ends(run, begin, end, first + lane, kernels, first_kernel), numbers)


def _lanes(run: TraceRun, begin: Units, end: Units) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the tracks of TBs, by SM and slot, and the track of each TB.

    An SM whose TBs never overlap is one track.
    """
    tbs = run.tbs
    names: list[str] = []
    lane = np.zeros(len(tbs), np.int64)
    order = np.lexsort((begin, tbs["sm"]))
    bounds = np.flatnonzero(np.diff(tbs["sm"][order])) + 1
    for mine in np.split(order, bounds):
        sm = int(tbs["sm"][mine[0]])
        if not _overlap(begin[mine], end[mine]):
            lane[mine] = len(names)
            names.append(f"SM {sm}")
            continue
        for slot in np.unique(tbs["slot"][mine]).tolist():
            held = mine[tbs["slot"][mine] == slot]
            lane[held] = len(names)
            names.append(f"SM {sm} slot {slot}")
    return names, lane


def _overlap(begin: Units, end: Units) -> bool:
    """Return whether slices, sorted by their begin, overlap."""
    return bool(np.any(begin[1:] < np.maximum.accumulate(end)[:-1]))


def _durations(begin: Units, end: Units, lane: NDArray[np.int64]) -> Units:
    """Return durations; where the next slice of a track begins at the end, one unit less.

    A reader that cuts begin and duration to ns, after a rounding of its own, could find an overlap there.
    """
    made = end - begin
    order = np.lexsort((begin, lane))
    touches = (lane[order][1:] == lane[order][:-1]) & (begin[order][1:] == end[order][:-1])
    before = order[:-1][touches]
    made[before] = np.maximum(made[before] - 1, 0)
    return made


def _slices(run: TraceRun, pid: int, tid: NDArray[np.int64], begin: Units, lasts: Units) -> Iterator[str]:
    """Yield a slice a TB, from its dispatch to its end."""
    tbs = run.tbs
    waits = ",".join(f'"{name}_us":%.4f' for name in WAITS)
    numbers = ",".join(f'"{name}":%d' for name in ("kernel", "tb", "last_kernel", "last_tb"))
    pattern = (
        f'{{"ph":"X","pid":{pid},"tid":%d,"ts":%.7f,"dur":%.7f,"name":%s,"cat":"tb",'
        f'"args":{{{numbers},{waits},"reason":%s}}}}'
    )
    known = {number: text_of(run.kernel_name(number)) for number in np.unique(tbs["kernel"]).tolist()}
    reasons = {text: text_of(decode(np.array([text]))[0]) for text in np.unique(tbs["reason"]).tolist()}
    columns = [
        tid,
        in_us(begin),
        in_us(lasts),
        [known[number] for number in tbs["kernel"].tolist()],
        *(tbs[name] for name in ("kernel", "tb", "last_kernel", "last_tb")),
        *(run.waits / 1e3).T,
        [reasons[text] for text in tbs["reason"].tolist()],
    ]
    yield from rows(pattern, columns)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where arrows begin and end: TBs, with their tracks, and kernels that have no TBs, such as copies."""

    run: TraceRun
    begin: Units
    end: Units
    tid: NDArray[np.int64]
    kernels: KernelTracks
    first_kernel: int

    def starts(self) -> tuple[NDArray[np.int64], Units, Units]:
        """Return for each TB the track, begin and end of what it waited for last; track 0: nothing."""
        tbs = self.run.tbs
        last, number = tbs["last_kernel"].astype(np.int64), tbs["last_tb"].astype(np.int64)
        tid, begin, end = (np.zeros(len(tbs), np.int64) for _ in range(3))
        most = max(int(tbs["tb"].max()), int(number.max()), 0) + 1
        own = tbs["kernel"].astype(np.int64) * most + tbs["tb"]
        order = np.argsort(own, kind="stable")
        wanted = last * most + number
        place = order[np.minimum(np.searchsorted(own, wanted, sorter=order), len(own) - 1)]
        found = (own[place] == wanted) & (last >= 0) & (number >= 0)
        tid[found], begin[found], end[found] = (
            each[place[found]] for each in (self.tid, self.begin, self.end)
        )
        for row in np.flatnonzero(~found & np.isin(last, list(self.kernels.row))).tolist():
            kernel = self.kernels.row[int(last[row])]
            begin[row], end[row] = self.kernels.begin[kernel], self.kernels.end[kernel]
            tid[row] = self.first_kernel + self.kernels.lane[kernel]
        return tid, begin, end


def _arrows(run: TraceRun, pid: int, ends: _Ends, numbers: _Numbers) -> Iterator[str]:
    """Yield an arrow a TB from what it waited for last, as two events in the slices that it joins.

    It leaves 2 ns before its slice ends, as the slice ends up to 2 ns earlier for readers that cut begin and
    duration to ns; or, where a TB lets others go earlier (pdl), when the consumer is ready.
    """
    tid, begin, end = ends.starts()
    leaves = np.maximum(np.minimum(end - BEFORE_END, units_of_ns(run.tbs["ready_ns"])), begin)
    drawn = np.flatnonzero((tid > 0) & (leaves <= ends.begin))
    names = '"name":"dependence","cat":"dependence"'
    pattern = (
        f'{{"ph":"s","pid":{pid},"tid":%d,"ts":%.7f,"id":%d,{names}}},\n'
        f'{{"ph":"f","bp":"e","pid":{pid},"tid":%d,"ts":%.7f,"id":%d,{names}}}'
    )
    ids = numbers.arrows + 1 + np.arange(len(drawn))
    numbers.arrows += len(drawn)
    if len(drawn):
        columns = [tid[drawn], in_us(leaves[drawn]), ids, ends.tid[drawn], in_us(ends.begin[drawn]), ids]
        yield from rows(pattern, columns)
