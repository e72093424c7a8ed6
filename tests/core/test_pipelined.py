"""Pipelined programs: rings of barriers, bulk copies, asynchronous multiplies, clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pysim import simulate
from pysim.errors import WorkloadError
from pysim.program.job import Access, Job, Kernel, Memory
from pysim.program.pattern_check import check_patterns
from pysim.program.pipelined_code import PipelinedCode, Ring
from pysim.program.tiles import Box, Tiles
from pysim.program.warp_specialized import warp_specialized
from pysim.workloads.library.gemms.hopper_gemm import HopperGemm, hopper_gemm

from .harness import FAMILY, SCHEMES, config, execute

FULL, EMPTY = Ring(0, 4, 1), Ring(16, 4, 1)
CLOCK = {"gpu__clock_tensor": 1.0}  # cycles of one length
PERIOD = 1024 * 1000 / 1980  # ticks a cycle of an H200
SMALL = HopperGemm(256, 384, 512, (64, 64), 4, (2, 1), 24, smem=100_000)
SHAPES = {
    "one tile a TB": SMALL,
    "tiles in turn": replace(SMALL, tbs=8),
    "columns shared": replace(SMALL, cluster=(1, 2), tbs=12, n_fast=True),
    "both shared": replace(SMALL, cluster=(2, 2), tbs=8),
    "rows of a tile shared": replace(SMALL, tile=(128, 64), split="m", tbs=6),
    "columns of a tile shared": replace(SMALL, tile=(128, 64), split="n", tbs=4),
    "edges": replace(SMALL, m=208, n=300, k=200, tbs=20),
    "parts of k": replace(SMALL, split_k=3, tbs=72),
    "contiguous in m and n": replace(SMALL, trans_a=False, trans_b=True),
}


def lone(code_of, warps=4, tbs=1, tiles=None, size=64):
    """A kernel of ``warps`` warps whose code is ``code_of(warp)``; its tensor has 256 rows of 128 B."""
    memory = Memory()
    x = memory.tensor("x", 256, 64, 2)
    rows = [tuple(tuple(code_of(warp).ops) for warp in range(warps))]
    program = warp_specialized("lone", rows, None, registers=64, smem=size * 1024, args=1)

    def none(numbers):
        return np.zeros((len(numbers), 4), np.int64)

    tiles = tiles or Tiles((tbs, 1, 1), 1)
    size = tiles.cluster[0] * tiles.cluster[1]
    grid = (size, tbs // size, 1)
    return Kernel("lone", program, grid, (x,), (Access(x, "read", none),), tiles=tiles)


def cycles(kernel, **overrides):
    """Cycles from a TB's start to its end on an H200, of each TB."""
    made = execute(Job("job", [kernel]), "graph", config("h200", **CLOCK, **overrides))
    return (made.tbs["end"] - made.tbs["start"]) / PERIOD


def box(rows, **terms):
    return Box(0, rows, 128, 128, 256, 128, (0, terms.get("x", 0), 0, 0, 0, 0, 0), (0,) * 7)


def copies(rows, count=1, warps=1):
    """A warp loads ``count`` boxes, one after another, and waits for each."""

    def code_of(warp):
        code = PipelinedCode()
        if warp == 0:
            tile = code.turn_begin()
            for _ in range(count):
                code.bulk_load(FULL, box(rows))
                code.ring_wait(FULL)
                code.advance()
            code.turn_end(tile)
        code.exit()
        return code

    return lone(code_of, warps)


def test_a_tensor_tile_takes_as_long_as_measured():
    """h200_tma_latency.csv: 297 cycles for a row that L2 holds, and 618 for 256 rows."""
    for rows, measured in ((1, 297), (64, 394), (128, 467), (256, 618)):
        took = (cycles(copies(rows, 9)) - cycles(copies(rows, 5))) / 4
        assert took == pytest.approx(measured, rel=0.08), rows


def test_a_descriptor_is_fetched_once():
    one, two = cycles(copies(1, 1))[0], cycles(copies(1, 1), gpu__bulk__descriptor=605)[0]
    assert two - one == pytest.approx(500, abs=2)
    twice = cycles(copies(1, 9), gpu__bulk__descriptor=605)[0]
    assert twice - cycles(copies(1, 9))[0] == pytest.approx(500, abs=2)


@pytest.mark.parametrize(("n", "steps"), [(8, 4), (64, 4), (256, 2)])
def test_multiplies_take_as_long_as_measured(n, steps):
    """h200_wgmma.csv: max(n / 2, 16 + n / 4) cycles each, the first 60 + n / 2."""
    each = max(n / 2, 16 + n / 4)

    def code_of(warp):
        code = PipelinedCode()
        for _ in range(20):
            code.multiply(cycles=steps * each, count=steps, latency=round(60 + n / 2 - each), issue=7)
            code.multiply_wait(1)
        code.multiply_wait(0)
        code.exit()
        return code

    took = cycles(lone(code_of))[0]
    assert took == pytest.approx(20 * steps * each + 60 + n / 2 - each, abs=20)


def test_two_groups_share_the_tensor_cores():
    def code_of(warp):
        code = PipelinedCode()
        for _ in range(20):
            code.multiply(cycles=128, count=4, latency=60)
            code.multiply_wait(1)
        code.multiply_wait(0)
        code.exit()
        return code

    one, two = cycles(lone(code_of, 4))[0], cycles(lone(code_of, 8))[0]
    assert two - 60 == pytest.approx(2 * (one - 60), rel=0.03)


def test_a_warp_waits_for_its_phase():
    """A warp that arrives late holds the one that waits: by its delay, and the hand-over of 140 cycles."""

    def code_of(warp):
        code = PipelinedCode()
        if warp == 0:
            code.delay(5000)
            code.ring_arrive(FULL)
        elif warp == 1:
            code.ring_wait(FULL)
        code.exit()
        return code

    assert cycles(lone(code_of))[0] == pytest.approx(5000 + 140, abs=5)


def test_a_ring_is_used_again():
    """Ten steps through four stages: each waits for the arrival of its own phase."""

    def code_of(warp):
        code = PipelinedCode()
        for _ in range(10):
            if warp == 0:
                code.ring_wait(EMPTY, emptied=True)
                code.delay(1000)
                code.ring_arrive(FULL)
            else:
                code.ring_wait(FULL)
                code.ring_arrive(EMPTY)
            code.advance()
        code.exit()
        return code

    took = cycles(lone(code_of, 2))[0]
    assert took == pytest.approx(10 * (1000 + 42) + 140, abs=30)


def test_a_cluster_starts_on_one_gpc_on_sms_of_its_own():
    def code_of(warp):
        code = PipelinedCode()
        code.cluster_barrier()
        code.exit()
        return code

    for cluster in ((2, 1), (1, 4), (2, 4)):
        size = cluster[0] * cluster[1]
        tiles = Tiles((120, 1, 1), 1, cluster=cluster)
        made = execute(Job("job", [lone(code_of, 4, 120, tiles, 200)]), "graph", config("h200", **CLOCK))
        sm = made.tbs["sm"][np.argsort(made.tbs["tb"])].reshape(-1, size)
        assert all(len(set(row)) == size for row in sm.tolist())
        # GPCs of an H200: 18, 18 and six times 16 SMs
        gpc = np.searchsorted(np.cumsum([18, 18, *[16] * 6]), sm, side="right")
        assert (gpc == gpc[:, :1]).all()


def test_so_many_clusters_are_resident():
    """h200_nvjet_counters.csv: 66 clusters of two, 30 of four and 15 of eight, at a TB an SM."""

    def code_of(warp):
        code = PipelinedCode()
        code.delay(20_000)
        code.exit()
        return code

    for cluster, most in (((2, 1), 66), ((2, 2), 30), ((4, 2), 15)):
        size = cluster[0] * cluster[1]
        for clusters, waves in ((most, 1), (most + 1, 2)):
            tiles = Tiles((clusters * size, 1, 1), 1, cluster=cluster)
            kernel = lone(code_of, 4, clusters * size, tiles, 200)
            made = execute(Job("job", [kernel]), "graph", config("h200", **CLOCK))
            span = (made.tbs["end"].max() - made.tbs["start"].min()) / PERIOD
            assert round(span / 20_000) == waves, (cluster, clusters)


def test_a_tile_that_a_cluster_shares_is_asked_for_once():
    """Two TBs get each other's half of a tile: as many lines arrive, half as many are asked for."""
    alone = execute(
        Job("job", [hopper_gemm(replace(SMALL, cluster=(1, 1)), Memory())[0]]), "graph", config("h200")
    )
    shared = execute(Job("job", [hopper_gemm(SMALL, Memory())[0]]), "graph", config("h200"))
    a, b = 256 * 512 * 2 // 32 * 6, 384 * 512 * 2 // 32 * 4  # sectors of all tiles of A, of B
    assert alone.kernels["load_sectors"][0] == a + b
    assert shared.kernels["load_sectors"][0] == a + b // 2


@pytest.mark.parametrize("name", SHAPES)
def test_every_tile_is_stored_once(name):
    gemm = SHAPES[name]
    made = execute(Job("job", [hopper_gemm(gemm, Memory())[0]]), "graph", config("h200"))
    rows, pitch = gemm.n * gemm.split_k, gemm.m * 2
    assert made.kernels["store_sectors"][0] == rows * -(-pitch // 32)


@pytest.mark.parametrize("name", SHAPES)
def test_what_it_touches_is_what_it_declares(name):
    job = Job("job", [hopper_gemm(SHAPES[name], Memory())[0]])
    assert check_patterns(job, every=True) == 1
    kernel = job.kernels[0]

    def narrow(access):
        return replace(
            access, regions=lambda tbs: access.regions(tbs) - [0, 0, 0, access.tensor is kernel.args[0]]
        )

    accesses = tuple(map(narrow, kernel.accesses))
    with pytest.raises(WorkloadError, match="a bulk copy reads row"):
        check_patterns(Job("job", [replace(kernel, accesses=accesses)]), every=True)


@pytest.mark.parametrize("name", SHAPES)
def test_tiles_of_all_turns_cover_c(name):
    gemm = SHAPES[name]
    seen = np.zeros((*gemm.tiles, gemm.split_k), int)
    for turn in range(gemm.turns):
        tile = gemm.schedule.of(np.arange(gemm.tbs), gemm.tbs, turn)
        here = tile.there & (tile.x < gemm.tiles[0]) & (tile.y < gemm.tiles[1])
        np.add.at(seen, (tile.x[here], tile.y[here], tile.z[here]), 1)
    assert (seen == 1).all()


@pytest.mark.threads
@pytest.mark.parametrize("name", ["tiles in turn", "both shared", "edges"])
def test_results_do_not_depend_on_threads_or_quanta(name):
    job = Job("job", [hopper_gemm(SHAPES[name], Memory())[0]] * 2)
    seen = {
        simulate("h200", job, "graph", threads=threads, overrides=overrides, baseline=False).hash
        for threads in (1, 3)
        for overrides in ({}, {"sim.quantum": 17}, {"sim.oracle": 1})
    }
    assert len(seen) == 1


def pair(cluster=(2, 1)):
    """Two GEMMs, the second reads what the first makes."""
    memory = Memory()
    first, c = hopper_gemm(replace(SMALL, tbs=8), memory)
    second = HopperGemm(128, 384, 256, (64, 64), 4, cluster, 12, smem=100_000)
    return Job("pair", [first, hopper_gemm(second, memory, (memory.tensor("A", 128, 256, 2), c))[0]])


IN_CODE = ("pdl", "pdl:graph", "tb_static:prologue")


@pytest.mark.parametrize("cluster", [(2, 1), pytest.param((1, 1), marks=pytest.mark.deep)])
def test_every_scheme_keeps_true_order(cluster):
    """Clusters start together, when all their thread blocks are ready; code waits before its bulk copies."""
    schemes = ",".join(dict.fromkeys((*SCHEMES, *FAMILY, *IN_CODE)))
    made = simulate("h200", pair(cluster), schemes, overrides={"sim.oracle": 1})
    runs = made.frame("runs").set_index("scheme")
    assert (runs["status"] == "ok").all()
    assert runs["time_us"]["tb_ideal"] <= runs["time_us"]["stream"]
    assert runs["time_us"]["pdl"] < runs["time_us"]["stream"]


def test_prologues_of_clusters_are_held_before_dispatch():
    runs = simulate("h200", pair(), "tb_static,tb_static:prologue", overrides={"scheme.coherence": "bypass"})
    times = runs.frame("runs").set_index("scheme")["time_us"]
    assert times["tb_static:prologue"] == times["tb_static"]
    alone = simulate("h200", pair((1, 1)), "tb_static,tb_static:prologue").frame("runs").set_index("scheme")
    assert alone["time_us"]["tb_static:prologue"] < alone["time_us"]["tb_static"]


def test_what_does_not_know_clusters_refuses_them():
    with pytest.raises(WorkloadError, match="not clusters"):
        simulate("h200", pair(), "tb_static", priority=lambda time, ready: 0)


def test_what_others_lack_is_refused():
    job = Job("job", [hopper_gemm(SMALL, Memory())[0]])
    runs = simulate("a100", job, "graph").frame("runs")
    assert (runs["status"] == "refused").all()
    assert runs["reason"].str.contains("compute capability 9.0").all()
    with pytest.raises(WorkloadError, match="stages"):
        hopper_gemm(replace(SMALL, stages=1), Memory())
    with pytest.raises(WorkloadError, match="clusters"):
        hopper_gemm(replace(SMALL, tbs=23), Memory())
