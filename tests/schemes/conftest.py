"""Schemes that live as long as a test, and a small job for them."""

from __future__ import annotations

import pytest

import pysim
from pysim.dependence.dependences import dependences
from pysim.workloads import make


@pytest.fixture
def add():
    names = []

    def add(scheme):
        pysim.register_scheme(scheme)
        names.append(scheme.name)

    yield add
    for name in names:
        del pysim.SCHEMES[name]


@pytest.fixture(scope="package")
def job():
    return make("gru:hidden=64,batch=4,timesteps=2,layers=2")


@pytest.fixture(scope="package")
def deps(job):
    return dependences(job)
