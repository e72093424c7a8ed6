"""Granules of several sizes: what of a range is put into a Bloom signature, and what is looked up.

A granule of level l holds ``FACTOR`` to the l granules of level 0. A range is the fewest granules that make
it up. A signature gets each of them, and a mark at each larger granule around it. A range conflicts with it
if the signature has one of the range's granules or one around it, or a mark at one of the range's granules.
So a long range costs few entries, and its ends stay as fine as level 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pysim.program.regions import expand_ranges, merge_sorted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Ranges = tuple[Ints, Ints, Ints]  # first numbers, ends, owners

FACTOR_BITS = 2
FACTOR = 1 << FACTOR_BITS  # granules of a level in one of the next level
TAG_BITS = 48  # an entry is the number of a granule below a tag: twice its level, one more for a mark


def merged(lo: Ints, hi: Ints, key: Ints) -> Ranges:
    """Return the union of the ranges of each key, sorted."""
    order = np.lexsort((lo, key))
    return merge_sorted(lo[order], hi[order], key[order])


def without_gaps(ranges: Ranges, most: int) -> Ranges:
    """Return sorted ranges with those of an owner joined that are at most so many granules apart."""
    lo, hi, owner = merge_sorted(ranges[0], ranges[1] + most, ranges[2])
    return lo, hi - most, owner


def _pieces(ranges: Ranges, levels: int) -> list[Ranges]:
    """Return the granules that make up ranges of granules of level 0, level by level."""
    lo, hi, owner = ranges
    made: list[Ranges] = []
    for level in range(levels):
        up, down = -(-lo >> FACTOR_BITS), hi >> FACTOR_BITS
        inner = up < down if level + 1 < levels else np.zeros(len(lo), bool)
        left, right = np.where(inner, up << FACTOR_BITS, hi), np.where(inner, down << FACTOR_BITS, hi)
        first, end, who = np.append(lo, right), np.append(left, hi), np.append(owner, owner)
        keep = first < end
        made.append(merged(first[keep], end[keep], who[keep]))
        lo, hi, owner = up[inner], down[inner], owner[inner]
    return made


def _tagged(tag: int, ranges: Ranges) -> Ranges:
    lo, hi, owner = ranges
    return lo + (tag << TAG_BITS), hi + (tag << TAG_BITS), owner


def _around(ranges: Ranges, levels: int) -> Ranges:
    """Return the granules so many levels up that hold any of these."""
    lo, hi, owner = ranges
    shift = levels * FACTOR_BITS
    return merged(lo >> shift, ((hi - 1) >> shift) + 1, owner)


def _one_by_one(ranges: Ranges) -> Ranges:
    lo, hi, owner = ranges
    first = expand_ranges(lo, hi - lo)
    return first, first + 1, np.repeat(owner, hi - lo)


def entries(ranges: Ranges, levels: int) -> tuple[Ranges, Ranges]:
    """Return what is put into the signature of each owner, and what is looked up.

    ``ranges``: sorted disjoint ranges of granules of level 0; ``levels``: sizes of granules. The first are
    sorted ranges of entries. The second are granules, each behind those that hold it, below a tag: twice its
    level, one more for a granule of the ranges themselves.
    """
    pieces = _pieces(ranges, levels)
    put: list[Ranges] = []
    asked: list[Ranges] = []
    for level in range(levels):
        whole = pieces[level]
        below = [_around(pieces[low], level - low) for low in range(level) if len(pieces[low][0])]
        put.append(_tagged(2 * level, whole))
        asked.append(_tagged(2 * level + 1, whole if level == levels - 1 else _one_by_one(whole)))
        if below:
            around = merged(*(np.concatenate(each) for each in zip(*below, strict=True)))
            put.append(_tagged(2 * level + 1, around))
            asked.append(_tagged(2 * level, _one_by_one(around)))
    lo, hi, owner = (np.concatenate(each) for each in zip(*asked, strict=True))
    levels_of = lo >> TAG_BITS + 1
    begin = (lo & ((1 << TAG_BITS) - 1)) << levels_of * FACTOR_BITS
    order = np.lexsort((-levels_of, begin, owner))
    return merged(*(np.concatenate(each) for each in zip(*put, strict=True))), (
        lo[order],
        hi[order],
        owner[order],
    )


def lookups(asked: Ints) -> int:
    """Return how many entries are looked up: of each granule one, and the mark where there are smaller ones.

    ``asked``: rows of first and end, as ``entries`` makes them.
    """
    tag = asked[:, 0] >> TAG_BITS
    return int(((asked[:, 1] - asked[:, 0]) * np.where(tag == 1, 1, 2)).sum())


def count_of(ranges: Ranges, owners: int) -> Ints:
    """Return how many granules or entries the ranges of each owner have."""
    made = np.zeros(owners, np.int64)
    np.add.at(made, ranges[2], ranges[1] - ranges[0])
    return made
