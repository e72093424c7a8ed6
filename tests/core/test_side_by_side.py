"""Several simulations in one process do not know of each other."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pysim import simulate
from pysim._ffi import check, lib
from pysim.engine.simulation import Sim

from .harness import drive, execute, lowered_of, outcome, tiny
from .workloads_small import JOBS

PAIRS = [("gru", "tb_static", "gemm_edges", "stream"), ("random_dag", "tb_ideal", "random_dag", "tb_ideal")]
PAIRS += [("read", "stream", "mixed", "graph"), ("split_k", "host", "chase", "stream")]


@pytest.mark.parametrize("pair", PAIRS)
def test_calls_take_turns(pair):
    a, b = pair[:2], pair[2:]
    alone = [execute(JOBS[name](), scheme).fingerprint() for name, scheme in (a, b)]
    jobs = [JOBS[name]() for name, _ in (a, b)]
    tables = [lowered_of(job, scheme, tiny())[0] for job, (_, scheme) in zip(jobs, (a, b), strict=True)]
    with Sim(tables[0]) as one, Sim(tables[1]) as other:
        sims, kept, going = [one, other], [[], []], {0, 1}
        while going:
            for i in sorted(going):
                if check(lib.gs_run(sims[i].sim, 1, 3), sims[i].sim) == lib.GS_DONE:
                    going.discard(i)
                while len(rows := sims[i].take_tb_records(1 << 16)):
                    kept[i].append(rows)
        for i in (0, 1):
            got = outcome(sims[i], jobs[i], tables[i].values, np.concatenate(kept[i]))
            assert got.fingerprint() == alone[i]


@pytest.mark.threads
@pytest.mark.parametrize("pair", PAIRS)
def test_python_threads(pair):
    wanted = {}
    for name, scheme in (pair[:2], pair[2:]):
        wanted[name, scheme] = execute(JOBS[name](), scheme).fingerprint()
    failed = []

    def work(name, scheme):
        job = JOBS[name]()
        made, _ = lowered_of(job, scheme, tiny())
        for _ in range(3):
            with Sim(made) as sim:
                got = outcome(sim, job, made.values, drive(sim, (2, 1), (20,)))
            if got.fingerprint() != wanted[name, scheme]:
                failed.append((name, scheme))

    team = [threading.Thread(target=work, args=key) for key in (pair[:2], pair[2:])]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert not failed


def test_repeated_and_after_an_error():
    job = JOBS["random_dag"]()
    first = simulate(tiny(), job, "stream,tb_static", threads=1).hash
    with pytest.raises(Exception, match="no scheme"):
        simulate(tiny(), job, "nothing")
    assert simulate(tiny(), job, "stream,tb_static", threads=1).hash == first


def test_seed_decides():
    """The seed picks L2 victims, so it matters where the L2 is too small, and nowhere else."""
    small = {"gpu__l2__size": 12 * 4 * 16 * 128}
    one, same, other = (
        execute(JOBS["copy"](), "stream", tiny(sim__seed=seed, **small)) for seed in (1, 1, 2)
    )
    assert one.hash == same.hash
    assert one.hash != other.hash
    assert (
        execute(JOBS["chase"](), "stream", tiny(sim__seed=5)).hash == execute(JOBS["chase"](), "stream").hash
    )


def test_a_finished_run_stays_finished():
    job = JOBS["empty"]()
    made, _ = lowered_of(job, "stream", tiny())
    with Sim(made) as sim:
        rows = drive(sim)
        assert lib.gs_run(sim.sim, 1, 5) == lib.GS_DONE
        assert lib.gs_run(sim.sim, 4, 5) == lib.GS_DONE
        assert len(sim.take_tb_records(10)) == 0
        assert len(rows) == 900


def test_a_small_tb_buffer_only_pauses():
    job = JOBS["empty"]()
    made, _ = lowered_of(job, "stream", tiny())
    made.job.tb_buffer = 1
    with Sim(made) as sim:
        got = outcome(sim, job, made.values, drive(sim))
    assert got.fingerprint() == execute(job, "stream").fingerprint()
