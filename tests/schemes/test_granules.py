"""Granules of several sizes: a look-up finds what overlaps, and long ranges cost few entries."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim.program.regions import union
from pysim.schemes.granules import FACTOR, TAG_BITS, entries, lookups, merged, without_gaps

RANGES = st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 1500)), min_size=1, max_size=4)


def ranges_of(pairs):
    spans = union(np.array([[lo, lo + size] for lo, size in pairs], np.int64))
    return spans[:, 0], spans[:, 1], np.zeros(len(spans), np.int64)


def held(put):
    """The entries as (level, number, whether a mark)."""
    lo, hi, _ = put
    return {
        (int(e) >> TAG_BITS + 1, int(e) & ((1 << TAG_BITS) - 1), int(e) >> TAG_BITS & 1)
        for first, end in zip(lo, hi, strict=True)
        for e in range(first, end)
    }


def conflicts(asked, signature, levels):
    """Look up as the core does: a granule counts only below granules that all have a mark."""
    marked = [False] * levels + [True]
    found = False
    for first, end in zip(asked[0].tolist(), asked[1].tolist(), strict=True):
        level, touched = first >> TAG_BITS + 1, first >> TAG_BITS & 1
        for number in range(first & ((1 << TAG_BITS) - 1), (end - 1 & ((1 << TAG_BITS) - 1)) + 1):
            around = marked[level + 1]
            found |= around and (level, number, 0) in signature
            marked[level] = around and (level, number, 1) in signature
            found |= bool(touched) and marked[level]
    return found


@settings(max_examples=150, deadline=None)
@given(one=RANGES, other=RANGES, levels=st.integers(1, 6))
def test_a_look_up_finds_exactly_what_overlaps(one, other, levels):
    held_, asks = ranges_of(one), ranges_of(other)
    pairs = product(zip(*held_[:2], strict=True), zip(*asks[:2], strict=True))
    overlap = any(a < d and c < b for (a, b), (c, d) in pairs)
    put, _ = entries(held_, levels)
    _, asked = entries(asks, levels)
    assert conflicts(asked, held(put), levels) == overlap


def test_a_long_range_costs_few_entries():
    whole = ranges_of([(FACTOR**9, FACTOR**8)])
    put, asked = entries(whole, 10)
    # itself, and the granule around it
    assert [hi - lo for lo, hi, _ in zip(*put, strict=True)] == [1, 1]
    assert lookups(np.stack(asked[:2], axis=1)) == 4
    ragged = ranges_of([(FACTOR**9 + 1, FACTOR**8 - 2)])
    assert 20 < sum(hi - lo for lo, hi, _ in zip(*entries(ragged, 10)[0], strict=True)) < 70
    # granules of one size: one entry each, and one question
    put, asked = entries(ragged, 1)
    assert int((put[1] - put[0]).sum()) == lookups(np.stack(asked[:2], axis=1)) == FACTOR**8 - 2


def test_owners_stay_apart():
    lo, hi, owner = (np.array(each, np.int64) for each in ([0, 0, 40], [3, 3, 41], [0, 1, 1]))
    put, asked = entries(merged(lo, hi, owner), 4)
    alone = entries(ranges_of([(0, 3)]), 4)
    for made, single in zip((put, asked), alone, strict=True):
        mine = made[2] == 0
        assert [each[mine].tolist() for each in made[:2]] == [each.tolist() for each in single[:2]]


@pytest.mark.parametrize(("gap", "left"), [(0, 3), (1, 3), (2, 2), (9, 2), (10, 1)])
def test_small_gaps_are_filled_and_ends_stay(gap, left):
    lo, hi, _ = without_gaps(ranges_of([(5, 5), (12, 3), (25, 1)]), gap)
    assert (len(lo), lo[0], hi[-1]) == (left, 5, 26)
