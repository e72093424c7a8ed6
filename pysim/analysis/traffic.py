"""Traffic of a job between L2 and DRAM: the least under any schedule, and an estimate for launch order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.access_regions import SharedRegions
from pysim.program.regions import SECTOR, difference, expand_ranges, overlaps, union
from pysim.program.written_memory import written_by_job

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Access, Job, Kernel
    from pysim.program.regions import Regions

    Ints = NDArray[np.int64]
    Piece = tuple[tuple[int, ...], int]  # which memory, and its bytes

PAGE = 1 << 18  # bytes: the granule of reuse estimates
PIECES = 64  # granules of a tensor, at most


def _sectors(kernels: Sequence[Kernel], wanted: Callable[[Access], bool]) -> list[Ints]:
    """Return the sectors of the ``wanted`` accesses, as (n, 2) ranges; equal accesses are evaluated once."""
    done: dict[int, int] = {}
    seen: set[tuple[int, int, tuple[int, int, int]]] = set()
    found: list[Ints] = []
    shared = SharedRegions()
    # by shape and place in a sector: the sectors of an access, and its address
    runs_of: dict[tuple[int, int], tuple[Ints, int]] = {}
    for kernel in kernels:
        for access in kernel.accesses:
            tensor = access.tensor
            key = (id(tensor), id(access.regions), kernel.grid)
            if key in seen or done.get(id(tensor), 0) * SECTOR >= tensor.nbytes or not wanted(access):
                continue
            seen.add(key)
            regions = shared.of(access, kernel.tbs)
            alike = regions.shape, regions.address % SECTOR
            if alike not in runs_of:
                lo, hi, _ = regions.intervals()
                runs = np.stack([lo, hi], axis=1)
                runs_of[alike] = union(runs) if len(runs) > 1 else runs, regions.address
            runs, address = runs_of[alike]
            runs = runs + (regions.address - address) // SECTOR
            done[id(tensor)] = max(done.get(id(tensor), 0), int((runs[:, 1] - runs[:, 0]).sum()))
            found.append(runs)
    return found


def _bytes(found: list[Ints]) -> int:
    every = union(np.concatenate([np.zeros((0, 2), np.int64), *found]))
    return int((every[:, 1] - every[:, 0]).sum()) * SECTOR


def compulsory_bytes(job: Job, without: range = range(0)) -> int:
    """Return the bytes that every schedule loads from DRAM: memory that is read and never written.

    ``without``: kernels that are taken to read nothing.
    """
    spans = written_by_job(job)
    kernels = [kernel for number, kernel in enumerate(job.kernels) if number not in without]

    def constant(access: Access) -> bool:
        at = access.tensor.address
        return access.mode == "read" and not overlaps(spans, at, at + access.tensor.nbytes)

    found = _sectors(kernels, constant)
    for kernel in kernels:
        if kernel.footprint is not None:
            found.append(difference(kernel.footprint.read_ranges(kernel.tbs, kernel.name), spans) // SECTOR)
    return _bytes(found)


def written_bytes(job: Job) -> int:
    """Return the bytes of the sectors that kernels write, each counted once."""
    found = _sectors(job.kernels, lambda access: access.mode != "read")
    for kernel in job.kernels:
        if kernel.footprint is not None and kernel.copy is None:
            spans = kernel.footprint.written_ranges(kernel.tbs, kernel.name)
            found.append(np.stack([spans[:, 0] // SECTOR, -(-spans[:, 1] // SECTOR)], axis=1))
    return _bytes(found)


def _bands(regions: Regions, nbytes: int) -> list[Piece]:
    """Return the bands of rows of the bounding box of regions of a tensor: (band, first and last byte).

    Each gets an even share of the bytes touched: at most the box, and at most the sum of distinct regions.
    """
    if not len(regions):
        return []
    pitch = regions.pitch
    if nbytes <= PAGE and len(regions) == 1:
        first, end, left, right = regions.byte_rects[0].tolist()
        return [((0, 0, pitch), max(SECTOR, (end - first) * (right - left)))]
    row0, row1, byte0, byte1 = regions.byte_rects.T
    top, bottom, left, right = int(row0.min()), int(row1.max()), int(byte0.min()), int(byte1.max())
    area = int(((row1 - row0) * (byte1 - byte0)).sum())
    size = max(SECTOR, min(area, (bottom - top) * (right - left)))
    rows = max(1, -(-max(PAGE, nbytes // PIECES) // pitch))
    if nbytes <= PAGE:  # small enough to be one, whatever part of it is touched
        top, bottom, left, right, rows = 0, 1, 0, pitch, 1
    first, last = top // rows, (bottom - 1) // rows
    here = (np.minimum(np.arange(first + 1, last + 2) * rows, bottom)) - np.maximum(
        np.arange(first, last + 1) * rows, top
    )
    each = (here * (size / (bottom - top))).astype(np.int64).tolist()
    return [((n, left, right), each[n - first]) for n in range(first, last + 1)]


def _recorded(spans: Ints) -> list[Piece]:
    """Return the pages of recorded memory."""
    first = spans[:, 0] // PAGE
    count = (spans[:, 1] - 1) // PAGE - first + 1
    page = expand_ranges(first, count)
    lo, hi = (np.repeat(column, count) for column in spans.T)
    part = np.minimum(hi, (page + 1) * PAGE) - np.maximum(lo, page * PAGE)
    pages, inverse = np.unique(page, return_inverse=True)
    sizes = np.bincount(inverse.reshape(-1), weights=part, minlength=len(pages))
    return [((p,), int(size)) for p, size in zip(pages.tolist(), sizes.tolist(), strict=True)]


class _Pieces:
    """The pieces that each kernel touches; kernels with the same footprint are evaluated once."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int, int], list[Piece]] = {}
        self.kept: list[object] = []  # so that no id is given twice
        self.regions = SharedRegions()
        self.bands: dict[tuple[int, int], list[Piece]] = {}  # by shape of the regions and size of the tensor

    def of(self, kernel: Kernel) -> list[tuple[list[Piece], bool, bool]]:
        """Return (pieces, read, written) of each tensor that a kernel touches, or of recorded memory."""
        if kernel.footprint is not None:
            read = kernel.footprint.read_ranges(kernel.tbs, kernel.name)
            written = kernel.footprint.written_ranges(kernel.tbs, kernel.name)
            return [(_recorded(read), True, False), (_recorded(written), False, True)]
        made = []
        for access in kernel.accesses:
            made.append((self.of_access(access, kernel.tbs), access.mode != "write", access.mode != "read"))
        return made

    def of_access(self, access: Access, tbs: int) -> list[Piece]:
        """Return the pieces that the ``tbs`` TBs of a kernel touch by one access."""
        key = (id(access.tensor), id(access.regions), tbs)
        if key not in self.known:
            tensor, regions = access.tensor, self.regions.of(access, tbs)
            alike = regions.shape, tensor.nbytes
            if alike not in self.bands:
                self.bands[alike] = _bands(regions, tensor.nbytes)
            self.known[key] = [((tensor.address, *band), size) for band, size in self.bands[alike]]
            self.kept += [access.tensor, access.regions]
        return self.known[key]


class _Stack:
    """Bytes touched since a piece was touched last, each counted once: a Fenwick tree over touches."""

    def __init__(self, touches: int) -> None:
        self.tree = [0] * (touches + 1)
        self.all = 0
        self.at: dict[tuple[int, ...], tuple[int, int]] = {}
        self.next = 1

    def _add(self, i: int, size: int) -> None:
        while i < len(self.tree):
            self.tree[i] += size
            i += i & -i

    def distance(self, key: tuple[int, ...]) -> int | None:
        """Return the bytes touched since this piece was, or None if it never was."""
        if key not in self.at:
            return None
        i, before = self.at[key][0], 0
        while i:
            before += self.tree[i]
            i -= i & -i
        return self.all - before

    def touch(self, key: tuple[int, ...], size: int) -> None:
        """Put a piece on top."""
        if key in self.at:
            i, old = self.at[key]
            self._add(i, -old)
            self.all -= old
        self.at[key] = (self.next, size)
        self._add(self.next, size)
        self.all += size
        self.next += 1


def _l2_misses(job: Job, capacity: int, pieces: _Pieces) -> tuple[list[dict[int, int]], list[int]]:
    """Estimate the bytes that each kernel reads from DRAM and those of its writes that are written back.

    Returns, for each kernel, the bytes read by address of the tensor (recorded memory: by page), and the
    bytes written back. Kernels run in launch order. L2 is a fully associative LRU cache of ``capacity``
    bytes: a piece is evicted, and written back if dirty, when more than that was touched since its last use.
    """
    each = [pieces.of(kernel) for kernel in job.kernels]
    stack = _Stack(sum(len(part) for parts in each for part, _, _ in parts))
    reads: list[dict[int, int]] = [{} for _ in each]
    writes = [0] * len(each)
    dirty: dict[tuple[int, ...], tuple[int, int]] = {}  # who wrote it last, how many bytes

    def leaves(key: tuple[int, ...], size: int, since: int | None) -> bool:
        """Return whether a piece has been evicted; if it was dirty, count its write-back."""
        gone = since is None or since + size > capacity
        if gone and key in dirty:
            kernel, many = dirty.pop(key)
            writes[kernel] += many
        return gone

    for index, parts in enumerate(each):
        for part, read, written in parts:
            for key, size in part:
                if leaves(key, size, stack.distance(key)) and read:
                    reads[index][key[0]] = reads[index].get(key[0], 0) + size
                stack.touch(key, size)
                if written:
                    dirty[key] = (index, size)
    for key, (_, size) in list(dirty.items()):
        leaves(key, size, stack.distance(key))
    return reads, writes


@dataclass(frozen=True, slots=True)
class DramTraffic:
    """An estimate of what each kernel of a job moves between L2 and DRAM, one entry a kernel.

    ``reads``: bytes read from DRAM; ``writes``: bytes of its writes that are written back. ``args``: which
    arguments come from DRAM (a bit mask), and the share of their bytes; (0, 0.0) for recorded kernels, whose
    arguments are not known.
    """

    reads: list[int]
    writes: list[int]
    args: list[tuple[int, float]]


def dram_traffic(job: Job, capacity: int) -> DramTraffic:
    """Estimate the traffic between DRAM and an L2 of ``capacity`` bytes, kernels in launch order."""
    pieces = _Pieces()
    reads, writes = _l2_misses(job, capacity, pieces)
    args: list[tuple[int, float]] = []
    for kernel, each in zip(job.kernels, reads, strict=True):
        mask, whole, missed = 0, 0, 0
        if kernel.footprint is None and each:
            touched: dict[int, int] = {}
            for access in kernel.accesses:
                if access.mode != "write" and access.tensor.address in each:
                    size = sum(size for _, size in pieces.of_access(access, kernel.tbs))
                    touched[access.tensor.address] = max(size, touched.get(access.tensor.address, 0))
            for slot, tensor in enumerate(kernel.args):
                mask |= (tensor.address in touched) << slot
            whole, missed = sum(touched.values()), sum(each[address] for address in touched)
        args.append((mask, min(1.0, missed / whole) if whole else 0.0))
    return DramTraffic([sum(each.values()) for each in reads], writes, args)
