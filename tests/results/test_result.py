"""A result as a user meets it in a notebook: it prints as the table of its runs."""

import copy
import pickle
import re
from dataclasses import replace

import pytest

from pysim import WorkloadError, simulate
from workloads import make


def test_a_result_prints_as_its_table():
    result = simulate("titan_v", make("gru:hidden=64,batch=4,timesteps=2,layers=1"), "tb_static,pdl")
    lines = repr(result).splitlines()
    assert lines[0] == "gru:hidden=64,batch=4 on titan_v"
    assert lines[1].split() == ["scheme", "time", "speedup"]
    time = result.time_us("tb_static")
    assert lines[2].split()[:3] == ["tb_static", f"{time:,.2f}", "us"]
    assert lines[2].endswith("x")
    assert lines[3].split()[:2] == ["pdl", "refused"]
    assert "needs compute capability 9.0" in lines[3]
    # stream ran for the speedup and is no row of the table, but a note
    assert not any(line.startswith("stream ") and "x" in line.split()[-1] for line in lines)
    assert any(line.startswith("stream was run too") for line in lines)
    assert lines[-1].startswith("tables (rows): runs (3)")
    assert len(repr(result)) < 1000


def test_a_result_is_pickled_or_says_what_to_send():
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    result = simulate("titan_v", job, "stream")
    for what in (job, job.kernels[0], result):
        with pytest.raises(WorkloadError) as caught:
            pickle.dumps(what)
        assert re.match(r"kernel \w+ cannot be pickled, nor can its job or result: ", str(caught.value))
        assert str(caught.value).endswith("Send the text of workloads.make, and the tables() of a result")
    # what the message says can be sent
    tables = pickle.loads(pickle.dumps(result.tables()))
    assert all(tables[name].tobytes() == rows.tobytes() for name, rows in result.tables().items())
    # without local functions all of it is pickled
    plain = simulate("titan_v", make("empty"), "stream")
    again = pickle.loads(pickle.dumps(plain))
    assert again.hash == plain.hash
    assert repr(again) == repr(plain)


def test_jobs_are_copied():
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    expected = simulate("titan_v", job, "tb_static").hash
    for same in (
        copy.copy(job),
        copy.deepcopy(job),
        replace(job, kernels=[copy.copy(k) for k in job.kernels]),
    ):
        assert simulate("titan_v", same, "tb_static").hash == expected
