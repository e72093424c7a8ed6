"""Statistics of the dependences between two kernels: degrees, a named pattern, and the size as group nodes.

``docs/dependences.md`` defines every number and every pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import csr_offsets, expand_ranges, strided_ranges_of_lists

from .groups import RAW, WAR, WAW
from .set_hash import distinct_rows, list_hashes, mix64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .graph import Graph

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

# in the order in which they are tried: the first that holds names the pair
PATTERNS = (
    "independent",
    "one-to-one",
    "one-to-n",
    "all-to-all",
    "strided",
    "n-to-one",
    "row",
    "grouped",
    "overlapped",
    "irregular",
)
PAIR = np.dtype(
    [
        ("kernel", "i4"),
        ("producer_kernel", "i4"),
        ("pattern", "S12"),
        *((name, "i8") for name in ("tbs", "producer_tbs", "waiting", "needed")),
        *((name, "i8") for name in ("edges", "raw", "war", "waw", "most", "most_consumers")),
        *((name, "i8") for name in ("step", "nodes", "ranges", "rules")),
    ]
)


class _Sets:
    """The distinct producer sets of every pair, without the kinds of edges: set s is of ``pair[s]``."""

    def __init__(self, graph: Graph, rows: Ints) -> None:
        size = np.diff(graph.set_ptr)
        first, bare = distinct_rows([w + mix64(size, 3) for w in list_hashes(graph.producers, graph.set_ptr)])
        count = len(first)
        packed, of, users = np.unique(
            rows * count + bare[graph.set_index], return_inverse=True, return_counts=True
        )
        self.of = of.reshape(-1)  # set of each row
        self.users = users
        self.pair = packed // count
        chosen = first[packed % count]
        self.size = size[chosen]
        self.ptr = csr_offsets(self.size)
        self.producers = graph.producers[expand_ranges(graph.set_ptr[chosen], self.size)]
        self.low = self.producers[self.ptr[:-1]]
        self.high = self.producers[self.ptr[1:] - 1]

    def steps(self) -> Ints:
        """Return the stride of the producers of each set; 0: one producer; -1: the stride varies."""
        made = np.zeros(len(self.size), np.int64)
        many = np.flatnonzero(self.size > 1)
        gaps = np.diff(self.producers)
        begin = self.ptr[:-1][many]
        made[many] = gaps[begin]
        # gaps of each set, one after another, without those to the next set
        at = expand_ranges(begin, self.size[many] - 1)
        ptr = csr_offsets(self.size[many] - 1)
        if len(many):
            even = np.logical_and.reduceat(gaps[at] == np.repeat(made[many], self.size[many] - 1), ptr[:-1])
            made[many[~even]] = -1
        return made

    def boxes(self, first: Ints, grids: NDArray[np.int64]) -> Bools:
        """Return which sets are a range in x times one in y times one in z of the producers' grid.

        ``first`` is the first TB of the producer kernel of each set, ``grids`` its sizes, (n, 3).
        """
        local = self.producers - np.repeat(first, self.size)
        x, y = (np.repeat(grids[:, axis], self.size) for axis in (0, 1))
        volume = np.ones(len(self.size), np.int64)
        for place in (local % x, local // x % y, local // (x * y)):
            lo, hi = (ends.reduceat(place, self.ptr[:-1]) for ends in (np.minimum, np.maximum))
            volume *= hi - lo + 1
        return np.asarray(volume == self.size)


def pair_patterns(graph: Graph, grids: Sequence[tuple[int, int, int]]) -> NDArray[np.void]:
    """Return one row of type ``PAIR`` a pair of kernels with edges; ``grids``: (x, y, z) of each kernel."""
    count = len(graph.consumer_kernel)
    made = np.zeros(count, PAIR)
    if not count:
        return made
    sizes = np.diff(graph.offsets)
    made["kernel"], made["producer_kernel"] = graph.consumer_kernel, graph.producer_kernel
    made["tbs"], made["producer_tbs"] = sizes[graph.consumer_kernel], sizes[graph.producer_kernel]
    made["waiting"] = np.diff(graph.pair_ptr)
    rows = np.repeat(np.arange(count, dtype=np.int64), np.diff(graph.pair_ptr))
    begin = graph.pair_ptr[:-1]
    degree = np.diff(graph.set_ptr)[graph.set_index]
    made["edges"] = np.add.reduceat(degree, begin)
    made["most"] = np.maximum.reduceat(degree, begin)
    for name, bit in (("raw", RAW), ("war", WAR), ("waw", WAW)):
        each = np.add.reduceat(((graph.kinds & bit) != 0).astype(np.int64), graph.set_ptr[:-1])
        made[name] = np.add.reduceat(each[graph.set_index], begin)
    _count_nodes(graph, rows, made)
    sets = _Sets(graph, rows)
    _name(graph, sets, np.array(grids, np.int64).reshape(-1, 3), made)
    return made


def _count_nodes(graph: Graph, rows: Ints, made: NDArray[np.void]) -> None:
    """Fill in how many group nodes and consumer ranges each pair of kernels would take by itself."""
    many = len(graph.set_ptr) - 1
    key = rows * many + graph.set_index
    order = np.argsort(key, kind="stable")  # consumers come sorted
    key = key[order]
    new = np.ones(len(key), bool)
    new[1:] = key[1:] != key[:-1]
    begin = np.flatnonzero(new)
    _, range_ptr = strided_ranges_of_lists(graph.consumer[order], np.append(begin, len(key)))
    pair = key[begin] // many
    made["nodes"] = np.bincount(pair, minlength=len(made))
    made["ranges"] = np.bincount(pair, weights=np.diff(range_ptr), minlength=len(made)).astype(np.int64)


def _name(graph: Graph, sets: _Sets, grids: Ints, made: NDArray[np.void]) -> None:
    """Fill in the columns that count consumers, and the pattern."""
    count = len(made)

    def every(good: Bools) -> Bools:
        """Whether something holds for all sets of each pair."""
        return np.asarray(np.bincount(sets.pair, weights=~good, minlength=count) == 0)

    # how many consumers each producer of a pair has: the users of all sets that it is in
    tbs = graph.tbs
    key = np.repeat(sets.pair * tbs, sets.size) + sets.producers
    order = np.argsort(key, kind="stable")
    key, users = key[order], np.repeat(sets.users, sets.size)[order]
    new = np.ones(len(key), bool)
    new[1:] = key[1:] != key[:-1]
    begin = np.flatnonzero(new)
    of = key[begin] // tbs
    made["needed"] = np.bincount(of, minlength=count)
    np.maximum.at(made["most_consumers"], of, np.add.reduceat(users, begin))

    steps = sets.steps()
    made["rules"] = _rules(graph, sets, steps, count)
    disjoint = made["needed"] == np.bincount(sets.pair, weights=sets.size, minlength=count)
    made["step"] = _common_step(sets, steps, count)
    solid = every((steps == 0) | (steps == 1))
    first = graph.offsets[graph.producer_kernel[sets.pair]]
    boxes = every(sets.boxes(first, grids[graph.producer_kernel[sets.pair]]))
    one, alone = made["most"] == 1, made["most_consumers"] == 1
    tests = {
        "one-to-one": one & alone,
        "one-to-n": one,
        "all-to-all": (made["edges"] == made["tbs"] * made["producer_tbs"]) & (made["tbs"] > 1),
        "strided": disjoint & (made["step"] > 1),
        "n-to-one": alone,
        "row": disjoint & solid,
        "grouped": disjoint,
        "overlapped": solid | boxes,
    }
    made["pattern"] = np.select(list(tests.values()), [name.encode() for name in tests], b"irregular")


def _rules(graph: Graph, sets: _Sets, steps: Ints, count: int) -> Ints:
    """Return how many affine rules describe the edges of each pair.

    A rule: consecutive TBs c, c + 1, ... wait for producers that begin at f, f + s, ..., with the same count
    and stride for all. A set of producers without one stride takes a rule for each part that has one;
    consecutive TBs with the same set share them.
    """
    at = sets.of
    pair, step = sets.pair[at], steps[at]
    even = step >= 0
    joined = np.zeros(len(at), bool)
    joined[1:] = (pair[1:] == pair[:-1]) & (graph.consumer[1:] == graph.consumer[:-1] + 1)
    joined[1:] &= (step[1:] == step[:-1]) & (sets.size[at][1:] == sets.size[at][:-1])
    joined[1:] &= even[1:] | (at[1:] == at[:-1])
    begin = np.flatnonzero(~joined)
    _, ptr = strided_ranges_of_lists(sets.low[at], np.append(begin, len(at)))
    parts = np.ones(len(sets.size), np.int64)
    uneven = np.flatnonzero(steps < 0)
    chosen = sets.producers[expand_ranges(sets.ptr[uneven], sets.size[uneven])]
    parts[uneven] = np.diff(strided_ranges_of_lists(chosen, csr_offsets(sets.size[uneven]))[1])
    made: Ints = np.zeros(count, np.int64)
    np.add.at(made, pair[begin], np.diff(ptr) * parts[at[begin]])
    return made


def _common_step(sets: _Sets, steps: Ints, count: int) -> Ints:
    """Return the stride common to all sets of a pair with several producers; 0: they have none in common."""
    several = steps != 0
    low = np.full(count, np.iinfo(np.int64).max)
    high = np.full(count, -1)
    np.minimum.at(low, sets.pair[several], steps[several])
    np.maximum.at(high, sets.pair[several], steps[several])
    made: Ints = np.where((low == high) & (high > 0), high, 0)
    return made


def independent_tbs(graph: Graph, before: Sequence[int]) -> Ints:
    """Return how many TBs of each kernel do not depend on kernel ``before[k]``, directly or transitively.

    ``before[k]`` is -1 for a kernel without a predecessor: then none of its TBs depends.
    """
    sizes = np.diff(graph.offsets)
    waits = [int(graph.depends_on(k, b).sum()) if b >= 0 else 0 for k, b in enumerate(before)]
    return np.asarray(sizes - np.array(waits, np.int64).reshape(-1))


def previous_in_stream(streams: Sequence[int]) -> list[int]:
    """Return the previous kernel in the stream of each kernel, -1 for the first one."""
    last: dict[int, int] = {}
    made: list[int] = []
    for index, stream in enumerate(streams):
        made.append(last.get(stream, -1))
        last[stream] = index
    return made


__all__ = ["PAIR", "PATTERNS", "independent_tbs", "pair_patterns", "previous_in_stream"]
