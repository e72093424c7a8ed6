"""Bounds of jobs that hold some of their periods: never above those of the whole job, and hardly below."""

from dataclasses import replace

import numpy as np
import pytest

from pysim import simulate
from pysim.analysis.longest_path import Lengths, longest
from pysim.dependence.dependences import dependences
from pysim.engine.limits import bound
from pysim.program.periods.shorten import shortened
from pysim.workloads import make

WHOLE, HELD = 9, 4
TEXTS = {
    "transformer": "hidden=64,heads=2,sequence=64,batch=1,ffn=128,dtype=fp32",
    "mlp": "width=256,batch=128,dtype=fp32",
    "wide": "width=1024,batch=16,dtype=fp32",
}


def network(name, layers):
    return replace(make(f"{name.replace('wide', 'mlp')}:layers={layers},{TEXTS[name]}"), steps=layers)


@pytest.fixture(scope="module", params=["transformer", "mlp"])
def jobs(request):
    """Return the whole job and the shortened one."""
    held = shortened(network(request.param, HELD), network(request.param, HELD - 1), WHOLE)
    return network(request.param, WHOLE), held


@pytest.mark.parametrize("seed", range(4))
def test_the_longest_path_of_periods_is_bounded_whatever_tbs_take(jobs, seed):
    """TBs of a period take different times, those of equal periods the same: chains side by side differ."""
    whole, held = jobs
    (run,) = held.shortened.runs
    draw = np.random.default_rng(seed)
    count = max(kernel.tbs for kernel in whole.kernels)
    each = draw.exponential(1.0, (run.first + run.period, count)).round(2)
    gaps = draw.random() * 3

    def of(job):
        places = [i if i < run.first else run.first + (i - run.first) % run.period for i in range(10_000)]
        after = len(job.kernels) - (len(held.kernels) - run.end)
        took = [each[places[i] if i < after else 0, : k.tbs] for i, k in enumerate(job.kernels)]
        return Lengths(dependences(job), took, gaps=[np.full(k.tbs, gaps) for k in job.kernels])

    known, made = longest(of(whole)), longest(of(held), held.shortened)
    assert longest(of(held)) < made <= known + 1e-9
    assert made > 0.6 * known


@pytest.mark.parametrize("gpu", ["titan_v", "h200"])
def test_bound_and_estimate_of_a_shortened_job_are_those_of_the_whole(jobs, gpu):
    whole, held = (bound(gpu, job) for job in jobs)
    assert held.bound_us <= whole.bound_us * (1 + 1e-9)
    assert held.bound_us == pytest.approx(whole.bound_us, rel=0.02)
    assert held.estimate_us == pytest.approx(whole.estimate_us, rel=0.02)


def test_work_and_weights_of_layers_left_out_add_up():
    """DRAM bounds a network that reads each weight once."""
    name, free = "wide", {"gpu.dram.bandwidth": 100.0}
    held = shortened(network(name, HELD), network(name, HELD - 1), WHOLE)
    known, made = (bound("titan_v", job, "stream", free) for job in (network(name, WHOLE), held))
    assert made.bound_us == pytest.approx(known.bound_us, rel=1e-3)
    assert made.bound_us > 1.5 * bound("titan_v", network(name, HELD), "stream", free).bound_us


def test_launches_over_lists_add_nothing_to_the_bound():
    """They have only grids in common; the estimate counts them."""
    text = "bert-base:layers=5,batch=1,seq=32,pass=training,optimizer=lamb"
    whole, held = (bound("v100", make(f"{text},simulated={n}", "v100")) for n in (0, 3))
    assert 0.9 * whole.bound_us < held.bound_us <= whole.bound_us * (1 + 1e-9)
    assert held.estimate_us == pytest.approx(whole.estimate_us, rel=0.1)


def test_results_have_the_bound_of_the_whole(jobs):
    _, held = jobs
    (row,) = simulate("titan_v", held, "stream").tables()["runs"]
    assert row["bound_us"] == bound("titan_v", held).bound_us
    assert row["bound_us"] <= row["estimate_us"] <= row["time_us"]
