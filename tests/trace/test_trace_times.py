"""Converted traces: latencies, intervals, chains through loops and bank conflicts."""

from __future__ import annotations

import pytest

from pysim.trace.job import trace_job
from tests.core.harness import config, execute

from .made_traces import SHARED, Warp, converted, product, strided, write
from .test_trace_lower import run


def alone(tmp_path, build, **overrides):
    """Cycles that a warp alone takes, from its start to its end."""
    warp = Warp()
    build(warp)
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {"shmem": "8192"})))
    ran = execute(trace_job(store), "stream", config(**overrides))
    return ran.kernel_cycles()


@pytest.mark.parametrize("block_max", [1, 64])
def test_dependent_instructions_take_their_latency(tmp_path, block_max):
    def chain(warp):
        for _ in range(256):
            warp.op("FFMA", 4, (4, 5, 6))

    latency = config()["gpu.sm.fp32_latency"]
    took = alone(tmp_path, chain, gpu__sm__block_max=block_max)
    assert abs(took - 256 * latency) <= 8


@pytest.mark.parametrize("block_max", [1, 64])
def test_independent_instructions_take_their_interval(tmp_path, block_max):
    def many(warp):
        for i in range(256):
            warp.op("FFMA", 4 + i % 16, (20, 21, 22))

    took = alone(tmp_path, many, gpu__sm__block_max=block_max)
    assert abs(took - 256 * config()["gpu.sm.fp32_interval"]) <= 8


def test_a_chain_that_goes_round_a_loop_counts_in_each_turn(tmp_path):
    def loop(warp):
        for _ in range(100):
            warp.pc = 0
            warp.op("DFMA", 4, (4, 6, 8)).op("IADD3", 12, (13, 13))

    took = alone(tmp_path, loop)
    assert abs(took - 100 * config()["gpu.sm.fp64_latency"]) <= 100


def test_shared_memory_results_take_their_latency(tmp_path):
    def loop(warp):
        for _ in range(50):
            warp.op("LDS", 4, (4,), strided(SHARED, 4))

    assert abs(alone(tmp_path, loop) - 50 * config()["gpu.sm.smem_latency"]) <= 55


def test_the_length_of_blocks_decides_little(tmp_path):
    store = converted(write(tmp_path, product(k=12, grid=(12, 2, 1), warps=8)))
    took = [run(store, gpu__sm__block_max=length).end for length in (1, 16, 64, 1024)]
    assert max(took) <= 1.06 * min(took)


def test_sources_in_one_register_bank_cost_a_slot(tmp_path):
    def build(first):
        def many(warp):
            for i in range(200):
                # no source is where the instruction before had it
                a, b = (4, 8) if i % 2 else (6, 10)
                warp.op("FFMA", 20 + 2 * (i % 8), (a, b, first + 2 * (i % 8)))

        return many

    same = alone(tmp_path / "same", build(20))
    other = alone(tmp_path / "other", build(21))
    assert abs(same - other - 200) <= 8
    assert alone(tmp_path / "off", build(20), gpu__sm__register_ports=0) == other


@pytest.mark.parametrize(
    ("lanes", "width", "waves", "first"),
    [
        (strided(SHARED, 4), 4, 1, 1),
        (strided(SHARED, 0), 4, 1, 1),
        (strided(SHARED, 8), 4, 2, 2),
        (strided(SHARED, 128), 4, 32, 32),
        (strided(SHARED, 132), 4, 1, 1),
        (strided(SHARED, 16), 16, 4, 4),
        (strided(SHARED, 0), 16, 2, 1),
        (strided(SHARED, 4), 16, 2, 1),
        (strided(SHARED, 8), 8, 2, 2),
        (strided(SHARED, 4), 8, 2, 1),
    ],
)
def test_bank_conflicts_are_counted_from_the_addresses(tmp_path, lanes, width, waves, first):
    name = {4: "LDS", 8: "LDS.64", 16: "LDS.128"}[width]
    warp = Warp().op(name, 4, (2,), lanes, width)
    store = converted(write(tmp_path, ((1, 1, 1), 32, {(0, 0, 0): [warp.end()]}, {})))
    assert store.kernel_array(0, "rows")["wavefronts"].max() == waves
    for word, want in (("words", waves), ("first_word", first)):
        ops = trace_job(store).kernels[0].program.lower(config(gpu__sm__smem_conflicts=word).encoded()).ops
        assert ops["smem"].sum() == want


# ---- jobs ----
