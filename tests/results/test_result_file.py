"""``Result.to_file``: the file that scripts write, from Python."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import pysim
from pysim import Job, WorkloadError, simulate, stats
from pysim.clock import Clock
from pysim.errors import OutputError
from pysim.program.rename import renamed
from pysim.results.graph_tables import graph_hash
from pysim.results.schema import TABLES
from pysim.trace.conversion_cache import open_trace
from pysim.trace.job import trace_job
from pysim.workloads import make
from pysim.workloads.kernels import micro
from tests.support.calls import ROOT, caller, refused
from tests.support.calls import pysim as command

SMALL = "gru:hidden=64,batch=4,timesteps=2,layers=1"
GEMM = "gemm:m=512,n=512,k=512,dtype=fp16"  # each GPU has its own kernels for it


@pytest.fixture(scope="module")
def result():
    return simulate("titan_v", make(SMALL, "titan_v"), "graph,tb_static", threads=1)


def test_the_file_holds_the_tables(result, tmp_path):
    path = tmp_path / "new" / "r.h5"
    result.to_file(path)
    results = stats.load(path)
    results.verify()
    assert sorted(results) == sorted(result.tables())
    for name, rows in result.tables().items():
        assert results.array(name).dtype == rows.dtype
        assert results.array(name).tobytes() == rows.tobytes()
        assert results[name].equals(result.frame(name)) or not len(rows)
        said = [column._replace(dtype=np.dtype(column.dtype)) for column in results.columns(name)]
        assert said == [column._replace(dtype=np.dtype(column.dtype)) for column in TABLES[name]]
    known = results.configuration
    assert known == json.loads(path.with_suffix(".json").read_text())
    assert known["workload"] == {"workload": SMALL}
    assert known["schemes"] == ["graph", "tb_static", "stream"]
    assert known["parameters"]["device"] == "titan_v"
    assert known["version"].startswith(f"{pysim.__version__}+")
    assert results.attributes["graph"] == graph_hash(result.deps)
    # the same again is no other file, and of another process it has the same bytes
    before = path.read_bytes()
    result.to_file(str(path))
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["r.h5", "r.json"]


def test_equal_results_have_equal_bytes(tmp_path):
    """Two processes; the table ``host`` alone may differ."""
    code = (
        "import sys; from pysim import simulate; from pysim.workloads import make\n"
        f"r = simulate('titan_v', make({SMALL!r}), 'stream', threads=1)\n"
        "del r.parts['host']; r.to_file(sys.argv[1])\n"
    )
    for name in ("a", "b"):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": str(ord(name))}
        command = [sys.executable, "-c", code, f"{name}.h5"]
        subprocess.run(command, cwd=tmp_path, env=env, check=True, timeout=240)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_it_is_the_file_of_a_script(result, tmp_path):
    words = ("--gpu", "titan_v", "--schemes", "graph,tb_static", "--quiet", "--out", "script.h5")
    assert caller("compare_schemes")(tmp_path, SMALL, *words).returncode == 0
    result.to_file(tmp_path / "mine.h5")
    theirs, mine = stats.load(tmp_path / "script.h5"), stats.load(tmp_path / "mine.h5")
    assert {key for key in theirs.configuration if theirs.configuration[key] != mine.configuration[key]} == {
        "script",
        "schemes",  # stream ran for the speedup, and a result holds it
        "tables",
    }
    assert theirs.attributes["graph"] == mine.attributes["graph"]
    for name in sorted({*mine} - {"host"}):
        listed = mine.array(name)[mine.array(name)["run"] < 2]
        assert theirs.array(name).tobytes() == listed.tobytes()


@pytest.mark.parametrize(
    ("text", "made_for", "change"),
    [(SMALL, "titan_v", None), (GEMM, None, None), (GEMM, "h200", None), (GEMM, "titan_v", renamed)],
)
def test_the_job_is_made_again_from_the_file(tmp_path, text, made_for, change):
    job = make(text, made_for)
    job = change(job) if change else job
    result = simulate("titan_v", job, "stream", threads=1)
    result.to_file(tmp_path / "r.h5")
    again = stats.load(tmp_path / "r.h5").configuration["workload"]
    assert ("made_for" in again) == (made_for != "titan_v")
    done = command("dependences", "r.h5", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    row = json.loads(done.stdout)["dependences"][0]
    assert (row["tbs"], row["renamed"]) == (sum(kernel.tbs for kernel in job.kernels), int(change is renamed))


def test_the_job_of_a_composed_gpu_is_made_again(tmp_path):
    gpu = pysim.device("h200")
    gpu.name, gpu.sms, gpu.compute_capability = "mine", 30, (9, 1)
    job = make(GEMM, gpu)
    simulate(gpu, job, "stream", threads=1).to_file(tmp_path / "r.h5")
    done = command("dependences", "r.h5", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["dependences"][0]["tbs"] == sum(kernel.tbs for kernel in job.kernels)


def test_the_job_of_a_trace_is_made_again(tmp_path):
    folder = tmp_path / "results" / "traces"
    folder.mkdir(parents=True)
    store = open_trace(ROOT / "tests/data/traces/vectoradd", folder, Clock())
    simulate("titan_v", trace_job(store, [1]), "stream", threads=1).to_file(tmp_path / "r.h5")
    assert command("dependences", "r.h5", folder=tmp_path).returncode == 0


def test_a_job_of_ones_own_is_not_made_again(tmp_path):
    job = Job("two", [micro.ffma(tbs=160, warps=8), micro.empty(tbs=80)])
    simulate("titan_v", job, "stream", threads=1).to_file(tmp_path / "r.h5")
    assert stats.load(tmp_path / "r.h5").configuration["workload"] == {"name": "two", "arguments": ""}
    refused(command("dependences", "r.h5", folder=tmp_path), "a job that no workload makes cannot be built")


def test_a_file_that_cannot_be_written_is_one_line(result, tmp_path):
    result.to_file(tmp_path / "r.h5")
    other = replace(result, parts={"runs": result.parts["runs"]})
    before = (tmp_path / "r.h5").read_bytes()
    (tmp_path / "file").write_text("")
    (tmp_path / "text.h5").write_text("mine")
    for path, why in (
        ("r.h5", "exists with different results"),
        ("r.txt", "must be named"),
        ("file/r.h5", "cannot write"),
        ("text.h5", "is not a complete result file"),
    ):
        with pytest.raises(OutputError, match=why) as caught:
            other.to_file(tmp_path / path)
        assert "\n" not in str(caught.value)
        assert isinstance(caught.value, WorkloadError)
    assert (tmp_path / "r.h5").read_bytes() == before
    assert (tmp_path / "text.h5").read_text() == "mine"
    other.to_file(tmp_path / "r.h5", force=True)
    assert "kernels" in stats.load(tmp_path / "r.h5")
    assert not len(stats.load(tmp_path / "r.h5").array("kernels"))


def test_an_interrupted_result_says_so(result, tmp_path):
    replace(result, interrupted=True).to_file(tmp_path / "r.h5")
    assert stats.load(tmp_path / "r.h5").attributes[stats.INTERRUPTED] == "yes"
    result.to_file(tmp_path / "r.h5")  # the whole result takes its place
    assert stats.INTERRUPTED not in stats.load(tmp_path / "r.h5").attributes
