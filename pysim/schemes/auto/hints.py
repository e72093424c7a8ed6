"""Address hints of launches: the strided ranges that software states with a launch.

A hint names the bytes that consecutive TBs touch of one operand: a rectangle of rows that moves by a fixed
step from TB to TB, in up to ``LEVELS`` nested loops. So it follows from a tile's index arithmetic, which a
programmer or a compiler of tiles knows. An operand takes as many hints as its loops need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.access_regions import checked_regions
from pysim.program.job import Access, Tensor
from pysim.program.regions import covering, intersection, overlaps, union
from pysim.program.written_memory import written_by_job
from pysim.schemes.stated_hints import stated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel, Mode

    Ints = NDArray[np.int64]

LEAST = 2  # words of a launch: what it reads, and what it writes
LEVELS = 3  # nested loops of a hint
LOOP = {"how often": 16, "how far": 28}  # turns, and bytes from turn to turn
# a hint is a word, and one or two more: what they hold, and bits; lengths and distances are in bytes. It is
# cut at the begin and the end of a view. Nothing checks that the numbers of a hint fit into their fields.
WORDS = (
    # of consecutive bytes that move by a loop over the TBs
    {"mode": 2, "loops": 2, "address": 48, "bytes": 24, "begin": 16, "end": 32, **LOOP},
    # of rows, or of two loops
    {"rows": 16, "distance of rows": 24, "begin of a row": 16, "end of a row": 24, **LOOP},
    LOOP,
)
WORD_BITS = max(sum(word.values()) for word in WORDS)
WORD_BYTES = -(-WORD_BITS // 8)
ONE = (1, 1)  # hints and words of one range


@dataclass(frozen=True, slots=True)
class LaunchHints:
    """Hints of all launches; arrays have one element a launch.

    ``job``: the launches, as if they touched what their hints state. ``operands``: of each launch, int64
    (n, 5): first byte, end, whether it is written, hints, words that these take. ``by_tb``: whether they tell
    its TBs apart. ``missing``: it has none, so it waits for all before it, and all after it for it.
    """

    job: Job
    operands: list[Ints]
    by_tb: NDArray[np.bool_]
    missing: NDArray[np.bool_]

    @property
    def count(self) -> Ints:
        """Hints of each launch."""
        return np.array([int(each[:, 3].sum()) for each in self.operands], np.int64)

    @property
    def words(self) -> Ints:
        """Words of the hints of each launch."""
        return np.array([int(each[:, 4].sum()) for each in self.operands], np.int64)

    @property
    def packet_bytes(self) -> Ints:
        """Bytes of the hints in each launch packet."""
        return self.words * WORD_BYTES

    def rules(self, kernel: int, producer: int) -> int:
        """Return the pairs of hints of two launches that conflict: each is a rule for edges between TBs.

        Such a rule follows from two hints by a division a loop: which TBs of the one meet a TB of the other.
        """
        a, b, meet = self._meeting(kernel, producer)
        return int((a[..., 3] * b[..., 3])[meet].sum())

    def evaluated(self, kernel: int, producer: int) -> int:
        """Return the rules that the end of a TB of ``producer`` evaluates: of one of an operand's hints."""
        a, _, meet = self._meeting(kernel, producer)
        return int(np.broadcast_to(a[..., 3], meet.shape)[meet].sum())

    def _meeting(self, kernel: int, producer: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Return the operands of two launches, (n, 1, 5) and (1, m, 5), and which conflict, (n, m)."""
        a, b = self.operands[kernel][:, None], self.operands[producer][None]
        meet = (a[..., 0] < b[..., 1]) & (b[..., 0] < a[..., 1]) & ((a[..., 2] | b[..., 2]) != 0)
        return a, b, meet


def size_of(rows: Ints) -> tuple[int, int]:
    """Return hints and words of a table, of which row t is what TB t touches.

    ``rows``: (n, 4): first row and column, rows, columns. Equal neighbours, and neighbours that move by one
    step, are a loop; equal loops that move by one step are a loop of loops.
    """
    # what is the same in all pieces of a level: lengths and steps of the inner loops
    starts = rows
    shape = np.zeros((len(rows), 0), np.int64)
    nested = np.zeros(len(rows), np.int64)
    for _ in range(LEVELS):
        if len(starts) < 2:
            break
        starts, shape, nested = _joined(starts, shape, nested)
    more = (nested >= 2) | (starts[:, 2] > 1)
    return len(starts), int((1 + more + (nested >= 3)).sum())


def _joined(starts: Ints, shape: Ints, nested: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the pieces that remain where neighbours of equal shape and with an even step are joined.

    ``nested``: loops of each piece.
    """
    step = np.diff(starts, axis=0)
    alike = (shape[1:] == shape[:-1]).all(axis=1)
    count = len(starts)
    begin: list[int] = []
    lengths: list[int] = []
    # of each place, how far the step to the next stays the same
    same = np.zeros(count - 1, bool)
    same[1:] = (step[1:] == step[:-1]).all(axis=1) & alike[1:] & alike[:-1]
    breaks = np.append(np.flatnonzero(~same), count - 1)
    at = 0
    while at < count:
        if at == count - 1 or not alike[at]:
            length = 1
        else:
            # the run of equal steps that begins at ``at`` ends before the next break after it
            length = int(breaks[np.searchsorted(breaks, at, side="right")]) - at + 1
        begin.append(at)
        lengths.append(length)
        at += length
    first = np.array(begin, np.int64)
    moved = np.zeros((len(first), starts.shape[1]), np.int64)
    inside = first < count - 1
    moved[inside] = step[first[inside]]
    alone = np.array(lengths) == 1
    moved[alone] = 0
    return starts[first], np.column_stack([shape[first], lengths, moved]), nested[first] + ~alone


def _touched(access: Access, tbs: int) -> Ints:
    """Return what each TB touches of an operand: first row and column, rows and columns, int64 (n, 4).

    A rectangle may be cut at the ends of what all TBs touch, a view of the operand; the hint is not, and
    hardware cuts it.
    """
    row0, row1, col0, col1 = checked_regions(access, np.arange(tbs, dtype=np.int64)).T
    some = (row0 < row1) & (col0 < col1)
    high, wide = row1 - row0, col1 - col0
    most_high, most_wide = (int(size[some].max(initial=0)) for size in (high, wide))
    row0, high = _uncut(row0, row1, some, most_high)
    col0, wide = _uncut(col0, col1, some, most_wide)
    made: Ints = np.stack([row0, col0, high, wide], axis=1)[some]
    return made


def _uncut(first: Ints, end: Ints, some: NDArray[np.bool_], most: int) -> tuple[Ints, Ints]:
    """Return (first, length) of ranges as they were before the ends of all of them cut them.

    ``some``: those that are not empty; ``most``: the length of one that is not cut.
    """
    if not some.any():
        return first, end - first
    low, high = int(first[some].min()), int(end[some].max())
    at_begin, at_end = (first == low) & (end < high), end == high
    first = np.where(at_begin, end - most, first)
    return first, np.where(at_begin | at_end, most, end - first)


def _whole(tensor: Tensor, mode: Mode) -> Access:
    """Return an access of each TB to all of a tensor."""
    row = np.array([0, tensor.rows, 0, tensor.cols], np.int64)

    def regions(tbs: Ints) -> Ints:
        return np.tile(row, (len(tbs), 1))

    return Access(tensor, mode, regions)


def _spans(kernel: Kernel, written: bool) -> Ints:
    """Return the byte ranges that a launch reads, or those that it writes, by whole operands."""
    if kernel.footprint is not None:
        ranges = kernel.footprint.written_ranges if written else kernel.footprint.read_ranges
        return ranges(kernel.tbs, kernel.name)
    tensors = [access.tensor for access in kernel.accesses if (access.mode != "read") == written]
    return union(np.array([(t.address, t.address + t.nbytes) for t in tensors], np.int64).reshape(-1, 2))


def _coarse(kernel: Kernel, changing: Ints, limit: int) -> tuple[Kernel, Ints]:
    """Return a launch that states ``limit`` ranges or fewer, at least one of each mode, for all its TBs."""
    reads = intersection(_spans(kernel, False), changing)
    writes = _spans(kernel, True)
    most = max(1, limit * len(reads) // max(1, len(reads) + len(writes)))
    made: list[Access] = []
    modes: tuple[Mode, Mode] = ("read", "write")
    for mode, spans, room in zip(modes, (reads, writes), (most, max(1, limit - most)), strict=True):
        for number, (first, end) in enumerate(covering(spans, room).tolist()):
            made.append(_whole(Tensor(f"{mode} {number}", 1, end - first, 1, first), mode))
    told = replace(kernel, accesses=tuple(made), footprint=None)
    return told, _operands(told, [ONE] * len(made), changing)


def _needs_hint(access: Access, changing: Ints) -> bool:
    """Whether an operand is in memory that the job writes."""
    tensor = access.tensor
    return overlaps(changing, tensor.address, tensor.address + tensor.nbytes)


def _operands(kernel: Kernel, sizes: Sequence[tuple[int, int]], changing: Ints) -> Ints:
    """Return the rows of ``LaunchHints.operands`` of a launch; ``sizes``: hints and words of its accesses."""
    made = []
    for access, size in zip(kernel.accesses, sizes, strict=True):
        if _needs_hint(access, changing):
            tensor = access.tensor
            made.append((tensor.address, tensor.address + tensor.nbytes, access.mode != "read", *size))
    return np.array(made, np.int64).reshape(-1, 5)


def hinted(kernel: Kernel, changing: Ints, limit: int) -> tuple[Kernel, Ints, bool]:
    """Return a launch that touches what its hints state, its operands, and whether hints tell TBs apart.

    ``changing``: memory that the job writes; what it never writes, such as weights, needs no hint. Where the
    operands take more than ``limit`` words, those with most are stated as a whole until the others fit, and
    at last neighbours are joined. Recorded addresses are stated as ``limit`` ranges of the launch, or fewer.
    """
    if kernel.copy is not None:
        return kernel, _operands(kernel, [ONE] * len(kernel.accesses), changing), True
    if kernel.footprint is not None:
        return *_coarse(kernel, changing, limit), False
    accesses = list(kernel.accesses)
    sizes = [
        size_of(_touched(each, kernel.tbs)) if _needs_hint(each, changing) else (0, 0) for each in accesses
    ]
    while sum(words for _, words in sizes) > limit and max(words for _, words in sizes) > 1:
        most = max(range(len(sizes)), key=lambda place: sizes[place][1])
        sizes[most], accesses[most] = ONE, _whole(accesses[most].tensor, accesses[most].mode)
    if sum(words for _, words in sizes) > limit:
        return *_coarse(kernel, changing, limit), False
    if accesses != list(kernel.accesses):
        kernel = replace(kernel, accesses=tuple(accesses))
    return kernel, _operands(kernel, sizes, changing), True


def launch_hints(job: Job, values: Mapping[str, int]) -> LaunchHints:
    """Return the hints of all launches; a share ``scheme.auto.missing`` of kernels, but no copy, has none."""
    told_job = stated(job, values["scheme.auto.widen"])
    share = values["scheme.auto.missing"] / 65536
    lost = np.random.default_rng(values["sim.seed"]).random(len(job.kernels)) < share
    lost &= np.array([kernel.copy is None for kernel in job.kernels], bool)
    operands = [np.zeros((0, 5), np.int64)] * len(job.kernels)
    by_tb = np.zeros(len(job.kernels), bool)
    made: list[Kernel] = []
    changing = written_by_job(job)
    limit = max(LEAST, min(values["scheme.auto.hints"], values["scheme.auto.store"]))
    for index, kernel in enumerate(told_job.kernels):
        told = kernel
        if not lost[index]:
            told, operands[index], by_tb[index] = hinted(kernel, changing, limit)
        made.append(told)
    changed = any(told is not kernel for told, kernel in zip(made, job.kernels, strict=True))
    return LaunchHints(replace(job, kernels=made) if changed else job, operands, by_tb, lost)
