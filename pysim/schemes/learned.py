"""Scheme ``tb_learned``: hardware records a kernel's footprint at its first launch and reuses it later.

A kernel's *signature* is its program, its grid and the layout of its arguments: which of them overlap, and
at what distance. The first launch of a signature runs between barriers. The hardware records, for each TB
and argument, the byte ranges that the TB reads and writes, as offsets from the argument. All addresses of
such a program are affine in TB number and arguments, so a later launch with the same signature touches the
same offsets from its own arguments, and its edges are known before it starts. Kernels with data-dependent
addresses (recorded ones) are never learned: they run between barriers. The model checks each launch against
its signature at no cost; hardware would not check.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from pysim.dependence.dependences import Dependences, dependences
from pysim.dependence.groups import Groups, assemble
from pysim.dependence.intra_kernel_sync import inherit_producers
from pysim.program.access_regions import checked_regions
from pysim.program.job import Access, Job, Tensor
from pysim.program.regions import GRANULES, SECTOR, csr_offsets, expand_ranges

from . import hardware_cost
from .core_tables import word_bytes
from .dependence_table import FETCHED, PROLOGUE, TableScheme
from .known_edges import KnownEdges, LearningReport
from .options import COHERENCE, PLACEMENTS, PRIORITIES, SchemeOption

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Kernel, Mode

    from .hardware_cost import Sizes, Structure

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LearnedRanges:
    """Learned ranges relative to an argument.

    ``offset``: bytes from argument ``arg``; ``table``: (TBs, 4), rows and bytes row0, row1, byte0, byte1 of
    rows ``pitch`` bytes apart, ends excluded; ``counts``: (TBs), ranges that the hardware stores.
    """

    arg: int
    mode: Mode
    offset: int
    pitch: int
    table: Ints
    counts: Ints

    def access(self, args: Sequence[Tensor]) -> Access:
        """Return the access of a launch with these arguments."""
        rows = int(self.table[:, 1].max(initial=1))
        tensor = Tensor("learned", rows, self.pitch, 1, args[self.arg].address + self.offset)
        return Access(tensor, self.mode, lambda tbs: self.table[tbs])


class _ArgAccess(NamedTuple):
    """One access relative to an argument, as in :class:`LearnedRanges`."""

    arg: int
    mode: Mode
    offset: int
    pitch: int
    table: Ints


@dataclass(frozen=True, slots=True)
class LearnedLaunches:
    """Edges and barriers of a job under ``tb_learned``.

    One element a launch: ``barrier``, 1: it runs between barriers; ``ranges``, learned ranges to look up;
    ``launch``, fields of ``gs_launch`` for footprints in memory. ``footprints``: bytes of all footprints.
    """

    deps: Dependences
    barrier: NDArray[np.uint32]
    ranges: Ints
    launch: dict[str, NDArray[Any]]
    footprints: int
    report: LearningReport


def _one_row_table(offset: int, lo: Ints, hi: Ints) -> tuple[int, int, Ints]:
    """Return byte ranges ``lo`` to ``hi`` of TBs as (offset, pitch, table) of one long row each."""
    first = int(lo.min(initial=0)) // SECTOR * SECTOR
    length = -(-(int(hi.max(initial=1)) - first) // SECTOR) * SECTOR
    row = (lo < hi).astype(np.int64)
    return offset + first, max(length, SECTOR), np.stack([0 * lo, row, lo - first, hi - first], axis=1)


def covering_ranges(
    arg: int, mode: Mode, parts: Sequence[tuple[int, int, Ints]], limit: int, strided: bool
) -> list[LearnedRanges]:
    """Return ranges that cover ``parts`` (offset, pitch, table), at most ``limit`` a TB.

    With ``strided`` a range is a run of bytes repeated at a constant stride, so one covers a rectangle.
    Without, each row of a rectangle takes a range; if these are too many, neighbouring rows share one range
    that also covers the bytes between them. This adds edges and drops none.
    """
    if len(parts) > limit:
        big = np.iinfo(np.int64).max
        los, his = [], []
        for offset, pitch, table in parts:
            row0, row1, byte0, byte1 = table.T
            some = (row0 < row1) & (byte0 < byte1)
            los.append(np.where(some, offset + row0 * pitch + byte0, big))
            his.append(np.where(some, offset + (row1 - 1) * pitch + byte1, -1))
        lo, hi = np.min(los, axis=0), np.max(his, axis=0)
        none = hi < 0
        offset, pitch, table = _one_row_table(0, np.where(none, 0, lo), np.where(none, 0, hi))
        return [LearnedRanges(arg, mode, offset, pitch, table, (~none).astype(np.int64))]
    made: list[LearnedRanges] = []
    share = limit // len(parts)
    for offset, pitch, table in parts:
        row0, row1, byte0, byte1 = table.T
        some = (row0 < row1) & (byte0 < byte1)
        rows = np.where(some, row1 - row0, 0)
        runs = np.where((byte0 <= 0) & (byte1 >= pitch), np.minimum(rows, 1), rows)
        if strided or int(runs.max(initial=0)) <= share:
            made.append(
                LearnedRanges(arg, mode, offset, pitch, table, some.astype(np.int64) if strided else runs)
            )
            continue
        for part in range(share):
            first, last = row0 + rows * part // share, row0 + rows * (part + 1) // share
            lo = np.where(first < last, first * pitch + byte0, 0)
            hi = np.where(first < last, (last - 1) * pitch + byte1, 0)
            at, length, flat = _one_row_table(offset, lo, hi)
            made.append(LearnedRanges(arg, mode, at, length, flat, (first < last).astype(np.int64)))
    return made


def _bytes_of(access: Access, tbs: int) -> Ints:
    """Return (TBs, 4): row0, row1, byte0, byte1 of each TB; 0: it touches nothing."""
    item = access.tensor.item
    made: Ints = checked_regions(access, np.arange(tbs, dtype=np.int64)) * np.array([1, 1, item, item])
    made[(made[:, 0] >= made[:, 1]) | (made[:, 2] >= made[:, 3])] = 0
    return made


def _argument(kernel: Kernel, tensor: Tensor) -> int | None:
    """Return the argument that is or contains a tensor; None: there is none."""
    for slot, arg in enumerate(kernel.args):
        if arg is tensor:
            return slot
    for slot, arg in enumerate(kernel.args):
        if arg.address <= tensor.address and tensor.address + tensor.nbytes <= arg.address + arg.nbytes:
            return slot
    return None


def _layout(args: Sequence[Tensor]) -> tuple[tuple[int, int], ...]:
    """Return, for each argument, the first one that overlaps it and its offset from that in bytes."""
    made: list[tuple[int, int]] = []
    for slot, arg in enumerate(args):
        for other in range(slot + 1):
            mate = args[other]
            if mate.overlaps(arg):
                made.append((other, arg.address - mate.address))
                break
    return tuple(made)


def _arg_accesses(kernel: Kernel) -> list[_ArgAccess] | None:
    """Return the accesses relative to arguments; None: an access is in no argument."""
    made: list[_ArgAccess] = []
    for access in kernel.accesses:
        slot = _argument(kernel, access.tensor)
        if slot is None:
            return None
        offset = access.tensor.address - kernel.args[slot].address
        made.append(_ArgAccess(slot, access.mode, offset, access.tensor.pitch, _bytes_of(access, kernel.tbs)))
    return made


def _same_accesses(one: Sequence[_ArgAccess], other: Sequence[_ArgAccess]) -> bool:
    return len(one) == len(other) and all(
        a[:4] == b[:4] and np.array_equal(a[4], b[4]) for a, b in zip(one, other, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Signature:
    """One signature: the accesses of its first launch, and the ranges stored for it.

    ``count``: ranges of all TBs; ``slot``: bytes a TB in memory, for the TB with the most ranges; ``at``:
    byte offset in memory.
    """

    touched: list[_ArgAccess]
    ranges: list[LearnedRanges]
    count: int
    slot: int
    at: int


def _record(touched: list[_ArgAccess], values: Mapping[str, int], at: int) -> _Signature:
    limit, strided = values["scheme.learned.ranges"], bool(values["scheme.learned.strided"])
    by: dict[tuple[int, Mode], list[tuple[int, int, Ints]]] = {}
    for slot, mode, offset, pitch, table in touched:
        by.setdefault((slot, mode), []).append((offset, pitch, table))
    ranges = [
        r for (slot, mode), parts in by.items() for r in covering_ranges(slot, mode, parts, limit, strided)
    ]
    counts = np.zeros(1, np.int64) + sum(each.counts for each in ranges)
    slot = word_bytes(values["scheme.learned.entry_bytes"]) * int(counts.max())
    return _Signature(touched, ranges, int(counts.sum()), slot, at)


def without_barrier_edges(deps: Dependences, barrier: NDArray[np.uint32]) -> Dependences:
    """Return the edges without those that barriers imply: edges of barrier kernels, and edges across one."""
    groups, offsets = deps.groups, deps.offsets
    last = np.maximum.accumulate(np.where(barrier != 0, np.arange(len(barrier)), -1))
    sizes = np.diff(groups.producer_ptr)
    node = np.repeat(np.arange(len(groups), dtype=np.int64), sizes)
    owner = np.searchsorted(offsets, groups.producers, side="right") - 1
    keep = owner > last[groups.kernel][node]
    left = np.bincount(node[keep], minlength=len(groups)).astype(np.int64)
    nodes = np.flatnonzero(left)
    used = np.diff(groups.consumer_ptr)[nodes]
    made = Groups(
        groups.kernel[nodes],
        csr_offsets(left[nodes]),
        groups.producers[keep],
        groups.kinds[keep],
        csr_offsets(used),
        groups.consumers[expand_ranges(groups.consumer_ptr[nodes], used)],
    )
    return assemble(made, offsets)


def learn_footprints(job: Job, values: Mapping[str, int]) -> LearnedLaunches:
    """Return which launches of a job run between barriers, and the edges of the others."""
    barrier = np.zeros(len(job.kernels), np.uint32)
    looked = np.zeros(len(job.kernels), np.int64)
    slot, recorded = np.zeros_like(barrier), np.zeros_like(barrier)
    where = np.zeros(len(job.kernels), np.uint64)
    line, kept, recorded_bytes, fetched_bytes = GRANULES["line"], 0, 0, 0
    known: dict[object, _Signature] = {}
    by_id: dict[int, int] = {}
    by_value: dict[object, int] = {}
    seen: set[int] = set()
    launched: list[Kernel] = []
    unlearnable = changed = wrong = 0
    for index, kernel in enumerate(job.kernels):
        launched.append(kernel)
        if kernel.copy is not None:
            continue
        touched = _arg_accesses(kernel) if kernel.affine else None
        if touched is None:
            unlearnable += 1
            barrier[index] = 1
            launched[index] = replace(kernel, accesses=(), footprint=None)
            continue
        number = by_id.get(id(kernel.program))
        if number is None:
            number = by_id[id(kernel.program)] = by_value.setdefault(kernel.program, len(by_value))
        signature = (number, kernel.grid, _layout(kernel.args))
        if signature in known and _same_accesses(known[signature].touched, touched):
            first = known[signature]
            looked[index], slot[index], where[index] = first.count, first.slot, first.at
            fetched_bytes += first.slot * kernel.tbs
            accesses = tuple(each.access(kernel.args) for each in first.ranges)
            launched[index] = replace(kernel, accesses=accesses)
            continue
        wrong += signature in known
        changed += signature not in known and number in seen
        barrier[index] = 1
        launched[index] = replace(kernel, accesses=())
        if signature not in known:
            first = known[signature] = _record(touched, values, kept)
            recorded[index], slot[index], where[index] = 1, first.slot, kept
            recorded_bytes += first.slot * kernel.tbs
            kept += -(-first.slot * kernel.tbs // line) * line
        seen.add(number)
    deps = dependences(replace(job, kernels=launched))
    launches = sum(kernel.copy is None for kernel in job.kernels)
    report = LearningReport(
        launches,
        launches - int(barrier.sum()),
        unlearnable,
        changed,
        wrong,
        len(known),
        sum(each.count for each in known.values()),
        int(looked.sum()),
        recorded_bytes,
        fetched_bytes,
    )
    launch: dict[str, NDArray[Any]] = {"footprint": slot, "recorded": recorded, "first_footprint": where}
    return LearnedLaunches(without_barrier_edges(deps, barrier), barrier, looked, launch, kept, report)


class LearnedTable(TableScheme):
    """The dependence table with edges from learned footprints."""

    lists_fetched: ClassVar[bool] = False

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the edges from learned ranges, and the time to look them up before each admission."""
        known = learn_footprints(job, values)
        spent = known.ranges.astype(np.uint64) * np.uint64(values["scheme.learned.lookup"])
        edges = inherit_producers(job, known.deps)
        none = np.zeros(len(job.kernels), np.uint64)
        return KnownEdges(
            edges, known.barrier, spent, none, known.report, launch=known.launch, footprints=known.footprints
        )

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return ``gs_order`` of a table whose edges the hardware computes."""
        return super().core_order(job, values) | {"computed": 1}

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the table, the signatures, and the ranges in memory."""
        size = values["scheme.learned.entry_bytes"]
        ranges = counts.get("recorded_bytes", 0) // word_bytes(size)
        more = hardware_cost.learned_structures(counts.get("signatures", 0), ranges, size)
        return [*super().structures(sizes, values, counts), *more]


TB_LEARNED = LearnedTable(
    "tb_learned",
    "tb_static with footprints learned at each kernel's first launch, which runs behind barriers.",
    "gpu.cp.stream_gap",
    options=PRIORITIES
    | COHERENCE
    | PLACEMENTS
    | PROLOGUE
    | {"fetch": SchemeOption("entries are brought in when producers are dispatched", (FETCHED,))},
)
