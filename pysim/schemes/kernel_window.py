"""Kernels compared by address ranges, as ACS does (Durvasula et al., arXiv 2401.12377, 2024).

Each kernel comes with the segments that it reads and writes; one that enters the window waits for those in it
that it conflicts with. The published test compares older ranges with what the new kernel *writes*, and so
misses a read after a write; here all three are compared: read after write, write after read, write after
write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.dependence.groups import reduced
from pysim.program.regions import SECTOR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Access, Job, Kernel

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
    return reduced(preds), counts
