"""Traffic of a job: stack distances, parts of a tensor, and what is written back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysim.analysis.traffic import _Stack, compulsory_bytes, dram_traffic, written_bytes
from pysim.program.job import Memory
from pysim.program.regions import union
from pysim.workloads.registry import make


# ---- traffic ----
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 50)), max_size=60))
def test_stack_distances(touches):
    stack, seen = _Stack(len(touches)), {}
    for at, (key, size) in enumerate(touches):
        want = None
        if key in seen:
            since = dict(touches[seen[key] + 1 : at])
            since.pop(key, None)
            want = sum(since.values())
        assert stack.distance((key,)) == want
        stack.touch((key,), size)
        seen[key] = at


def test_parts_of_a_tensor():
    """Each kernel of PathFinder reads a fifth of the wall."""
    job = make("pathfinder")
    made = dram_traffic(job, 3 << 20)
    reads, writes = made.reads, made.writes
    assert sum(reads) == pytest.approx(compulsory_bytes(job), rel=0.1)
    assert sum(writes) < written_bytes(job) * 3


def test_what_is_written_goes_back_once():
    memory = Memory()
    big = [memory.tensor(f"t{n}", 1024, 1024, 4) for n in range(3)]
    job = make("copy:nbytes=8388608")
    assert written_bytes(job) == 8388608
    assert dram_traffic(job, 1 << 20).writes == [8388608]
    assert dram_traffic(job, 1 << 30).writes == [0]
    assert len(union(np.array([[t.address, t.address + t.nbytes] for t in big]))) == 1
