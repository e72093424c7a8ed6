"""TBs of one kernel that read what others of it wrote: the oracle sees one that does not wait."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pysim import semaphores
from pysim.errors import DependenceError
from pysim.job import Job, Memory
from pysim.program import OP
from pysim.simulation import Sim
from workloads.cutlass import multistage, product
from workloads.registry import make

from .core.harness import drive, execute, lowered_of, oracle
from .test_streamk import chain

RNN = "persistent_rnn:kind=gru,hidden=128,batch=2,timesteps=4,layers=2,gpu=titan_v,sms=6"
SCHEMES = ("stream", "tb_static", "tb_learned", "pool")
FOUND = re.compile(
    r"(RAW|WAR) dependence broken inside kernel \d+: TB (\d+) of it (reads|writes) sector 0x\w+ at \S+ us"
    r" and does not wait for TB (\d+) of it, which has (written|read) it"
)


def split(parts=2):
    """Parts of a split K, which add to C in turn."""
    memory = Memory()
    a, b, c = (memory.tensor(name, 64, 64, 2) for name in "abc")
    return Job("split", [product("gemm", a, b, c, multistage("64x64x32x32x32x32", 3, parts))])


JOBS = {
    "split K": split,
    "stream-K": lambda: chain("basic", 11, count=1),
    "grid barrier": lambda: make(f"{RNN},sync=grid"),
    "tiles of a step": lambda: make(f"{RNN},sync=tile"),
}


def with_ops_as(job, scheme, kind, other, conf):
    """Run a job with one kind of op in its programs in another's place."""
    made, _ = lowered_of(job, scheme, conf)
    for table in made.keep:
        if isinstance(table, np.ndarray) and table.dtype.names and "bypass_l1" in table.dtype.names:
            table["kind"][table["kind"] == OP[kind]] = OP[other]
    with Sim(made) as sim:
        return drive(sim)


def named(error):
    """Check that the error names two TBs of a kernel; return what it says they do."""
    found = FOUND.search(str(error))
    assert found, error
    assert found[2] != found[4]
    assert (found[1], found[3], found[5]) in (("RAW", "reads", "written"), ("WAR", "writes", "read"))
    return found[1]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", list(JOBS))
def test_waits_that_are_left_out(name, scheme):
    """A barrier of the TB stands where it would poll."""
    job = JOBS[name]()
    assert len(with_ops_as(job, scheme, "POLL", "POLL", oracle())) == sum(k.tbs for k in job.kernels)
    with pytest.raises(DependenceError) as caught:
        with_ops_as(job, scheme, "POLL", "BARRIER", oracle())
    named(caught.value)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_posts_that_are_not_waited_for(monkeypatch, scheme):
    """All semaphores are complete from the start: the parts run beside each other."""
    monkeypatch.setattr(semaphores.Table, "array", lambda self: 0 * self.joined().astype("u4"))
    with pytest.raises(DependenceError) as caught:
        execute(split(), scheme, oracle())
    assert named(caught.value) == "RAW"


def test_parts_know_of_each_other_over_those_between():
    """The last of four parts waits for the third alone."""
    execute(split(4), "stream", oracle())
