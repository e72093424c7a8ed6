"""What software states that the TBs of each launch touch: its hints, or its accesses, as wide as asked.

Hints may be wider than the truth, which costs time alone. Narrower ones would break dependences, so they are
refused (``check_hints``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.access_regions import checked_regions
from pysim.program.job import Access
from pysim.program.regions import expand_ranges, merge_sorted, overlaps, union
from pysim.program.written_memory import written_by_job

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel, Tensor

    Ints = NDArray[np.int64]

EXACT = 100  # percent
_RANGES = 1 << 20  # byte ranges that are compared at once
MODES = {"read": ("read", "write", "update"), "written": ("write", "update")}  # by what hints must say


def stated(job: Job, percent: int) -> Job:
    """Return a job whose launches touch what software states; the same one if that is what they do.

    ``percent``: length of each range against that of what is touched (``widened``). Recorded launches
    (traces) are left as they are. Raises WorkloadError for hints that leave out what a TB touches.
    """
    changing: Ints | None = None
    known: dict[int, Kernel] = {}  # by the id of a kernel: the same one may be launched often
    for index, kernel in enumerate(job.kernels):
        if id(kernel) in known:
            continue
        told = kernel
        if kernel.hints is not None:
            changing = written_by_job(job) if changing is None else changing
            check_hints(index, kernel, changing)
            told = replace(kernel, accesses=kernel.hints, hints=None)
        if percent != EXACT and kernel.copy is None:
            told = replace(told, accesses=tuple(widened(each, percent) for each in told.accesses))
        known[id(kernel)] = told
    made = [known[id(kernel)] for kernel in job.kernels]
    return job if all(a is b for a, b in zip(made, job.kernels, strict=True)) else replace(job, kernels=made)


def widened(access: Access, percent: int) -> Access:
    """Return an access to ranges ``percent`` as long, half of the rest on either side, inside the operand.

    What is beyond the width of the operand goes to further rows.
    """
    tensor, regions = access.tensor, access.regions

    def wider(tbs: Ints) -> Ints:
        made = np.array(regions(tbs), np.int64).reshape(-1, 4)
        row0, row1, col0, col1 = made.T
        some = (row0 < row1) & (col0 < col1)
        wide, high = col1 - col0, row1 - row0
        cols = np.minimum(-(-wide * percent // EXACT), tensor.cols)
        rows = np.minimum(-(-high * wide * percent // np.maximum(EXACT * cols, 1)), tensor.rows)
        made[:, 0], made[:, 1] = _around(row0, high, np.maximum(rows, high), tensor.rows)
        made[:, 2], made[:, 3] = _around(col0, wide, cols, tensor.cols)
        made[~some] = 0
        return made

    return Access(tensor, access.mode, wider)


def _around(first: Ints, length: Ints, wanted: Ints, limit: int) -> tuple[Ints, Ints]:
    """Return ranges of a ``wanted`` length around ranges, moved to lie between 0 and ``limit``."""
    begin = np.clip(first - (wanted - length) // 2, 0, limit - wanted)
    return begin, begin + wanted


def check_hints(index: int, kernel: Kernel, changing: Ints) -> None:
    """Refuse hints of launch ``index`` that leave out a byte which one of its TBs touches.

    A hint of what is written also covers what is read. ``changing``: memory that the job writes, (n, 2);
    operands in other memory need no hint. Raises WorkloadError with the first TB and byte.
    """
    where = f"kernel {index} ({kernel.name})"
    if kernel.footprint is not None or kernel.hints is None:
        raise WorkloadError(f"{where}: hints of recorded addresses: it has none")
    hints = [_Ranges.of(each, kernel.tbs, f"{where}: hints") for each in kernel.hints]
    for what, modes in MODES.items():
        spans = (
            (each, each.tensor.address, each.tensor.address + each.tensor.nbytes) for each in kernel.accesses
        )
        operands = [each for each, first, end in spans if overlaps(changing, first, end)]
        touched = [each for each in operands if (each.mode == "read") == (what == "read")]
        needed = [_Ranges.of(each, kernel.tbs, where) for each in touched]
        said = [each for each in hints if each.access.mode in modes]
        tb = _first_left_out(needed, said, kernel.tbs)
        if tb is not None:
            which = np.array([tb], np.int64)
            byte = _left_out(_bytes(needed, which), union(_bytes(said, which)))
            text = _named(byte, (each.tensor for each in touched))
            raise WorkloadError(f"{where}: its hints leave out what TB {tb} has {what}: {text}")


@dataclass(frozen=True, slots=True)
class _Ranges:
    """The bytes that TBs touch by an access.

    ``rects``: of each TB, int64 (n, 4): first row, last row and one, first byte in a row, last byte and one;
    ``first``, ``end``: of all its bytes; ``rows``: how many ranges they are. A TB that touches none has 0.
    """

    access: Access
    rects: Ints
    first: Ints
    end: Ints
    rows: Ints

    @classmethod
    def of(cls, access: Access, tbs: int, where: str) -> _Ranges:
        """Return the bytes of an access; WorkloadErrors begin with ``where``."""
        tensor = access.tensor
        made = checked_regions(access, np.arange(tbs, dtype=np.int64), where)
        rects = made * np.array([1, 1, tensor.item, tensor.item])
        row0, row1, byte0, byte1 = rects.T
        some = (row0 < row1) & (byte0 < byte1)
        first = tensor.address + row0 * tensor.pitch + byte0
        end = tensor.address + (row1 - 1) * tensor.pitch + byte1
        rows = np.where((byte0 == 0) & (byte1 == tensor.pitch), 1, row1 - row0)
        return cls(access, rects, *(np.where(some, each, 0) for each in (first, end, rows)))

    def cover(self, other: _Ranges) -> NDArray[np.bool_]:
        """Whether this one range, or rectangle of the same matrix, has all bytes of the other one, by TB."""
        inside: NDArray[np.bool_] = (self.rows == 1) & (self.first <= other.first) & (other.end <= self.end)
        mine, its = self.access.tensor, other.access.tensor
        if (mine.address, mine.pitch) == (its.address, its.pitch):
            a, b = self.rects, other.rects
            within = (a[:, [0, 2]] <= b[:, [0, 2]]) & (b[:, [1, 3]] <= a[:, [1, 3]])
            inside |= (self.rows > 0) & within.all(axis=1)
        inside |= other.rows == 0
        return inside

    def bytes_of(self, tbs: Ints) -> tuple[Ints, Ints]:
        """Return the byte ranges of some TBs, int64 (n, 2), and the place of the TB of each in ``tbs``."""
        rows, first, end = self.rows[tbs], self.first[tbs], self.end[tbs]
        owner = np.repeat(np.arange(len(tbs), dtype=np.int64), rows)
        begin = expand_ranges(np.zeros(len(tbs), np.int64), rows) * self.access.tensor.pitch + first[owner]
        wide = np.where(rows == 1, end - first, self.rects[tbs, 3] - self.rects[tbs, 2])
        return np.stack([begin, begin + wide[owner]], axis=1), owner


def _first_left_out(needed: Sequence[_Ranges], said: Sequence[_Ranges], tbs: int) -> int | None:
    """Return the first TB that touches a byte of ``needed`` which ``said`` has not."""
    left = np.zeros(tbs, bool)
    for each in needed:
        left |= ~np.any([*(one.cover(each) for one in said), each.rows == 0], axis=0)
    asked = np.flatnonzero(left)
    # several hints may cover an access together; a number of TBs at a time, which bounds memory
    ends = np.cumsum(sum((each.rows[asked] for each in (*needed, *said)), np.ones(len(asked), np.int64)))
    for some in np.split(asked, np.flatnonzero(np.diff(ends // _RANGES)) + 1):
        wrong = _uncovered(needed, said, some)
        if len(wrong):
            return int(some[wrong.min()])
    return None


def _uncovered(needed: Sequence[_Ranges], said: Sequence[_Ranges], tbs: Ints) -> Ints:
    """Return the places in ``tbs`` of those with a range of ``needed`` that is not in ranges of ``said``."""
    (asked, who), (told, whose) = (_joined(each, tbs) for each in (needed, said))
    order = np.lexsort((told[:, 0], whose))
    lo, hi, whose = merge_sorted(told[order, 0], told[order, 1], whose[order])
    # by TB, then by address: a key of both, in which ranks stand for addresses
    begins, rank = np.unique(np.concatenate((lo, asked[:, 0])), return_inverse=True)
    key = np.concatenate((whose, who)) * len(begins) + rank.reshape(-1)
    place = np.searchsorted(key[: len(lo)], key[len(lo) :], side="right") - 1
    if not len(lo):
        return who
    wrong = (place < 0) | (whose[place] != who) | (hi[place] < asked[:, 1])
    return np.asarray(who[wrong])


def _joined(ranges: Sequence[_Ranges], tbs: Ints) -> tuple[Ints, Ints]:
    """Return the byte ranges of some TBs in all of some accesses, and the place of the TB of each."""
    made = [each.bytes_of(tbs) for each in ranges]
    none = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
    spans, owner = zip(none, *made, strict=True)
    return np.concatenate(spans), np.concatenate(owner)


def _bytes(ranges: Sequence[_Ranges], tbs: Ints) -> Ints:
    return _joined(ranges, tbs)[0]


def _left_out(needed: Ints, said: Ints) -> int:
    """Return the first byte of ``needed`` that no range of ``said`` has; these are sorted and apart."""
    for first, end in needed.tolist():
        place = int(np.searchsorted(said[:, 0], first, side="right")) - 1
        if place < 0 or said[place, 1] < end:
            return int(first) if place < 0 else max(int(first), int(said[place, 1]))
    raise AssertionError("no byte is left out")


def _named(byte: int, tensors: Iterable[Tensor]) -> str:
    """Say which byte of which tensor an address is."""
    for each in tensors:
        if each.address <= byte < each.address + each.nbytes:
            return f"byte {byte - each.address:,} of {each.name}"
    return f"address {byte:#x}"
