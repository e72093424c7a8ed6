"""Runs that stop at any moment and go on from their checkpoint have the tables of an undisturbed run."""

from __future__ import annotations

import random

import pytest

from pysim import ConfigError, simulate
from pysim.engine import simulation
from pysim.engine.checkpoint_file import CheckpointFile
from pysim.engine.checkpoints import Checkpoints
from pysim.errors import TimeUp
from pysim.workloads import make
from tests.golden.cases import CASES
from tests.golden.store import hashes, stored
from tests.support.thin import thin

SMALL = "gru:hidden=256,batch=8,timesteps=2,layers=1"


class Stop(BaseException):
    """What ends a run in these tests."""


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def run(case, checkpoints=None, threads=1, stop_after=None):
    """Run a golden case, and stop it after so many slices; return the result and the number of slices."""
    seen = 0

    def progress(scheme, done, tbs):
        nonlocal seen
        seen += 1
        if seen == stop_after:
            checkpoints.stop(Stop())

    result = simulate(
        case.gpu, case.job(), case.schemes, threads=threads, overrides=dict(case.overrides),
        progress=progress, checkpoints=checkpoints,
    )  # fmt: skip
    return result, seen


# cases of few quanta
SHORT = ("h200_kernel", "h100_conv", "trace", "written_trace", "series", "wavefront", "peer", "stream_k")


# cases that are slow and have a like among the others
DEEP = ("irregular", "gru_table", "attention", "stream_k", "peer", "h100_conv", "written_trace", "wavefront")


@pytest.mark.parametrize("name", thin((n for n in CASES if n != "oracle"), {*CASES} - {*DEEP}))
def test_any_moment(tmp_path, name, monkeypatch):
    """Every scheme, a trace, host copies, time series, replay, power; on 1 and 4 threads by turns."""
    monkeypatch.setattr(simulation, "SLICE_QUANTA", 2 if name in SHORT else 30)
    case, draw, said = CASES[name], random.Random(name), []
    slices = run(case)[1]
    for stops in range(20):
        checkpoints = Checkpoints(tmp_path / "x.ckpt", None, resume=True, say=said.append)
        stop_after = draw.randint(1, 1 + slices // 3) if stops < 3 else None
        try:
            result, left = run(case, checkpoints, draw.choice((1, 4)), stop_after)
        except Stop:
            continue
        break
    assert left < slices
    assert any("goes on at" in line for line in said), said
    assert hashes(result) == stored()[name]
    checkpoints.remove()
    assert not files(tmp_path)


# ---- when ----
@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that a test sets; the wall clock steps back all the time."""
    now = [1000.0]
    wall = iter(range(10**9, 0, -1000))
    monkeypatch.setattr("pysim.engine.checkpoints.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pysim.engine.checkpoints.time.time", lambda: float(next(wall)))
    return now


def test_the_timer_writes_first_after_its_time(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(simulation, "SLICE_QUANTA", 20)
    said, seen = [], []
    checkpoints = Checkpoints(tmp_path / "x.ckpt", 60, say=said.append)

    def progress(scheme, done, tbs):
        clock[0] += 13
        seen.append((clock[0], len(said), files(tmp_path)))

    simulate("titan_v", make(SMALL), "stream", threads=1, progress=progress, checkpoints=checkpoints)
    first = next(now for now, lines, _ in seen if lines)
    # written after the slice in which 60 s have passed, and at most every 60 s from then on
    assert first == 1000 + 13 * 6
    assert all(not found for now, _, found in seen if now < first)
    assert len(said) == (len(seen) - 1) // 5
    assert all(": stream at " in line for line in said)
    checkpoints.remove()


def test_without_a_timer_nothing_is_written_unless_asked(tmp_path, clock):
    checkpoints = Checkpoints(tmp_path / "x.ckpt", None)
    assert not checkpoints.is_due()
    clock[0] += 1e9
    assert not checkpoints.is_due()
    checkpoints.request()
    assert checkpoints.is_due()
    simulate("titan_v", make(SMALL), "stream", threads=1, checkpoints=checkpoints)
    (name,) = files(tmp_path)
    assert CheckpointFile.open(tmp_path / name).header["kind"] == "state"  # of the first slice
    assert not checkpoints.is_due()


def test_a_stop_between_runs_keeps_what_has_ended_and_is_raised_at_once(tmp_path):
    checkpoints = Checkpoints(tmp_path / "x.ckpt", None)
    simulate("titan_v", make(SMALL), "stream", threads=1, checkpoints=checkpoints)
    assert not files(tmp_path)
    with pytest.raises(Stop):
        checkpoints.stop(Stop())
    assert len(files(tmp_path)) == 1


def test_a_stop_on_the_way_waits_but_for_one_who_asks_twice(tmp_path):
    checkpoints, seen = Checkpoints(tmp_path / "x.ckpt", None), []

    def twice():
        with checkpoints.deferring():
            checkpoints.stop(Stop())
            seen.append("later")
            checkpoints.stop(ZeroDivisionError())

    with pytest.raises(ZeroDivisionError):
        twice()
    assert seen == ["later"]
    with pytest.raises(Stop):
        checkpoints.leave_if_asked()
    checkpoints.leave_if_asked()  # once


def test_the_end_of_the_time_is_an_interruption(tmp_path, clock):
    folder = tmp_path / "x.ckpt"

    def late(scheme, done, tbs):
        clock[0] += 1000 * (scheme == "graph")

    job = make(SMALL)
    for number, progress in enumerate((late, None)):
        checkpoints = Checkpoints(folder, None, resume=True, seconds=50)
        result = simulate(
            "titan_v", job, "stream,graph", threads=1, progress=progress, checkpoints=checkpoints
        )
        assert result.interrupted == checkpoints.time_is_up == (number == 0)
        assert result.tables()["runs"]["status"].tolist()[1] == (b"ok", b"interrupted")[number == 0]
    assert result.hash == simulate("titan_v", job, "stream,graph", threads=1).hash
    checkpoints = Checkpoints(folder, None, seconds=1)
    clock[0] += 2
    with pytest.raises(TimeUp):
        simulate("titan_v", job, "tb_static", threads=1, checkpoints=checkpoints, baseline=False)


def test_calls_that_can_have_none_are_refused(tmp_path):
    checkpoints, job = Checkpoints(tmp_path), make(SMALL)
    with pytest.raises(ConfigError, match="not with sim"):
        simulate("titan_v", job, "stream", overrides={"sim.oracle": 1}, checkpoints=checkpoints)
    with pytest.raises(ConfigError, match="not with a rule of yours"):
        simulate("titan_v", job, "stream", priority=lambda time, ready: 0, checkpoints=checkpoints)
    for wrong in (0, -1, float("nan"), float("inf"), "5"):
        with pytest.raises(ConfigError, match=r"every = .*: must be a positive number of seconds"):
            Checkpoints(tmp_path, wrong)
        with pytest.raises(ConfigError, match=r"seconds = .*: must be a positive number of seconds"):
            Checkpoints(tmp_path, seconds=wrong)


def test_a_folder_serves_many_calls(tmp_path):
    """Runs are found by what decides them, whatever else is there; other calls' files go where all is new."""
    jobs = [make(SMALL), make("lud:n=64")]
    for job in jobs:
        checkpoints = Checkpoints(tmp_path, None)
        simulate("titan_v", job, "stream", threads=1, checkpoints=checkpoints)
        checkpoints.flush()
    assert len(files(tmp_path)) == 2
    for job in jobs:
        said = []
        checkpoints = Checkpoints(tmp_path, None, resume=True, say=said.append)
        found = simulate("titan_v", job, "stream", threads=1, checkpoints=checkpoints)
        assert [line.split(" in ")[0] for line in said] == ["stream: has ended"]
        assert found.hash == simulate("titan_v", job, "stream", threads=1).hash
        other = simulate("titan_v", job, "stream", threads=1, tables="kernels", checkpoints=checkpoints)
        assert len(said) == 1  # without TB records: another run
        assert "tbs" not in other.parts
    named = Checkpoints(tmp_path, None, about={"call": 3})
    simulate("titan_v", jobs[0], "graph", threads=1, checkpoints=named, baseline=False)
    named.flush()
    assert len(files(tmp_path)) == 1
