"""Schemes ``acs_hw``, ``acs_sw``: a window of kernels compared by address ranges (ACS).

ACS: Durvasula et al., arXiv 2401.12377, 2024. Each kernel comes with the address ranges (segments) that it
reads and writes. A kernel that enters the window waits for those in it that it conflicts with. The published
test compares older ranges only with what the new kernel *writes*, and so misses read after write; here RAW,
WAR and WAW are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pysim.dependence.kernel_order import reduce_preds
from pysim.program.access_regions import checked_regions
from pysim.program.regions import SECTOR, covering

from . import hardware_cost
from .core_tables import CoreTables
from .hardware_cost import Structure
from .hooks import order_of
from .options import PLACEMENTS, PRIORITIES, SchemeOption
from .scheme import Scheme

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Access, Job, Kernel

    from .hardware_cost import Sizes
    from .known_edges import KnownEdges

    Ints = NDArray[np.int64]

MAX_SEGMENTS = 16  # segments a kernel, of reads and of writes each; the paper measured six to ten


def _span(access: Access, tbs: int) -> tuple[int, int] | None:
    """Return the byte range from the first to the last sector that any TB touches; None: none."""
    tensor = access.tensor
    row0, row1, col0, col1 = checked_regions(access, np.arange(tbs, dtype=np.int64)).T
    touches = (row0 < row1) & (col0 < col1)
    if not touches.any():
        return None
    first = (row0 * tensor.pitch + col0 * tensor.item)[touches].min()
    last = ((row1 - 1) * tensor.pitch + col1 * tensor.item)[touches].max()
    lo, hi = tensor.address + int(first), tensor.address + int(last)
    return lo // SECTOR * SECTOR, -(-hi // SECTOR) * SECTOR


def kernel_segments(kernel: Kernel) -> tuple[Ints, Ints]:
    """Return (read, written) ranges of a kernel, each (n, 2) bytes in whole sectors: one a tensor.

    A recorded kernel has no tensors: its sectors are covered by at most ``MAX_SEGMENTS`` ranges.
    """
    if kernel.footprint is not None:
        read = kernel.footprint.read_ranges(kernel.tbs, kernel.name)
        written = kernel.footprint.written_ranges(kernel.tbs, kernel.name)
        return covering(read, MAX_SEGMENTS), covering(written, MAX_SEGMENTS)
    found: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for access in kernel.accesses:
        span = _span(access, kernel.tbs)
        if span is not None:
            found[access.mode != "read"].append(span)
    read, written = (np.array(sorted(set(spans)), np.int64).reshape(-1, 2) for spans in found)
    return read, written


def must_order(before: Ints, own: int) -> NDArray[np.bool_]:
    """Return a mask of the older accesses that an access to the same range must wait for.

    ``before``: their modes; ``own``: its mode; 0: read, 1: write.
    """
    ordered: NDArray[np.bool_] = (before | own) != 0
    return ordered


def conflicting_kernels(job: Job) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the predecessors of each kernel, transitively reduced, and its number of segments."""
    spans: list[Ints] = []
    counts: list[int] = []
    for index, kernel in enumerate(job.kernels):
        read, written = kernel_segments(kernel)
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
            met = (lo[:end] < hi[own]) & (hi[:end] > lo[own]) & must_order(mode[:end], mode[own])
            before.update(owner[:end][met].tolist())
        preds.append(sorted(before))
    return reduce_preds(preds), counts


class _Acs(Scheme):
    """ACS, which changes nothing in L1."""

    windowed: ClassVar[bool] = True

    def coherence(self, values: Mapping[str, int]) -> str:
        """Return as ``Scheme.coherence``, but 'auto' is kernel."""
        return super().coherence(values) if values["scheme.coherence"] else "kernel"


class AcsHardware(_Acs):
    """ACS with the window in the command processor."""

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the order by range checks; the window compares one slot a cycle."""
        preds, _ = conflicting_kernels(job)
        size, cycle = values["scheme.acs.window"], values["gpu.clock"]
        order = order_of(self, job, values)
        # admission searches the whole window, a completed kernel is removed from the other slots
        order |= {"window": min(size, len(preds)), "entries": size, "ahead": values["scheme.acs.list"]}
        order |= {"admit": order["admit"] + size * cycle, "end": (size - 1) * cycle}
        each = hardware_cost.entry_bytes(hardware_cost.acs_slot_fields(size))
        return CoreTables(preds, order, launches={"whole": [len(p) for p in preds]}, entry_bytes=each)

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the window."""
        count = values["scheme.acs.window"]
        return [Structure("window", count, hardware_cost.acs_slot_fields(count))]


class AcsSoftware(_Acs):
    """ACS with the window on the host; the program fills a queue in host memory."""

    host_launches: ClassVar[bool] = False

    def core_tables(self, job: Job, known: KnownEdges, values: Mapping[str, int]) -> CoreTables:
        """Return the order by range checks, with host threads that launch kernels and wait for their ends."""
        preds, segments = conflicting_kernels(job)
        size, submit = values["scheme.acs.window"], values["host.launch"] + values["gpu.cp.launch"]
        order = order_of(self, job, values)
        order |= {
            "window": min(size, len(preds)),
            "entries": size,
            "launch": 0,
            "reserve": 0,  # a newer kernel may hold the host thread that the oldest waits for
            "admit": values["scheme.acs.insert"],
            "check": values["scheme.acs.check"],
            "launchers": values["scheme.acs.threads"],
            "submit": submit,
            # host.roundtrip is the time until the host sees the end, plus the next launch
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
