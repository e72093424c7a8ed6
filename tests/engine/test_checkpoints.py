"""Runs that stop at any moment and go on from their checkpoint have the tables of an undisturbed run."""

from __future__ import annotations

import random

import pytest

from pysim import simulate
from pysim.engine import simulation
from pysim.engine.checkpoints import Checkpoints
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
DEEP = ("irregular", "gru_table", "attention", "stream_k", "peer", "h100_conv", "written_trace")


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
