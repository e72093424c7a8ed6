"""Networks of many equal layers as jobs that hold few of them, by comparing two that differ by one layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from pysim.errors import WorkloadError
from pysim.program.totals import Totals

from .likeness import FIRST_USE, Part, Programs, kernel_parts
from .shortened import LEAST_KEPT, Periods, Shortened

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from pysim.program.job import Job, Kernel


def shortened(held: Job, fewer: Job, whole: int) -> Job:
    """Return ``held`` as a network of ``whole`` equal layers, of which it holds ``held.steps``.

    ``fewer``: the same network with one layer less, which shows where a layer has kernels (a training step
    has some forward and some backward), how many, and what it adds to the totals. Raises WorkloadError for
    jobs that are not alike, or where the last two layers of a pass differ.
    """
    kept = held.steps
    if fewer.steps != kept - 1 or len(held.kernels) <= len(fewer.kernels):
        raise WorkloadError(f"job {held.name}: {kept} and {fewer.steps} layers: must differ by one")
    programs = Programs()
    parts = kernel_parts(held, programs, far=None)
    more = inserted(_shapes(parts), _shapes(kernel_parts(fewer, programs, far=None)))
    if more is None:
        raise WorkloadError(f"job {held.name}: {kept} and {fewer.steps} layers: their kernels are not alike")
    made = Shortened(tuple(Periods(first, count, kept, whole) for first, count in more))
    check_alike(held, made, parts)
    totals = _totals(held, fewer, whole - kept)
    return replace(held, steps=whole, totals=totals, shortened=made)


def with_launches(job: Job, launches: Sequence[Kernel], kept: int) -> Job:
    """Return a job with launches after its last kernel, of which it holds ``kept`` of each row that is alike.

    Alike are launches of one name and grid, one after another, such as those of an optimiser over the lists
    of all parameters. Raises WorkloadError for fewer than ``LEAST_KEPT``.
    """
    if kept < LEAST_KEPT:
        raise WorkloadError(f"job {job.name}: {kept} launches of each list: must be at least {LEAST_KEPT}")
    kernels = list(job.kernels)
    runs = list(job.shortened.runs) if job.shortened else []
    for _, row in groupby(launches, key=_look):
        alike = list(row)
        if len(alike) > kept:
            runs.append(Periods(len(kernels), 1, kept, len(alike), same_code=False))
            alike = [*alike[: kept - 1], alike[-1]]
        kernels += alike
    return replace(job, kernels=kernels, shortened=Shortened(tuple(runs)) if runs else None)


def inserted(more: Sequence[Hashable], fewer: Sequence[Hashable]) -> list[tuple[int, int]] | None:
    """Return what must be put into ``fewer`` to have ``more``: (place in ``more``, how many), each.

    Each piece has the length from which on most is equal, and is put as early as it may be, which is where
    pieces like it begin. None: it takes more than pieces put in.
    """
    numbers: dict[Hashable, int] = {}
    a, b = (
        np.array([numbers.setdefault(each, len(numbers)) for each in of], np.int64) for of in (more, fewer)
    )
    left, i, j = len(a) - len(b), 0, 0
    made: list[tuple[int, int]] = []
    while left > 0:
        same = _equal(a[i:], b[j:])
        i, j = i + same, j + same
        best = max(range(1, left + 1), key=lambda count: (_equal(a[i + count :], b[j:]), count))
        made.append((i - _equal(a[:i][::-1], a[: i + best][::-1]), best))
        i, left = i + best, left - best
    return made if left == 0 and np.array_equal(a[i:], b[j:]) else None


def check_alike(held: Job, short: Shortened, parts: Sequence[tuple[Part, ...]] | None = None) -> None:
    """Raise WorkloadError where the period before a cut cannot stand for those left out.

    It must be that after the cut: the same code, and operands last used at the same place of a period.
    ``parts``: ``kernel_parts`` of the job, however far, if known.
    """
    end = short.runs[-1].end
    if end > len(held.kernels) or held.events:
        raise WorkloadError(
            f"job {held.name}: periods up to kernel {end}, without events between streams: it has"
            f" {len(held.kernels)} kernels and {len(held.events)} events"
        )
    parts = parts or kernel_parts(held, far=None)
    for run in short.runs:
        for now in range(run.cut, run.end):
            before = now - run.period
            alike = (
                _operands_alike(short, run, before, parts[before], parts[now], _read(held.kernels[now]))
                if run.same_code
                else _look(held.kernels[before]) == _look(held.kernels[now])
            )
            if not alike:
                name = held.kernels[now].name
                raise WorkloadError(
                    f"job {held.name}: kernel {now} ({name}) is not that of the layer before: its last two"
                    f" layers are not alike"
                )


@dataclass(frozen=True, slots=True)
class _Look:
    """What launches over lists of tensors have in common."""

    name: str
    grid: tuple[int, int, int]
    stream: int
    resources: tuple[int, int]
    library: str


def _look(kernel: Kernel) -> _Look:
    program = kernel.program
    return _Look(kernel.name, kernel.grid, kernel.stream, (program.registers, program.smem), kernel.library)


def _shapes(parts: Sequence[tuple[Part, ...]]) -> list[tuple[Part, ...]]:
    """Return parts without distances of reuse."""
    return [(what, *(operand[:-1] for operand in operands)) for what, *operands in parts]


def _equal(a: NDArray[np.int64], b: NDArray[np.int64]) -> int:
    """Return how many elements are equal from the start on."""
    many = min(len(a), len(b))
    differ = np.flatnonzero(a[:many] != b[:many])
    return int(differ[0]) if len(differ) else many


def _read(kernel: Kernel) -> list[bool]:
    """Return, for each argument of a kernel, whether it reads it."""
    read = {(a.tensor.address, a.tensor.nbytes) for a in kernel.accesses if a.mode != "write"}
    return [(tensor.address, tensor.nbytes) in read for tensor in kernel.args]


def _operands_alike(
    short: Shortened,
    run: Periods,
    at: int,
    before: tuple[Part, ...],
    now: tuple[Part, ...],
    read: Sequence[bool],
) -> bool:
    """Whether kernel ``at`` of a run, and that of the period after it, are alike.

    An operand that is read was last used as many kernels before, or at the same place of a period of another
    run, such as what is saved forward. What is only written takes memory that an allocator has free.
    """
    if len(before) != len(now) or before[0] != now[0]:
        return False
    for was, is_, matters in zip(before[1:], now[1:], read, strict=True):
        if was[:-1] != is_[:-1]:
            return False
        if not matters or was[-1] in {FIRST_USE, is_[-1]}:
            continue
        if is_[-1] == FIRST_USE:
            return False
        users = at - was[-1], at + run.period - is_[-1]
        other = short.run_of(users[0])
        apart = other is not None and other.holds(users[1]) and not (users[1] - users[0]) % other.period
        if not apart:
            return False
    return True


def _totals(held: Job, fewer: Job, more: int) -> Totals | None:
    """Return the totals with ``more`` layers like the last one."""
    if held.totals is None or fewer.totals is None:
        return None
    a, b = held.totals, fewer.totals
    return Totals(a.parameters + more * (a.parameters - b.parameters), a.flops + more * (a.flops - b.flops))
