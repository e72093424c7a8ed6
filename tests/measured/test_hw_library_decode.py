"""How PyTorch's backends split attention of one query a sequence on an H200, fp16 (library/decode.py)."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from statistics import median

import pytest

from tests.support.measured import measured_table

SLOTS = 2 * 132  # two TBs an SM


def _rows():
    with measured_table("h200_library_decode.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sizes = ("batch", "heads", "kv_heads", "kv_length", "head_dim")
    return [row | {k: int(row[k]) for k in sizes} for row in rows]


ROWS = _rows()


def backend(name):
    """Return the rows of a backend that ran."""
    found = [row for row in ROWS if row["backend"] == name and row["check"] == "ok"]
    assert len(found) > 400
    return found


def grid(row):
    """Return the TBs of the kernel that reads keys and values, in three directions."""
    if "combine" in row["kernel"]:  # it took longer than the other
        return tuple(int(x) for x in row["other_kernels"].split("|")[1].split("x"))
    return tuple(int(row[f"grid_{axis}"]) for axis in "xyz")


def flash_splits(groups, blocks):
    """Return the fewest parts with 85 % of the best use of the slots; one if most are used without."""
    if groups >= 0.8 * SLOTS:
        return 1
    # parts that leave the longest one as long are not considered
    lengths = {}
    for parts in range(min(blocks, 128), 0, -1):
        lengths[-(-blocks // parts)] = parts
    waves = {parts: groups * parts / SLOTS for parts in lengths.values()}
    used = {parts: share / -(-share // 1) for parts, share in waves.items()}
    return min(parts for parts in used if used[parts] >= 0.85 * max(used.values()))


def power_of_two(x):
    return 1 << x.bit_length() - 1 if x else 0


def cudnn_splits(groups, length):
    """Return a power of two of parts of 128 keys and more that fit the slots: four, or none at all."""
    parts = min(power_of_two(SLOTS // groups), power_of_two(length // 128))
    return parts if parts >= 4 and length > 512 else 1


def test_all_but_grouped_heads_of_one_backend_run():
    refused = [row for row in ROWS if row["check"] != "ok"]
    assert {(row["backend"], row["check"]) for row in refused} == {("efficient", "RuntimeError")}
    grouped = [r for r in ROWS if r["backend"] == "efficient" and r["heads"] != r["kv_heads"]]
    assert len(refused) == len(grouped) == 189
    assert all(row["check"] != "ok" for row in grouped)


def test_flash_attention_splits_keys():
    """The queries of heads that share keys are rows of one tile; a second kernel adds up the parts."""
    for row in backend("flash"):
        groups = row["batch"] * row["kv_heads"]
        block = 256 if row["head_dim"] == 64 else 128
        parts = flash_splits(groups, -(-row["kv_length"] // block))
        assert grid(row) == ((1, parts, groups) if parts > 1 else (1, row["batch"], row["kv_heads"]))
        assert row["kernels"] == ("2" if parts > 1 else "1")


def test_cudnn_splits_keys():
    for row in backend("cudnn"):
        parts = cudnn_splits(row["batch"] * row["kv_heads"], row["kv_length"])
        assert grid(row) == (parts, row["kv_heads"], row["batch"])
        assert row["kernels"] == ("2" if parts > 1 else "1")


def test_efficient_attention_does_not_split_keys():
    for row in backend("efficient"):
        assert (*grid(row), row["kernels"]) == (1, row["heads"], row["batch"], "1")


@pytest.mark.parametrize(("name", "rate"), [("cudnn", 4.27), ("flash", 2.61), ("efficient", 2.35)])
def test_rates_of_large_keys_and_values(name, rate):
    """TB/s beyond 200 MB, medians."""
    rates = []
    for row in backend(name):
        read = 4 * row["batch"] * row["kv_heads"] * row["kv_length"] * row["head_dim"]
        if read > 2e8:
            rates.append(read / float(row["time_us_median"]) * 1e-6)
    assert len(rates) > 190
    assert median(rates) == pytest.approx(rate, abs=0.01)


def test_cudnn_is_the_fastest_nearly_always():
    found = defaultdict(dict)
    for row in ROWS:
        if row["check"] == "ok":
            found[row["id"]][row["backend"]] = float(row["time_us_median"])
    assert Counter(min(each, key=each.get) for each in found.values()) == {"cudnn": 658, "flash": 8}
