"""What tensor tiles to and from shared memory take on an H200 (tests/hw/hopper/tma.cu); rows are 128 B."""

from __future__ import annotations

import csv
from statistics import median

import pytest

from tests.support.measured import measured_table

ROW, SMS = 128, 132


def table(name):
    """Return the rows of a table, numbers as such."""
    with measured_table(name).open(encoding="utf-8", newline="") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def some(name, **wanted):
    """Return the rows with such values."""
    found = [row for row in table(name) if all(row[k] == v for k, v in wanted.items())]
    assert found
    return found


@pytest.mark.parametrize("pitch", [128, 8192])
def test_latency_of_l2_hits(pitch):
    """Of one SM: from 64 rows on, each takes the time of 110 B a cycle."""
    found = {row["rows"]: row["median"] for row in some("h200_tma_latency.csv", pitch=pitch, sms=1)}
    assert found[1] == pytest.approx(295, abs=4)
    for rows in (64, 128, 256):
        assert found[rows] == pytest.approx(314 + 1.16 * rows, abs=4)


def test_a_new_descriptor_is_fetched_unless_prefetched():
    rows = some("h200_tma_latency.csv", sms=1)
    fetched = [row["cold_map"] - row["median"] for row in rows]
    asked = [row["asked"] - row["median"] for row in rows]
    assert median(fetched) == pytest.approx(105, abs=2)
    assert 85 < min(fetched) < max(fetched) < 130
    assert -25 < min(asked) < 0 < max(asked) < 35


def test_tiles_of_one_sm():
    """The loop of the program takes 271 cycles a tile, whatever rows are outside the tensor.

    A tile that it waits for takes steps of 160 cycles more, which the latency of single tiles does not show.
    """
    for row in some("h200_tma_rate.csv", share=1, sms=1):
        if row["depth"] == 1:
            steps = (row["cycles"] - 271) / 160
            assert steps == pytest.approx({8: 1, 16: 1, 32: 1, 64: 2, 128: 2, 256: 3}[row["rows"]], abs=0.05)
        elif row["rows"] <= 128:
            assert row["cycles"] == pytest.approx(271, abs=2)


def test_bandwidth_of_tiles():
    """L2 hits in large tiles: one SM gets 107 to 108 B a cycle, all together 34 to 39 each."""
    for row in some("h200_tma_rate.csv", rows=256, sms=1, depth=4):
        assert 107 < 256 * ROW / row["cycles"] < 108
    for rows in (128, 256):
        for row in some("h200_tma_rate.csv", rows=rows, sms=SMS, share=1, depth=4):
            assert 34 < rows * ROW / row["cycles"] < 40


@pytest.mark.parametrize(("share", "least", "most"), [(2, 376, 380), (4, 442, 523), (8, 471, 564)])
def test_tiles_of_a_cluster(share, least, most):
    """The loop waits for each TB of the cluster to release a slot, which takes longer than up to 128 rows."""
    rows = [row for row in some("h200_tma_rate.csv", share=share) if row["valid"] == row["rows"]]
    found = [row["cycles"] for row in rows if row["depth"] > 1]
    assert least < min(found) < max(found) < most


def test_rows_outside_the_tensor_cost_all_sms_together():
    """Sixty rows outside or more take longer than rows inside, but not in one cluster alone."""

    def cycles(sms, rows):
        made = some("h200_tma_rate.csv", share=2, sms=sms, depth=4, rows=rows)
        return {row["rows"] - row["valid"]: row["cycles"] for row in made}

    assert max(cycles(2, 128).values()) < 380
    for rows in (64, 128):
        made = {outside: time for outside, time in cycles(120, rows).items() if outside >= 60}
        for outside, time in made.items():
            assert 8 < time / outside < 12
        assert made[max(made)] == max(made.values())


def test_a_store_reads_32_bytes_a_cycle():
    """Until shared memory may be reused; six cycles later it is done. All SMs take as long up to 64 rows."""
    for row in some("h200_tma_store.csv", sms=1):
        assert row["read"] == 45 + row["rows"] * ROW / 32
        assert row["done"] == row["read"] + 6
        assert row["cycles"] == row["read"] - 28  # a tile of several in flight
    for row in some("h200_tma_store.csv", sms=SMS):
        assert (row["read"] == 45 + row["rows"] * ROW / 32) == (row["rows"] <= 64)


def test_what_a_loading_warp_issues():
    """Cycles of a barrier's test that succeeds, an arrival, a load, and of a turn of the three."""
    with measured_table("h200_tma_unit.csv").open(encoding="utf-8", newline="") as file:
        found = {row["what"]: float(row["cycles"]) for row in csv.DictReader(file)}
    assert found == pytest.approx({"test": 41, "arrive": 5.6, "load": 11, "turn": 63}, abs=0.4)


@pytest.mark.parametrize("mib", [16, 24, 32, 40])
def test_regions_that_l2_holds(mib):
    """Bytes a cycle of all SMs in the fourth pass: with tiles of 128 rows more than with 64."""
    found = {
        rows: [r["bytes_a_cycle"] for r in some("h200_tma_stream.csv", mib=mib, rows=rows)]
        for rows in (64, 128)
    }
    found = {rows: (each[3], each[7]) for rows, each in found.items()}
    assert 3370 < min(found[64]) < max(found[64]) < 3720
    assert 3590 < min(found[128]) < max(found[128]) < 4230


def test_the_first_passes_cross_between_partitions():
    """The first reads DRAM; up to 24 MiB the second is as fast as the fourth, at 40 MiB half as fast."""

    def passes(mib):
        rows = some("h200_tma_stream.csv", mib=mib)
        return [median(r["bytes_a_cycle"] for r in rows if r["pass"] == p) for p in range(4)]

    for mib, least, most in ((16, 0.98, 1.02), (24, 0.9, 1), (32, 0.6, 0.75), (40, 0.45, 0.55)):
        first, second, _, last = passes(mib)
        assert first < 0.45 * last
        assert least < second / last < most


def test_regions_that_l2_does_not_hold():
    """GB/s from DRAM in the fourth pass; at 48 MiB L2 still serves a part."""
    for mib in (56, 64, 96, 200):
        found = [row["gb_s"] for row in some("h200_tma_stream.csv", mib=mib) if row["pass"] == 3]
        assert 3940 < min(found) < max(found) < 4560
    assert max(row["gb_s"] for row in some("h200_tma_stream.csv", mib=48)) > 4800
