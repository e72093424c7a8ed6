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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Access, Job, Kernel

    Ints = NDArray[np.int64]

LEVELS = 3  # nested loops of a hint
ADDRESS_BITS = 48
# mode, loops; address; rows, bytes of a row, distance of rows; of each loop how often and how far
HINT_BITS = (2 + 2, ADDRESS_BITS, 3 * 32, LEVELS * (24 + 40))
HINT_BYTES = -(-sum(HINT_BITS) // 8)


@dataclass(frozen=True, slots=True)
class LaunchHints:
    """Hints of all launches; arrays have one element a launch.

    ``job``: the launches, as if they touched what their hints state. ``operands``: of each launch, int64
    (n, 4): first byte, end, whether it is written, hints. ``by_tb``: whether they tell its TBs apart.
    ``missing``: it has none, so it waits for all before it, and all after it for it.
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
    def packet_bytes(self) -> Ints:
        """Bytes of the hints in each launch packet."""
        return self.count * HINT_BYTES

    def rules(self, kernel: int, producer: int) -> int:
        """Return the pairs of hints of two launches that conflict: each is a rule for edges between TBs.

        Such a rule follows from two hints by a division a loop: which TBs of the one meet a TB of the other.
        """
        a, b = self.operands[kernel][:, None], self.operands[producer][None]
        meet = (a[..., 0] < b[..., 1]) & (b[..., 0] < a[..., 1]) & ((a[..., 2] | b[..., 2]) != 0)
        return int((a[..., 3] * b[..., 3])[meet].sum())


def loops_of(rows: Ints) -> int:
    """Return how many hints a table takes, of which row t is what TB t touches; (n, columns) of numbers.

    Equal neighbours, and neighbours that move by one step, are a loop; equal loops that move by one step are
    a loop of loops.
    """
    # what is the same in all pieces of a level: lengths and steps of the inner loops
    starts = rows
    shape = np.zeros((len(rows), 0), np.int64)
    for _ in range(LEVELS):
        if len(starts) < 2:
            break
        starts, shape = _joined(starts, shape)
    return len(starts)


def _joined(starts: Ints, shape: Ints) -> tuple[Ints, Ints]:
    """Return the pieces that remain where neighbours of equal shape and with an even step are joined."""
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
    return starts[first], np.column_stack([shape[first], lengths, moved])


def _touched(access: Access, tbs: int) -> Ints:
    """Return what each TB touches of an operand: first row and column, rows and columns, int64 (n, 4).

    At the ends of the operand a rectangle may be cut; the hint is not, and hardware cuts it.
    """
    tensor = access.tensor
    row0, row1, col0, col1 = checked_regions(access, np.arange(tbs, dtype=np.int64)).T
    some = (row0 < row1) & (col0 < col1)
    high, wide = row1 - row0, col1 - col0
    most_high, most_wide = (int(size[some].max(initial=0)) for size in (high, wide))
    row0, high = _uncut(row0, row1, tensor.rows, most_high)
    col0, wide = _uncut(col0, col1, tensor.cols, most_wide)
    return np.stack([row0, col0, high, wide], axis=1)[some]


def _uncut(first: Ints, end: Ints, limit: int, most: int) -> tuple[Ints, Ints]:
    """Return (first, length) of ranges as they were before the ends of an operand, 0 and ``limit``, cut them.

    ``most``: the length of one that is not cut.
    """
    low, high = (first == 0) & (end < limit), end == limit
    first = np.where(low, end - most, first)
    return first, np.where(low | high, most, end - first)


def _whole(access: Access) -> Access:
    """Return an access that states its operand as a whole for each TB."""
    row = np.array([0, access.tensor.rows, 0, access.tensor.cols], np.int64)

    def regions(tbs: Ints) -> Ints:
        return np.tile(row, (len(tbs), 1))

    return replace(access, regions=regions)


def _operands(kernel: Kernel, counts: Sequence[int]) -> Ints:
    """Return the rows of ``LaunchHints.operands`` of a launch."""
    tensors = [(access.tensor, access.mode != "read") for access in kernel.accesses]
    ends = [(t.address, t.address + t.nbytes, written) for t, written in tensors]
    return np.array([(*row, n) for row, n in zip(ends, counts, strict=True)], np.int64).reshape(-1, 4)


def hinted(kernel: Kernel, limit: int) -> tuple[Kernel, Ints, bool]:
    """Return a launch that touches what its hints state, its operands, and whether hints tell TBs apart.

    Where its operands take more than ``limit`` hints, those with most are stated as a whole until the others
    fit. Recorded addresses are stated as ranges of the launch, not of its TBs: those of an earlier launch.
    """
    if kernel.copy is not None or kernel.footprint is not None:
        return kernel, _operands(kernel, [1] * len(kernel.accesses)), kernel.footprint is None
    counts = [loops_of(_touched(access, kernel.tbs)) for access in kernel.accesses]
    accesses = list(kernel.accesses)
    while sum(counts) > limit and max(counts) > 1:
        most = counts.index(max(counts))
        counts[most], accesses[most] = 1, _whole(accesses[most])
    if accesses != list(kernel.accesses):
        kernel = replace(kernel, accesses=tuple(accesses))
    return kernel, _operands(kernel, counts), True


def launch_hints(job: Job, values: Mapping[str, int]) -> LaunchHints:
    """Return the hints of all launches; a share ``scheme.auto.missing`` of kernels, but no copy, has none."""
    limit, share = values["scheme.auto.hints"], values["scheme.auto.missing"] / 65536
    lost = np.random.default_rng(values["sim.seed"]).random(len(job.kernels)) < share
    lost &= np.array([kernel.copy is None for kernel in job.kernels], bool)
    operands = [np.zeros((0, 4), np.int64)] * len(job.kernels)
    by_tb = np.zeros(len(job.kernels), bool)
    made: list[Kernel] = []
    for index, kernel in enumerate(job.kernels):
        if lost[index]:
            made.append(kernel)
            continue
        told, operands[index], by_tb[index] = hinted(kernel, limit)
        made.append(told)
    changed = any(told is not kernel for told, kernel in zip(made, job.kernels, strict=True))
    return LaunchHints(replace(job, kernels=made) if changed else job, operands, by_tb, lost)
