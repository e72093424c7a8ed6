"""An edge too few is caught, whatever its kind and whoever goes by it: what other files leave out.

Kinds: test_ordering.py (tables), test_scheme_family.py (schemes that are given edges), test_learned.py,
test_bloom.py (hints); group nodes: test_ordering.py; neighbours: test_blockmaestro_wireframe.py; polls:
core/test_waits.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pysim.dependence.dependences import dependences, without_edges
from pysim.errors import DeadlockError, DependenceError
from pysim.program import semaphores
from pysim.schemes import in_kernel_sync
from tests.core.harness import execute, lowered_of, oracle
from tests.core.test_waits import JOBS, PDL
from tests.schemes.test_prologue import LATE, chain

from .test_ordering import KINDS, pair, two

GATED = ("tb_static:prologue", "tb_ideal:prologue", "graph")
SEMAPHORES = ("cusync:tile", "cusync:row", "cusync:row+pdl", "cusync:tile+pdl+spread")
SEMAPHORES += ("cusync:tile+graph", "cusync:row+no_gate", "cusync:tile+gate_first+tile_order+wait_early")
# with "late" what a tile's end takes decides: tests/oracle/random_mutations.py delays it
SEMAPHORES += ("cusync:row+poll_each+fence_system", "cusync:row+graph")


@pytest.mark.parametrize("scheme", GATED)
@pytest.mark.parametrize(("kind", "first", "second"), KINDS)
def test_a_kind(kind, first, second, scheme):
    job = two(first, second)
    execute(job, scheme, oracle())
    with pytest.raises(DependenceError, match=kind.upper()) as caught:
        execute(job, scheme, oracle(), deps=without_edges(dependences(job), kind=kind))
    later, earlier = pair(caught.value)
    assert (later[0], earlier) == (1, (0, later[1]))


@pytest.mark.parametrize("scheme", ["tb_static:prologue", "tb_bloom:prologue"])
def test_a_node_behind_a_prologue(scheme):
    """Each node of a chain whose TBs wait inside: its TB is let on too early."""
    job = chain(2, body=LATE)
    deps = dependences(job)
    execute(job, scheme, oracle())
    if "bloom" in scheme:  # it goes by hints, whatever edges are given
        execute(job, scheme, oracle(), deps=without_edges(deps, node=0))
        return
    for node in range(len(deps.nodes)):
        with pytest.raises(DependenceError, match="RAW") as caught:
            execute(job, scheme, oracle(), deps=without_edges(deps, node=node))
        assert pair(caught.value)[0][1] in deps.groups[node].consumers


@pytest.mark.parametrize("scheme", ["pool", "acs_hw", "queues", "graph", "tb_static", "tb_ideal"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_group_node(scheme, whole):
    """Schemes of whole kernels lose an edge when its last node is gone."""
    job = two("store", "load", tbs=6, whole=whole)
    deps = dependences(job)
    less = deps
    for _ in range(len(deps.nodes)):
        less = without_edges(less, node=0)
    if scheme in ("acs_hw",):  # compares addresses itself
        execute(job, scheme, oracle(), deps=less)
        return
    with pytest.raises(DependenceError, match="RAW"):
        execute(job, scheme, oracle(), deps=less)


@pytest.mark.parametrize("whole", [False, True])
def test_a_group_node_that_was_learned(whole):
    job = two("store", "load", tbs=6, whole=whole)
    job = replace(job, kernels=list(job.kernels) * 2)
    made, _ = lowered_of(job, "tb_learned", oracle())
    deps = made.known.deps
    execute(job, "tb_learned", oracle())
    served = [n for n in range(len(deps.nodes)) if not made.known.barrier[deps.nodes["kernel"][n]]]
    caught = 0
    for node in served:
        try:
            execute(
                job, "tb_learned", oracle(), known=replace(made.known, deps=without_edges(deps, node=node))
            )
        except DependenceError:
            caught += 1
    assert caught >= 1


@pytest.mark.parametrize("scheme", SEMAPHORES)
def test_posts_that_are_not_waited_for(monkeypatch, scheme):
    """A tile's semaphore is complete one post too early; a row's all, as its tiles end at about one time."""
    whole = semaphores.SemaphoreTable.array
    few = 1 if "tile" in scheme else 1000
    monkeypatch.setattr(
        semaphores.SemaphoreTable, "array", lambda self: (whole(self).astype("i8") - few).clip(0).astype("u4")
    )
    with pytest.raises(DependenceError, match="RAW dependence broken: TB"):
        execute(JOBS["chain"](), scheme, oracle(**PDL))


@pytest.mark.parametrize("scheme", SEMAPHORES)
def test_posts_that_are_left_out(monkeypatch, scheme):
    """Then nobody goes on, and who waits is named."""
    monkeypatch.setattr(in_kernel_sync, "publish_ops", lambda *_: ())
    with pytest.raises(DeadlockError, match=r"waits for semaphore \d+, posted 0 times of"):
        execute(JOBS["chain"](), scheme, oracle(**PDL))
