"""The four estimates of a job, and the script that sets schemes beside them."""

from __future__ import annotations

import json

import pytest

from pysim import Config, bound, device, simulate
from pysim.engine.limits import ESTIMATE_KINDS, estimates
from pysim.workloads.registry import make
from tests.core.harness import config
from tests.support.calls import caller
from tests.support.thin import thin

run = caller("gap_table")


@pytest.mark.parametrize(
    "text", ["gru:hidden=256,batch=16,timesteps=3,layers=2", "lud:n=96", "copy:nbytes=4194304"]
)
def test_each_cost_makes_it_longer(text):
    found = estimates(config("h200"), make(text))
    assert list(found) == list(ESTIMATE_KINDS)
    assert found["free"] <= found["shared"] * (1 + 1e-9)
    # a list schedule may end earlier where kernels come later, but not by much
    assert found["free"] <= 1.02 * found["launch"]
    assert found["shared"] <= 1.02 * found["launch, shared"]


@pytest.mark.parametrize("scheme", thin(["tb_ideal:prologue", "stream", "cusync:row", "host"], 2))
def test_a_bound_without_a_run_is_that_of_the_run(scheme):
    job = make("gru:hidden=64,batch=8,timesteps=3")
    few = {"gpu.cp.launch": 100.0, "scheme.hypothetical": 1}
    row = simulate("titan_v", job, scheme, overrides=few, tables="none", baseline=False).tables()["runs"][0]
    known = bound("titan_v", job, scheme, few)
    assert (known.bound_us, known.estimate_us) == (row["bound_us"], row["estimate_us"])
    assert bound(Config.resolve(device("titan_v"), few), job, scheme).bound_us == row["bound_us"]


def test_launches_and_memory_count():
    conf = config("h200")
    job = make("lud:n=96")
    slow = conf.replaced({"gpu.cp.admit": 50_000.0})
    assert estimates(slow, job)["launch"] > 50 * (len(job.kernels) - 1)
    assert estimates(slow, job)["free"] == estimates(conf, job)["free"]
    copy = estimates(conf, make("copy:nbytes=134217728"))
    assert copy["shared"] > 1.5 * copy["free"]


def test_the_table(tmp_path):
    options = ("lud:n=64", "--schemes", "graph,tb_ideal", "--gpu", "titan_v", "--out", "gap.h5")
    done = run(tmp_path, *options, "--quiet")
    assert done.returncode == 0, done.stderr
    heads, _, line = done.stdout.strip().splitlines()
    row = dict(zip(heads.split(" | "), line.split(" | "), strict=True))
    assert row["| network"] == "| lud:n=64"
    assert 0 < float(row["bound"]) <= float(row["free"]) * 1.001
    assert row["graph"].endswith("%")
    again = run(tmp_path, *options, "--force", "--json")
    assert again.returncode == 0, again.stderr
    runs = json.loads(again.stdout)["runs"]
    assert [r["scheme"] for r in runs] == ["stream", "graph", "tb_ideal"]
