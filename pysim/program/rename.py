"""``--rename``: the job without reuse of buffers, as register renaming removes WAR and WAW hazards.

A framework's allocator reuses the memory of dead tensors, which adds WAR and WAW edges. Here every value gets
its own memory. Where a kernel overwrites a whole buffer and reads nothing of it, the old contents are dead,
so from this kernel on the buffer has new addresses. A buffer that is updated in place, or written by several
kernels, keeps its addresses, as does one that a kernel names by an address in its program (``multi_tensor``).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pysim.errors import WorkloadError

from .access_regions import checked_regions, regions_of
from .job import ALIGN, Access, Job, Kernel, Tensor
from .regions import SECTOR, union

RAGGED = 1 << 25  # cells between edges of written rectangles: with more, a write counts as partial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray


def _all_memory(kernel: Kernel) -> Tensor | None:
    """Return an argument that is all memory, from address 0 on, where no access begins; else None."""
    if any(access.tensor.address == 0 for access in kernel.accesses):
        return None
    return next((tensor for tensor in kernel.args if tensor.address == 0), None)


def _tensors(kernel: Kernel) -> Iterable[Tensor]:
    """Yield the tensors that a kernel names; all memory is none."""
    memory = _all_memory(kernel)
    args = (tensor for tensor in kernel.args if tensor is not memory)
    return (*args, *(access.tensor for access in (*kernel.accesses, *(kernel.hints or ()))))


def _buffers(kernels: Sequence[Kernel]) -> list[tuple[int, int]]:
    """Return (start, end) of each buffer in bytes, ascending; tensors that share memory are one buffer."""
    tensors = {(t.address, t.address + t.nbytes) for kernel in kernels for t in _tensors(kernel)}
    spans: list[tuple[int, int]] = []
    for start, end in sorted(tensors):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
        spans[-1] = (spans[-1][0], max(spans[-1][1], end))
    return spans


def _every_element(writes: Sequence[Access], tbs: int) -> bool:
    """Whether accesses to one tensor write each of its elements; False if regions are too ragged to tell."""
    tensor = writes[0].tensor
    rects = np.concatenate([checked_regions(access, np.arange(tbs, dtype=np.int64)) for access in writes])
    rects = np.clip(rects, 0, [tensor.rows, tensor.rows, tensor.cols, tensor.cols])
    rects = rects[(rects[:, 0] < rects[:, 1]) & (rects[:, 2] < rects[:, 3])]
    rows = np.unique(np.concatenate([rects[:, :2].ravel(), [0, tensor.rows]]))
    cols = np.unique(np.concatenate([rects[:, 2:].ravel(), [0, tensor.cols]]))
    if len(rows) * len(cols) > RAGGED:
        return False
    # a 2-D prefix sum of +1 and -1 at the corners counts the rectangles over each cell between edges
    change = np.zeros((len(rows), len(cols)), np.int64)
    top, bottom = np.searchsorted(rows, rects[:, 0]), np.searchsorted(rows, rects[:, 1])
    left, right = np.searchsorted(cols, rects[:, 2]), np.searchsorted(cols, rects[:, 3])
    for at, across, sign in ((top, left, 1), (top, right, -1), (bottom, left, -1), (bottom, right, 1)):
        np.add.at(change, (at, across), sign)
    return bool((change.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0).all())


class _Renamer:
    """Walks the kernels in launch order and keeps the current address of each buffer."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.spans = _buffers(kernels)
        self.starts = [start for start, _ in self.spans]
        self.next = max((end for _, end in self.spans), default=0)
        self.fixed = {
            self._buffer(access.tensor)
            for kernel in kernels if _all_memory(kernel) is not None for access in kernel.accesses
        }  # fmt: skip
        self.used: set[int] = set()
        self.shift: dict[int, int] = {}
        # the old tensor is kept beside the new one: an id is unique only while its object lives
        self.moved: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        self.covers: dict[tuple[int, int, int], NDArray[np.int64]] = {}

    def _buffer(self, tensor: Tensor) -> int:
        return bisect_right(self.starts, tensor.address) - 1

    def _whole(self, where: int, writes: Sequence[Access], tbs: int) -> bool:
        """Whether the accesses together write every element of the buffer."""
        runs = []
        for access in writes:
            key = (id(access.regions), id(access.tensor), tbs)
            if key not in self.covers:
                lo, hi, _ = regions_of(access, tbs).intervals()
                self.covers[key] = union(np.stack([lo, hi], axis=1))
            runs.append(self.covers[key])
        start, end = self.spans[where]
        made = union(np.concatenate(runs))
        if len(made) != 1 or made[0, 0] * SECTOR > start or made[0, 1] * SECTOR < end:
            return False
        # sectors may be written in part, so elements are checked too
        tensors: dict[tuple[int, ...], list[Access]] = {}
        for access in writes:
            t = access.tensor
            tensors.setdefault((t.address, t.rows, t.cols, t.item, t.pitch), []).append(access)
        spans = union(np.array([(a[0].tensor.address, a[0].tensor.address + a[0].tensor.nbytes)
                                for a in tensors.values()], np.int64))  # fmt: skip
        return spans.tolist() == [[start, end]] and all(_every_element(a, tbs) for a in tensors.values())

    def kernel(self, kernel: Kernel) -> Kernel:
        """Return the kernel with its tensors at their current addresses."""
        if kernel.footprint is not None:
            raise WorkloadError(
                f"kernel {kernel.name} was recorded: its buffers are not known, so it cannot be renamed"
            )
        by_buffer: dict[int, list[Access]] = {}
        for access in kernel.accesses:
            by_buffer.setdefault(self._buffer(access.tensor), []).append(access)
        for where, accesses in by_buffer.items():
            fresh = all(access.mode == "write" for access in accesses)
            movable = where in self.used and where not in self.fixed and fresh
            if movable and self._whole(where, accesses, kernel.tbs):
                lo, hi = self.spans[where]
                self.shift[where] = -(-(self.next - lo) // ALIGN) * ALIGN
                self.next = hi + self.shift[where]
            self.used.add(where)
        mine = {self._buffer(tensor) for tensor in _tensors(kernel)}
        return self._placed(kernel, {where: self.shift[where] for where in mine if where in self.shift})

    def _placed(self, kernel: Kernel, shifts: dict[int, int]) -> Kernel:
        if not shifts:
            return kernel
        sized = kernel.with_warps
        return replace(
            kernel,
            args=tuple(self._tensor(tensor, shifts) for tensor in kernel.args),
            accesses=self._accesses(kernel.accesses, shifts),
            hints=None if kernel.hints is None else self._accesses(kernel.hints, shifts),
            with_warps=None if sized is None else lambda warps: self._placed(sized(warps), shifts),
        )

    def _accesses(self, accesses: Iterable[Access], shifts: dict[int, int]) -> tuple[Access, ...]:
        return tuple(replace(each, tensor=self._tensor(each.tensor, shifts)) for each in accesses)

    def _tensor(self, tensor: Tensor, shifts: dict[int, int]) -> Tensor:
        shift = shifts.get(self._buffer(tensor), 0)
        if not shift:
            return tensor
        key = (id(tensor), shift)
        if key not in self.moved:
            self.moved[key] = tensor, replace(tensor, address=tensor.address + shift)
        return self.moved[key][1]


def renamed(job: Job) -> Job:
    """Return the job in which every value has its own memory.

    Raises WorkloadError for a job with recorded kernels, of which no tensors are known.
    """
    renamer = _Renamer(job.kernels)
    made = replace(job, name=f"{job.name}, renamed", kernels=[renamer.kernel(k) for k in job.kernels])
    if (origin := job.origin) is None:
        return made
    args = (origin.make, origin.args)
    return made.with_origin(replace(origin, make=_renamed_again, args=args, renamed=True))


def _renamed_again(make: Callable[..., Job], args: tuple[Any, ...]) -> Job:
    return renamed(make(*args))
