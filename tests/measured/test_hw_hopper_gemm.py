"""What GEMMs with TMA, multicast and wgmma do on an H200, fp16: a k-step is 64 elements, 128 B.

``h200_pipeline.csv`` has the times of tests/hw/hopper/pipeline.cu, for the shapes, tiles and clusters that a
library chose (``h200_pipeline_rows.csv``); ``h200_nvjet_counters.csv`` has the counters of the library.
"""

from __future__ import annotations

import csv
from statistics import median

import pytest

from tests.support.measured import measured_table

SMEM = 226 * 1024
ROW = 128
TENSOR = 4096  # fp16 operations a cycle of an SM's tensor cores; a multiply-add is two
OWN_GROUP, ROWS, COLUMNS = "0", "1", "2"  # modes: tiles of one warp group, halves of a tile's rows or columns


def _rows(name):
    with measured_table(name).open(encoding="utf-8", newline="") as file:
        return {
            row["id"]: {k: v if k in ("id", "mode", "kernel") else float(v) for k, v in row.items()}
            for row in csv.DictReader(file)
        }


SHAPES = _rows("h200_pipeline_rows.csv")
TIMES = _rows("h200_pipeline.csv")
COUNTERS = {i: row | SHAPES[i] for i, row in _rows("h200_nvjet_counters.csv").items()}


def size(row):
    return int(row["tile_m"]), int(row["tile_n"])


def of_size(*sizes):
    """Return the times of some sizes of tiles."""
    found = [row for row in TIMES.values() if size(row) in sizes]
    assert len(found) >= len(sizes)
    return found


def over(row):
    """Return a k-step's cycles over those of its multiplies."""
    return row["step"] / (row["tile_m"] * row["tile_n"] * 64 * 2 / TENSOR)


def tiles(row):
    """Return the tiles of whole clusters: those outside the matrices are computed, too."""
    m = -(-row["m"] // (row["tile_m"] * row["cluster_m"])) * row["cluster_m"]
    return m * -(-row["n"] // (row["tile_n"] * row["cluster_n"])) * row["cluster_n"]


def test_the_shapes_are_those_of_the_library():
    """With as many stages as fit beside the result, of both warp groups if each has a tile."""
    assert TIMES.keys() == SHAPES.keys()
    for row in TIMES.values():
        wanted = SHAPES[row["id"]]
        result = row["tile_m"] * row["tile_n"] * 2 * (2 if row["mode"] == OWN_GROUP else 1)
        fit = (SMEM - result) // ((row["tile_m"] + row["tile_n"]) * ROW)
        assert {k: row[k] for k in wanted} == wanted | {"stages": min(wanted["stages"], fit)}


@pytest.mark.parametrize(
    ("tile", "least", "most"),
    [
        ((128, 128), 1.06, 1.6),  # one warp group multiplies at a time
        ((192, 128), 1.03, 1.19),
        ((192, 192), 1.025, 1.31),
        ((256, 128), 1.03, 1.15),
        ((320, 128), 1.86, 2.27),  # with two stages
    ],
)
def test_steps_of_large_tiles_are_near_the_tensor_cores(tile, least, most):
    found = [over(row) for row in of_size(tile)]
    assert least < min(found) < least + 0.01
    assert most - 0.01 < max(found) < most


def test_steps_of_small_tiles_take_the_loops_time():
    """Up to 64 x 64 it is the loading warp's, for clusters in two directions some 45 cycles longer."""
    for n, least in ((8, 349), (16, 384), (32, 386), (64, 397.5)):
        found = of_size((64, n))
        one = [row["step"] for row in found if row["cluster_n"] == 1]
        two = [row["step"] for row in found if row["cluster_n"] > 1]
        assert one == pytest.approx([least] * len(one), abs=4)
        assert median(two) - median(one) == pytest.approx(45, abs=2)
    assert [row["step"] for row in of_size((128, 64))] == pytest.approx([497] * 5, abs=3)


def test_steps_of_few_columns_take_the_time_of_dram():
    """A has more than 60 MB here and is read once: at 4.3 to 4.9 TB/s."""
    found = [row for row in TIMES.values() if row["m"] * row["k"] * 2 > 6e7 and row["n"] <= row["tile_n"]]
    assert len(found) == 13
    for row in found:
        assert 4.3e6 < row["tbs"] * row["tile_m"] * ROW / row["step"] * row["mhz"] < 4.9e6


def test_a_tb_starts_late():
    """Barriers are ready, the cluster has met, the first load is issued: some 2,900 cycles after the start.

    The third of these parts hands registers over and fetches the loading warp's instructions.
    """
    for row in TIMES.values():
        assert 670 < row["ready"] < 1060
        assert 280 < row["met"] - row["ready"] < 370
        assert 1630 < row["issued"] - row["met"] < 1770
        assert 380 < row["full"] - row["issued"] < 2750


def test_the_main_loop_takes_a_step_for_each_tile():
    for row in TIMES.values():
        steps = row["k"] / 64 * row["step"]
        assert row["main"] - row["full"] == pytest.approx(steps, rel=0.007)


def test_a_stored_tile_is_read_at_32_bytes_a_cycle():
    """After the conversion. One warp group needs 134 to 200 cycles more; two of a tile share the rate."""
    for row in TIMES.values():
        taken, reading = row["read"] - row["converted"], row["tile_m"] * row["tile_n"] * 2 / 32
        if row["mode"] == OWN_GROUP:
            assert 134 <= taken - reading < 200
        else:
            assert 0.74 * reading < taken < 1.27 * reading
    shared = [r for r in TIMES.values() if r["mode"] != OWN_GROUP]
    assert median(
        (r["read"] - r["converted"]) / (r["tile_m"] * r["tile_n"] / 16) for r in shared
    ) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("row", COUNTERS.values(), ids=lambda row: row["id"])
def test_every_sm_receives_its_whole_tiles(row):
    """Sectors of multicast count at each SM, and those outside the matrices, which are zero."""
    sectors = tiles(row) * (row["tile_m"] + row["tile_n"]) * row["k"] * 2 / 32
    assert row["received_sectors"] == pytest.approx(sectors, rel=1e-4)


@pytest.mark.parametrize("row", COUNTERS.values(), ids=lambda row: row["id"])
def test_tensor_instructions(row):
    """One of each warp for 64 rows and k of 16; two if the warp groups share a tile's columns."""
    groups = 2 if row["mode"] == COLUMNS else 1
    assert row["tensor_instructions"] == tiles(row) * row["k"] / 16 * 4 * row["tile_m"] / 64 * groups


def test_l2_serves_a_multicast_once():
    """Against what clusters load: 1.5 where all is read once, as half crosses between partitions.

    Other TBs of a GPC ask for the same at about the same time, so that large tiles need less.
    """
    for row in COUNTERS.values():
        loaded = row["tile_m"] / row["cluster_n"] + row["tile_n"] / row["cluster_m"]
        served = row["l2_read_sectors"] / (tiles(row) * loaded * row["k"] * 2 / 32)
        if row["tile_n"] <= 32:
            assert 1.26 < served < 1.56
        elif row["id"] != "368":  # A, of 134 MB, is read once
            assert row["l2_read_sectors"] < 0.73 * row["received_sectors"]
            assert 0.68 < served < 1.37


def test_half_of_the_result_is_written_in_both_partitions():
    large = [row for row in COUNTERS.values() if row["m"] * row["n"] * 2 > 2e6]
    assert len(large) > 10
    for row in large:
        assert row["l2_written_sectors"] == pytest.approx(1.5 * row["m"] * row["n"] * 2 / 32, rel=0.008)


def test_what_is_read_once_comes_from_dram_once():
    """Operands of more than 4 MB and a tile a TB: at most a small operand is still in L2."""
    for row in COUNTERS.values():
        operands = (row["m"] + row["n"]) * row["k"] * 2
        if operands > 4e6 and tiles(row) <= 132:
            assert 0.96 * operands < row["dram_read_B"] < 1.005 * operands


@pytest.mark.parametrize(
    ("tile_m", "wide", "each", "least", "most"),
    [(64, False, 184.3, 2360, 2430), (128, False, 250.5, 2310, 2840), (192, True, 585, 2940, 2960)],
)
def test_instructions_of_a_tb(tile_m, wide, each, least, most):
    """Of all its warps: so many a k-step, and some more for a tile, whatever its columns."""
    found = [
        row for row in COUNTERS.values()
        if row["tile_m"] == tile_m and (row["tile_n"] >= 128 or not wide) and tiles(row) == row["tbs"]
    ]  # fmt: skip
    assert len(found) >= 2
    for row in found:
        assert least < row["instructions"] / row["tbs"] - each * row["k"] / 64 < most
