"""Recorded footprints as tables: their size for common patterns, and ranges in common and outside."""

from __future__ import annotations

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim.dependence.dependences import dependences
from pysim.program.footprint import READ, UPDATE, WRITE, Footprint
from pysim.program.job import Job, Kernel
from pysim.program.regions import (
    csr_offsets,
    difference,
    intersection,
    merge_sorted,
    strided_ranges,
    strided_ranges_of_lists,
    union,
)
from tests.dependence.test_dependences import PROGRAM


# ---- shape and size of the tables ----
def rows_of(tb, start, size, mode):
    start = np.asarray(start, np.int64)
    return tb, start, start + size, np.full(len(start), mode)


def launch(tbs, *parts):
    columns = [np.concatenate(column) for column in zip(*(rows_of(*part) for part in parts), strict=True)]
    return Kernel("k", PROGRAM, (tbs, 1, 1), (), (), 0, Footprint.of(*columns))


def test_all_to_all_is_one_node_though_rows_differ() -> None:
    """Every TB reads all that 64 TBs have written, and something of its own besides."""
    tb = np.arange(64)
    first = launch(64, (tb, tb * 4096, 4096, WRITE))
    every = np.repeat(np.arange(50), 64)
    own = np.arange(50)
    second = launch(50, (every, np.tile(tb * 4096, 50), 4096, READ), (own, (1 << 30) + own * 64, 64, WRITE))
    deps = dependences(Job("all", [first, second]))
    assert deps.nodes["expect"].tolist() == [64]
    assert deps.ranges.tolist() == [(0, 50, 1)]
    assert deps.outs.tolist() == [0]


def test_slices_of_sums_are_one_node() -> None:
    """All TBs update all slices, then each slice is read by one TB: linear, not a product."""
    count = 300
    tb = np.arange(count)
    add = launch(count, (tb, np.zeros(count), count * 64, UPDATE))
    take = launch(count, (tb, tb * 64, 64, READ), (tb, (1 << 30) + tb * 64, 64, WRITE))
    put = launch(count, (tb, (1 << 30) + tb * 64, 64, WRITE))
    deps = dependences(Job("sums", [put, add, take, add]))
    assert len(deps.nodes) <= 2 * count + 8
    assert len(deps.tb_outs) + len(deps.outs) + len(deps.ranges) <= 6 * count


def test_triangles_stay_linear() -> None:
    """TB i reads what TBs 0 to i have written."""
    count = 400
    tb = np.arange(count)
    first = launch(count, (tb, tb * 64, 64, WRITE))
    starts = np.zeros(count, np.int64)
    rows = Footprint.of(tb, starts, tb * 64 + 64, np.zeros(count))
    deps = dependences(Job("triangle", [first, Kernel("k", PROGRAM, (count, 1, 1), (), (), 0, rows)]))
    assert len(deps.producers(1, 17)) == 18
    assert len(deps.tb_outs) + len(deps.ranges) <= 4 * count


def test_many_rows_are_fast() -> None:
    """200 kernels of 200 TBs of 100 rows: a chain in which each TB follows one."""
    tb = np.repeat(np.arange(200), 50)
    at = np.arange(len(tb)) * 256
    kernels = [
        launch(200, (tb, (k % 3 << 36) + at, 128, READ), (tb, ((k + 1) % 3 << 36) + at, 128, WRITE))
        for k in range(200)
    ]
    begin = time.process_time()
    deps = dependences(Job("chain", kernels))
    assert time.process_time() - begin < 12
    assert deps.producers(1, 7) == [(0, 7)]
    assert deps.producers(5, 7) == [(2, 7), (3, 7), (4, 7)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sets(st.integers(0, 20), min_size=1).map(sorted), max_size=6))
def test_ranges_of_many_lists(lists: list[list[int]]) -> None:
    tbs = np.array([t for part in lists for t in part], np.int64)
    made, first = strided_ranges_of_lists(tbs, csr_offsets(np.array([len(part) for part in lists], np.int64)))
    for number, part in enumerate(lists):
        assert made[first[number] : first[number + 1]].tolist() == strided_ranges(np.array(part, np.int64))


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=6)


@settings(max_examples=300, deadline=None)
@given(SPANS, SPANS)
def test_ranges_in_common_and_outside(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    def members(spans: np.ndarray) -> set[int]:
        return {x for lo, hi in spans.tolist() for x in range(lo, hi)}

    a, b = (
        union(np.array([(lo, lo + n) for lo, n in spans], np.int64).reshape(-1, 2)) for spans in (one, other)
    )
    assert members(intersection(a, b)) == members(a) & members(b)
    assert members(difference(a, b)) == members(a) - members(b)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.integers(1, 5)), max_size=10),
    st.integers(0, 1),
)
def test_merging_far_apart_is_merging_close_by(rows: list[tuple[int, int, int]], far: int) -> None:
    """Sectors that do not fit beside a key in 64 bits are merged by their order."""
    rows.sort()
    key, lo, size = np.array(rows, np.int64).reshape(-1, 3).T
    scale = 1 << 55 if far else 1
    lo, hi = lo * scale, (lo + size) * scale
    truth = sorted({(k, x) for k, at, n in rows for x in range(at, at + n)})
    got = [
        (k, x)
        for a, b, k in zip(*(c.tolist() for c in merge_sorted(lo, hi, key)), strict=True)
        for x in range(a // scale, b // scale)
    ]
    assert got == truth
    made = merge_sorted(lo, hi, key)
    assert ((made[2][1:] > made[2][:-1]) | (made[0][1:] > made[1][:-1])).all()
