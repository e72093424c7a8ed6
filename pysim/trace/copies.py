"""The copies from the host that a trace lists, with compacted addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.copies import copy_kernel
from pysim.program.regions import csr_offsets, difference, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Kernel

    from .converted_file import ConvertedTrace

    Ints = NDArray[np.int64]

MODES = ("ignore", "fill", "time")
PAGE = 21  # bits, as convert.py lays memory out
_TOP = 1 << 52  # addresses of GPUs have at most 49 bits; beyond this lies the converter's local memory


class _Places:
    """Compacted addresses of copies: pages that kernels touch keep theirs, all others come after these."""

    def __init__(self, store: ConvertedTrace, copies: Sequence[tuple[int, int]]) -> None:
        self.pages = np.asarray(store.trace_array("pages"), np.int64)
        touched = np.stack([self.pages, self.pages + 1], axis=1)
        wanted = np.array([(a >> PAGE, ((a + n - 1) >> PAGE) + 1) for a, n in copies], np.int64).reshape(
            -1, 2
        )
        others = difference(union(wanted), union(touched)) if len(copies) else wanted
        # runs of consecutive pages, and the page of the job's memory at which each begins
        at = (store.memory_bytes >> PAGE) + csr_offsets(others[:, 1] - others[:, 0])[:-1]
        first = np.concatenate((self.pages, others[:, 0]))
        order = np.argsort(first, kind="stable")
        self.first = first[order]
        self.last = np.concatenate((self.pages + 1, others[:, 1]))[order]
        self.at = np.concatenate((np.arange(len(self.pages)), at))[order]

    def spans(self, address: int, size: int) -> Ints:
        """Return the byte ranges in the job's memory of ``size`` bytes from ``address`` on, int64 (n, 2)."""
        end = address + size
        low = int(np.searchsorted(self.last, address >> PAGE, side="right"))
        high = int(np.searchsorted(self.first, (end - 1) >> PAGE, side="right"))
        lo = np.maximum(self.first[low:high] << PAGE, address)
        hi = np.minimum(self.last[low:high] << PAGE, end)
        moved = (self.at[low:high] - self.first[low:high]) << PAGE
        return union(np.stack([lo + moved, hi + moved], axis=1))


def copies_before(
    store: ConvertedTrace, chosen: Sequence[int], timed: bool, stream: int
) -> dict[int, list[Kernel]]:
    """Return the copies that come before each of the ``chosen`` kernels (numbers from 0).

    A copy belongs to the next kernel of the list. Copies after the last kernel have the number of kernels as
    their key, and count if all kernels are chosen. A copy of no bytes is left out. ``timed``: copies occupy
    the link; ``stream``: their CUDA stream. Raises WorkloadError for an address that no GPU has.
    """
    last = len(store.kernels)
    wanted = {*chosen, last} if len(set(chosen)) == last else set(chosen)
    mine = [(k, a, n) for k, a, n in store.memcpys if k in wanted and n > 0]
    for _, address, size in mine:
        if address + size > _TOP:
            raise WorkloadError(
                f"{store.path}: a copy of {size} B to 0x{address:x}: beyond the addresses of GPUs"
                " (--memcpy ignore leaves copies out)"
            )
    places = _Places(store, [(a, n) for _, a, n in mine])
    made: dict[int, list[Kernel]] = {}
    for kernel, address, size in mine:
        made.setdefault(kernel, []).append(copy_kernel(places.spans(address, size), timed, stream))
    return made


def with_copies(
    kernels: Sequence[Kernel], before: Sequence[Sequence[Kernel]], after: Sequence[Kernel] = ()
) -> tuple[list[Kernel], list[tuple[int, int]]]:
    """Return kernels with the copies before each in launch order, and the events that order them.

    ``after``: copies after the last kernel.

    Lists contain only cuMemcpyHtoD, a synchronous copy on the legacy default stream: it waits for all earlier
    launches of all streams, and all later launches wait for it.
    """
    made: list[Kernel] = []
    events: list[tuple[int, int]] = []
    last: dict[int, int] = {}  # of each stream: its last kernel
    copied = -1  # the last copy
    ordered: set[int] = set()  # streams that have waited for it

    def add(copies: Sequence[Kernel]) -> None:
        nonlocal copied, ordered
        for copy in copies:
            events.extend((index, len(made)) for index in last.values() if index > copied)
            copied, ordered = len(made), set()
            made.append(copy)

    for kernel, copies in zip(kernels, before, strict=True):
        add(copies)
        if copied >= 0 and kernel.stream not in ordered:
            events.append((copied, len(made)))
            ordered.add(kernel.stream)
        last[kernel.stream] = len(made)
        made.append(kernel)
    add(after)
    return made, events
