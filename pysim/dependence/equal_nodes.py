"""Group nodes that say the same are joined: equal producers, then equal producers and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import csr_offsets, expand_ranges, sorted_unique

from .groups import Groups
from .set_hash import distinct_rows, list_hashes, mix64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def joined_nodes(
    kernel: Ints,
    producer_ptr: Ints,
    producers: Ints,
    kinds: NDArray[np.uint8],
    consumer_node: Ints,
    consumers: Ints,
) -> Groups:
    """Return the nodes by kernel, within a kernel in the order of the first node of each that are joined.

    Nodes of a kernel with equal producers and kinds become one node of all their consumers; then nodes of a
    kernel with equal producers and consumers become one node of all their kinds. ``kernel``: (nodes,);
    ``producers``: sorted within each node, from ``producer_ptr[n]`` on, below 2^60; ``consumer_node``,
    ``consumers``: one row a consumer, in any order and perhaps repeated.
    """
    words = [
        word + mix64(kernel, 3 + salt)
        for salt, word in enumerate(list_hashes(producers * 8 + kinds, producer_ptr))
    ]
    first, node = distinct_rows(words)
    most = int(consumers.max()) + 1
    packed = sorted_unique(node[consumer_node] * most + consumers)
    consumer_ptr = csr_offsets(np.bincount(packed // most, minlength=len(first)))
    consumers = packed % most
    size = np.diff(producer_ptr)[first]
    chosen = expand_ranges(producer_ptr[first], size)
    producers, kinds, producer_ptr = producers[chosen], kinds[chosen], csr_offsets(size)
    words = [
        made + mix64(used, 5 + salt) + mix64(kernel[first], 7 + salt)
        for salt, (made, used) in enumerate(
            zip(list_hashes(producers, producer_ptr), list_hashes(consumers, consumer_ptr), strict=True)
        )
    ]
    kept, same = distinct_rows(words)
    order = np.argsort(kernel[first][kept], kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    same, kept = rank[same], kept[order]
    made_ptr = csr_offsets(size[kept])
    merged = np.zeros(int(made_ptr[-1]), np.uint8)
    np.bitwise_or.at(merged, expand_ranges(made_ptr[same], size), kinds)
    used = np.diff(consumer_ptr)[kept]
    return Groups(
        kernel[first][kept],
        made_ptr,
        producers[expand_ranges(producer_ptr[kept], size[kept])],
        merged,
        csr_offsets(used),
        consumers[expand_ranges(consumer_ptr[kept], used)],
    )
