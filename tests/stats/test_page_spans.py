"""Spans of time against counting every unit of time."""

from __future__ import annotations

import numpy as np
import pytest

from pysim.stats.page.spans import Spans, time_in_bins

END, GROUPS = 60, 4


@pytest.mark.parametrize("seed", range(30))
def test_spans_against_counting_every_unit_of_time(seed: int) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(0, 40))
    begin = random.integers(-5, END, count)
    end = begin + random.integers(0, 25, count)
    group = random.integers(0, GROUPS, count)
    edges = np.unique(np.append(random.integers(0, END, 6), [0, END])).astype(float)
    held = np.zeros(END)
    on = np.zeros((GROUPS, END + 40), bool)  # from -5
    for who, low, high in zip(group, begin, end, strict=True):
        held[max(low, 0) : max(high, 0)] += 1
        on[who, low + 5 : high + 5] = True
    spans = Spans(group, begin.astype(float), end.astype(float))
    cuts = edges[:-1].astype(int)
    assert time_in_bins(spans.begin, spans.end, edges).tolist() == np.add.reduceat(held, cuts).tolist()
    merged = spans.merged()
    busy = time_in_bins(merged.begin, merged.end, edges)
    assert busy.tolist() == np.add.reduceat(on[:, 5 : END + 5].sum(0), cuts).tolist()
    assert merged.total(GROUPS).tolist() == on.sum(1).tolist()
    assert merged.alone(GROUPS).tolist() == (on & (on.sum(0) == 1)).sum(1).tolist()
