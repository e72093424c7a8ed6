"""Recorded footprints against brute force, and against the same jobs as rectangles of tensors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim.dependences import dependences
from pysim.footprint import MODES, Footprint
from pysim.job import Job, Kernel

from .test_dependences import PROGRAM, brute, check_tables, closure, edges_of, jobs

Row = tuple[int, int, int, int]


def recorded(tbs: int, rows: list[Row], stream: int = 0) -> Kernel:
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    return Kernel("k", PROGRAM, (tbs, 1, 1), (), (), stream, Footprint.of(*map(list, columns)))


def as_recorded(kernel: Kernel) -> Kernel:
    """The same kernel with its rectangles as byte ranges."""
    rows: list[Row] = []
    for access in kernel.accesses:
        t = access.tensor
        for tb, rect in enumerate(access.regions(np.arange(kernel.tbs)).tolist()):
            row0, row1 = max(rect[0], 0), min(rect[1], t.rows)
            col0, col1 = max(rect[2], 0), min(rect[3], t.cols)
            for row in range(row0, row1 if col0 < col1 else row0):
                at = t.address + row * t.pitch
                rows.append((tb, at + col0 * t.item, at + col1 * t.item, MODES.index(access.mode)))
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    made = Footprint.of(*map(list, columns))
    return Kernel(kernel.name, kernel.program, kernel.grid, kernel.args, (), kernel.stream, made)


def truth_of(job: Job) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """All conflicting pairs of TBs of different kernels, sector by sector."""
    return brute_rows([k.footprint.touched(k.tbs) for k in job.kernels if k.footprint is not None])


def brute_rows(kernels):
    touched: dict[int, list[tuple[int, int, bool]]] = {}
    for index, part in enumerate(kernels):
        for tb, lo, hi, written in zip(*(column.tolist() for column in part), strict=True):
            for sector in range(lo, hi):
                touched.setdefault(sector, []).append((index, tb, written))
    return {
        ((ka, ta), (kb, tb))
        for rows in touched.values()
        for (ka, ta, wa), (kb, tb, wb) in itertools.product(rows, rows)
        if ka < kb and (wa or wb)
    }


# few sectors: much aliasing; bytes, so that ranges share sectors that they do not share bytes of
RANGES = st.tuples(st.integers(0, 3), st.integers(0, 700), st.integers(1, 260), st.integers(0, 2))


@st.composite
def traces(draw: st.DrawFn) -> Job:
    kernels = []
    for _ in range(draw(st.integers(2, 6))):
        tbs = draw(st.integers(1, 4))
        rows = [(tb % tbs, at, at + size, mode) for tb, at, size, mode in draw(st.lists(RANGES, max_size=8))]
        kernels.append(recorded(tbs, rows, draw(st.integers(0, 2))))
    count = len(kernels)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    return Job("trace", kernels, draw(st.lists(st.sampled_from(pairs), max_size=3)))


def check(job: Job, truth: set) -> None:
    deps = dependences(job)
    found = edges_of(job, deps)
    assert found <= truth
    assert closure(found, job) == closure(truth, job)
    assert {(int(e["producer"]), int(e["consumer"])) for e in deps.edges} == {(b[0], a[0]) for b, a in found}
    assert list(deps.preds) == [
        tuple(sorted({b[0] for b, a in found if a[0] == k})) for k in range(len(job.kernels))
    ]
    ordered = closure(order_edges(job), job_of_kernels(job))
    assert set(deps.races) == {(b[0], a[0]) for b, a in found if (b[0], 0) not in ordered[a[0], 0]}
    check_tables(job, deps)


def job_of_kernels(job: Job) -> Job:
    return Job("kernels", [recorded(1, []) for _ in job.kernels])


def order_edges(job: Job) -> set:
    """Streams and events, as edges between TBs 0."""
    made = {((a, 0), (b, 0)) for a, b in job.events}
    streams = [k.stream for k in job.kernels]
    return made | {
        ((a, 0), (b, 0)) for b in range(len(streams)) for a in range(b) if streams[a] == streams[b]
    }


@settings(max_examples=500, deadline=None)
@given(traces())
def test_equals_brute_force(job: Job) -> None:
    check(job, truth_of(job))


@settings(max_examples=300, deadline=None)
@given(jobs(), st.lists(st.booleans(), min_size=5, max_size=5))
def test_kernels_of_both_kinds_mix(job: Job, which: list[bool]) -> None:
    kernels = [as_recorded(k) if chosen else k for k, chosen in zip(job.kernels, which, strict=False)]
    check(Job("mixed", kernels, job.events), brute(job))


@settings(max_examples=100, deadline=None)
@given(traces(), st.integers(1, 40))
def test_small_blocks_change_nothing(job: Job, chunk: int) -> None:
    whole = dependences(job)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pysim.sweep._CHUNK", chunk)
        cut = dependences(job)
    for name in ("nodes", "ranges", "outs", "tb_outs", "edges"):
        assert (getattr(whole, name) == getattr(cut, name)).all()


@settings(max_examples=100, deadline=None)
@given(traces(), st.randoms(use_true_random=False))
def test_order_and_repeats_of_rows_change_nothing(job: Job, random) -> None:
    def shuffled(kernel: Kernel) -> Kernel:
        rows = list(zip(*(c.tolist() for c in kernel.footprint._rows()), strict=True))
        rows += rows[:2]
        random.shuffle(rows)
        return recorded(kernel.tbs, rows, kernel.stream)

    again = dependences(Job("again", [shuffled(k) for k in job.kernels], job.events))
    whole = dependences(job)
    for name in ("nodes", "ranges", "outs", "tb_outs", "edges"):
        assert (getattr(whole, name) == getattr(again, name)).all()


@settings(max_examples=200, deadline=None)
@given(traces(), st.integers(0, 3))
def test_colliding_signatures_change_nothing(job: Job, bits: int) -> None:
    """Where the first word of a signature tells nothing, the second does."""
    from pysim import sweep

    whole, mixed = dependences(job), sweep._mixed

    def weak(numbers, salt):
        # odd salts are first words
        return mixed(numbers, salt) & np.uint64((1 << bits) - 1) if salt % 2 else mixed(numbers, salt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "_mixed", weak)
        other = dependences(job)
    for name in ("nodes", "ranges", "outs", "tb_outs", "edges"):
        assert (getattr(whole, name) == getattr(other, name)).all()
