"""What software states that the TBs of each launch touch: its hints, or its accesses, as wide as asked.

Hints may be wider than the truth, which costs time alone. Narrower ones would break dependences, so they are
refused (``check_hints``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.access_regions import checked_regions
from pysim.program.job import Access
from pysim.program.regions import union

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel, Tensor

    Ints = NDArray[np.int64]

EXACT = 100  # percent
MODES = {"read": ("read", "write", "update"), "written": ("write", "update")}  # by what hints must say


def stated(job: Job, percent: int) -> Job:
    """Return a job whose launches touch what software states; the same one if that is what they do.

    ``percent``: length of each range against that of what is touched (``widened``). Recorded launches
    (traces) are left as they are. Raises WorkloadError for hints that leave out what a TB touches.
    """
    made = []
    for index, kernel in enumerate(job.kernels):
        told = kernel
        if kernel.hints is not None:
            check_hints(index, kernel)
            told = replace(kernel, accesses=kernel.hints, hints=None)
        if percent != EXACT and kernel.copy is None:
            told = replace(told, accesses=tuple(widened(each, percent) for each in told.accesses))
        made.append(told)
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


def check_hints(index: int, kernel: Kernel) -> None:
    """Refuse hints of launch ``index`` that leave out a byte which one of its TBs touches.

    A hint of what is written also covers what is read. Raises WorkloadError with the first TB and byte.
    """
    if kernel.footprint is not None or kernel.hints is None:
        raise WorkloadError(f"kernel {index} ({kernel.name}): hints of recorded addresses: it has none")
    for what, modes in MODES.items():
        needed = [each for each in kernel.accesses if (each.mode == "read") == (what == "read")]
        said = [each for each in kernel.hints if each.mode in modes]
        for tb in range(kernel.tbs) if needed else ():
            found = _left_out(_bytes_of(needed, tb), union(_bytes_of(said, tb)))
            if found is not None:
                where = _named(found, (each.tensor for each in needed))
                raise WorkloadError(
                    f"kernel {index} ({kernel.name}): its hints leave out what TB {tb} has {what}: {where}"
                )


def _bytes_of(accesses: list[Access], tb: int) -> Ints:
    """Return the byte ranges that a TB touches, int64 (n, 2)."""
    made = [np.zeros((0, 2), np.int64)]
    for each in accesses:
        tensor = each.tensor
        row0, row1, col0, col1 = checked_regions(each, np.array([tb], np.int64))[0].tolist()
        if row0 < row1 and col0 < col1:
            first = tensor.address + np.arange(row0, row1, dtype=np.int64) * tensor.pitch
            ranges = np.stack([first + col0 * tensor.item, first + col1 * tensor.item], axis=1)
            made.append(ranges)
    return np.concatenate(made)


def _left_out(needed: Ints, said: Ints) -> int | None:
    """Return the first byte of ``needed`` that no range of ``said`` has; these are sorted and apart."""
    for first, end in needed.tolist():
        place = int(np.searchsorted(said[:, 0], first, side="right")) - 1
        if place < 0 or said[place, 1] < end:
            return int(first) if place < 0 else max(int(first), int(said[place, 1]))
    return None


def _named(byte: int, tensors: Iterable[Tensor]) -> str:
    """Say which byte of which tensor an address is."""
    for each in tensors:
        if each.address <= byte < each.address + each.nbytes:
            return f"byte {byte - each.address:,} of {each.name}"
    return f"address {byte:#x}"
