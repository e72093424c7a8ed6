"""Replay of equal periods: what is left out, what its time becomes, and what is said of the error."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pysim import simulate
from pysim.analysis.reuse_distance import missed_bytes
from pysim.dependence.dependences import dependences
from pysim.engine.replay import PeriodicRun, contract, find_periodic_runs, plan_gaps
from pysim.program.job import Job, Memory
from pysim.workloads import make
from pysim.workloads.kernels import micro
from tests.core.harness import config, tiny
from tests.support.thin import thin

SCHEMES = "host,stream,graph,tb_static,tb_ideal"
GRU = "gru:hidden=128,batch=8,timesteps=24"
# (workload, kernels of a period): of three layers, of buffers that take turns, of equal layers
JOBS = (
    (GRU, 3),
    ("gru:hidden=128,batch=8,timesteps=24,buffers=2", 3),
    ("gru:hidden=128,batch=16,timesteps=24,input=hoisted,layers=2", 2),
    ("lstm:hidden=128,batch=8,timesteps=40", 2),
    ("transformer:layers=8,hidden=64,heads=2,sequence=64,batch=1,ffn=128,dtype=fp32", 11),
)


def left(text, window=64, seed=1):
    job = make(text)
    deps = dependences(job)
    return job, deps, contract(job, deps, window, seed)


@pytest.mark.parametrize(("text", "period"), JOBS)
def test_periods_are_found(text, period):
    job = make(text)
    runs = find_periodic_runs(job)
    assert runs
    assert {run.period for run in runs} == {period}
    # what begins and ends a layer apart, all of it is in a run
    assert sum(run.period * run.repeats for run in runs) > 0.6 * len(job.kernels)
    for before, after in pairwise(runs):
        assert before.first + before.period * before.repeats <= after.first


def test_nothing_repeats():
    assert find_periodic_runs(make("random_dag")) == []
    assert contract(make("random_dag"), dependences(make("random_dag")), 64, 1) is None


@pytest.mark.parametrize("repeats", [4, 5, 7, 19, 60, 500])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_gaps_lie_inside_and_apart(repeats, factor):
    gaps = plan_gaps(0, PeriodicRun(0, 3, repeats), factor, 64, 7)
    end = -1
    for gap in gaps:
        assert gap.before >= max(end, 1)
        assert gap.skipped % factor == 0
        end = gap.before + gap.skipped + 1  # a period that is simulated
    assert end < repeats
    if repeats >= 60:
        assert sum(gap.skipped for gap in gaps) > repeats / 2
        assert len(gaps) > 1
    assert gaps == plan_gaps(0, PeriodicRun(0, 3, repeats), factor, 64, 7)


def test_the_seed_moves_what_is_simulated():
    run = PeriodicRun(0, 3, 200)
    assert len({tuple(plan_gaps(0, run, 1, 64, seed)) for seed in range(8)}) > 1


@pytest.mark.parametrize(("text", "period"), JOBS)
def test_what_is_left_waits_for_what_stands_for_the_others(text, period):
    job, deps, made = left(text)
    assert made.left_out % period == 0
    assert made.left_out > 0
    assert made.window_slots.sum() == len(job.kernels)
    for index, number in enumerate(made.original.tolist()):
        kernel, other = made.job.kernels[index], job.kernels[number]
        assert (kernel.program, kernel.grid) == (other.program, other.grid)
        assert [t.nbytes for t in kernel.args] == [t.nbytes for t in other.args]
        wanted, got = deps.preds[number], made.deps.preds[index]
        # the same kernels of the period; what reads all steps finds fewer of them
        assert {job.kernels[p].name for p in wanted} == {made.job.kernels[p].name for p in got}
        assert len(wanted) == len(got) or len(wanted) > 20


@pytest.mark.parametrize(
    ("conf", "text"),
    thin(
        [
            *((tiny(sim__oracle=1), text) for text, _ in JOBS[:4]),
            (config(), "transformer:layers=6,hidden=256,heads=4"),
            (config(), "gru:hidden=256,batch=16,timesteps=20,layers=3"),
        ],
        4,
    ),
)
def test_the_error_is_as_small_as_said(conf, text):
    whole = simulate(conf, make(text), SCHEMES, threads=1)
    part = simulate(conf, make(text), SCHEMES, threads=1, overrides={"sim.replay": "period"})
    was, now = whole.frame("runs"), part.frame("runs")
    assert (now["status"] == "ok").all()
    assert (now["replayed"] > 0).sum() >= 2
    for before, after in zip(was.itertuples(), now.itertuples(), strict=True):
        error = abs(after.time_us / before.time_us - 1)
        assert error <= 0.01, (before.scheme, error)
        assert after.replay_error <= 0.01
        if not after.replayed:
            assert error == 0
        assert after.warp_instructions == pytest.approx(before.warp_instructions, rel=1e-4)
        assert after.tbs == before.tbs
        assert after.l2_bytes == pytest.approx(before.l2_bytes, rel=0.05)
    kernels = part.frame("kernels")
    old = whole.frame("kernels")
    assert (kernels["warp_instructions"] == old["warp_instructions"]).all()
    apart = (kernels["last_end_us"] - old["last_end_us"]).abs()
    assert apart.max() < 0.03 * was["time_us"].max()


def test_a_chain_of_one_kernel_is_exact():
    job = Job("chain", [micro.ffma(6, 4, 64, 32)] * 200)
    was = simulate(tiny(), job, "host,stream", threads=1, tables="kernels").frame("runs")
    now = simulate(
        tiny(), job, "host,stream", threads=1, tables="kernels", overrides={"sim.replay": "period"}
    ).frame("runs")
    assert (now["replayed"] > 100).all()
    assert now["time_us"].tolist() == pytest.approx(was["time_us"].tolist(), rel=1e-5)
    assert now["cycles"].tolist() == pytest.approx(was["cycles"].tolist(), rel=1e-5)
    assert (now["warp_instructions"] == was["warp_instructions"]).all()


def test_kernels_that_wait_for_nothing_take_what_the_machine_gives():
    memory = Memory()
    job = Job("apart", [micro.read(memory, 12, 4, 1 << 14) for _ in range(120)])
    was = simulate(tiny(), job, "tb_static,tb_ideal", threads=1, baseline=False).frame("runs")
    now = simulate(
        tiny(), job, "tb_static,tb_ideal", threads=1, baseline=False, overrides={"sim.replay": "period"}
    ).frame("runs")
    assert now["time_us"].tolist() == pytest.approx(was["time_us"].tolist(), rel=0.01)


def test_what_may_be_wrong_is_simulated_as_a_whole():
    over = {"sim.replay": "period", "sim.replay_error": 0}
    now = simulate(tiny(), make(GRU), "stream,tb_static", threads=1, overrides=over)
    was = simulate(tiny(), make(GRU), "stream,tb_static", threads=1)
    runs = now.frame("runs")
    assert (runs["replayed"] == 0).all()
    assert (runs["time_us"] == was.frame("runs")["time_us"]).all()
    assert sum("simulated as a whole" in note for note in now.notes) == 2


def test_records_bear_the_numbers_of_the_whole_job():
    over = {"sim.replay": "period", "sim.replay_error": 1}
    result = simulate(tiny(), make(GRU), "tb_static", threads=1, overrides=over, baseline=False)
    tbs, kernels = result.frame("tbs"), result.frame("kernels")
    _, _, made = left(GRU)
    assert set(tbs["kernel"]) == set(made.original.tolist())
    assert (tbs["start_ns"] <= tbs["end_ns"]).all()
    ends = tbs.groupby("kernel")["end_ns"].max() / 1e3
    assert np.allclose(ends, kernels["last_end_us"][ends.index], atol=0.2)
    last = tbs[tbs["last_kernel"] >= 0]
    assert (last["last_kernel"] < last["kernel"]).all()
    assert result.explain("tb_static", int(made.original[-1]), 0)


def test_schemes_that_wait_inside_are_refused():
    over = {"sim.replay": "period", "scheme.hypothetical": 1}
    runs = simulate(tiny(), make(GRU), "cusync", threads=1, overrides=over, baseline=False).frame("runs")
    assert runs["status"].tolist() == ["refused"]
    assert "replay" in runs["reason"][0]


@pytest.mark.deep
def test_threads_do_not_matter():
    over = {"sim.replay": "period"}
    hashes = {simulate(tiny(), make(GRU), SCHEMES, threads=n, overrides=over).hash for n in (1, 2, 3)}
    assert len(hashes) == 1


def test_missed_bytes_of_a_cyclic_scan():
    memory = Memory()
    kernels = [micro.read(memory, 4, 4, 1 << 14) for _ in range(4)]  # 64 KiB each
    job = Job("scan", kernels * 3)
    assert missed_bytes(job, 1 << 18).sum() == 0
    half = missed_bytes(job, 1 << 17)
    assert half[:4].sum() == 0
    assert half[4:] == pytest.approx([(1 << 16) / 2] * 8)


def test_learning_is_told_of_all_launches():
    """Though only some periods are simulated."""
    job = make("gru:hidden=64,batch=8,timesteps=40,layers=1")
    replayed = {"sim.replay": "period", "sim.replay_error": 1.0}
    whole, part = (
        simulate(tiny(), job, "tb_learned", threads=1, overrides=how, baseline=False).tables()
        for how in ({}, replayed)
    )
    assert part["learned"].tolist() == whole["learned"].tolist()
    assert len(part["tbs"]) < len(whole["tbs"])
