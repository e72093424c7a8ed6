"""Dependences as group nodes, and as the core's tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .regions import empty, strided

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NONE = 0xFFFFFFFF
RAW, WAR, WAW = 1, 2, 4
KINDS = {"raw": RAW, "war": WAR, "waw": WAW}
NODE = np.dtype([("kernel", "u4"), ("expect", "u4"), ("first_range", "u4"), ("ranges", "u4")])
RANGE = np.dtype([("start", "u4"), ("count", "u4"), ("stride", "u4")])
EDGE = np.dtype([("producer", "u4"), ("consumer", "u4"), ("raw", "u8"), ("war", "u8"), ("waw", "u8")])


@dataclass(frozen=True, slots=True)
class Group:
    """One group node: producers are global TB numbers, consumers TBs of ``kernel``."""

    kernel: int
    producers: Ints
    kinds: NDArray[np.uint8]
    consumers: Ints


@dataclass(frozen=True, slots=True)
class Dependences:
    """Edges of a job as the core's tables; slices of kernel k are ``*_first[k]``, ``*_count[k]``."""

    groups: tuple[Group, ...]
    offsets: Ints
    nodes: NDArray[np.void]
    ranges: NDArray[np.void]
    node_first: NDArray[np.uint32]
    node_count: NDArray[np.uint32]
    outs: NDArray[np.uint32]
    out_first: NDArray[np.uint32]
    out_count: NDArray[np.uint32]
    tb_out_first: NDArray[np.uint32]
    tb_out_ptr: NDArray[np.uint32]
    tb_outs: NDArray[np.uint32]
    preds: tuple[tuple[int, ...], ...]
    edges: NDArray[np.void]
    races: tuple[tuple[int, int], ...]

    def where(self, number: int) -> tuple[int, int]:
        """Return (kernel, TB) of a global TB number."""
        kernel = int(np.searchsorted(self.offsets, number, side="right")) - 1
        return kernel, number - int(self.offsets[kernel])

    def producers(self, kernel: int, tb: int) -> list[tuple[int, int]]:
        """Return the (kernel, TB) pairs that a TB waits for."""
        first = int(self.node_first[kernel])
        found: set[int] = set()
        for group in self.groups[first : first + int(self.node_count[kernel])]:
            if tb in group.consumers:
                found.update(group.producers.tolist())
        return [self.where(number) for number in sorted(found)]


def assemble(
    groups: Sequence[Group],
    offsets: Ints,
    before: Sequence[int] | None = None,
    races: Sequence[tuple[int, int]] = (),
) -> Dependences:
    """Build the tables from group nodes in kernel order; ``before`` adds the race check."""
    count = len(offsets) - 1
    nodes = np.zeros(len(groups), NODE)
    ranges: list[tuple[int, int, int]] = []
    wide: list[list[int]] = [[] for _ in range(count)]
    narrow: list[list[tuple[Ints, int]]] = [[] for _ in range(count)]
    pairs: dict[tuple[int, int], list[int]] = {}
    for number, group in enumerate(groups):
        made = strided(group.consumers)
        nodes[number] = (group.kernel, len(group.producers), len(ranges), len(made))
        ranges.extend(made)
        owner = np.searchsorted(offsets, group.producers, side="right") - 1
        firsts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1]))).tolist()
        for begin, end in zip(firsts, [*firsts[1:], len(owner)], strict=True):
            kernel = int(owner[begin])
            tbs = group.producers[begin:end] - offsets[kernel]
            if len(tbs) == offsets[kernel + 1] - offsets[kernel]:
                wide[kernel].append(number)
            else:
                narrow[kernel].append((tbs, number))
            tally = pairs.setdefault((kernel, group.kernel), [0, 0, 0])
            kinds = group.kinds[begin:end]
            for slot, bit in enumerate((RAW, WAR, WAW)):
                tally[slot] += int(np.count_nonzero(kinds & bit)) * len(group.consumers)
    node_count = np.bincount(nodes["kernel"], minlength=count).astype(np.uint32)
    out_count = np.array([len(x) for x in wide], np.uint32)
    tb_first = np.full(count, NONE, np.uint32)
    pointers: list[Ints] = []
    targets: list[Ints] = []
    held, filled = 0, 0
    for kernel, entries in enumerate(narrow):
        if entries:
            tbs = np.concatenate([e[0] for e in entries])
            node = np.repeat(np.array([e[1] for e in entries], np.int64), [len(e[0]) for e in entries])
            size = int(offsets[kernel + 1] - offsets[kernel])
            per = np.bincount(tbs, minlength=size)
            tb_first[kernel] = held
            pointers.append(np.concatenate(([0], np.cumsum(per))) + filled)
            targets.append(node[np.argsort(tbs, kind="stable")])
            held += size + 1
            filled += len(tbs)
    edges = np.array(
        [(p, c, *tally) for (p, c), tally in sorted(pairs.items(), key=lambda x: x[0][::-1])], EDGE
    )
    if before is not None:
        races = [(p, c) for p, c in pairs if not before[c] >> p & 1]
    return Dependences(
        tuple(groups),
        offsets,
        nodes,
        np.array(ranges, RANGE),
        (np.cumsum(node_count) - node_count).astype(np.uint32),
        node_count,
        np.array([n for x in wide for n in x], np.uint32),
        (np.cumsum(out_count) - out_count).astype(np.uint32),
        out_count,
        tb_first,
        np.concatenate([empty(), *pointers]).astype(np.uint32),
        np.concatenate([empty(), *targets]).astype(np.uint32),
        _into(count, pairs),
        edges,
        tuple(sorted(races)),
    )


def _into(count: int, pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the kernels that each kernel has an edge from."""
    into: list[list[int]] = [[] for _ in range(count)]
    for before, after in pairs:
        into[after].append(before)
    return tuple(tuple(sorted(found)) for found in into)


def reduced(preds: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Drop kernels that others imply: right only where kernels wait for whole kernels.

    With TB edges a kernel may end before TBs of its predecessors that it does not need.
    """
    bits: list[int] = []
    made: list[tuple[int, ...]] = []
    for sources in preds:
        known = 0
        kept: list[int] = []
        for before in sorted(set(sources), reverse=True):
            if not known >> before & 1:
                kept.append(before)
                known |= bits[before] | (1 << before)
        bits.append(known)
        made.append(tuple(sorted(kept)))
    return made


def without(
    deps: Dependences,
    *,
    node: int | None = None,
    producer: tuple[int, int] | None = None,
    kind: str | None = None,
) -> Dependences:
    """Return the dependences less a node, a producer TB of it, or a kind: for tests of the oracle."""
    groups: list[Group] = []
    target = None if producer is None else int(deps.offsets[producer[0]]) + producer[1]
    for number, group in enumerate(deps.groups):
        keep = np.ones(len(group.producers), bool)
        kinds = group.kinds
        if kind is not None:
            kinds = kinds & np.uint8(~KINDS[kind] & 7)
            keep &= kinds != 0
        if node is None or node == number:
            if target is not None:
                keep &= group.producers != target
            elif node is not None:
                keep[:] = False
        if keep.any():
            groups.append(Group(group.kernel, group.producers[keep], kinds[keep], group.consumers))
    return assemble(groups, deps.offsets, None, deps.races)
