"""Runs that a script stops at a moment and clones: equal where nothing changes, and right where it does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pysim import ConfigError, Simulation, WorkloadError, simulate
from pysim._ffi import lib
from pysim.engine.simulation import Sim
from pysim.engine.stepped import CLONE_PARAMETERS
from pysim.params import PARAMS
from pysim.schemes.registry import parse_schemes
from pysim.workloads import make
from tests.core.harness import lowered_of, oracle, tiny
from tests.golden.cases import CASES
from tests.support.thin import thin

GRU = "gru:hidden=128,batch=8,timesteps=4,layers=2"
ONE_RUN = [name for name in CASES if name not in ("oracle", "replay", "energy")]
EACH = [(name, choice.name) for name in ONE_RUN for choice in parse_schemes(CASES[name].schemes)]


def started(name, scheme, threads=1):
    case = CASES[name]
    return Simulation(case.gpu, case.job(), scheme, overrides=dict(case.overrides), threads=threads)


@pytest.mark.parametrize(("name", "scheme"), thin(EACH, 5))
def test_a_clone_without_a_change_goes_on_as_the_run_does(name, scheme):
    """Whatever the moments and the threads, and whether the clone runs before the run or after it."""
    case, draw = CASES[name], random.Random(f"{name} {scheme}")
    want = simulate(case.gpu, case.job(), scheme, overrides=dict(case.overrides), threads=2, baseline=False)
    end = want.time_us(scheme)
    with started(name, scheme, draw.choice((1, 4))) as run:
        first, second = sorted(draw.uniform(0, end) for _ in range(2))
        run.run(first)
        assert run.now_us >= first or run.ended
        run.run(second)
        with run.clone() as clone, clone.clone() as other:
            for each in (clone, run, other):
                assert each.now_us == pytest.approx(second, abs=2)
            clone.run()
            assert clone.result().hash == want.hash
            run.run(0)  # has been
            run.run()
            assert run.ended
            assert run.result().hash == want.hash
            other.run(end + 1)
            assert other.result().hash == want.hash
            with run.clone() as late:
                assert late.ended
                assert late.result().hash == want.hash


def other_value(path, value):
    group, _, name = path.rpartition(".")
    (row,) = (row for row in PARAMS[group] if row.name == name)
    return min(row.hi, 3 * value) if value else min(row.hi, max(row.lo, 7))


SETTINGS = [(path, gpu) for path in CLONE_PARAMETERS for gpu in ("titan_v", "h200")]


@pytest.mark.parametrize(("path", "gpu"), thin(SETTINGS, 7))
def test_a_clone_at_the_beginning_is_a_run_with_that_setting(path, gpu):
    job = make(GRU, gpu)
    for scheme in ("stream", "tb_static") if gpu == "titan_v" else ("pdl", "cusync"):
        with Simulation(gpu, job, scheme, threads=1) as run:
            change = {path: other_value(path, run._config[path])}
            try:
                clone = run.clone(change)
            except ConfigError as error:
                assert str(error) == f"{path}: no clone: state that is in motion depends on it"  # noqa: PT017
                assert (path, gpu) == ("gpu.noc.gpc_link", "titan_v")
                continue
            with clone:
                clone.run()
                want = simulate(gpu, job, scheme, overrides=change, threads=1, baseline=False)
                same(clone.result(), want)


def same(found, want):
    """All tables are equal, but for bound and estimate of what has changed its setting."""
    for name, rows in want.tables().items():
        got = found.tables()[name]
        for column in rows.dtype.names if name != "host" else ():
            if column not in ("bound_us", "estimate_us", "gap_won", "speedup"):
                assert got[column].tobytes() == rows[column].tobytes(), (name, column)


@pytest.mark.parametrize("path", thin(CLONE_PARAMETERS, 4))
def test_a_change_on_the_way_keeps_every_dependence(path):
    """All TBs run once, after what they need; what had ended before the moment stays as it was."""
    job = make(GRU, "titan_v")
    for scheme, moment in (("tb_static", 9), ("graph", 25)):
        with Simulation("titan_v", job, scheme, threads=1) as run:
            run.run(moment)
            assert not run.ended
            value = run._config[path]
            if path == "gpu.noc.gpc_link":
                with pytest.raises(ConfigError, match="state that is in motion depends on it"):
                    run.clone({path: 7})
                continue
            less = 0.7 * value if isinstance(value, float) else max(1, int(0.7 * value))
            for other in (other_value(path, value), less):
                with run.clone({path: other}) as clone:
                    clone.run()
                    check(clone.result(), run.result(), run.now_us)


def check(result, before, moment):
    tbs = result.tables()["tbs"]
    ends = {}
    for row in tbs:
        ends[int(row["kernel"]), int(row["tb"])] = float(row["end_ns"])
    assert len(ends) == len(tbs) == sum(kernel.tbs for kernel in result.job.kernels)
    for row in tbs:
        for producer in result.deps.producers(int(row["kernel"]), int(row["tb"])):
            for tb in producer[1:]:
                assert ends[producer[0], int(tb)] <= row["start_ns"]
    old = before.tables()["tbs"]
    assert len(old)
    assert (old["end_ns"] <= moment * 1e3).all()
    assert np.isin(old, tbs).all()


def test_a_moment_is_the_same_for_all_threads_and_ways_there():
    job = make(GRU, "titan_v")
    found = set()
    for threads, moments in ((1, (9.5,)), (4, (9.5,)), (2, (1, 3, 7.77, 9.5)), (1, (0.001, 9.4999, 9.5))):
        with Simulation("titan_v", job, "tb_static", threads=threads) as run:
            for moment in moments:
                run.run(moment)
            with run.clone({"scheme.window": 1, "scheme.table.latency": 300}) as clone:
                clone.run()
                found.add((run.now_us, clone.now_us, clone.result().hash))
    ((moment, end, _),) = found
    assert 9.5 <= moment < 10
    assert end > simulate("titan_v", job, "tb_static", threads=1).time_us("tb_static")


def test_the_tables_of_a_part():
    with Simulation("titan_v", make(GRU), "stream", tables="kernels", threads=1) as run:
        run.run(5)
        result = run.result()
        assert result.interrupted
        assert result.tables()["runs"]["status"].tolist() == [b"interrupted"]
        assert result.time_us("stream") == run.now_us
        with run.clone({"gpu.cp.stream_gap": 2000}) as clone:
            clone.run()
            row = clone.result().tables()["runs"][0]
            assert np.isnan(row["bound_us"])
            assert row["status"] == b"ok"
            # a gap on the way, and its clone back: still of two settings
            with clone.clone({"gpu.cp.stream_gap": 940}) as back:
                assert np.isnan(back.result().tables()["runs"][0]["bound_us"])


@pytest.mark.parametrize("path", ["gpu.clock", "scheme.priority", "gpu.l2.latency", "sim.sample", "gpu.sms"])
def test_other_parameters_are_refused(path):
    with Simulation("titan_v", make(GRU), "tb_static", threads=1) as run:
        run.run(5)
        value = run._config[path]
        other = "newest" if isinstance(value, str) else value + 1
        with pytest.raises(ConfigError, match=f"^{path}: a clone cannot change it: "):
            run.clone({"scheme.window": 3, path: other})
        with pytest.raises(ConfigError, match=r"unknown|no parameter"):
            run.clone({"scheme.windw": 3})
        run.run()
        assert run.ended


def test_what_is_no_single_run_is_refused():
    job = make(GRU)
    for overrides in ({"sim.replay": "period"}, {"sim.sustained": 1}):
        with pytest.raises(ConfigError, match="not in a Simulation, which is one run"):
            Simulation("h200", job, overrides=overrides)
    with pytest.raises(WorkloadError, match="is no job"):
        Simulation("h200", GRU)
    with Simulation("titan_v", job, overrides={"sim.oracle": 1}, threads=1) as run:
        run.run(5)
        with pytest.raises(ConfigError, match="no clone, as the state of the check"):
            run.clone()
        for wrong in (-1, float("nan"), float("inf"), True, "5"):
            with pytest.raises(ConfigError, match="until_us"):
                run.run(wrong)
    with pytest.raises(ConfigError, match="this Simulation is closed"):
        run.run()
    run.close()


# ---- the core ----
def test_the_core_refuses_what_differs_in_more_than_its_setting():
    job = make(GRU)
    lowered, _ = lowered_of(job, "tb_static", tiny())
    others = {
        "another priority": lowered_of(job, "tb_static", tiny(scheme__priority="newest")),
        "another latency": lowered_of(job, "tb_static", tiny(gpu__l2__latency=250)),
        "another size": lowered_of(job, "tb_static", tiny(gpu__sms=5)),
        "another seed": lowered_of(job, "tb_static", tiny(sim__seed=3)),
        "an oracle": lowered_of(job, "tb_static", oracle()),
    }
    with Sim(lowered) as sim, Sim(lowered) as fresh:
        lib.gs_run(sim.sim, 1, 50)
        for name, (other, _) in others.items():
            with Sim(other) as to, Sim(other) as untouched:
                assert lib.gs_clone(to.sim, sim.sim, fresh.sim) == lib.GS_ERR_ARG, name
                size = int(to.totals().arena_bytes) if name != "an oracle" else 0
                assert (
                    bytes(to.ffi.buffer(to.ffi.cast("char *", to.sim), size))[1 << 16 :]
                    == bytes(to.ffi.buffer(to.ffi.cast("char *", untouched.sim), size))[1 << 16 :]
                )
        with Sim(lowered) as to:
            assert lib.gs_clone(to.sim, sim.sim, fresh.sim) == lib.GS_OK
