"""A scheme from outside the package, without C: it is known by its name, runs, and a wrong one is caught."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import pysim
from pysim import DependenceError, simulate
from pysim.schemes.scheme import Scheme
from workloads import make

JOB = "gru:hidden=128,batch=8,timesteps=3,layers=2"
ORACLE = {"sim.oracle": 1}


@dataclass(frozen=True)
class EverySecond(Scheme):
    """A kernel waits for the one before it, too, if its number is even: edges are added, none is lost."""

    def preds(self, job, deps):
        made = super().preds(job, deps)
        return [tuple(sorted({*p, k - 1})) if k and k % 2 == 0 else p for k, p in enumerate(made)]


@dataclass(frozen=True)
class Careless(Scheme):
    """No kernel waits for any."""

    def preds(self, job, deps):
        return [() for _ in job.kernels]


@pytest.fixture
def toys(monkeypatch):
    for toy in (EverySecond("every_second", "A toy."), Careless("careless", "A wrong toy.")):
        monkeypatch.setitem(pysim.SCHEMES, toy.name, toy)


@pytest.mark.usefixtures("toys")
def test_a_toy_scheme_runs_under_the_oracle():
    result = simulate("titan_v", make(JOB), "every_second,stream", overrides=ORACLE)
    rows = result.tables()["runs"]
    assert rows["scheme"].tolist() == [b"every_second", b"stream"]
    assert set(rows["status"].tolist()) == {b"ok"}
    assert result.time_us("every_second") <= result.time_us("stream")


@pytest.mark.usefixtures("toys")
def test_a_scheme_that_drops_edges_is_caught():
    with pytest.raises(DependenceError):
        simulate("titan_v", make(JOB), "careless", overrides=ORACLE, baseline=False)


@pytest.mark.usefixtures("toys")
def test_errors_know_the_toy():
    with pytest.raises(pysim.ConfigError, match="every_second"):
        simulate("titan_v", make(JOB), "every_secnd")
