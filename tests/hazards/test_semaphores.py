"""Semaphores of tiles: what polls and posts leave out, by the plan alone and by the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
import pytest

from pysim.dependence.dependences import dependences
from pysim.errors import DeadlockError, DependenceError
from pysim.hazards.semaphores import SemaphoreCheck
from pysim.hazards.tiles import check_tiles, shared_bytes, tile_lines
from pysim.program.semaphores import SemaphoreTable
from pysim.schemes.registry import parse_scheme
from pysim.workloads.networks.mlp_pair import mlp_pair, tiling
from tests.core.harness import execute, oracle, tiny
from tests.core.workloads_small import F32, WIDE, product
from tests.oracle.random_jobs import POLICIES, policy_of
from tests.oracle.random_mutations import late, mutant, mutated

SMALL = "64x64x32x32x32x32"


def plan_of(job, scheme, conf=None):
    choice, conf = parse_scheme(scheme), conf or tiny(scheme__hypothetical=1)
    deps = dependences(job)
    return choice.launch_plan(job, deps, conf.replaced(choice.pins) if choice.pins else conf), deps


def found(job, scheme, conf=None):
    """What kernels of a job wait for under a scheme."""
    return SemaphoreCheck(*plan_of(job, scheme, conf)).kernels()


def unsafe(waits):
    return [(one.before, one.after, one.kind) for each in waits for one in each.uncovered]


@pytest.mark.parametrize("options", ["tile", "row+pdl", "tile+streams+no_gate", "row+wait_early"])
def test_products_are_covered(options):
    waits = found(product(64, 96, 64, WIDE, chain=3), f"cusync:{options}")
    assert unsafe(waits) == []
    assert [one.producers for one in waits] == [[], [0], [1]]
    assert all(one.edges and one.semaphores for one in waits[1:])
    assert waits[1].most == (3 if "row" in options else 1)


def test_columns_that_are_read_together():
    job = mlp_pair((64, 256, 64, 64, 128), tiling(SMALL, 2, 1), tiling(SMALL, 2, 1), gated=True)
    waits = found(job, "cusync:strided")
    assert (unsafe(waits), waits[1].most) == ([], 2)


def test_a_semaphore_that_needs_a_post_too_few_covers_nothing():
    """Any of the TBs of its row of tiles may be missing."""
    job = product(64, 96, 64, WIDE, chain=2)
    plan, deps = plan_of(job, "cusync:row+pdl")
    plan.posts_needed[np.flatnonzero(plan.posts_needed > 1)[-1]] -= 1
    waits = SemaphoreCheck(plan, deps).kernels()
    assert set(unsafe(waits)) == {(0, 1, "RAW")}
    tensor, first, end = shared_bytes(job, waits[1].uncovered[0])
    assert (tensor, end > first >= 0) == ("c0", True)


def test_a_semaphore_that_needs_a_post_too_many_never_opens():
    for at in (0, -1):  # of a tile, and of the TBs that have started, for which a gate waits
        plan, deps = plan_of(product(64, 96, 64, WIDE, chain=2), "cusync:tile+streams")
        plan.posts_needed[np.flatnonzero(plan.posts_needed)[at]] += 1
        waits = SemaphoreCheck(plan, deps).kernels()
        assert (len(waits[1].never), waits[0].never) == (1, [])


def test_a_run_that_is_stuck_is_told(monkeypatch):
    whole = SemaphoreTable.array
    monkeypatch.setattr(SemaphoreTable, "array", lambda table: whole(table) * 2)
    job = product(64, 96, 64, WIDE, chain=2)
    verdict = check_tiles(job, "row+pdl", tiny(scheme__hypothetical=1), True, 1)
    assert verdict.unsafe
    assert "gets fewer posts than it needs" in verdict.stuck[0]
    assert verdict.oracle.startswith("in simulation: deadlock at")
    with pytest.raises(DeadlockError):
        execute(job, "cusync:row+pdl", tiny(scheme__hypothetical=1))


def test_waiting_tbs_that_fill_the_gpu():
    conf = tiny(**{"gpu__sm__tbs": 1})
    job = product(256, 256, 32, F32, chain=2)
    verdict = check_tiles(job, "tile+streams+no_gate", conf, True, 1)
    assert (verdict.unsafe, len(verdict.relies)) == (False, 1)
    assert "kernel 1 (gemm1): 6 of its 64 TBs fill the GPU" in verdict.relies[0]
    assert check_tiles(job, "tile+streams", conf, False, 1).relies == []
    lines = tile_lines(verdict, job)
    assert lines[0].endswith("safe")
    assert lines[-1] == "the oracle finds nothing"


def test_the_oracle_says_the_same_of_mutants():
    """Of what a semaphore needs something is missing: what the oracle reports is foreseen."""
    came = Counter()
    for made in islice((m for m in map(mutant, range(2000)) if policy_of(m.scheme) in POLICIES), 25):
        job = made.job()
        deps = dependences(job)
        if not len(deps.nodes):
            continue
        conf = tiny().replaced(made.chosen)
        assert unsafe(found(job, made.scheme, conf)) == []
        first = int(Random(made.draw).choice(deps.edges["producer"].tolist()))
        slow = late(job.kernels[first], "late" in made.scheme.split("+"))
        job = replace(job, kernels=[slow if k is job.kernels[first] else k for k in job.kernels])
        given, patched = mutated(made, job, deps, first)
        with patched:
            foreseen = bool(unsafe(found(job, made.scheme, conf)))
            try:
                execute(job, made.scheme, oracle().replaced(made.chosen), **given)
                came["clean", foreseen] += 1
            except DependenceError:
                came["broken", foreseen] += 1
    assert came["broken", False] == 0
    assert came["broken", True] > 5
