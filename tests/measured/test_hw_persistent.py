"""Chains as one persistent kernel: the code that was compiled, and where a cooperative launch puts TBs."""

from __future__ import annotations

import csv

import pytest

from pysim import simulate
from pysim.program.job import Job, Kernel
from pysim.program.warp_program import Code, Program
from pysim.workloads.mirrored.chains import STAGED, chain_job, chain_of
from pysim.workloads.mirrored.code import Warp
from pysim.workloads.validation import h200
from tests.core.harness import config, execute
from tests.support.measured import measured_table
from tests.support.thin import thin

from .test_hw_chains import SMALL, instructions_of_a_step

# instructions of a K step, counted in the SASS of what h200_deps.csv ran, from the top of the loop to its end
STEPS = {
    ("mlp", "hgemm_128x128x32_8warps"): 129,
    ("mlp", "hgemm_64x64x32"): 112,
    ("mlp", "sgemm_128x128x8"): 603,
    ("mlp", "sgemm_64x64x16"): 349,
    ("gru", "hgemm_64x64x32"): 81,
    ("gru", "sgemm_32x32x32"): 221,
    ("qk", "hgemm_64x64x32"): 104,
    ("pv", "hgemm_64x64x32"): 81,
}


def rows(name):
    return list(csv.DictReader(measured_table(name).read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("key", STAGED, ids="|".join)
def test_a_step_has_the_instructions_of_its_sass(key):
    assert instructions_of_a_step(STAGED[key]) == STEPS[key]


@pytest.mark.parametrize("key", SMALL, ids="|".join)
@pytest.mark.parametrize("scheme", ["fused:grid", "fused:tile"])
def test_stages_touch_what_they_say(key, scheme):
    if key[3].endswith("tokens=96"):
        pytest.skip("TBs of whole and of cut tiles in one kernel")
    result = simulate("h200", chain_job(*key), scheme, overrides={"sim.oracle": 1}, threads=1)
    assert set(result.frame("runs")["status"]) == {"ok"}


def test_a_product_with_a_cut_tile_fuses():
    # warps of which no row exists run the same code, with stores that are predicated off
    kernel = chain_of("gru", "fp16", "64x64x32_128thr", "hidden=128;batch=32;steps=1").kernels[0]
    assert isinstance(kernel.program, Program)
    assert isinstance(kernel.as_stage().program, Program)


@pytest.mark.parametrize(("tokens", "grid"), [(512, 256), (256, 128)])
def test_tbs_of_a_cooperative_launch_lie_as_measured(tokens, grid):
    # 2 TBs an SM: how many SMs the first TBs share, on which the tiles of a small stage are
    params = f"widths=64-{grid * 64 * 64 // tokens}-64;layers=2;tokens={tokens}"
    job = chain_job("mlp", "fp16", "64x64x32_128thr", params)
    tbs = simulate("h200", job, "fused:grid", baseline=False, threads=1, tables="tbs").tables()["tbs"]
    mine = tbs[tbs["kernel"] == 0]
    assert len(mine) == grid
    where = {int(tb): int(sm) for tb, sm in zip(mine["tb"], mine["sm"], strict=True)}
    real = {
        int(r["tb"]): int(r["sm"])
        for r in rows("h200_coop.csv")
        if (r["tbs_per_sm"], r["grid"], r["cooperative"]) == ("2", str(grid), "1")
    }
    for first in (16, 32, 64, 128):
        assert len({where[tb] for tb in range(first)}) == len({real[tb] for tb in range(first)})


# LDS of one warp, each needing what the one before loaded; measured with the addition that makes the address
@pytest.mark.parametrize(("what", "waves"), [("32 own", 1), ("64 own", 2), ("128 two", 2), ("128 own", 4)])
def test_a_wide_load_of_shared_memory_takes_as_long_as_measured(what, waves):
    real = next(float(r["cycles"]) for r in rows("h200_parts.csv") if r["what"] == f"lds chain {what}")
    narrow = next(float(r["cycles"]) for r in rows("h200_parts.csv") if r["what"] == "lds chain 32 own")

    def cycles(count, waves):
        code = Code()
        mark = code.loop_begin()
        code.compute(smem=waves, smem_ops=1, smem_back=0)
        code.loop_end(mark, count)
        code.exit()
        kernel = Kernel("lds", Program("lds", (tuple(code.ops),), 1, 16, 0, 0), (1, 1, 1), (), ())
        return execute(Job("lds", [kernel]), "stream", config("h200")).kernel_cycles()

    one = (cycles(300, 1) - cycles(100, 1)) / 200
    wide = (cycles(300, waves) - cycles(100, waves)) / 200
    # by 2.5 cycles a further wavefront, between LDS and ldmatrix
    assert wide - one == pytest.approx(real - narrow, abs=2)


def test_loads_of_shared_memory_take_slots_of_arithmetic():
    # 32 FFMA and a load, 16 warps on an SM: what the load adds to the FFMAs, a warp
    found = {r["what"]: float(r["cycles"]) for r in rows("h200_parts.csv") if r["threads"] == "512"}
    for words, pipe in ((64, "lds64"), (128, "lds128")):
        warp = Warp()
        warp.mix(0, 0, ffma=32, **{pipe: 1})
        slots = warp.ops[0].issue + warp.ops[0].conflicts - 32
        real = (found[f"mix 32 ffma + {words} own"] - found["mix 32 ffma + no load"]) / 4
        assert slots == pytest.approx(real, abs=0.8)


def step_us(shape, tile, params, scheme):
    """Time of a K step of a chain's first product, in the second of its two runs."""
    ends = []
    for depth in (512, 1024):
        job = chain_job("mlp", shape, tile, f"widths={depth}-{params}")
        kernels = simulate(config("h200"), job, scheme, threads=1).tables()["kernels"]
        again = kernels[len(kernels) // 2 + 1 :]
        ends.append(float(again["complete_us"].max() - again["first_dispatch_us"].min()))
    return (ends[1] - ends[0]) * int(tile.split("_")[0].split("x")[2]) / 512


# the persistent product of 64 x 64 in fp32 waits for shared memory 16 times a step, and longer than here; one
# TB of 128 x 128 in fp32 alone is 6.7 and 11.8 % too fast, as a warp goes on until it must wait (with the
# oldest always first it is some 4 and 7 % slower, but then the older of two on an SM leads by too much, see
# docs/validation/chains.md) and as loads that lie among a block's FFMA are asked for at its begin here
@pytest.mark.parametrize(
    ("shape", "tile", "rows_of_a", "columns", "tbs", "within"),
    thin(
        [
            ("fp16", "128x128x32_256thr", 128, 1024, 8, {"plain": 0.05, "grid": 0.07}),
            ("fp32", "64x64x16_256thr", 64, 4096, 64, {"plain": 0.03, "grid": 0.08}),
            ("fp32", "128x128x8_256thr", 128, 4096, 32, {"plain": 0.07, "grid": 0.12}),
        ],
        3,
    ),
)
def test_a_step_takes_as_long_as_measured_in_both_kernels(shape, tile, rows_of_a, columns, tbs, within):
    high = tile.split("x")[0]
    for kernel, scheme in (("plain", "stream"), ("grid", "fused:grid")):
        us = {
            int(row["k"]): float(row["us"])
            for row in rows("h200_persist.csv")
            if row["tile"] == f"{shape} {tile.split('_')[0]}"
            and row["kernel"] == kernel
            and (row["m"], row["n"], row["tbs"]) == (str(rows_of_a), str(columns), str(tbs))
        }
        want = (us[2048] - us[1024]) * int(tile.split("_")[0].split("x")[2]) / 1024
        got = step_us(shape, tile, f"{columns}-{high};layers=2;tokens={rows_of_a}", scheme)
        assert got == pytest.approx(want, rel=within[kernel]), kernel


# nearly all of 32 pairs of loads of shared memory in a step wait 4 cycles by the compiler's stall counts:
# without them both are 7 to 9 % too fast
@pytest.mark.parametrize("mode", thin(["5_persistent_gridsync", "1_stream"], 2))
def test_a_gru_in_fp32_takes_as_long_as_measured(mode):
    key = ("gru", "fp32", "32x32x32_256thr", "hidden=512;batch=32;steps=20")
    row = next(
        r
        for r in rows("h200_deps.csv")
        if (r["chain"], r["dtype"], r["tile"], r["params"], r["mode"]) == (*key, mode)
    )
    got = h200.DEPS.run(config("h200"), *key, h200.MODES[mode]).times_us["chain"]
    assert got == pytest.approx(float(row["time_us_median"]) - h200.EVENTS_US, rel=0.04)
