"""Which GEMM kernels PyTorch's libraries launch on an H200, and what they take (tests/hw/library)."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from functools import cache
from statistics import median

import pytest

from tests.support.measured import measured_table

TABLES = {
    "epilogue": "h200_library_epilogue.csv",
    "alternatives": "h200_library_alternatives.csv",
    "batched": "h200_library_batched.csv",
    "grouped": "h200_library_grouped.csv",
    "fp8": "h200_library_fp8.csv",
    "pointwise_sectors": "h200_library_pointwise_sectors.csv",
}
GEMMS = ("epilogue", "alternatives", "batched", "fp8")
SHAPE = ("m", "n", "k", "trans_a", "trans_b", "dtype")
LAUNCH = ("family", "tile_m", "tile_n", "stages", "cluster_m", "cluster_n", "grid_x", "grid_y", "kernels")
# TBs that are resident, by TBs of a cluster: 30 clusters of 4, 15 of 8
RESIDENT = {1: 132, 2: 132, 4: 120, 8: 120}


@cache
def table(family):
    with measured_table(TABLES[family]).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def us(row):
    return float(row["time_us_median"])


def whole(row, axis):
    """Return the tiles of whole clusters along m or n."""
    cluster = int(row[f"cluster_{axis}"])
    return -(-int(row[axis]) // (int(row[f"tile_{axis}"]) * cluster)) * cluster


def tbs(row):
    return int(row["grid_x"]) * int(row["grid_y"]) * int(row["grid_z"])


def test_results_are_right():
    """Against double precision."""
    calls = {"epilogue": 2578, "alternatives": 514, "batched": 1472, "fp8": 816, "grouped": 72}
    for family, rows in calls.items():
        assert Counter(row["check"] for row in table(family)) == {"ok": rows}


@pytest.mark.parametrize("family", GEMMS)
def test_nvjet_launches_the_clusters_that_are_resident(family):
    """Or those of its tiles, if these are fewer, unless it splits k. Cards of other GPCs may hold others."""
    rows = [r for r in table(family) if r["family"] == "nvjet" and "splitK" not in r["kernel"]]
    # three GEMMs of a backward pass have one row, with the shape of the first
    rows = [row for row in rows if row.get("kind") != "backward"]
    assert len(rows) > 150
    for row in rows:
        tiles = whole(row, "m") * whole(row, "n") * int(row.get("batch", 1))
        assert tbs(row) == min(tiles, RESIDENT[int(row["cluster_m"]) * int(row["cluster_n"])])


def candidates():
    """Return the rows of each shape by the rank of cuBLASLt's candidate, -1 for PyTorch's choice."""
    found = defaultdict(dict)
    for row in table("alternatives"):
        found[tuple(row[c] for c in SHAPE)][int(row["rank"])] = row
    return found


def test_pytorch_takes_the_first_candidate():
    what = ("kernel", "grid_x", "grid_y", "grid_z", "reduce_kernel", "reduce_grid")
    found = candidates()
    assert len(found) == 60
    for ranks in found.values():
        assert all(ranks[-1][c] == ranks[0][c] for c in what)


def test_the_first_candidate_is_not_always_the_fastest():
    """It is in 38 of 60 shapes; others are up to 34 % faster, where it is slower 4 % in the median."""
    slower = [us(ranks[0]) / min(us(ranks[r]) for r in ranks if r >= 0) for ranks in candidates().values()]
    assert slower.count(1) == 38
    assert max(slower) == pytest.approx(1.34, abs=0.005)
    assert median(x for x in slower if x > 1) == pytest.approx(1.04, abs=0.01)


def epilogues(kind):
    """Return [(without, with)] of the same shape."""
    plain = {tuple(r[c] for c in SHAPE): r for r in table("epilogue") if r["kind"] == "mm"}
    found = [(plain[tuple(r[c] for c in SHAPE)], r) for r in table("epilogue") if r["kind"] == kind]
    assert len(found) == 600
    return found


def same_launch(kind):
    """Return those of nvjet whose launch is the same."""
    found = [(a, b) for a, b in epilogues(kind) if b["family"] == "nvjet"]
    return [(a, b) for a, b in found if all(a[c] == b[c] for c in LAUNCH)]


@pytest.mark.parametrize(("kind", "more"), [("bias", 1.020), ("bias_relu", 1.032), ("bias_gelu", 1.052)])
def test_what_an_epilogue_costs(kind, more):
    """Median of 433 shapes whose kernel has the same tiles and clusters."""
    found = same_launch(kind)
    assert len(found) == 433
    assert median(us(b) / us(a) for a, b in found) == pytest.approx(more, abs=0.001)


@pytest.mark.parametrize(
    ("tile", "bias", "gelu"),
    [
        ((64, 8), 1.047, 1.060),
        ((64, 16), 1.048, 1.048),
        ((64, 32), 1.045, 1.063),
        ((64, 64), 1.052, 1.110),
        ((128, 8), 1.013, 1.016),
        ((128, 64), 1.041, 1.058),
        ((128, 128), 1.007, 1.034),
        ((168, 128), 1.016, 1.052),
        ((192, 8), 1.008, 1.012),
        ((192, 128), 1.011, 1.047),
        ((192, 192), 1.025, 1.089),
        ((256, 128), 1.007, 1.043),
    ],
)
def test_what_an_epilogue_costs_by_tile(tile, bias, gelu):
    """Medians of tiles with ten and more shapes."""
    for kind, more in (("bias", bias), ("bias_gelu", gelu)):
        found = [(a, b) for a, b in same_launch(kind) if (int(b["tile_m"]), int(b["tile_n"])) == tile]
        assert len(found) >= 10
        assert median(us(b) / us(a) for a, b in found) == pytest.approx(more, abs=0.001)


def test_epilogues_have_other_tiles():
    """None has 320 x 128 with a bias, where plain GEMMs do; fewer split k with a reduction."""
    changed = [(a, b) for a, b in epilogues("bias") if a["tile_m"] == "320" and a["tile_n"] == "128"]
    assert len(changed) > 50
    assert not [b for _, b in changed if (b["tile_m"], b["tile_n"]) == ("320", "128")]
    assert sum(b["reduce_kernel"] != "" for _, b in epilogues("bias")) < 0.6 * sum(
        a["reduce_kernel"] != "" for a, _ in epilogues("bias")
    )


def test_batched_gemms_are_one_kernel():
    """nvjet and sm90_xmma go through all GEMMs of a batch with resident TBs, others have them in z."""
    assert {row["kernels"] for row in table("batched")} == {"1"}
    assert {row["family"] for row in table("batched") if row["dtype"] == "fp16"} == {"nvjet"}
    assert {row["family"] for row in table("batched") if row["dtype"] != "fp16"} & {"nvjet"} == set()
    for row in table("batched"):
        assert row["grid_z"] == ("1" if row["family"] in ("nvjet", "sm90_xmma_gemm") else row["batch"])


def test_adding_to_a_batch_copies_it_first():
    """torch.baddbmm with beta copies its input: 2.5 times the time of torch.bmm in the median."""
    key = ("batch", *SHAPE)
    plain = {tuple(r[c] for c in key): us(r) for r in table("batched") if r["op"] == "bmm"}
    for op, more in (("baddbmm", 2.453), ("baddbmm_beta0", 1.004)):
        rows = [row for row in table("batched") if row["op"] == op]
        assert len(rows) == 145
        assert median(us(row) / plain[tuple(row[c] for c in key)] for row in rows) == pytest.approx(
            more, rel=1e-3
        )


def test_grouped_gemms_have_two_kernels():
    """132 TBs go through all groups after one TB has prepared them; the mean group decides on tiles."""
    for row in table("grouped"):
        assert (tbs(row), row["kernels"]) == (132, "2")
        name, grid, block, _ = row["other_kernels"].split("|")
        assert (name, grid, block) == ("cuda::detail::prepare_grouped_gemm_data", "1", row["experts"])
        large = int(row["tokens"]) >= 256 * int(row["experts"])
        assert (row["tile_m"], row["tile_n"], row["tile_k"]) == (
            ("128", "256", "64") if large else ("64", "128", "128")
        )


def test_rates_of_grouped_gemms():
    """At most 779 TFLOP/s in bf16; skewed groups take 7 % longer than even ones in the median."""
    flop = max(2e-6 * int(r["tokens"]) * int(r["m"]) * int(r["k"]) / us(r) for r in table("grouped"))
    assert flop == pytest.approx(779, abs=1)
    found = defaultdict(dict)
    for row in table("grouped"):
        found[tuple(row[c] for c in ("experts", "tokens", "m", "k"))][row["sizes"]] = us(row)
    assert median(each["skewed"] / each["even"] for each in found.values()) == pytest.approx(1.072, abs=0.001)


def test_exact_accumulation_of_fp8_costs_little():
    """4 % in the median; the fastest GEMMs come to 1,564 and 1,470 TFLOP/s."""
    found = defaultdict(dict)
    for row in table("fp8"):
        found[row["m"], row["n"], row["k"]][row["fast_accum"]] = row
    assert {tuple(sorted(each)) for each in found.values()} == {("0", "1")}
    assert median(us(each["0"]) / us(each["1"]) for each in found.values()) == pytest.approx(1.036, abs=0.001)
    for fast, most in (("1", 1564), ("0", 1470)):
        rates = [
            2e-6 * int(r["m"]) * int(r["n"]) * int(r["k"]) / us(r)
            for r in table("fp8")
            if r["fast_accum"] == fast
        ]
        assert max(rates) == pytest.approx(most, abs=1)


def test_element_wise_operations_move_what_they_count():
    """Bytes between SMs and L2, cold and warm; not so reductions over columns, norms and transposes."""
    simple = (
        "add",
        "mul_scalar",
        "relu",
        "gelu_erf",
        "gelu_tanh",
        "gelu_erf_backward",
        "dropout_p0.1",
        "softmax",
    )
    rows = [
        row for row in table("pointwise_sectors") if row["op"] in (*simple, "cast_to_fp16", "cast_to_fp32")
    ]
    assert Counter(row["cache"] for row in rows) == {"cold": 84, "warm": 84}
    for row in rows:
        assert 32 * int(row["l2_from_sm_sectors"]) == pytest.approx(int(row["bytes_counted"]), rel=1e-3)
    transposed = [row for row in table("pointwise_sectors") if row["op"] == "transpose_copy"]
    assert min(32 * int(r["l2_from_sm_sectors"]) / int(r["bytes_counted"]) for r in transposed) > 1.3


def test_cold_operands_come_from_dram():
    """Of operations that read as much as they write, from 4 MB on; warm ones of 64 Ki elements stay in L2."""
    unary = ("mul_scalar", "relu", "gelu_erf", "gelu_tanh")
    rows = [row for row in table("pointwise_sectors") if row["op"] in unary]
    for row in rows:
        share = 32 * int(row["dram_read_sectors"]) / (int(row["bytes_counted"]) / 2)
        if row["elements"] == "65536":
            assert share > 1 if row["cache"] == "cold" else share < 0.1
        elif row["cache"] == "cold":
            assert share == pytest.approx(1, abs=0.004)
    assert Counter(row["elements"] for row in rows) == {"65536": 24, "2097152": 24, "33554432": 24}
