"""TBs of one kernel that read what others of it wrote: the oracle sees one that does not wait."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pysim.engine.simulation import Sim
from pysim.errors import DependenceError
from pysim.program import semaphores
from pysim.program.job import Job, Memory
from pysim.program.warp_program import OP
from pysim.workloads.kernels.cutlass import cutlass_gemm, multistage
from pysim.workloads.kernels.pointwise import Field, elementwise, flat
from pysim.workloads.registry import make
from tests.core.harness import drive, execute, lowered_of, oracle
from tests.workloads.test_streamk import chain

RNN = "persistent_rnn:kind=gru,hidden=128,batch=2,timesteps=4,layers=2,gpu=titan_v,sms=6"
SCHEMES = ("stream", "tb_static", "tb_learned", "pool")
FOUND = re.compile(
    r"(RAW|WAR|WAW) dependence broken inside kernel \d+: TB (\d+) of it (reads|writes) sector 0x\w+ at \S+ us"
    r" and does not wait for TB (\d+) of it, which has (written|read) it"
)


def split(parts=2):
    """Parts of a split K, which add to C in turn."""
    memory = Memory()
    a, b, c = (memory.tensor(name, 64, 64, 2) for name in "abc")
    return Job("split", [cutlass_gemm("gemm", a, b, c, multistage("64x64x32x32x32x32", 3, parts))])


JOBS = {
    "split K": split,
    "stream-K": lambda: chain("basic", 11, count=1),
    "grid barrier": lambda: make(f"{RNN},sync=grid"),
    "tiles of a step": lambda: make(f"{RNN},sync=tile"),
}


def with_ops_as(job, scheme, conf, **others):
    """Run a job with kinds of ops in its programs in others' places."""
    made, _ = lowered_of(job, scheme, conf)
    for table in made.tables:
        if isinstance(table, np.ndarray) and table.dtype.names and "bypass_l1" in table.dtype.names:
            kinds = table["kind"].copy()
            for kind, other in others.items():
                table["kind"][kinds == OP[kind]] = OP[other]
    with Sim(made) as sim:
        return drive(sim)


def named(error):
    """Check that the error names two TBs of a kernel; return what it says they do."""
    found = FOUND.search(str(error))
    assert found, error
    assert found[2] != found[4]
    said = {"RAW": ("reads", "written"), "WAR": ("writes", "read"), "WAW": ("writes", "written")}
    assert (found[3], found[5]) == said[found[1]]
    return found[1]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", list(JOBS))
def test_waits_that_are_left_out(name, scheme):
    """A barrier of the TB stands where it would poll."""
    job = JOBS[name]()
    assert len(with_ops_as(job, scheme, oracle())) == sum(k.tbs for k in job.kernels)
    with pytest.raises(DependenceError) as caught:
        with_ops_as(job, scheme, oracle(), POLL="BARRIER")
    named(caught.value)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_posts_that_are_not_waited_for(monkeypatch, scheme):
    """All semaphores are complete from the start: the parts run beside each other."""
    monkeypatch.setattr(semaphores.SemaphoreTable, "array", lambda self: 0 * self.concatenated().astype("u4"))
    with pytest.raises(DependenceError) as caught:
        execute(split(), scheme, oracle())
    assert named(caught.value) == "RAW"


def test_parts_know_of_each_other_over_those_between():
    """The last of four parts waits for the third alone."""
    execute(split(4), "stream", oracle())


def summed(start, from_start):
    """A sum in place between two kernels; where its TBs meet they share a sector."""
    memory = Memory()
    x, y, z = (flat(memory.tensor(name, 1, 1024, 4)) for name in "xyz")

    def kernel(name, reads, writes, cols=1024):
        return elementwise(name, reads, [writes], cols=cols, per_element={"fp32": 1}, threads=64)

    in_place = kernel("second", [Field(x), Field(y, from_start)], Field(y, start), 901)
    return Job(
        "sums", [kernel("first", [Field(x)], Field(y)), in_place, kernel("third", [Field(y)], Field(z))]
    )


@pytest.mark.parametrize("scheme", ["cusync:row", "fused:grid"])
def test_parts_of_a_sector_are_not_shared(scheme):
    """A TB reads and writes its own bytes of a sector, the next one others of it: nothing to wait for."""
    execute(summed(3, 3), scheme, oracle())


@pytest.mark.parametrize("scheme", ["cusync:row", "fused:grid"])
def test_bytes_of_a_sector_that_are_shared(scheme):
    """A sum that reads the next element races with the TB that writes it."""
    with pytest.raises(DependenceError) as caught:
        execute(summed(3, 4), scheme, oracle())
    assert named(caught.value) in ("RAW", "WAR")


@pytest.mark.parametrize(
    ("loads", "stores", "found"),
    [("LOAD", "REDUCE", "RAW"), ("REDUCE", "STORE", "WAW"), ("REDUCE", "REDUCE", "")],
)
def test_kinds_of_accesses(loads, stores, found):
    """Two that add may come in any order, two that store may not, nor one of each."""
    ops = {"LOAD": loads, "STORE": stores, "POLL": "BARRIER"}
    if not found:
        with_ops_as(split(), "stream", oracle(), **ops)
        return
    with pytest.raises(DependenceError) as caught:
        with_ops_as(split(), "stream", oracle(), **ops)
    assert found == named(caught.value) or (found, named(caught.value)) == ("RAW", "WAR")
