"""``pysim.stats.compare``: what differs between two results, row by row."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import Job, simulate, stats
from pysim.results.schema import TABLES
from pysim.sweep import Sweep
from pysim.workloads import make
from pysim.workloads.kernels import micro

from .test_stats import CONFIGURATION, make_tables, write

pytest.importorskip("pandas")
SMALL = "gru:hidden=64,batch=4,timesteps=2,layers=1"


@pytest.fixture
def pair(tmp_path: Path) -> Any:
    """Write two files of made-up tables, the second changed; return what differs."""

    def pair(change: Any = None, **configuration: Any) -> stats.Comparison:
        write(tmp_path / "a.h5", force=True)
        tables = make_tables()
        tables = (change(tables) if change else None) or tables
        write(tmp_path / "b.h5", tables, True, **configuration)
        return stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")

    return pair


def test_equal_files_say_so(pair: Any, tmp_path: Path) -> None:
    def other_host(tables: Any) -> None:
        tables["host"]["simulate_seconds"] += 1

    made = pair(other_host)
    assert made.equal
    assert repr(made) == f"equal: configuration and tables of {tmp_path / 'a.h5'} and {tmp_path / 'b.h5'}"
    # the made-up runs hold NaN
    assert np.isnan(stats.load(tmp_path / "a.h5")["runs"]["energy_j"]).all()


def test_values_of_runs(pair: Any) -> None:
    def change(tables: Any) -> None:
        runs = tables["runs"]
        runs["time_us"][1] *= 2
        runs["tbs"][0] -= 7
        runs["status"][1] = b"failed"
        runs["energy_j"][0] = 0.5  # NaN before
        runs["table_spills"][0] = 3  # 0 before

    made = pair(change, gpu="huge", more=[1, 2], set={"window": 8, "other": 1})
    assert not made.equal
    assert made.configuration.values.tolist() == [
        ["gpu", "tiny", "huge"],
        ["more", None, "1, 2"],
        ["set.other", None, 1],
    ]
    runs = made.runs.set_index(["scheme", "column"])
    assert list(runs.index) == [
        ("scheme_0", "tbs"),
        ("scheme_0", "energy_j"),
        ("scheme_0", "table_spills"),
        ("scheme_1", "status"),
        ("scheme_1", "time_us"),
    ]
    assert tuple(runs.loc["scheme_1", "time_us"][["unit", "difference", "ratio"]]) == (
        "us",
        runs.loc["scheme_1", "time_us"]["a"],
        2.0,
    )
    assert runs.loc["scheme_0", "tbs"]["difference"] == -7
    assert (runs.loc["scheme_1", "status"]["a"], runs.loc["scheme_1", "status"]["b"]) == ("ok", "failed")
    assert math.isnan(runs.loc["scheme_1", "status"]["ratio"])
    assert runs.loc["scheme_0", "table_spills"]["ratio"] == math.inf
    assert len(made.kernels) == len(made.only_a) == len(made.only_b) == 0
    assert made.tables.values.tolist() == [["runs", 2, 2, 2]]
    data = json.loads(json.dumps(made.as_dict(), allow_nan=False))
    assert [row["ratio"] for row in data["runs"]][2:] == [None, None, 2.0]


def test_text_has_the_largest_changes_first(pair: Any) -> None:
    def change(tables: Any) -> None:
        tables["runs"]["time_us"] *= [1.01, 1.5]
        tables["runs"]["l2_bytes"] *= 9
        tables["runs"]["reason"][0] = "long " * 30
        tables["kernels"]["complete_us"] += np.arange(len(tables["kernels"]))

    made = pair(change)
    lines = repr(made).splitlines()
    at = lines.index("runs: 5 values differ")
    rows = [line.split()[:2] for line in lines[at + 2 : at + 7]]
    assert rows[:2] == [["scheme_1", "time_us"], ["scheme_0", "time_us"]]
    assert [row[1] for row in rows[2:]] == ["l2_bytes", "l2_bytes", "reason"]
    assert "1.500x" in lines[at + 2]
    assert max(map(len, lines)) < 160
    assert made.text(1).count("... and") == 3
    assert "configuration: equal" in lines
    one = made.text(None, "kernels").splitlines()
    assert one[3] == f"kernels: {len(made.kernels)} values differ"
    assert len(one) == 5 + len(made.kernels)
    assert one[5].split()[1:6] == ["bias_gelu", "2", "11", "11", "duration_us"]
    assert not made.as_dict(2, "runs").keys() - {"a", "b", "runs"}
    assert len(made.as_dict(2)["kernels"]) == 2


def test_the_order_of_runs_does_not_count(pair: Any) -> None:
    def swap(tables: Any) -> None:
        for name, rows in tables.items():
            if name != "own":
                rows["run"] = 1 - rows["run"]
                tables[name] = rows[np.argsort(rows["run"], kind="stable")]

    assert pair(swap).equal


def test_what_one_side_alone_has(pair: Any) -> None:
    def change(tables: Any) -> Any:
        tables["runs"]["scheme"][1] = b"new"
        del tables["samples"]
        own = np.zeros(2, [("run", "<i4"), ("count", "<u8"), ("more", "<f8")])
        own["count"] = tables["own"]["count"]
        return {**tables, "own": own, "mine": own}

    made = pair(change)
    assert made.only_a.values.tolist() == [["samples", -1, -1, "table"], ["runs", 1, -1, "scheme_1"]]
    assert made.only_b.values.tolist() == [
        ["mine", -1, -1, "table"],
        ["own", -1, -1, "column more"],
        ["runs", 1, -1, "new"],
    ]
    assert len(made.runs) == len(made.tables) == 0
    for line in ("only in a: 2", "  table samples", "  own: column more", "  run new"):
        assert line in repr(made).splitlines()


def test_a_kernel_more_shifts_no_other(tmp_path: Path) -> None:
    """Kernels are matched by name and occurrence; the times of those before are the same."""
    first, second, more = (micro.ffma(tbs=80, warps=8, iterations=64), micro.empty(80), micro.tensor(tbs=80))
    for name, kernels in (("a", [first, second, first]), ("b", [first, more, second, first])):
        simulate("titan_v", Job("mine", kernels), "stream", threads=1).to_file(tmp_path / f"{name}.h5")
    made = stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")
    assert made.only_b.values.tolist() == [["kernels", 0, 1, "stream: tensor, 0"]]
    numbers = made.kernels[["name", "occurrence", "kernel_a", "kernel_b"]].drop_duplicates().values.tolist()
    assert numbers == [["empty", 0, 1, 2], ["ffma", 1, 2, 3]]
    assert set(made.kernels["column"]) >= {"first_dispatch_us", "complete_us"}
    # they begin later but take as long: differences of times have no error
    assert not (made.kernels["column"] == "duration_us").any()


def test_runs_of_one_scheme_are_told_apart(tmp_path: Path) -> None:
    """Files of several workloads or GPUs hold a scheme several times."""
    runs = np.zeros(4, [(c.name, c.dtype) for c in TABLES["runs"]])
    runs["run"] = np.arange(4)
    runs["scheme"], runs["time_us"] = [b"stream", b"graph"] * 2, [1, 2, 3, 4]
    for column in ("workload", "gpu", "arguments"):
        both = runs.copy()
        both[column] = [b"x", b"x", b"y", b"y"]
        write(tmp_path / "a.h5", {"runs": both}, True)
        other = both[[2, 3, 0]]
        other["run"] = np.arange(3)
        other["time_us"][0] = 9
        write(tmp_path / "b.h5", {"runs": other}, True)
        made = stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")
        assert made.runs[["scheme", column, "column", "a", "b"]].values.tolist() == [
            ["stream", "y", "time_us", 3.0, 9.0]
        ]
        assert made.only_a["what"].tolist() == ["graph, x"]
    # nothing tells them apart but their order
    write(tmp_path / "a.h5", {"runs": runs}, True)
    runs["time_us"][3] = 5
    write(tmp_path / "b.h5", {"runs": runs}, True)
    made = stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")
    assert made.runs[["scheme", "occurrence", "a"]].values.tolist() == [["graph", 1, 4.0]]
    # another workload is compared scheme by scheme
    runs["workload"] = b"other"
    write(tmp_path / "b.h5", {"runs": runs[:2]}, True)
    write(tmp_path / "a.h5", {"runs": both[:2]}, True)
    made = stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")
    assert made.runs["column"].tolist() == ["workload", "arguments"] * 2


def test_sweeps_are_matched_by_point(tmp_path: Path) -> None:
    grid = {"hidden": [64, 96], "split": [0, 1]}
    text, tables = "gru:layers=1,timesteps=2,batch=8", ("runs", "kernels")
    more = {"schemes": "stream,graph", "tables": tables}
    Sweep(text, grid, **more).run(tmp_path / "a", quiet=True)
    Sweep(text, {**grid, "hidden": [96, 128]}, settings={"scheme.window": 2}, **more).run(
        tmp_path / "b", quiet=True
    )
    assert stats.compare(tmp_path / "a", tmp_path / "a").equal
    made = stats.compare(tmp_path / "a", tmp_path / "b")
    assert "scheme.window" in set(made.configuration["path"])
    assert "gpu.sms" not in set(made.configuration["path"])
    for hidden, only in ((64, made.only_a), (128, made.only_b)):
        kinds = [f"{hidden}, {split}, {scheme}" for split in (0, 1) for scheme in ("stream", "graph")]
        assert only["what"].tolist() == kinds
    assert list(made.runs.columns[:3]) == ["hidden", "split", "scheme"]
    # a collected file has the same rows, and says less of their making
    stats.collect(tmp_path / "a", tmp_path / "all.h5")
    made = stats.compare(tmp_path / "a", tmp_path / "all.h5")
    assert not any(map(len, (made.runs, made.kernels, made.tables, made.only_a, made.only_b)))
    with pytest.raises(stats.StoreError, match="choose fewer"):
        stats.compare(tmp_path / "a", tmp_path / "a", most_bytes=100)


def test_results_of_another_machine(tmp_path: Path) -> None:
    results = {
        name: simulate("titan_v", make(SMALL), "graph", overrides={"gpu.sms": sms}, threads=1)
        for name, sms in (("a", 80), ("b", 40))
    }
    for name, result in results.items():
        result.to_file(tmp_path / f"{name}.h5")
        assert stats.compare(result, tmp_path / f"{name}.h5").equal
    made = stats.compare(stats.load(tmp_path / "a.h5"), tmp_path / "b.h5")
    in_memory = stats.compare(results["a"], results["b"])
    assert in_memory.a == "gru:hidden=64,batch=4 on titan_v"
    for name in ("configuration", "runs", "kernels", "tables", "only_a", "only_b"):
        assert getattr(in_memory, name).equals(getattr(made, name))
    assert made.configuration.values.tolist() == [["gpu.sms", 80, 40]]
    assert set(made.runs["scheme"]) == {"graph", "stream"}
    assert (made.kernels.query("column == 'duration_us'")["ratio"] > 0).all()


def test_what_cannot_be_compared(tmp_path: Path) -> None:
    write(tmp_path / "a.h5")
    write(tmp_path / "other.h5", {"own": make_tables()["own"]})
    (tmp_path / "half.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:5000])
    for other, why in (
        (tmp_path / "no.h5", "does not exist"),
        (tmp_path, "holds no sweep"),
        (tmp_path / "half.h5", r"half\.h5 cannot be read"),
        (tmp_path / "other.h5", "has no table runs"),
        (3, "int is no result: give a path"),
    ):
        for both in ((tmp_path / "a.h5", other), (other, tmp_path / "a.h5")):
            with pytest.raises(stats.StoreError, match=why) as caught:
                stats.compare(*both)
            assert "\n" not in str(caught.value)


def test_tables_of_other_columns_are_no_kernels(tmp_path: Path) -> None:
    """Tables of one's own may be named as those of runs are."""
    own = np.zeros(2, [("run", "<i4"), ("kernel", "<i4"), ("mine", "<f8")])
    tables = {"runs": make_tables()["runs"], "kernels": own, "names": own}
    for name in ("a", "b"):
        stats.write(tmp_path / f"{name}.h5", tables, {}, CONFIGURATION)
        own["mine"][1] = 7
    made = stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")
    assert len(made.kernels) == 0
    assert made.tables["table"].tolist() == ["kernels", "names"]


def test_empty_tables(tmp_path: Path) -> None:
    empty = {name: rows[:0] for name, rows in make_tables().items()}
    write(tmp_path / "a.h5", empty)
    assert stats.compare(tmp_path / "a.h5", tmp_path / "a.h5").equal
    write(tmp_path / "b.h5")
    made = stats.compare(tmp_path / "a.h5", tmp_path / "b.h5")
    assert (len(made.only_a), made.only_b["what"].tolist()) == (0, ["scheme_0", "scheme_1"])
