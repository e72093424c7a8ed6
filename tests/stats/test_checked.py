"""Tables that a run cannot have are one clear line, whatever is to be made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.recfunctions import drop_fields

from pysim import simulate, stats
from pysim.results.schema import TABLES
from pysim.stats.checked import check
from pysim.workloads import make

Tables = dict[str, Any]


@pytest.fixture(scope="module")
def tables() -> Tables:
    job = make("gru:hidden=64,batch=4,timesteps=2,layers=1")
    return simulate("titan_v", job, "stream,pdl,tb_static", overrides={"sim.sample": "2us"}).tables()


def write(path: Path, tables: Tables, about: dict[str, str] | None = None) -> Path:
    declared = {name: TABLES[name] for name in tables if as_declared(name, tables[name])}
    stats.write(path, tables, about or {}, {"parameters": {"gpu.sms": 80}}, declared=declared)
    return path


def as_declared(name: str, rows: Any) -> bool:
    """Return whether a table has the columns of its declaration, texts and numbers where it has them."""
    kinds = {column.name: np.dtype(column.dtype).kind == "S" for column in TABLES[name]}
    return {field: rows.dtype[field].kind == "S" for field in rows.dtype.names} == kinds


def names_of(name: str) -> tuple[str, ...]:
    return tuple(column.name for column in TABLES[name])


def with_value(tables: Tables, table: str, column: str, value: Any, row: int = 3) -> Tables:
    changed = tables[table].copy()
    changed[column][row] = value
    return {**tables, table: changed}


def test_what_the_simulator_makes_is_right(tables: Tables) -> None:
    check(tables, "x")
    check({name: rows[::-1] for name, rows in tables.items()}, "x")
    check({"runs": tables["runs"]}, "x")
    check({"other": np.zeros(1, [("a", "f8")])}, "x")


WRONG = [
    ("tbs", "end_ns", np.nan, "table tbs, column end_ns: nan in row 3 cannot be"),
    ("tbs", "end_ns", np.inf, "column end_ns: inf in row 3"),
    ("tbs", "ready_ns", -1.0, "column ready_ns: -1.0 in row 3"),
    ("tbs", "dispatch_ns", 1e15, "column dispatch_ns"),
    ("tbs", "end_ns", 0.0, "TB 3 of kernel 0 does not start after its dispatch and before its end"),
    ("tbs", "sm", -1, "column sm: -1"),
    ("tbs", "slot", 2**31 - 2, "slot 2147483646 cannot be"),
    ("tbs", "tb", 2, "TB 2 of kernel 0 is there twice"),
    ("tbs", "tb", 12345, "TB 12345 of kernel 0: its kernel has fewer TBs"),
    ("tbs", "kernel", 99, "TB 3 of kernel 99: there is no such kernel"),
    ("tbs", "last_kernel", 99, "TB 3 of kernel 0: there is no such last_kernel"),
    ("tbs", "last_kernel", -2, "column last_kernel: -2"),
    ("kernels", "kernel", 2, "kernels are not numbered from 0 on"),
    ("kernels", "complete_us", np.nan, "column complete_us: nan"),
    ("kernels", "tbs", -5, "column tbs: -5"),
    ("names", "name", 17, "names are not numbered from 0 on"),
    ("edges", "producer_kernel", 40, "edges name kernels that cannot depend on each other"),
    ("samples", "fp32", np.nan, "column fp32: nan"),
    ("samples", "start_us", 1e3, "samples: samples do not follow one another"),
]


@pytest.mark.parametrize(("table", "column", "value", "words"), WRONG)
def test_a_wrong_value_is_one_line(
    tables: Tables, tmp_path: Path, table: str, column: str, value: Any, words: str
) -> None:
    row = 1 if table == "names" else 3
    path = write(tmp_path / "x.h5", with_value(tables, table, column, value, row))
    before = sorted(tmp_path.iterdir())
    makers: list[Callable[[], Any]] = [lambda: stats.report(path, tmp_path / "x.html")]
    if table != "edges":  # of which a trace and a picture show nothing
        makers.append(lambda: stats.to_chrome_trace(path, tmp_path / "t.json"))
        makers.append(lambda: stats.picture(path))
    for make_it in makers:
        with pytest.raises(stats.StoreError) as caught:
            make_it()
        text = str(caught.value)
        assert text.startswith(f"{path} is damaged: "), text
        assert words.replace("row 3", f"row {row}") in text
        assert "\n" not in text
    assert sorted(tmp_path.iterdir()) == before


def test_runs_that_cannot_be(tables: Tables, tmp_path: Path) -> None:
    for name, column, value, words in (
        ("time", "time_us", np.nan, "table runs, column time_us: nan"),
        ("twice", "run", 0, "runs has run 0 several times"),
    ):
        path = write(tmp_path / f"{name}.h5", with_value(tables, "runs", column, value, 2))
        with pytest.raises(stats.StoreError, match=words):
            stats.report(path, tmp_path / "x.html")
        with pytest.raises(stats.StoreError, match=words):
            stats.to_chrome_trace(path, tmp_path / "t.json")


def test_two_tbs_in_a_slot(tables: Tables, tmp_path: Path) -> None:
    rows = tables["tbs"].copy()
    rows["sm"], rows["slot"] = 0, 0
    path = write(tmp_path / "x.h5", {**tables, "tbs": rows})
    with pytest.raises(stats.StoreError, match=r"run 0: TBs overlap on SM 0, slot 0$"):
        stats.report(path, tmp_path / "x.html")


@pytest.mark.parametrize(("table", "column"), [("tbs", "last_tb"), ("kernels", "name"), ("runs", "status")])
def test_a_missing_column_is_named(tables: Tables, tmp_path: Path, table: str, column: str) -> None:
    path = write(tmp_path / "x.h5", {**tables, table: drop_fields(tables[table], column, usemask=False)})
    with pytest.raises(stats.StoreError, match=f"{path}: table {table} has no column {column}"):
        stats.report(path, tmp_path / "x.html")
    with pytest.raises(stats.StoreError, match=f"{path}: table {table} has no column {column}"):
        stats.to_chrome_trace(path, tmp_path / "t.json")


def test_bytes_that_changed(tables: Tables, tmp_path: Path) -> None:
    import h5py

    path = write(tmp_path / "x.h5", tables)
    with h5py.File(path, "r+") as file:
        rows = file["kernels"][()]
        rows["load_bytes"][0] += 1
        file["kernels"][...] = rows
    for make_it in (
        lambda: stats.report(path, tmp_path / "x.html"),
        lambda: stats.to_chrome_trace(path, tmp_path / "t.json"),
    ):
        with pytest.raises(stats.StoreError, match="its tables do not match its hash"):
            make_it()
    with h5py.File(path, "r+") as file:
        del file["kernels"]
        file["kernels"] = 5
    with pytest.raises(stats.StoreError, match="is damaged: table kernels is not a list of rows"):
        stats.compare(path, path)


@pytest.mark.parametrize("text", ["5", "{", "", '"stream"', "null"])
def test_an_attribute_that_is_no_list(tables: Tables, tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "x.h5", tables, {stats.KERNEL_LEVEL: text})
    with pytest.raises(stats.StoreError, match="its attribute kernel_level is no list"):
        stats.report(path, tmp_path / "x.html")
    with pytest.raises(stats.StoreError, match="its attribute kernel_level is no list"):
        stats.to_chrome_trace(path, tmp_path / "t.json")


def test_texts_that_are_no_utf8(tables: Tables, tmp_path: Path) -> None:
    rows, runs = tables["tbs"].copy(), tables["runs"].copy()
    rows["reason"] = b"\xff\xfe"
    runs["scheme"], runs["gpu"] = b"\xff\xfe", b"\xff"
    path = write(tmp_path / "x.h5", {**tables, "tbs": rows, "runs": runs})
    assert stats.to_chrome_trace(path, tmp_path / "t.json").slices
    assert stats.report(path, tmp_path / "x.html").path
    assert "\ufffd\ufffd" in (tmp_path / "t.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("schema", "new", "its attribute schema is no integer"),
        ("schema", np.array([1, 2]), "attribute schema is neither a text nor a number"),
        ("hash", np.zeros(0), "attribute hash is neither a text nor a number"),
        ("script", np.nan, "attribute script is neither a text nor a number"),
        ("configuration", '{"parameters": {"gpu.sms": NaN}}', "its configuration is no JSON"),
        ("configuration", '{"parameters": {"gpu.sms": 1e999}}', "its configuration is no JSON"),
        ("configuration", f'{{"parameters": {{"gpu.sms": {"9" * 400}}}}}', "its configuration is no JSON"),
        ("configuration", "[]", "its configuration is no JSON"),
    ],
)
def test_attributes_that_no_file_has(
    tables: Tables, tmp_path: Path, attribute: str, value: Any, words: str
) -> None:
    import h5py

    path = write(tmp_path / "x.h5", tables)
    with h5py.File(path, "r+") as file:
        file.attrs[attribute] = value
    with pytest.raises(stats.StoreError, match=f"is damaged: {words}"):
        stats.load(path)


@pytest.mark.parametrize("text", ["5", "[]", '{"time_us": 5}', "{"])
def test_units_that_are_no_texts(tables: Tables, tmp_path: Path, text: str) -> None:
    import h5py

    path = write(tmp_path / "x.h5", tables)
    with h5py.File(path, "r+") as file:
        file["runs"].attrs["units"] = text
    with pytest.raises(stats.StoreError, match=r"x\.h5 is damaged: "):
        stats.compare(path, path)


def test_a_comparison_of_other_types(tables: Tables, tmp_path: Path) -> None:
    right = write(tmp_path / "a.h5", tables)
    kinds = tables["runs"].dtype
    runs = np.zeros(len(tables["runs"]), [(n, "i4" if n == "scheme" else kinds[n]) for n in names_of("runs")])
    wrong = write(tmp_path / "b.h5", {**tables, "runs": runs})
    for pair in ((right, wrong), (wrong, right)):
        with pytest.raises(stats.StoreError, match="table runs, column scheme has the type int32"):
            stats.compare(*pair)


def test_parameters_of_zero_give_no_ceiling(tables: Tables, tmp_path: Path) -> None:
    known = {
        "parameters": {"gpu.sms": 80, "gpu.clock": 1.4, "gpu.noc.reply_bytes": 32, "gpu.noc.port_sms": 0}
    }
    stats.write(tmp_path / "x.h5", tables, {}, known, declared=TABLES)
    assert stats.report(tmp_path / "x.h5", tmp_path / "x.html").path


@pytest.mark.parametrize("given", [None, 5, [], [5], b"x.h5", "a\0.h5"])
def test_what_is_no_path(tables: Tables, tmp_path: Path, given: Any) -> None:
    path = write(tmp_path / "x.h5", tables)
    for make_it in (
        lambda: stats.report(given, tmp_path / "x.html"),
        lambda: stats.report(path, given),
        lambda: stats.to_chrome_trace(given, tmp_path / "t.json"),
        lambda: stats.to_chrome_trace(path, given),
        lambda: stats.picture(given),
        lambda: stats.load(given),
        lambda: stats.write(given, tables, {}, {}),
    ):
        with pytest.raises(stats.StoreError):
            make_it()


@pytest.mark.parametrize("most", [0, -1, "3", 1.5, None, True])
def test_numbers_of_tbs_that_cannot_be(tables: Tables, tmp_path: Path, most: Any) -> None:
    path = write(tmp_path / "x.h5", tables)
    with pytest.raises(stats.StoreError, match="most_tbs must be a positive integer, not"):
        stats.report(path, tmp_path / "x.html", most_tbs=most)


def test_a_report_takes_files(tables: Tables, tmp_path: Path) -> None:
    results = stats.load(write(tmp_path / "x.h5", tables))
    with pytest.raises(stats.StoreError, match=r"^Results is no path$"):
        stats.report(results, tmp_path / "x.html")
