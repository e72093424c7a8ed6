"""Result files in pandas without this package: ``read_hdf`` and ``HDFStore``, with the installed pandas.

``make extras`` runs the same tests with the previous major version of pandas, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.results import graph_schema
from pysim.results import schema as run_schema
from pysim.stats import schema

pd = pytest.importorskip("pandas")
pytest.importorskip("tables")
# every table that a file of ours may hold; `names` is in two of them
DECLARED = {**graph_schema.TABLES, **run_schema.TABLES, **schema.TABLES}
TEXTS = ("ok", "", "sgemm_32x32", "é" * 30, "two words")


def made(name: str, rows: int) -> Any:
    """Return rows of a declared table: extreme numbers, NaN, texts of full length."""
    out = np.zeros(rows, schema.layout(DECLARED[name]))
    for field in out.dtype.names or ():
        kind = out.dtype[field]
        if kind.kind == "S":
            out[field] = [
                TEXTS[(row + len(field)) % len(TEXTS)].encode()[: kind.itemsize] for row in range(rows)
            ]
            out[field][1:2] = b"x" * kind.itemsize
        elif kind.kind in "iu":
            out[field] = np.resize([np.iinfo(kind).max, np.iinfo(kind).min, 3], rows)
        else:
            out[field] = np.resize([np.nan, 1 / 3, -np.inf, 1e300], rows)
    if name == "stalls":  # its shares add to 1
        for share in schema.SHARES:
            out[share] = 1 / len(schema.SHARES)
    return out


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pandas") / "all.h5"
    tables = {name: made(name, 7) for name in DECLARED} | {
        "edges": made("edges", 0),
        "energy": made("energy", 0),
    }
    tables["own"] = np.array([(0, 2**64 - 1)], [("run", "<i4"), ("count", "<u8")])  # nobody declared it
    stats.write(path, tables, {"script": "test"}, {"text": "x" * 100_000}, declared=DECLARED)
    return path


@pytest.mark.parametrize("name", [*DECLARED, "own"])
def test_read_hdf_reads_a_table(file: Path, name: str) -> None:
    frame, results = pd.read_hdf(file, name), stats.load(file)
    rows = results.array(name)
    assert list(frame.columns) == list(rows.dtype.names or ())
    assert frame.index.equals(pd.RangeIndex(len(rows)))
    for field in frame.columns:
        values = frame[field]
        if rows.dtype[field].kind == "S":
            assert values.tolist() == [text.decode() for text in rows[field].tolist()]  # text, not bytes
        else:
            assert values.dtype == rows.dtype[field]
            assert np.array_equal(values.to_numpy(), rows[field], equal_nan=values.dtype.kind == "f")
    if len(rows):  # without rows pandas cannot see that a column is of text
        pd.testing.assert_frame_equal(frame, results[name])


def test_read_hdf_reads_some_rows(file: Path) -> None:
    frame = pd.read_hdf(file, "tbs", start=2, stop=4)
    assert len(frame) == 2
    assert frame["tb"].tolist() == stats.load(file)["tbs"]["tb"][2:4].tolist()


def test_a_store_lists_and_opens_tables(file: Path) -> None:
    with pd.HDFStore(file, "r") as store:
        names = store.keys(include="native")  # the plain form lists what pandas itself has written
        assert names == [f"/{name}" for name in sorted(stats.load(file))]
        for name in names:
            assert name in store
            assert len(store[name]) == len(stats.load(file).array(name[1:]))
