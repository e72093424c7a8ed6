"""docs/analysis.md: its code runs; that of Parquet where pyarrow is installed (``make extras``)."""

import importlib.util

import pytest

from tests.support.pages import ROOT, run_page


def test_its_code_runs(monkeypatch, tmp_path):
    for library in ("pandas", "tables", "matplotlib"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of the process pool
    names = run_page("analysis.md", () if importlib.util.find_spec("pyarrow") else ("to_parquet",))
    assert names["names"] == [f"/{name}" for name in names["old"]]
    assert names["change"].configuration["path"].tolist() == ["scheme.window"]
    assert len(names["change"].runs)
    assert len(set(names["times"])) == 2
