"""The script that runs every scheme on a workload, and its picture."""

from __future__ import annotations

import json

import pytest

import stats
from pysim.schemes import SCHEMES

from .calls import caller

run = caller("compare_schemes", "--threads", "1", "--quiet")
WORKLOAD = "gru:hidden=64,batch=4,timesteps=2,layers=2"


def test_every_scheme_is_a_row(tmp_path):
    pytest.importorskip("matplotlib")
    done = run(tmp_path, WORKLOAD, "--out", "c.h5")
    assert done.returncode == 0, done.stderr
    runs = stats.load(tmp_path / "c.h5")["runs"]
    assert runs["scheme"].tolist() == list(SCHEMES)
    good = runs[runs["status"] == "ok"]
    assert len(good) >= len(SCHEMES) - 1
    assert (good["time_us"] >= good["bound_us"]).all()
    assert good["tbs"].nunique() <= 2  # cusync has gate kernels
    for name in SCHEMES:
        assert f"\n{name} " in done.stdout
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_no_such_workload_is_one_line(tmp_path):
    done = run(tmp_path, "gro")
    assert done.returncode == 2
    assert done.stderr == "error: no workload 'gro': did you mean gru?\n"
    assert not list(tmp_path.iterdir())


def test_json_alone_on_stdout(tmp_path):
    done = run(tmp_path, WORKLOAD, "--schemes", "graph,pool", "--tables", "none", "--json", "--out", "c.h5")
    assert done.returncode == 0, done.stderr
    assert [row["scheme"] for row in json.loads(done.stdout)["runs"]] == ["graph", "pool"]
