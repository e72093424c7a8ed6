"""Parquet: a file a table with units, meanings and configuration, written whole or not at all.

The tests are skipped without pyarrow; ``make extras`` has it.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.results.schema import TABLES
from pysim.sweep import Sweep
from tests.support.calls import ROOT, pysim, refused

from .test_pandas import DECLARED, made
from .test_stats import CONFIGURATION, make_tables, write

pd = pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    tables = make_tables()
    tables["energy"] = np.zeros(0, [(c.name, c.dtype) for c in TABLES["energy"]])
    write(tmp_path / "a.h5", tables)
    return tmp_path / "a.h5"


def test_a_file_a_table(file: Path, tmp_path: Path) -> None:
    paths = stats.to_parquet(file, tmp_path / "new" / "out")
    results = stats.load(file)
    assert [path.name for path in paths] == [f"{name}.parquet" for name in sorted(results) if name != "host"]
    assert sorted(paths) == sorted((tmp_path / "new" / "out").iterdir())
    for path in paths:
        name = path.stem
        frame, rows = pd.read_parquet(path), results.array(name)
        assert list(frame.columns) == list(rows.dtype.names or ())
        assert frame.attrs == results[name].attrs
        for column in frame.columns:
            if rows.dtype[column].kind == "S":
                assert frame[column].tolist() == results[name][column].tolist()
            else:
                assert frame[column].dtype == rows.dtype[column]
                equal = frame[column].to_numpy(), rows[column]
                assert np.array_equal(*equal, equal_nan=rows.dtype[column].kind == "f")


def test_every_type_of_column(tmp_path: Path) -> None:
    """Extreme numbers, NaN, texts of full length, in every table that is declared."""
    tables = {name: made(name, 7) for name in DECLARED}
    stats.write(tmp_path / "a.h5", tables, {}, {}, declared=DECLARED)
    stats.to_parquet(tmp_path / "a.h5", tmp_path, tables=list(DECLARED))
    results = stats.load(tmp_path / "a.h5")
    for name in DECLARED:
        frame = pd.read_parquet(tmp_path / f"{name}.parquet")
        assert all(
            frame[column].tolist() == results[name][column].tolist()
            or np.array_equal(frame[column], results[name][column], equal_nan=True)
            for column in results[name].columns
        )


def test_metadata(file: Path, tmp_path: Path) -> None:
    (path,) = stats.to_parquet(stats.load(file), tmp_path / "runs.parquet", tables=["runs"])
    schema = pq.read_schema(path)
    for column in TABLES["runs"]:
        said = schema.field(column.name).metadata
        assert said == {b"unit": column.unit.encode(), b"doc": column.doc.encode()}
    assert str(schema.field("scheme").type) == "string"
    assert json.loads(schema.metadata[b"configuration"]) == CONFIGURATION
    assert schema.metadata[b"program"] == b"test"
    assert schema.metadata[b"hash"].decode() == stats.load(file).attributes["hash"]
    assert schema.metadata[b"table"] == b"runs"
    # empty tables keep the types of their columns
    (path,) = stats.to_parquet(file, tmp_path, tables=["energy"])
    assert str(pq.read_schema(path).field("event").type) == "string"


def test_same_results_same_bytes(file: Path, tmp_path: Path) -> None:
    first = stats.to_parquet(file, tmp_path / "one")
    write(tmp_path / "b.h5", dict(reversed(make_tables().items())))
    code = f"from pysim import stats; stats.to_parquet({str(file)!r}, 'two')"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, check=True, timeout=120)
    for path in first:
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    stats.to_parquet(file, tmp_path / "one")  # the same again replaces nothing that differs


def test_existing_files(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    (out / "tbs.parquet").write_text("mine")
    with pytest.raises(stats.StoreError, match=r"tbs\.parquet exists with other contents; --force"):
        stats.to_parquet(file, out)
    assert sorted(path.name for path in out.iterdir()) == ["mine.txt", "tbs.parquet"]
    stats.to_parquet(file, out, force=True)
    assert len(pd.read_parquet(out / "tbs.parquet")) == len(stats.load(file)["tbs"])
    assert (out / "mine.txt").read_text() == "mine"
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(stats.StoreError, match="is a folder"):
        stats.to_parquet(file, tmp_path / "folder.parquet", tables=["runs"], force=True)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    synced: list[int] = []

    def fail(number: int) -> None:
        synced.append(number)
        if len(synced) == 4:
            raise error

    monkeypatch.setattr(os, "fsync", fail)
    kind = stats.StoreError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(kind):
        stats.to_parquet(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_exported(file: Path, tmp_path: Path) -> None:
    for given, target, tables, why in (
        ("no.h5", "out", (), "does not exist"),
        ("a.h5", "out", ("rums",), "has no table rums: there are energy, host, "),
        ("a.h5", "one.parquet", (), r"one\.parquet is one file, for one table: choose one of energy, "),
        ("a.h5", "a.h5", (), "cannot write to"),
        (".", "out", (), "holds no sweep"),
    ):
        with pytest.raises(stats.StoreError, match=why) as caught:
            stats.to_parquet(tmp_path / given, tmp_path / target, tables=tables)
        assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "a.json"]


def test_a_sweep_is_exported_merged(tmp_path: Path) -> None:
    grid: dict[str, Any] = {"hidden": [64, 96], "split": [0, 1]}
    sweep = Sweep(
        "gru:layers=1,timesteps=2,batch=8", grid, schemes="stream,graph", tables=("runs", "kernels")
    )
    sweep.run(tmp_path / "sweep", quiet=True)
    stats.to_parquet(tmp_path / "sweep", tmp_path / "out")
    stats.collect(tmp_path / "sweep", tmp_path / "all.h5")
    stats.to_parquet(tmp_path / "all.h5", tmp_path / "same")
    assert len(pd.read_parquet(tmp_path / "out" / "kernels.parquet")) == 48
    for path in (tmp_path / "out").iterdir():
        frame, other = pd.read_parquet(path), pd.read_parquet(tmp_path / "same" / path.name)
        assert frame.astype(other.dtypes).equals(other)  # a file has 0 and 1 for False and True
    points = pd.read_parquet(tmp_path / "out" / "points.parquet")
    assert points["hidden"].tolist() == [64] * 4 + [96] * 4
    about = pq.read_schema(tmp_path / "out" / "runs.parquet").metadata
    assert json.loads(about[b"configuration"])["keys"] == ["hidden", "split"]
    next((tmp_path / "sweep" / "points").glob("*.h5")).unlink()
    with pytest.raises(stats.StoreError, match="1 of 4 points are missing"):
        stats.to_parquet(tmp_path / "sweep", tmp_path / "part")
    assert not (tmp_path / "part").exists()
    stats.to_parquet(tmp_path / "sweep", tmp_path / "part", partial=True)
    assert len(pd.read_parquet(tmp_path / "part" / "runs.parquet")) == 6


def test_the_command(file: Path, tmp_path: Path) -> None:
    done = pysim("export", "a.h5", "-o", "out", "--tables", "runs,tbs", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "wrote out/runs.parquet, out/tbs.parquet\n"
    (tmp_path / "half.h5").write_bytes(file.read_bytes()[:5000])
    (tmp_path / "out" / "runs.parquet").write_text("mine")
    for words, why, status in (
        (("no.h5", "-o", "x"), "no.h5 does not exist", 2),
        (("half.h5", "-o", "x"), "half.h5 cannot be read", 2),
        ((".", "-o", "x"), ". holds no sweep", 2),
        (("a.h5",), "required: -o/--out", 2),
        (("a.h5", "-o", "x", "--tables", "run"), "has no table 'run': did you mean runs?", 2),
        (("a.h5", "-o", "x", "--tables", "none"), "has no table 'none'", 2),
        (("a.h5", "-o", "out"), "exists with other contents; --force (force=True) replaces it", 1),
        (("a.h5", "-o", "a.json"), "cannot write to a.json: File exists", 1),
        (("a.h5", "-o", "/proc/x"), "cannot write to /proc/x", 1),
        (("a.h5", "-o", "x.parquet"), "x.parquet is one file", 1),
    ):
        refused(pysim("export", *words, folder=tmp_path), why, status)
    assert not (tmp_path / "x").exists()
    assert pysim("export", "a.h5", "-o", "out", "--tables", "all", "--force", folder=tmp_path).returncode == 0
