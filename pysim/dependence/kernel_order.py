"""Which kernels come before others, over any number of steps: without a bit for each pair of a long job."""

from __future__ import annotations

from functools import partial
from itertools import accumulate, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def implied_kernels(
    sources: Sequence[Sequence[int]], asked: Sequence[int]
) -> Iterator[Callable[[int], bool]]:
    """Yield for each kernel a test whether an earlier kernel is before one of its sources.

    ``sources``: for each kernel, earlier kernels that are directly before it. ``asked``: for each kernel, the
    lowest number that its test is asked about; the kernel's own number if it is not asked. Use each test
    before the next is taken. A set of kernels is kept as bits from the lowest that a later kernel asks about,
    and only until the last kernel that needs it: a chain of kernels keeps none, whatever its length.
    """
    floors = list(accumulate(reversed(asked), min))[::-1]  # no later kernel asks about what is below
    last = {before: kernel for kernel, befores in enumerate(sources) for before in befores}
    sets: dict[int, tuple[int, int]] = {}  # kernel -> (floor, bits from it on) of the kernels before it
    for kernel, befores in enumerate(sources):
        floor, known = floors[kernel], 0
        for before in befores:
            if before in sets:
                at, bits = sets[before]
                known |= bits >> (floor - at)
        yield partial(_has, known, floor)
        for before in befores:
            if last[before] == kernel:
                sets.pop(before, None)
        if kernel in last and kernel + 1 < len(floors):
            least = floors[kernel + 1]
            sets[kernel] = least, _with(known, floor, befores, least)


def _has(bits: int, floor: int, kernel: int) -> bool:
    """Return whether the bits, counted from ``floor``, have a kernel."""
    return kernel >= floor and bool(bits >> (kernel - floor) & 1)


def _with(known: int, floor: int, kernels: Sequence[int], least: int) -> int:
    """Return bits counted from ``floor``, and kernels, counted from ``least``, which is not lower."""
    own = [kernel - least for kernel in kernels if kernel >= least]
    bits = known >> (least - floor)
    if len(own) < 64:
        for place in own:
            bits |= 1 << place
        return bits
    each = bytearray(max(own) // 8 + 1)
    for place in own:
        each[place >> 3] |= 1 << (place & 7)
    return bits | int.from_bytes(each, "little")


def unordered_pairs(
    pairs: Sequence[tuple[int, int]], before: Sequence[Sequence[int]]
) -> list[tuple[int, int]]:
    """Return the (producer, consumer) pairs, by consumer, that nothing puts in order."""
    unsure: dict[int, list[int]] = {}
    for consumer, same in groupby(pairs, key=itemgetter(1)):
        direct = set(before[consumer])
        left = [producer for producer, _ in same if producer not in direct]
        if left:
            unsure[consumer] = left
    if not unsure:
        return []
    asked = [min(unsure.get(kernel, [kernel])) for kernel in range(len(before))]
    tests = enumerate(implied_kernels(before, asked))
    return [(p, c) for c, known in tests for p in unsure.get(c, ()) if not known(p)]


def reduce_preds(preds: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the transitive reduction of kernel predecessors, one sorted tuple a kernel.

    It holds only where whole kernels wait for whole kernels: with TB edges a kernel may end before TBs of its
    predecessors that it does not need.
    """
    if all(len(sources) < 2 for sources in preds):
        return list(map(tuple, preds))
    asked = [min(sources) if len(sources) > 1 else kernel for kernel, sources in enumerate(preds)]
    return [
        tuple(sorted(k for k in set(sources) if not implied(k)))
        for sources, implied in zip(preds, implied_kernels(preds, asked), strict=True)
    ]
