"""Measured chains of kernels: shape as measured, footprints as executed, bad input by name."""

from __future__ import annotations

import csv

import pytest

from pysim import Config, simulate
from pysim.errors import WorkloadError
from pysim.machine.devices import device
from pysim.program.job import Memory
from pysim.program.occupancy import occupancy
from pysim.workloads.mirrored.chain_kernels import gru_tile, softmax_rows
from pysim.workloads.mirrored.chains import CHAINS, TILES, chain_job, chain_of
from pysim.workloads.mirrored.hgemm import Hgemm, hgemm
from pysim.workloads.mirrored.sgemm import sgemm
from tests.support.measured import measured_table

MEASURED = measured_table("h200_deps.csv")
ROWS = {
    (r["chain"], r["dtype"], r["tile"], r["params"]): r
    for r in csv.DictReader(MEASURED.read_text(encoding="utf-8").splitlines())
    if r["mode"] == "1_stream"
}
SMALL = [
    ("mlp", "fp16", "64x64x32_128thr", "widths=64-128-64;layers=2;tokens=96"),
    ("square8", "fp32", "64x64x16_256thr", "widths=64-64-64-64;layers=4;tokens=64"),
    ("gru", "fp32", "32x32x32_256thr", "hidden=64;batch=32;steps=2"),
    ("gru", "fp16", "64x64x32_128thr", "hidden=128;batch=32;steps=2"),
    ("attention", "fp16", "64x64x32_128thr", "heads=2;seq=128;d=64"),
]


def test_every_measured_chain_can_be_made():
    assert {chain for chain, *_ in ROWS} == set(CHAINS)
    assert {tuple(key[1:3]) for key in ROWS} <= set(TILES)
    assert len(ROWS) == 70


# one of each chain and tile; the largest take seconds to lower, not to make
PICKED = {(key[0], *key[1:3]): key for key in ROWS}


@pytest.mark.parametrize("key", PICKED.values(), ids="|".join)
def test_grids_and_occupancy_are_the_measured_ones(key):
    values = Config.resolve(device("h200")).encoded()
    kernels = chain_of(*key).kernels
    tbs = [int(text) for text in ROWS[key]["tbs"].split("/")]
    fit = [int(text) for text in ROWS[key]["tbs_per_sm"].split("/")]
    assert [kernel.tbs for kernel in kernels[: len(tbs)]] == tbs
    assert [occupancy(kernel, values) for kernel in kernels[: len(fit)]] == fit


@pytest.mark.parametrize("key", SMALL, ids="|".join)
def test_kernels_touch_what_they_say(key):
    # the oracle stops a run in which an op reads or writes before what must come first is published
    job = chain_job(*key)
    result = simulate("h200", job, "stream,graph,tb_static", overrides={"sim.oracle": 1}, threads=1)
    assert set(result.frame("runs")["status"]) == {"ok"}
    assert len(job.kernels) == 2 * len(chain_of(*key).kernels) + 1


# instructions from branch to branch, counted in the SASS of what h200_deps.csv ran: of a K step of each tile
STEPS = {
    ("fp16", "128x128x32_256thr"): 113,
    ("fp16", "64x64x32_128thr"): 101,
    ("fp32", "128x128x8_256thr"): 581,
    ("fp32", "64x64x16_256thr"): 326,
    ("fp32", "32x32x32_256thr"): 240,
}


def instructions_of_a_step(tile):
    """Instructions that a warp of a product issues for one more K step."""

    def instructions(steps):
        half = isinstance(tile, Hgemm)
        depth, item, memory = steps * (32 if half else tile.bk), 2 if half else 4, Memory()
        shapes = {"A": (tile.bm, depth), "B": (depth, tile.bn), "C": (tile.bm, tile.bn)}
        a, b, c = (memory.tensor(name, *shape, item) for name, shape in shapes.items())
        made = hgemm("step", a, b, c, tile) if half else sgemm("step", a, b, c, tile)
        return made.counts["inst"] // made.kernel.program.warps

    return instructions(8) - instructions(7)


@pytest.mark.parametrize("key", TILES, ids="|".join)
def test_a_step_has_the_instructions_of_its_sass(key):
    assert instructions_of_a_step(TILES[key]) == STEPS[key]


# of a GRU cell: once, a turn over rows that exist, one over rows that do not
@pytest.mark.parametrize(
    ("item", "batch", "expected"),
    [
        (2, 8, 49 + 2 * 111 + 14 * 11),
        (2, 64, 49 + 16 * 111),
        (4, 8, 49 + 103 + 3 * 11),
        (4, 32, 49 + 4 * 103),
    ],
)
def test_a_cell_has_the_instructions_of_its_sass(item, batch, expected):
    memory, side = Memory(), 64 if item == 2 else 32
    widths = {"G": 3 * side, "X": 3 * side, "h": side, "out": side}
    tensors = [memory.tensor(name, batch, cols, item) for name, cols in widths.items()]
    made = gru_tile("cell", *tensors, (side, side))
    assert made.counts["inst"] == 8 * expected


# of a softmax: once, a row of two pairs a lane, one of 24 (16 and 8 at once, then four at a time)
@pytest.mark.parametrize(("cols", "row"), [(128, 248), (1536, 1288)])
def test_a_softmax_has_the_instructions_of_its_sass(cols, row):
    memory = Memory()
    made = softmax_rows("softmax", memory.tensor("S", 16, cols, 2), memory.tensor("P", 16, cols, 2))
    assert made.counts["inst"] == 8 * (71 + 2 * row)
    # three times a row is read, once written, by 32 B sectors
    sectors = 16 * cols * 2 // 32
    assert (made.counts["l1_load_sectors"], made.counts["l1_store_sectors"]) == (3 * sectors, sectors)


def test_nothing_of_the_second_run_starts_before_the_first_has_ended():
    job = chain_job("square8", "fp16", "64x64x32_128thr", "widths=64-64-64-64;layers=4;tokens=64")
    for scheme in ("graph", "tb_ideal"):
        kernels = simulate("h200", job, scheme, threads=1, baseline=False).tables()["kernels"]
        assert kernels["first_dispatch_us"][5:].min() > kernels["last_end_us"][:5].max()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("mlq", "fp16", "64x64x32_128thr", ""), "no chain 'mlq'"),
        (("mlp", "fp16", "64x64x16_128thr", ""), "no tile fp16 64x64x16_128thr"),
        (("mlp", "fp16", "64x64x32_128thr", "widths=64;tokens=64"), "must be widths=..;layers=..;tokens=.."),
        (("mlp", "fp16", "64x64x32_128thr", "widths=64-x;layers=1;tokens=64"), "widths = 'x'"),
        (("mlp", "fp16", "64x64x32_128thr", "widths=64-64;layers=4;tokens=64"), "2 widths do not make 4"),
        (("mlp", "fp16", "64x64x32_128thr", "widths=64-65;layers=1;tokens=64"), "must be multiples of 64"),
        (("gru", "fp16", "64x64x32_128thr", "hidden=64;batch=96;steps=1"), "batch = 96"),
        (("gru", "fp16", "64x64x32_128thr", "hidden=64;batch=0;steps=1"), "batch = '0'"),
        (("attention", "fp16", "64x64x32_128thr", "heads=1;seq=100;d=64"), "must be multiples of 64"),
    ],
)
def test_bad_input_is_named(key, message):
    with pytest.raises(WorkloadError, match=message):
        chain_of(*key)
