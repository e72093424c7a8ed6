"""A result as a user meets it in a notebook: it prints as the table of its runs."""

import copy
import multiprocessing
import pickle
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from pysim import Access, ConfigError, Job, Memory, WorkloadError, simulate, stats
from pysim.clock import Clock
from pysim.program.rename import renamed
from pysim.trace.conversion_cache import open_trace
from pysim.trace.job import trace_job
from pysim.workloads import make
from pysim.workloads.kernels import micro
from tests.support.calls import ROOT


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


SMALL = "gru:hidden=64,batch=4,timesteps=2,layers=1"


def simulated(job):
    return simulate("h200", job, "stream,tb_static", threads=1)


@pytest.mark.parametrize("change", [lambda job: job, renamed, lambda job: replace(job, name="mine")])
def test_a_job_of_a_workload_is_pickled_as_the_call_that_made_it(change):
    job = change(make(SMALL, "h200"))
    data = pickle.dumps(job)
    again = pickle.loads(data)
    assert (again.name, again.arguments, again.steps) == (job.name, job.arguments, job.steps)
    assert again.origin is not None
    result = simulated(job)
    assert simulated(again).hash == result.hash
    # thousands of kernels take no more
    assert len(pickle.dumps(make(SMALL.replace("timesteps=2", "timesteps=200"), "h200"))) < len(data) + 100
    sent = pickle.loads(pickle.dumps(result))
    assert sent.hash == result.hash
    assert repr(sent) == repr(result)
    assert sent.notes == result.notes
    assert sent.explain("tb_static", 3, 0) == result.explain("tb_static", 3, 0)  # needs the dependences
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = sent.other


def test_results_come_from_other_processes():
    job = make(SMALL, "h200")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(simulated, job).result().hash == simulated(job).hash


def test_a_job_of_ones_own_is_pickled_by_value():
    job = Job("two", [micro.ffma(tbs=160, warps=8), micro.empty(tbs=80)])
    again = pickle.loads(pickle.dumps(job))
    assert again.kernels[0].name == job.kernels[0].name
    assert simulated(again).hash == simulated(job).hash


def test_a_job_of_a_trace_is_pickled_as_its_file(tmp_path):
    store = open_trace(ROOT / "tests/data/traces/vectoradd", tmp_path, Clock())
    job = trace_job(store, memcpy="time")
    data = pickle.dumps(job)
    assert simulated(pickle.loads(data)).hash == simulated(job).hash
    store.path.unlink()
    with pytest.raises(WorkloadError, match="No such file"):
        pickle.loads(data)


def test_what_cannot_be_pickled_says_what_to_do_instead():
    job = make(SMALL)
    other = replace(job, kernels=list(job.kernels)[:2])  # no longer what the call makes
    assert other.origin is None
    result = simulated(other)
    for what in (other, job.kernels[0], result, {"my": [result]}):
        with pytest.raises(TypeError) as caught:
            pickle.dumps(what)
        assert re.match(r"kernel \w+ cannot be pickled, nor can its job or result: ", str(caught.value))
        assert "tables() of a result, write it with to_file, or make the job in the" in str(caught.value)
        assert "\n" not in str(caught.value)
    assert isinstance(caught.value, WorkloadError)
    tables = pickle.loads(pickle.dumps(result.tables()))
    assert all(tables[name].tobytes() == rows.tobytes() for name, rows in result.tables().items())
    # a function with arguments filled in is as good as the function
    kernel = micro.empty()
    tensor = Memory().tensor("x", 1, 32, 4)
    for given in (partial(lambda tbs: tbs), partial(int, lambda: 1)):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(replace(kernel, accesses=(Access(tensor, "read", given),)))


@pytest.mark.parametrize("kind", ["occupancy", "schemes"])
def test_a_picture_is_that_of_a_result_file(kind, tmp_path):
    pytest.importorskip("matplotlib")
    result = simulate("titan_v", make(SMALL), "stream,pdl,tb_static", threads=1)
    shown = result.picture(kind)
    assert shown._repr_png_().startswith(b"\x89PNG")
    assert repr(shown).startswith("<Picture: PNG of ")
    shown.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == shown.data
    result.to_file(tmp_path / "r.h5")
    title = f"{result.job.name} on {result.config.device.title}"
    for given in (tmp_path / "r.h5", stats.load(tmp_path / "r.h5"), result.tables()):
        assert stats.picture(given, kind, title) == shown
        assert stats.picture(given, kind) != shown  # the short name of the GPU
    with pytest.raises(ConfigError, match="no picture 'bars': there are occupancy, schemes"):
        result.picture("bars")
    with pytest.raises(ConfigError, match="no run to draw"):
        simulate("titan_v", make(SMALL), "pdl", threads=1, baseline=False).picture()
    with pytest.raises(stats.StoreError, match="no run to draw: there are none"):
        stats.picture({})


def test_a_result_says_what_its_columns_mean():
    result = simulate("titan_v", make(SMALL), "stream", threads=1)
    assert [column.name for column in result.columns("runs")] == list(result.frame("runs").columns)
    assert result.configuration["workload"] == {"workload": SMALL, "made_for": None}
    with pytest.raises(ConfigError, match="no table 'run': there are runs, "):
        result.columns("run")


def test_jobs_are_copied():
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    expected = simulate("titan_v", job, "tb_static").hash
    for same in (
        copy.copy(job),
        copy.deepcopy(job),
        replace(job, kernels=[copy.copy(k) for k in job.kernels]),
    ):
        assert simulate("titan_v", same, "tb_static").hash == expected
    assert copy.deepcopy(job).origin == copy.copy(job).origin == job.origin
