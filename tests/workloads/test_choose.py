"""The library's choice of a GEMM kernel: properties, and what its kernels' structure is worth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pysim import Config, simulate
from pysim.machine.devices import device
from pysim.program.job import Job, Memory
from pysim.program.warp_program import OP
from pysim.workloads.kernels.gemm import gemm
from pysim.workloads.kernels.gemm_choice import (
    FP16,
    FP32,
    SPLIT_DEPTH,
    SPLIT_FROM,
    candidates,
    choose_tiling,
    occupancy,
)
from pysim.workloads.kernels.machine_hints import MachineHints
from pysim.workloads.validation.deepbench import AHEAD_STEPS, host_us, padded

HINTS = MachineHints()
sizes = st.integers(1, 9000)


def product(m, n, k, tiling, a_t=False, b_t=False):
    memory = Memory()
    item = 4 if tiling.math == "ffma" else 2
    a = memory.tensor("a", *((k, m) if a_t else (m, k)), item)
    b = memory.tensor("b", *((n, k) if b_t else (k, n)), item)
    return gemm("g", a, b, memory.tensor("c", m, n, item), tiling, a_t=a_t, b_t=b_t, beta=1.0)


def time_us(kernel, settings=None):
    config = Config.resolve(device("v100"), settings or {})
    return float(simulate(config, Job("j", [kernel]), "stream", threads=1).tables()["runs"]["time_us"][0])


@settings(max_examples=80, deadline=None)
@given(sizes, sizes, sizes, st.sampled_from(("fp32", "fp16")), st.booleans(), st.booleans())
def test_every_product_gets_a_kernel_that_fits(m, n, k, dtype, a_t, b_t):
    tiling = choose_tiling(m, n, k, dtype, a_t=a_t, b_t=b_t, beta=1.0)
    assert occupancy(tiling, 4 if dtype == "fp32" else 2, HINTS) >= 1
    assert (tiling.math == "hmma") == (dtype == "fp16")
    assert tiling.split_k == 1 or k >= max(SPLIT_FROM[dtype], SPLIT_DEPTH * tiling.split_k)
    assert choose_tiling(m, n, k, dtype, a_t=a_t, b_t=b_t, split=False).split_k == 1


@settings(max_examples=40, deadline=None)
@given(sizes, sizes, st.integers(64, 4000), st.sampled_from(("fp32", "fp16")))
def test_a_deeper_product_is_never_estimated_cheaper(m, n, k, dtype):
    less, more = (
        {t.name: us for us, t in candidates(m, n, depth, dtype, HINTS, True)} for depth in (k, 2 * k)
    )
    assert all(more[name] >= less[name] for name in less.keys() & more.keys())


def test_large_products_get_large_tiles_and_narrow_ones_small():
    for dtype in ("fp32", "fp16"):
        large, narrow = (choose_tiling(m, 8192, 2048, dtype) for m in (8192, 16))
        assert large.tm * large.tn >= 4 * narrow.tm * narrow.tn
        assert narrow.tm <= 64


def test_transposes_decide_with_the_shape():
    # a loop of a large product yields for less time where (cuBLAS's) A is transposed
    assert choose_tiling(7000, 2560, 2560, b_t=True).yields < choose_tiling(7000, 2560, 2560).yields
    # few columns have a kernel of their own, not where rows of K must be turned
    assert choose_tiling(16, 512, 500000).tm == 16
    assert choose_tiling(16, 512, 500000, b_t=True).tm > 16
    # rows of K are streamed 128 B at a time if a multiple of 1024, else 64
    steps = {k: choose_tiling(16, 7680, k, "fp16", b_t=True).tk for k in (2048, 2560)}
    assert steps == {2048: 64, 2560: 32}
    assert choose_tiling(16, 7680, 2560, "fp16").tk == 64


@pytest.mark.parametrize("base", [FP32[0], FP32[5], FP16[0], FP16[4]], ids=lambda t: t.name)
def test_overlap_moves_instructions_and_adds_none(base):
    def counts(tiling):
        ops = product(200, 300, 700, tiling).program.variants[0]
        times = np.ones(len(ops), np.int64)
        for end, op in enumerate(ops):
            if op.kind == OP["LOOP"]:
                times[op.target : end] *= op.count
        issued = [[*op.pipes, op.smem, op.issue] for op in ops]
        return times @ np.array(issued)

    plain, overlapped = (counts(replace(base, overlap=way)) for way in (False, True))
    assert np.array_equal(plain, overlapped)


def test_overlap_keeps_the_tensor_cores_of_a_lone_block_busy():
    kernels = [product(128, 256, 4096, replace(FP16[0], overlap=way)) for way in (False, True)]
    plain, overlapped = map(time_us, kernels)
    # stores to shared memory take a tenth of a k-step
    assert overlapped < 0.95 * plain


def test_code_is_fetched_once_a_block():
    with_fetch, without = (time_us(product(128, 256, 512, replace(FP16[0], fetch=f))) for f in (6120, 0))
    assert with_fetch - without == pytest.approx(4.0, rel=0.05)  # 6120 cycles at 1530 MHz


def test_activates_bound_streams_of_short_pieces():
    shallow = FP16[5]
    kernel = product(16, 7680, 2560, shallow, b_t=True)
    free, bound = (time_us(kernel, {"gpu.dram.row_gap": gap}) for gap in (0, 22))
    pieces = 7680 * 2560 * 2 / 64 / 64  # of 64 B, a channel
    assert bound > 1.5 * free
    assert bound == pytest.approx(pieces * 22e-3, rel=0.15)
    # rows of M lie together: pages are used up before they close
    kernel = product(16, 7680, 2560, shallow)
    free, bound = (time_us(kernel, {"gpu.dram.row_gap": gap}) for gap in (0, 22))
    assert bound < 1.1 * free


def test_tbs_that_share_a_weight_run_at_once():
    # two rows of tiles over 23 MB of weights, of which a wave holds a half
    m, n, k = 256, 22528, 512
    reads = {}
    for turned in (False, True):
        kernel = product(m, n, k, replace(FP16[0], column_raster=turned))
        assert kernel.grid == ((2, 88, 1) if turned else (88, 2, 1))
        ran = simulate(Config.resolve(device("v100")), Job("j", [kernel]), "stream", threads=1)
        reads[turned] = 32 * int(ran.tables()["l2"]["dram_read_sectors"].sum())
    least = 2 * (n * k + m * k + m * n)
    assert least <= reads[True] < 1.05 * least
    assert reads[False] > reads[True] + 0.8 * 2 * n * k


def test_the_library_streams_a_weight_once_where_the_other_operand_stays_in_l2():
    assert choose_tiling(128, 16384, 4096, "fp16", b_t=True).column_raster
    # both fit, neither does, or there is one row of tiles
    for m, n, k in ((128, 512, 512), (8192, 16384, 4096), (16, 16384, 4096)):
        assert not choose_tiling(m, n, k, "fp16", b_t=True).column_raster


def test_short_pieces_where_they_are_streamed():
    steps = [choose_tiling(16, k, k, "fp16", b_t=True).tk for k in (1760, 2560)]  # 6.2 and 13.1 MB
    assert steps == [64, 32]


def test_fp16_sizes_are_rounded_up_as_the_benchmark_does():
    assert padded("fp32", 35, 8457, 1530, "NN") == (35, 8457, 1530)
    assert padded("fp16", 35, 8457, 1530, "TN") == (40, 8457, 1536)
    assert padded("fp16", 35, 7133, 1530, "NT") == (40, 7136, 1530)


def test_host_is_ahead_after_a_while():
    times = [host_us(steps) for steps in range(1, 400)]
    assert times == sorted(times)
    assert host_us(400) == host_us(AHEAD_STEPS) > host_us(AHEAD_STEPS - 1)
