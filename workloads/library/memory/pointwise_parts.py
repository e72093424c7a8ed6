"""What the templates of memory-bound kernels share: lines of lanes, footprints of TBs, instruction counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pysim.program.job import Access, Mode, Tensor
from pysim.program.warp_program import Code, Pattern
from pysim.workloads.kernels.tiles import WARP, collapse
from pysim.workloads.library.arguments import check_names
from pysim.workloads.library.hopper import SHUFFLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

ITEM = {"fp32": 4, "bf16": 2, "fp16": 2}  # bytes of an element
THREADS_SM = 2048
LAST_X, LAST_Y = 1, 2  # bits of a program's variant


@dataclass(frozen=True, slots=True)
class Work:
    """Instructions of a thread, by pipe, and the cycles of its dependence chain beyond their issue.

    ``wait``: cycles in which the warp issues nothing (calls, branches, misses of the instruction cache).
    """

    fp32: int = 0
    ints: int = 0
    sfu: int = 0
    fp64: int = 0
    control: int = 0
    wait: int = 0

    def times(self, count: int) -> Work:
        """Return the work of ``count`` elements, whose chains overlap."""
        issued = (self.fp32, self.ints, self.sfu, self.fp64, self.control)
        fp32, ints, sfu, fp64, control = (n * count for n in issued)
        return Work(fp32, ints, sfu, fp64, control, self.wait)

    def emit(self, code: Code) -> None:
        """Add the instructions, then the wait."""
        pipes = {"fp32": self.fp32, "int": self.ints, "sfu": self.sfu, "fp64": self.fp64}
        code.compute(**pipes, control=self.control, chain=4)
        if self.wait:
            code.delay(self.wait)


def item_of(dtype: str) -> int:
    """Return the bytes of an element; raise WorkloadError for an unknown type."""
    check_names("memory-bound kernel", ITEM, dtype=dtype)
    return ITEM[dtype]


def flat(tensor: Tensor) -> Tensor:
    """See a tensor as one row (the same memory): dependences go by address."""
    return Tensor(tensor.name, 1, tensor.rows * tensor.cols, tensor.item, tensor.address)


def line(
    arg: int,
    width: int,
    threads: int,
    *,
    base: int = 0,
    bx: int = 0,
    by: int = 0,
    step: int = 0,
    apart: int = 0,
    active: int | None = None,
) -> tuple[Pattern, ...]:
    """Return the access of one instruction of all warps of a TB: a thread takes ``width`` bytes.

    Threads are ``apart`` bytes apart (0: ``width``); the first ``active`` take part (None: all). ``base``,
    ``bx``, ``by``, ``step``: bytes, as in :class:`Pattern`. Empty where no thread takes part.
    """
    apart = apart or width
    active = threads if active is None else active
    if active <= 0:
        return ()
    made = []
    for warp in range(threads // WARP):
        lanes = min(max(active - WARP * warp, 0), WARP)
        first = base + warp * WARP * apart
        made.append(
            Pattern(arg, width, base=first, bx=bx, by=by, step=step, s0=apart, lanes=(1 << lanes) - 1)
        )
    return collapse(made)


def paired(pattern: Pattern) -> Pattern:
    """Return an access of single bytes as one of pairs at even addresses, which the simulator takes.

    Lanes that are a byte apart share a pair; the sectors are the same.
    """
    if pattern.width > 1:
        return pattern
    base = pattern.base // 2 * 2
    if (pattern.s0 % 2 and pattern.s0 != 1) or pattern.s1 % 2:
        apart = [
            lane // pattern.minor * pattern.s1 + lane % pattern.minor * pattern.s0 for lane in range(WARP)
        ]
        even = tuple((pattern.base + each) // 2 * 2 - base for each in apart)
        return replace(pattern, width=2, base=base, s0=0, s1=0, minor=WARP, offsets=even)
    if pattern.s0 != 1:
        return replace(pattern, width=2, base=base)
    return replace(pattern, width=2, base=base, s0=0, s1=2, minor=2)


def even(view: Tensor) -> Tensor:
    """Return a row of an odd number of bytes with the one behind it, which :func:`paired` touches.

    Tensors begin at multiples of 256 B, so it belongs to no other.
    """
    if view.item > 1 or view.cols % 2 == 0:
        return view
    return Tensor(view.name, 1, view.cols + 1, 1, view.address)


def spans(tensor: Tensor, mode: Mode, chunk: int) -> Access:
    """Each TB uses ``chunk`` elements of a tensor of one row."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.minimum(np.asarray(tbs, np.int64) * chunk, tensor.cols)
        zero = np.zeros_like(first)
        return np.stack([zero, zero + 1, first, np.minimum(first + chunk, tensor.cols)], axis=1)

    return Access(tensor, mode, regions)


def rows(tensor: Tensor, mode: Mode, many: int = 1) -> Access:
    """Each TB uses ``many`` rows."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        first = np.minimum(np.asarray(tbs, np.int64) * many, tensor.rows)
        zero = np.zeros_like(first)
        return np.stack([first, np.minimum(first + many, tensor.rows), zero, zero + tensor.cols], axis=1)

    return Access(tensor, mode, regions)


def whole(tensor: Tensor, mode: Mode = "read") -> Access:
    """Each TB uses all of a tensor."""

    def regions(tbs: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.tile(np.array([0, tensor.rows, 0, tensor.cols], np.int64), (len(tbs), 1))

    return Access(tensor, mode, regions)


def shuffles(code: Code, count: int, *, fp32: int = 1, wait: int = 0) -> None:
    """Add the steps of a reduction among 32 lanes: ``count`` shuffles and ``fp32`` instructions each.

    ``wait``: cycles of a step beside the shuffle, such as a division.
    """
    for _ in range(5):
        code.compute(smem=count, smem_ops=count, fp32=fp32, chain=SHUFFLE)
        if wait:
            code.delay(wait)


def loads(code: Code, slot: int, ops: Sequence[tuple[Pattern, ...]], level: int = 2) -> None:
    """Add the loads that have lanes."""
    for patterns in ops:
        if patterns:
            code.load(slot, *patterns, level=level)


def stores(code: Code, slot: int, ops: Sequence[tuple[Pattern, ...]], level: int = 2) -> None:
    """Add the stores that have lanes."""
    for patterns in ops:
        if patterns:
            code.store(slot, *patterns, level=level)
