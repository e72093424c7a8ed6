"""Result files, pictures and reports."""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pysim import stats
from pysim.results.schema import DTYPES, TABLES
from pysim.stats import schema

CONFIGURATION = {"gpu": "tiny", "set": {"window": 8}}
ROOT = Path(__file__).resolve().parents[2]


def make_tables(schemes: int = 2, sms: int = 8, launches: int = 12, seed: int = 1) -> dict[str, Any]:
    """Made-up results: chains of launches, later schemes overlap them more."""
    random = np.random.default_rng(seed)
    kinds = ["gemm_128x128", "softmax", "layer_norm", "bias_gelu"]
    parts: dict[str, list[Any]] = {
        name: [] for name in ("runs", "kernels", "tbs", "samples", "names", "stalls", "host")
    }
    slots = (2, 4, 3, 1)
    base = 0.0
    for run in range(schemes):
        now, kernels, blocks = 3000.0, [], []
        free = np.full((sms, 4), now)
        for launch in range(launches):
            kind = launch % len(kinds)
            count = sms * slots[kind] + int(random.integers(0, sms))
            begin = now + 600.0
            for tb in range(count):
                sm, slot = np.unravel_index(int(np.argmin(free[:, : slots[kind]])), (sms, slots[kind]))
                start = max(free[sm, slot], begin - run * 300.0)
                end = start + float(random.uniform(900, 1600)) * (2.0 if kind == 0 else 1.0)
                free[sm, slot] = end
                blocks.append(
                    (run, launch, 0, tb, sm, slot, start, start, start + 5, end, launch - 1, -1, b"slot")
                )
            now = max(row[9] for row in blocks)
            kernels.append(
                (
                    run,
                    launch,
                    0,
                    kind,
                    count,
                    0,
                    1,
                    begin / 1e3,
                    begin / 1e3,
                    now / 1e3,
                    now / 1e3,
                    100,
                    64,
                    64,
                    0,
                    0,
                )
            )
        time = now / 1e3
        base = base or time
        parts["runs"].append(
            (run, b"demo", b"size=1", f"scheme_{run}".encode(), b"tiny", b"ok", b"", 8, b"prefilled",
             b"kernel", time, time * 1000, 1000, len(blocks), base / time, time / 2, time, 0.25 * run, 0.4,
             0.2, 10**6, 10**7, np.nan, 8 * run, 4096 * run, 0, 0, 0, 0, 0, 0.0)
        )  # fmt: skip
        parts["kernels"] += kernels
        parts["tbs"] += blocks
        edges = np.append(np.arange(0, time, 1.0), time)
        for sample, (a, b) in enumerate(itertools.pairwise(edges)):
            use = float(np.clip(0.5 + 0.4 * np.sin(a / 3), 0, 1)) if a > 3 else 0.0
            parts["samples"].append((run, sample, a, b, 40 * use, use, use, 0, 0, 0, 0, use, use, 100))
        parts["names"] += [(run, i, kind.encode()) for i, kind in enumerate(kinds)]
        parts["stalls"].append((run, b"run", 0, 0.2, 0.1, 0.1, 0.3, 0.0, 0.1, 0.1, 0.1))
        parts["host"].append((run, 0.1, 0.1, 0.1, 1.0, 0.1, 4, 10**6, b"1", b"machine"))
    tables: dict[str, Any] = {name: np.array(rows, DTYPES[name]) for name, rows in parts.items()}
    tables["sm"] = np.zeros(schemes * sms, DTYPES["sm"])
    tables["sm"]["run"], tables["sm"]["sm"] = np.divmod(np.arange(schemes * sms), sms)
    # a table that nobody declared
    tables["own"] = np.zeros(schemes, [("run", "<i4"), ("count", "<u8")])
    tables["own"]["count"] = 2**63 + 5
    return tables


def write(path: Path, tables: dict[str, Any] | None = None, force: bool = False, **change: Any) -> None:
    configuration = {**CONFIGURATION, **change}
    stats.write(path, tables or make_tables(), {"program": "test"}, configuration, force, declared=TABLES)


def test_rows_of_a_run_are_copies(tmp_path: Path) -> None:
    write(tmp_path / "r.h5", make_tables(3))
    results = stats.load(tmp_path / "r.h5")
    rows = results.of_run("kernels", 1)
    assert (rows == results.array("kernels")[results.array("kernels")["run"] == 1]).all()
    assert len(rows) == 12
    rows["tbs"] = -1
    assert (results.of_run("kernels", 1)["tbs"] > 0).all()
    with pytest.raises(KeyError, match="has no table l2"):
        results.of_run("l2", 0)


def test_round_trip(tmp_path: Path) -> None:
    path, tables = tmp_path / "new" / "r.h5", make_tables()
    write(path, tables)
    results = stats.load(path)
    assert sorted(results) == sorted(tables)
    for name, rows in tables.items():
        assert results.array(name).dtype == rows.dtype
        assert results.array(name).tobytes() == rows.tobytes()
        assert len(results[name]) == len(rows)
        assert list(results[name].columns) == list(rows.dtype.names)
    assert list(results["runs"]["scheme"]) == ["scheme_0", "scheme_1"]
    assert results["own"]["count"][0] == 2**63 + 5
    assert results.configuration == CONFIGURATION
    assert results.attributes["program"] == "test"
    assert results.attributes["complete"] == 1
    assert json.loads((path.with_suffix(".json")).read_text()) == CONFIGURATION
    assert sorted(p.name for p in path.parent.iterdir()) == ["r.h5", "r.json"]
    results.verify()
    with pytest.raises(KeyError, match="no table edges"):
        results["edges"]


def test_pandas_reads_it_as_it_is(tmp_path: Path) -> None:
    import pandas as pd

    tables = make_tables()
    tables["edges"] = np.zeros(0, DTYPES["edges"])
    write(tmp_path / "r.h5", tables, text="x" * 200_000)  # more than an object header can hold
    for name, rows in tables.items():
        frame = pd.read_hdf(tmp_path / "r.h5", name)
        assert list(frame.columns) == list(rows.dtype.names)
        assert len(frame) == len(rows)
    assert list(pd.read_hdf(tmp_path / "r.h5", "runs")["status"]) == ["ok", "ok"]
    assert len(stats.load(tmp_path / "r.h5").configuration["text"]) == 200_000


def test_same_results_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a.h5")
    tables = make_tables()
    # the way there must not show: byte order, padding with stray bytes, order of the tables
    old = tables["tbs"].dtype
    formats = [old[i].newbyteorder(">") for i in range(len(old))]
    kind = np.dtype({"names": old.names, "formats": formats}, align=True)
    stray = np.frombuffer(b"\xa5" * kind.itemsize * len(tables["tbs"]), kind).copy()
    for field in kind.names or ():
        stray[field] = tables["tbs"][field]
    tables["tbs"] = stray
    write(tmp_path / "b.h5", dict(reversed(tables.items())))
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_host_is_not_in_the_hash(tmp_path: Path) -> None:
    path, tables = tmp_path / "r.h5", make_tables()
    write(path, tables)
    tables["host"]["simulate_seconds"] *= 2
    write(path, tables)  # same results: replaced without a word
    assert stats.load(path)["host"]["simulate_seconds"][0] == 2.0
    tables["tbs"]["slot"][0] += 1
    with pytest.raises(stats.StoreError, match=r"r\.h5.*--force"):
        write(path, tables)
    assert stats.load(path)["host"]["simulate_seconds"][0] == 2.0


def test_refuses_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "r.h5"
    write(path)
    before = path.read_bytes()
    with pytest.raises(stats.StoreError, match="--force") as caught:
        write(path, seed=2)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(stats.StoreError, match="--force"):
        stats.check_writable(path, False, {**CONFIGURATION, "seed": 2})
    stats.check_writable(path, False, CONFIGURATION)
    assert path.read_bytes() == before
    write(path, force=True, seed=2)
    assert stats.load(path).configuration["seed"] == 2
    (tmp_path / "mine.json").write_text("my own")
    with pytest.raises(stats.StoreError, match=r"mine\.json"):
        write(tmp_path / "mine.h5")
    assert (tmp_path / "mine.json").read_text() == "my own"
    assert not (tmp_path / "mine.h5").exists()
    stats.write(tmp_path / "mine.h5", {}, {}, CONFIGURATION, beside=False)  # leaves the user's file alone
    assert (tmp_path / "mine.json").read_text() == "my own"


def test_check_writable(tmp_path: Path) -> None:
    stats.check_writable(tmp_path / "deep" / "er" / "r.h5")
    assert not list((tmp_path / "deep" / "er").iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(stats.StoreError, match="cannot write"):
        stats.check_writable(tmp_path / "file" / "r.h5")
    with pytest.raises(stats.StoreError, match=r"\*\.h5"):
        stats.check_writable(tmp_path / "r.json")
    (tmp_path / "x.h5").write_text("not HDF5")
    with pytest.raises(stats.StoreError, match="--force"):
        stats.check_writable(tmp_path / "x.h5")
    stats.check_writable(tmp_path / "x.h5", force=True)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    kind = stats.StoreError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(kind) as caught:
        write(tmp_path / "r.h5")
    assert not list(tmp_path.iterdir())
    if kind is stats.StoreError:
        assert "No space left" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_file_size_limit_leaves_nothing(tmp_path: Path) -> None:
    """The kernel cuts the write short in the middle of the file."""
    code = (
        "import resource, stats\nfrom tests.stats import test_stats as t\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        f"try: t.write(t.Path({str(tmp_path / 'r.h5')!r}))\n"
        "except stats.StoreError as e: print(e)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("cannot write")
    assert done.stdout.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_killed_writer_leaves_old_file(tmp_path: Path) -> None:
    """SIGKILL at any time: under the name there is the old or the new file, never a part."""
    path = tmp_path / "r.h5"
    write(path)
    code = (
        "from tests.stats import test_stats as t\nprint('go', flush=True)\ni = 0\n"
        f"while True:\n    i += 1\n    t.write(t.Path({str(path)!r}), t.make_tables(1, 2, 2), True, i=i)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    for wait in (0.0, 0.013, 0.031):
        command = [sys.executable, "-c", code]
        with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(wait + 0.05)
            child.kill()
        stats.load(path).verify()


def test_load_refuses(tmp_path: Path) -> None:
    path = tmp_path / "r.h5"
    with pytest.raises(stats.StoreError, match="does not exist"):
        stats.load(path)
    write(path)
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(stats.StoreError):
            stats.load(path)
    path.write_bytes(whole)
    with h5py.File(path, "r+") as file:
        del file.attrs["complete"]
    with pytest.raises(stats.StoreError, match="not a complete"):
        stats.load(path)
    path.write_bytes(whole)
    with h5py.File(path, "r+") as file:
        rows = file["tbs"][()]
        rows["sm"][0] += 1
        file["tbs"][...] = rows
    with pytest.raises(stats.StoreError, match="damaged"):
        stats.load(path).verify()


def test_tables_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "r.h5"
    bad: list[tuple[str, Any, str]] = [
        ("runs", np.zeros(1, [("run", "<i4")]), "differ"),
        ("sm", np.zeros(1, DTYPES["sm"].descr[:-1]), "differ from the declared ones: l2_requests"),
        ("other", np.zeros(1, [("other", "<i4")]), "must begin with the column run"),
        ("other", np.zeros(1, [("run", "<i4"), ("v", "<f8", 3)]), "plain number"),
        ("other", np.zeros((1, 1), [("run", "<i4")]), "one-dimensional"),
    ]
    for name, rows, message in bad:
        with pytest.raises(stats.StoreError, match=message):
            write(path, {name: rows})
    stalls = make_tables()["stalls"]
    stalls["launch"][0] += 0.01
    with pytest.raises(stats.StoreError, match="add to 1"):
        write(path, {"stalls": stalls})
    with pytest.raises(stats.StoreError, match="JSON"):
        write(path, x=object())
    assert not path.exists()


def test_from_columns() -> None:
    columns: dict[str, Any] = dict.fromkeys(schema.dtype("hardware").names or (), 0)
    columns |= {"network": "gru", "scheme": "", "structure": "", "field": "", "doc": ["tag", "é" * 200]}
    rows = schema.from_columns("hardware", columns)
    assert list(rows["network"]) == [b"gru", b"gru"]
    assert rows["doc"][0] == b"tag"
    assert rows["doc"][1].decode().endswith("é...")
    del columns["doc"]
    with pytest.raises(ValueError, match="table hardware: columns missing or unknown: doc"):
        schema.from_columns("hardware", columns)


def test_a_file_says_what_its_columns_mean(tmp_path: Path) -> None:
    write(tmp_path / "r.h5")
    results = stats.load(tmp_path / "r.h5")
    for name in ("runs", "stalls", "sm"):
        found = [column._replace(dtype=np.dtype(column.dtype)) for column in results.columns(name)]
        assert found == [column._replace(dtype=np.dtype(column.dtype)) for column in TABLES[name]]
        assert results.attrs[name]["units"] == results[name].attrs["units"]
        assert results[name].attrs["docs"] == {column.name: column.doc for column in TABLES[name]}
    assert results.attrs["sm"]["units"]["busy_us"] == "us"
    # nobody declared these
    assert results.columns("own") == (("run", "<i4", "", ""), ("count", "<u8", "", ""))
    # declared by this package alone
    stats.write(tmp_path / "h.h5", {"hardware": schema.empty("hardware")}, {}, {})
    docs = [column.doc for column in stats.load(tmp_path / "h.h5").columns("hardware")]
    assert docs == [column.doc for column in schema.TABLES["hardware"]]
