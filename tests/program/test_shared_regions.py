"""Regions that differ in their address share arrays: they equal those that are made one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pysim.program.access_regions import SharedRegions, regions_of
from pysim.program.job import Access, Tensor

FIELDS = ("address", "pitch", "byte_rects", "rects", "lo", "hi", "tbs", "ptr", "granule")


def access_of(rows, address, *, cols=24, item=4, tall=1):
    """An access to a tensor of 6 x ``tall`` rows whose TB t touches ``rows[t]``."""
    table = np.array(rows, np.int64)
    return Access(Tensor("t", 6 * tall, cols, item, address), "read", lambda tbs: table[tbs])


def same(one, other):
    for name in FIELDS:
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        assert np.array_equal(mine, theirs) or mine is None, name
    for mine, theirs in zip(one.intervals(), other.intervals(), strict=True):
        assert np.array_equal(mine, theirs)
    if len(one):
        assert one.span() == other.span()


box = st.tuples(*[st.integers(0, 6)] * 2, *[st.integers(0, 24)] * 2)


@given(
    st.lists(box, min_size=1, max_size=6),
    st.lists(st.integers(0, 40), min_size=2, max_size=5),
    st.sampled_from((24, 16)),
    st.sampled_from((32, 128)),
)
def test_shared_regions_equal_those_made_alone(rows, places, cols, granule):
    rows = [(a, b, min(c, cols), min(d, cols)) for a, b, c, d in rows]
    shared = SharedRegions(granule)
    made = [shared.of(access_of(rows, 16 * place, cols=cols), len(rows)) for place in places]
    alone = [regions_of(access_of(rows, 16 * place, cols=cols), len(rows), granule) for place in places]
    for one, other in zip(made, alone, strict=True):
        same(one, other)
    assert len({one.shape for one in made}) <= len({16 * place % granule for place in places})
    for one, other in zip(made, alone, strict=True):
        pairs = shared.overlapping_pairs(made[0], one)
        assert [p.tolist() for p in pairs] == [p.tolist() for p in alone[0].overlapping_pairs(other)]


def test_rows_of_a_huge_tensor_are_sorted_as_those_of_a_small_one():
    """Their numbers do not fit in one."""
    rows = [(4, 5, 0, 8), (1, 2, 8, 16), (4, 5, 0, 8), (0, 6, 0, 24), (1, 2, 0, 8), (3, 3, 0, 1)]
    small = regions_of(access_of(rows, 1 << 20), len(rows))
    tall = 1 << 28
    huge = regions_of(access_of([(a * tall, b * tall, c, d) for a, b, c, d in rows], 1 << 20, tall=tall), 6)
    assert huge.byte_rects.tolist() == [
        [a * tall, b * tall, c, d] for a, b, c, d in small.byte_rects.tolist()
    ]
    assert huge.tbs.tolist() == small.tbs.tolist() == [3, 4, 1, 0, 2]
    assert huge.ptr.tolist() == small.ptr.tolist()
