"""Footprints that a table scheme learns at the first launch of a kernel, behind barriers, for all later ones.

A kernel's *signature* is its program, its grid and the layout of its arguments: which of them share memory,
and how far apart. At the first launch of a signature the hardware records, for each TB and argument, the
ranges that the TB reads and writes, as offsets from the argument. A later launch with that signature touches
just these ranges from its own arguments on, for every address of its program is affine in TB and arguments;
so its edges to all that is in the pool are known before it starts, wherever its buffers lie. Kernels with
addresses that were read from data (recorded ones) are never learned: they run behind barriers. That the rule
holds is checked here with what the model knows of each launch, and hardware does not; it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from pysim.dependence.dependences import Dependences, dependences
from pysim.dependence.groups import Groups, assemble
from pysim.dependence.intra_kernel_sync import inherit_producers
from pysim.program.job import Access, Job, Tensor
from pysim.program.regions import GRANULES, SECTOR, csr_offsets, expand_ranges

from . import hardware_cost
from .core_tables import in_memory
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
class Ranges:
    """What TBs touch from an argument on: row0, row1, byte0, byte1 of rows ``pitch`` apart, (TBs, 4).

    ``counts``: ranges that the hardware keeps of it, one element a TB.
    """

    arg: int
    mode: Mode
    offset: int
    pitch: int
    table: Ints
    counts: Ints

    def access(self, args: Sequence[Tensor]) -> Access:
        """Return it as an access, from the arguments of a launch on."""
        rows = int(self.table[:, 1].max(initial=1))
        tensor = Tensor("learned", rows, self.pitch, 1, args[self.arg].address + self.offset)
        return Access(tensor, self.mode, lambda tbs: self.table[tbs])


class _Touch(NamedTuple):
    """What TBs touch from an argument on, as :class:`Ranges` has it."""

    arg: int
    mode: Mode
    offset: int
    pitch: int
    table: Ints


@dataclass(frozen=True, slots=True)
class Learned:
    """How a scheme that learns launches a job.

    ``barrier``, ``ranges`` (to look up) and ``launch`` (fields of ``gs_launch``: footprints in memory): one a
    launch. ``footprints``: bytes that those take.
    """

    deps: Dependences
    barrier: NDArray[np.uint32]
    ranges: Ints
    launch: dict[str, NDArray[Any]]
    footprints: int
    report: LearningReport


def _flat(offset: int, lo: Ints, hi: Ints) -> tuple[int, int, Ints]:
    """Return byte ranges as a table of one row: its offset, its length in whole sectors, and the rows."""
    first = int(lo.min(initial=0)) // SECTOR * SECTOR
    length = -(-(int(hi.max(initial=1)) - first) // SECTOR) * SECTOR
    row = (lo < hi).astype(np.int64)
    return offset + first, max(length, SECTOR), np.stack([0 * lo, row, lo - first, hi - first], axis=1)


def hulls(
    arg: int, mode: Mode, parts: Sequence[tuple[int, int, Ints]], limit: int, strided: bool
) -> list[Ranges]:
    """Return ranges that hold ``parts`` (offset, pitch, table), at most ``limit`` a TB.

    A strided range is a run of bytes repeated at one distance, so a rectangle is one. Without them each row
    of a rectangle is a range of its own; where that is too many, neighbouring rows share one that holds all
    between them, too: edges are added, and none lost.
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
        offset, pitch, table = _flat(0, np.where(none, 0, lo), np.where(none, 0, hi))
        return [Ranges(arg, mode, offset, pitch, table, (~none).astype(np.int64))]
    made: list[Ranges] = []
    share = limit // len(parts)
    for offset, pitch, table in parts:
        row0, row1, byte0, byte1 = table.T
        some = (row0 < row1) & (byte0 < byte1)
        rows = np.where(some, row1 - row0, 0)
        runs = np.where((byte0 <= 0) & (byte1 >= pitch), np.minimum(rows, 1), rows)
        if strided or int(runs.max(initial=0)) <= share:
            made.append(Ranges(arg, mode, offset, pitch, table, some.astype(np.int64) if strided else runs))
            continue
        for part in range(share):
            first, last = row0 + rows * part // share, row0 + rows * (part + 1) // share
            lo = np.where(first < last, first * pitch + byte0, 0)
            hi = np.where(first < last, (last - 1) * pitch + byte1, 0)
            at, length, flat = _flat(offset, lo, hi)
            made.append(Ranges(arg, mode, at, length, flat, (first < last).astype(np.int64)))
    return made


def _bytes_of(access: Access, tbs: int) -> Ints:
    """Return row0, row1, byte0, byte1 of each TB, cut to the tensor; all 0 where it touches nothing."""
    tensor = access.tensor
    raw = np.asarray(access.regions(np.arange(tbs, dtype=np.int64)), np.int64).reshape(tbs, 4)
    made = np.empty_like(raw)
    made[:, 0], made[:, 1] = np.maximum(raw[:, 0], 0), np.minimum(raw[:, 1], tensor.rows)
    made[:, 2] = np.maximum(raw[:, 2], 0) * tensor.item
    made[:, 3] = np.minimum(raw[:, 3], tensor.cols) * tensor.item
    made[(made[:, 0] >= made[:, 1]) | (made[:, 2] >= made[:, 3])] = 0
    return made


def _argument(kernel: Kernel, tensor: Tensor) -> int | None:
    """Return the argument that a tensor is reached from: itself, or one that holds it."""
    for slot, arg in enumerate(kernel.args):
        if arg is tensor:
            return slot
    for slot, arg in enumerate(kernel.args):
        if arg.address <= tensor.address and tensor.address + tensor.nbytes <= arg.address + arg.nbytes:
            return slot
    return None


def _layout(args: Sequence[Tensor]) -> tuple[tuple[int, int], ...]:
    """Return, for each argument, the first that shares memory with it, and how far behind that it lies."""
    made: list[tuple[int, int]] = []
    for slot, arg in enumerate(args):
        for other in range(slot + 1):
            mate = args[other]
            if mate.overlaps(arg):
                made.append((other, arg.address - mate.address))
                break
    return tuple(made)


def _touched(kernel: Kernel) -> list[_Touch] | None:
    """Return (argument, mode, offset, pitch, table) of each access; None: an address has no argument."""
    made: list[_Touch] = []
    for access in kernel.accesses:
        slot = _argument(kernel, access.tensor)
        if slot is None:
            return None
        offset = access.tensor.address - kernel.args[slot].address
        made.append(_Touch(slot, access.mode, offset, access.tensor.pitch, _bytes_of(access, kernel.tbs)))
    return made


def _same(one: Sequence[_Touch], other: Sequence[_Touch]) -> bool:
    return len(one) == len(other) and all(
        a[:4] == b[:4] and np.array_equal(a[4], b[4]) for a, b in zip(one, other, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """One signature: what its first launch touched, the ranges that are kept of it, and where in memory.

    Each TB has ``slot`` bytes there, as many as the one with the most ranges needs.
    """

    touched: list[_Touch]
    ranges: list[Ranges]
    count: int
    slot: int
    at: int


def _record(touched: list[_Touch], values: Mapping[str, int], at: int) -> _Known:
    limit, strided = values["scheme.learned.ranges"], bool(values["scheme.learned.strided"])
    by: dict[tuple[int, Mode], list[tuple[int, int, Ints]]] = {}
    for slot, mode, offset, pitch, table in touched:
        by.setdefault((slot, mode), []).append((offset, pitch, table))
    ranges = [r for (slot, mode), parts in by.items() for r in hulls(slot, mode, parts, limit, strided)]
    counts = np.zeros(1, np.int64) + sum(each.counts for each in ranges)
    slot = in_memory(values["scheme.learned.entry_bytes"]) * int(counts.max())
    return _Known(touched, ranges, int(counts.sum()), slot, at)


def between_barriers(deps: Dependences, barrier: NDArray[np.uint32]) -> Dependences:
    """Return the edges less those that barriers imply: of barrier kernels, and across one."""
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


def learned(job: Job, values: Mapping[str, int]) -> Learned:
    """Return which launches of a job run behind barriers, and the edges of the others."""
    barrier = np.zeros(len(job.kernels), np.uint32)
    looked = np.zeros(len(job.kernels), np.int64)
    slot, recorded = np.zeros_like(barrier), np.zeros_like(barrier)
    where = np.zeros(len(job.kernels), np.uint64)
    line, kept, recorded_bytes, fetched_bytes = GRANULES["line"], 0, 0, 0
    known: dict[object, _Known] = {}
    by_id: dict[int, int] = {}
    by_value: dict[object, int] = {}
    seen: set[int] = set()
    launched: list[Kernel] = []
    unlearnable = changed = wrong = 0
    for index, kernel in enumerate(job.kernels):
        launched.append(kernel)
        if kernel.copy is not None:
            continue
        touched = _touched(kernel) if kernel.affine else None
        if touched is None:
            unlearnable += 1
            barrier[index] = 1
            launched[index] = replace(kernel, accesses=(), footprint=None)
            continue
        number = by_id.get(id(kernel.program))
        if number is None:
            number = by_id[id(kernel.program)] = by_value.setdefault(kernel.program, len(by_value))
        signature = (number, kernel.grid, _layout(kernel.args))
        if signature in known and _same(known[signature].touched, touched):
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
    return Learned(between_barriers(deps, barrier), barrier, looked, launch, kept, report)


class LearnedTable(TableScheme):
    """The table with edges that the hardware learns."""

    lists_fetched: ClassVar[bool] = False

    def known_edges(self, job: Job, deps: Dependences, values: Mapping[str, int]) -> KnownEdges:
        """Return the edges from learned ranges, which are looked up before a launch is admitted."""
        known = learned(job, values)
        spent = known.ranges.astype(np.uint64) * np.uint64(values["scheme.learned.lookup"])
        edges = inherit_producers(job, known.deps)
        none = np.zeros(len(job.kernels), np.uint64)
        return KnownEdges(
            edges, known.barrier, spent, none, known.report, launch=known.launch, footprints=known.footprints
        )

    def core_order(self, job: Job, values: Mapping[str, int]) -> dict[str, Any]:
        """Return the order of a table whose edges the hardware computes."""
        return super().core_order(job, values) | {"computed": 1}

    def structures(
        self, sizes: Sizes, values: Mapping[str, int], counts: Mapping[str, int]
    ) -> list[Structure]:
        """Return the table, the signatures, and the ranges in memory."""
        size = values["scheme.learned.entry_bytes"]
        ranges = counts.get("recorded_bytes", 0) // in_memory(size)
        more = hardware_cost.learned(counts.get("signatures", 0), ranges, size)
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
