"""Kernels compared by address ranges, as ACS does (Durvasula et al., arXiv 2401.12377, 2024).

Each kernel comes with the segments that it reads and writes; one that enters the window waits for those in it
that it conflicts with. The published test compares older ranges with what the new kernel *writes*, and so
misses a read after a write; here all three are compared: read after write, write after read, write after
write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pysim.dependence.groups import reduce_preds
from pysim.program.regions import SECTOR

from . import hardware_cost
from .core_tables import CoreTables
from .hardware_cost import Structure
from .options import PLACEMENTS, PRIORITIES, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Access, Job, Kernel

    from .hardware_cost import Sizes
    from .known_edges import KnownEdges

    Ints = NDArray[np.int64]

MOST = 16  # segments a kernel states of each mode; the paper measured six to ten


def _few(spans: Ints) -> Ints:
    """Return at most ``MOST`` ranges that cover sorted ones: the narrowest holes are closed."""
    if len(spans) <= MOST:
        return spans
    holes = spans[1:, 0] - spans[:-1, 1]
    cuts = np.sort(np.argsort(-holes, kind="stable")[: MOST - 1])
    return np.stack([spans[np.append(0, cuts + 1), 0], spans[np.append(cuts, len(spans) - 1), 1]], axis=1)


def _span(access: Access, tbs: int) -> tuple[int, int] | None:
    """Return the range from the first to the last sector that any TB touches, in bytes."""
    tensor = access.tensor
    raw = np.asarray(access.regions(np.arange(tbs, dtype=np.int64)), np.int64).reshape(tbs, 4)
    row0, col0 = np.maximum(raw[:, 0], 0), np.maximum(raw[:, 2], 0)
    row1, col1 = np.minimum(raw[:, 1], tensor.rows), np.minimum(raw[:, 3], tensor.cols)
    touches = (row0 < row1) & (col0 < col1)
    if not touches.any():
        return None
    first = (row0 * tensor.pitch + col0 * tensor.item)[touches].min()
    last = ((row1 - 1) * tensor.pitch + col1 * tensor.item)[touches].max()
    lo, hi = tensor.address + int(first), tensor.address + int(last)
    return lo // SECTOR * SECTOR, -(-hi // SECTOR) * SECTOR


def segments_of(kernel: Kernel) -> tuple[Ints, Ints]:
    """Return (read, written) ranges of a kernel in whole sectors, (n, 2) bytes: one a tensor that it touches.

    Of a recorded kernel, no tensors are known: what it touched, in at most ``MOST`` ranges.
    """
    if kernel.footprint is not None:
        read = kernel.footprint.read_ranges(kernel.tbs, kernel.name)
        return _few(read), _few(kernel.footprint.written_ranges(kernel.tbs, kernel.name))
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for access in kernel.accesses:
        span = _span(access, kernel.tbs)
        if span is not None:
            found[access.mode != "read"].append(span)
    read, written = (np.array(sorted(set(spans)), np.int64).reshape(-1, 2) for spans in found)
    return read, written


def clash(before: Ints, own: int) -> NDArray[np.bool_]:
    """Return which older accesses to the same range an access must come after; modes: 0 read, 1 write."""
    ordered: NDArray[np.bool_] = (before | own) != 0
    return ordered


def conflicts(job: Job) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the kernels that each kernel waits for, less those that others imply, and its segments."""
    spans: list[Ints] = []
    counts: list[int] = []
    for index, kernel in enumerate(job.kernels):
        read, written = segments_of(kernel)
        counts.append(len(read) + len(written))
        for part, mode in ((read, 0), (written, 1)):
            spans.append(np.column_stack([part, np.full(len(part), mode), np.full(len(part), index)]))
    lo, hi, mode, owner = np.concatenate([np.empty((0, 4), np.int64), *spans]).T
    first = np.concatenate(([0], np.cumsum(counts)))
    preds: list[Sequence[int]] = []
    for index in range(len(job.kernels)):
        end = first[index]
        before: set[int] = set()
        for own in range(end, first[index + 1]):
            met = (lo[:end] < hi[own]) & (hi[:end] > lo[own]) & clash(mode[:end], mode[own])
            before.update(owner[:end][met].tolist())
        preds.append(sorted(before))
    return reduce_preds(preds), counts


class AcsHardware(Scheme):
    """The window in the command processor."""

    windowed: ClassVar[bool] = True

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the order by range checks; a slot takes a cycle for each other one."""
        preds, _ = conflicts(job)
        size, cycle = values["scheme.acs.window"], values["gpu.clock"]
        order = self.core_order(job, values)
        # it looks for those that a kernel waits for, and forgets one that has ended
        order |= {"window": min(size, len(preds)), "entries": size, "ahead": values["scheme.acs.list"]}
        order |= {"admit": order["admit"] + size * cycle, "end": (size - 1) * cycle}
        each = hardware_cost.each_bytes(hardware_cost.acs_slot(size))
        return CoreTables(preds, order, launches={"whole": [len(p) for p in preds]}, entry_bytes=each)

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the window."""
        count = values["scheme.acs.window"]
        return [Structure("window", count, hardware_cost.acs_slot(count))]


class AcsSoftware(Scheme):
    """The window on the host; the program only fills a queue in the host's memory."""

    windowed: ClassVar[bool] = True
    host_launches: ClassVar[bool] = False

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the order by range checks, with threads that launch kernels and wait for their ends."""
        preds, segments = conflicts(job)
        size, submit = values["scheme.acs.window"], values["host.launch"] + values["gpu.cp.launch"]
        order = self.core_order(job, values)
        order |= {
            "window": min(size, len(preds)),
            "entries": size,
            "launch": 0,
            "reserve": 0,  # a newer kernel may hold the thread that the oldest waits for
            "admit": values["scheme.acs.insert"],
            "check": values["scheme.acs.check"],
            "launchers": values["scheme.acs.threads"],
            "submit": submit,
            # host.roundtrip is both: the end seen by the host, and the next launch
            "seen": max(0, values["host.roundtrip"] - submit),
            "update": 0,
            "latency": 0,
        }
        launches: dict[str, Any] = {"whole": [len(p) for p in preds], "segments": segments}
        return CoreTables(preds, order, launches=launches | {"enqueued": [0] * len(preds)})


_WINDOW = {
    f"window{n}": SchemeOption(f"scheme.acs.window = {n}", (("scheme.acs.window", n),)) for n in (16, 32, 64)
}
_THREADS = {
    f"threads{n}": SchemeOption(f"scheme.acs.threads = {n}", (("scheme.acs.threads", n),)) for n in (1, 4, 16)
}

ACS_HW = AcsHardware(
    "acs_hw",
    "A window of kernels in the command processor, compared by the addresses that they touch.",
    options=PRIORITIES | PLACEMENTS | _WINDOW,
)
ACS_SW = AcsSoftware(
    "acs_sw",
    "The same window on the host, whose threads launch a kernel each and wait for its end.",
    options=_WINDOW | _THREADS,
)
