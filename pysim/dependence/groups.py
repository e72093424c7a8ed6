"""Dependences as group nodes, and as the tables that the C core reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, overload

import numpy as np

from pysim.program.regions import csr_offsets, empty_index, expand_ranges, strided_ranges_of_lists

from .group_check import checked_groups
from .kernel_order import unordered_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

NONE = 0xFFFFFFFF
RAW, WAR, WAW = 1, 2, 4
_POINTERS = ("producer_ptr", "consumer_ptr")
KINDS = {"raw": RAW, "war": WAR, "waw": WAW}
NODE = np.dtype([("kernel", "u4"), ("expect", "u4"), ("first_range", "u4"), ("ranges", "u4")])
EDGE = np.dtype([("producer", "u4"), ("consumer", "u4"), ("raw", "u8"), ("war", "u8"), ("waw", "u8")])


def _freeze(tables: Groups | Dependences) -> None:
    """Make the arrays read-only: the schemes of a call share them."""
    for field in fields(tables):
        array = getattr(tables, field.name)
        if isinstance(array, np.ndarray):
            array.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Group:
    """One group node: each consumer TB waits for all producer TBs.

    ``kernel``: the consumers' kernel; ``producers``: sorted global TB numbers (TB t of kernel k is
    ``offsets[k] + t``); ``kinds``: one element a producer, RAW | WAR | WAW; ``consumers``: sorted TB numbers
    within ``kernel``.
    """

    kernel: int
    producers: Ints
    kinds: NDArray[np.uint8]
    consumers: Ints


@dataclass(frozen=True, slots=True)
class Groups(Sequence[Group]):
    """Many group nodes in flat arrays, which are read-only from then on.

    The producers of node n are ``producers[producer_ptr[n]:producer_ptr[n + 1]]`` with the ``kinds`` of the
    same slice; its consumers are ``consumers[consumer_ptr[n]:consumer_ptr[n + 1]]``.
    """

    kernel: Ints
    producer_ptr: Ints
    producers: Ints
    kinds: NDArray[np.uint8]
    consumer_ptr: Ints
    consumers: Ints

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self)

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Groups:
        """Return the groups in flat arrays."""
        if isinstance(groups, cls):
            return groups
        return cls(
            np.array([g.kernel for g in groups], np.int64),
            csr_offsets(np.array([len(g.producers) for g in groups], np.int64)),
            np.concatenate([empty_index(), *(g.producers for g in groups)]),
            np.concatenate([np.empty(0, np.uint8), *(g.kinds for g in groups)]),
            csr_offsets(np.array([len(g.consumers) for g in groups], np.int64)),
            np.concatenate([empty_index(), *(g.consumers for g in groups)]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Groups]) -> Groups:
        """Return the nodes of all parts, one after another."""
        made, used = ([np.diff(getattr(part, name)) for part in parts] for name in _POINTERS)
        kernel, producers, consumers = (
            np.concatenate([empty_index(), *(getattr(part, name) for part in parts)])
            for name in ("kernel", "producers", "consumers")
        )
        return cls(
            kernel,
            csr_offsets(np.concatenate([empty_index(), *made])),
            producers,
            np.concatenate([np.empty(0, np.uint8), *(part.kinds for part in parts)]),
            csr_offsets(np.concatenate([empty_index(), *used])),
            consumers,
        )

    def __len__(self) -> int:
        return len(self.kernel)

    @overload
    def __getitem__(self, number: int) -> Group: ...
    @overload
    def __getitem__(self, number: slice) -> list[Group]: ...
    def __getitem__(self, number: int | slice) -> Group | list[Group]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        made = slice(self.producer_ptr[number], self.producer_ptr[number + 1])
        used = slice(self.consumer_ptr[number], self.consumer_ptr[number + 1])
        return Group(int(self.kernel[number]), self.producers[made], self.kinds[made], self.consumers[used])

    def merged(self, other: Groups) -> Groups:
        """Return the nodes of both, sorted by kernel; within a kernel the nodes of ``self`` come first."""
        if not len(other):
            return self
        order = np.argsort(np.concatenate((self.kernel, other.kernel)), kind="stable")
        made, used = (
            np.concatenate((np.diff(a), np.diff(b)))
            for a, b in (
                (self.producer_ptr, other.producer_ptr),
                (self.consumer_ptr, other.consumer_ptr),
            )
        )
        left = expand_ranges(csr_offsets(made)[order], made[order])
        right = expand_ranges(csr_offsets(used)[order], used[order])
        return Groups(
            np.concatenate((self.kernel, other.kernel))[order],
            csr_offsets(made[order]),
            np.concatenate((self.producers, other.producers))[left],
            np.concatenate((self.kinds, other.kinds))[left],
            csr_offsets(used[order]),
            np.concatenate((self.consumers, other.consumers))[right],
        )


@dataclass(frozen=True, slots=True)
class Dependences:
    """Edges of a job, as group nodes and as the tables of ``gs_job`` (core_c/gs_api.h).

    ``offsets``: (kernels + 1), global number of each kernel's TB 0. ``nodes``, ``ranges``: group nodes and
    the (start, count, stride) ranges of their consumers; kernel k has nodes ``node_first[k]`` to
    ``node_first[k] + node_count[k]``. ``outs``: nodes that the end of a whole kernel counts down, with
    ``out_first`` and ``out_count`` of each kernel; ``tb_outs``: nodes that the end of a TB counts down,
    found by ``tb_out_ptr`` from ``tb_out_first[k]`` on. ``preds``: kernels that each kernel waits for;
    ``edges``: TB pairs for each pair of kernels, by kind; ``races``: (earlier, later) kernels that conflict
    and that nothing orders. All arrays are read-only.
    """

    groups: Groups
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

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        _freeze(self)

    def kernel_and_tb(self, number: int) -> tuple[int, int]:
        """Return (kernel, TB) of a global TB number."""
        kernel = int(np.searchsorted(self.offsets, number, side="right")) - 1
        return kernel, number - int(self.offsets[kernel])

    def with_groups(self, groups: Iterable[Group]) -> Dependences:
        """Return edges between the same TBs that consist of other group nodes, given in any order.

        A node without producers or without consumers is no edge and is dropped. Raises DependenceError, which
        names the first wrong group, where an edge does not run from a TB of an earlier kernel to a TB of the
        group's kernel, or a field is no array of integers.
        """
        return assemble(Groups(*checked_groups(groups, Group, self.offsets)), self.offsets, races=self.races)

    def producers(self, kernel: int, tb: int) -> list[tuple[int, int]]:
        """Return the (kernel, TB) pairs that a TB waits for."""
        groups = self.groups
        first = int(self.node_first[kernel])
        last = first + int(self.node_count[kernel])
        at = int(groups.consumer_ptr[first])
        mine = np.flatnonzero(groups.consumers[at : groups.consumer_ptr[last]] == tb) + at
        found: set[int] = set()
        for node in (np.searchsorted(groups.consumer_ptr, mine, side="right") - 1).tolist():
            found.update(groups.producers[groups.producer_ptr[node] : groups.producer_ptr[node + 1]].tolist())
        return [self.kernel_and_tb(number) for number in sorted(found)]


def assemble(
    node_list: Sequence[Group],
    offsets: Ints,
    before: Sequence[Sequence[int]] | None = None,
    races: Sequence[tuple[int, int]] = (),
) -> Dependences:
    """Return the tables of group nodes, which come in kernel order.

    ``before``: for each kernel the kernels ordered directly before it; from them races are computed, else
    ``races`` are taken over.
    """
    groups = Groups.of(node_list)
    count = len(offsets) - 1
    ranges, range_ptr = strided_ranges_of_lists(groups.consumers, groups.consumer_ptr)
    nodes = np.zeros(len(groups), NODE)
    nodes["kernel"] = groups.kernel
    nodes["expect"] = np.diff(groups.producer_ptr)
    nodes["first_range"] = range_ptr[:-1]
    nodes["ranges"] = np.diff(range_ptr)

    # a part: the producers of one node that are of one kernel
    tbs = np.diff(offsets)
    owner = np.repeat(np.arange(count, dtype=np.int32), tbs)[groups.producers]
    begins = np.zeros(len(owner), bool)
    begins[groups.producer_ptr[:-1]] = True
    new = begins.copy()
    new[1:] |= owner[1:] != owner[:-1]
    part = np.flatnonzero(new)
    size = np.diff(np.append(part, len(owner)))
    source, target = owner[part].astype(np.int64), np.cumsum(begins[part]) - 1
    whole = size == tbs[source]

    wide = np.flatnonzero(whole)
    wide = wide[np.argsort(source[wide], kind="stable")]
    out_count = np.bincount(source[wide], minlength=count)
    narrow = groups.producers[np.repeat(~whole, size)]
    tb_outs = np.repeat(target[~whole].astype(np.uint32), size[~whole])[np.argsort(narrow, kind="stable")]
    tb_first, tb_ptr = _tb_pointers(csr_offsets(np.bincount(narrow, minlength=int(offsets[-1]))), offsets)

    # edges a pair of kernels, by consumer
    key = groups.kernel[target] * count + source
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    edges = np.zeros(len(first), EDGE)
    edges["producer"], edges["consumer"] = key[first] % max(1, count), key[first] // max(1, count)
    consumers = np.diff(groups.consumer_ptr)[target]
    for name, bit in KINDS.items() if len(first) else ():
        of_kind = np.add.reduceat((groups.kinds & bit) != 0, part, dtype=np.int64)
        edges[name] = np.add.reduceat((of_kind * consumers)[order], first)
    pairs = list(zip(edges["producer"].tolist(), edges["consumer"].tolist(), strict=True))
    if before is not None:
        races = unordered_pairs(pairs, before)
    into: list[tuple[int, ...]] = [()] * count
    for consumer, same in groupby(pairs, key=itemgetter(1)):
        into[consumer] = tuple(producer for producer, _ in same)
    node_count = np.bincount(groups.kernel, minlength=count)
    return Dependences(
        groups,
        offsets,
        nodes,
        ranges,
        csr_offsets(node_count)[:-1].astype(np.uint32),
        node_count.astype(np.uint32),
        target[wide].astype(np.uint32),
        csr_offsets(out_count)[:-1].astype(np.uint32),
        out_count.astype(np.uint32),
        tb_first,
        tb_ptr,
        tb_outs,
        tuple(into),
        edges,
        tuple(sorted(races)),
    )


def _tb_pointers(before: Ints, offsets: Ints) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return ``tb_out_first`` (NONE: no TB of the kernel counts a node down by itself) and ``tb_out_ptr``.

    ``before``: (TBs + 1,), how many nodes the TBs before each TB of the job count down by themselves.
    """
    sizes = np.diff(offsets)
    has = np.flatnonzero(np.diff(before[offsets]))
    first = np.full(len(sizes), NONE, np.uint32)
    first[has] = csr_offsets(sizes[has] + 1)[:-1]
    # a kernel of n TBs has n + 1 pointers: TB t has the nodes from pointer t to pointer t + 1
    return first, before[expand_ranges(offsets[has], sizes[has] + 1)].astype(np.uint32)


def without_edges(
    deps: Dependences,
    *,
    node: int | None = None,
    producer: tuple[int, int] | None = None,
    kind: str | None = None,
) -> Dependences:
    """Return the dependences with some edges removed, for tests of the oracle.

    ``node`` alone removes a node, ``producer`` (kernel, TB) one producer of it (of all nodes without
    ``node``), ``kind`` all edges of raw, war or waw.
    """
    left: list[Group] = []
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
            left.append(Group(group.kernel, group.producers[keep], kinds[keep], group.consumers))
    return assemble(left, deps.offsets, None, deps.races)
