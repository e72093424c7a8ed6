"""Without pandas or matplotlib an error says how to install them, in a checkout and from a wheel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pysim import simulate, stats
from pysim.errors import MissingLibraryError
from pysim.stats.pictures.plot import draw_occupancy
from pysim.workloads import make
from tests.core.harness import tiny
from tests.support.calls import ROOT


@pytest.fixture
def without(monkeypatch):
    return lambda library: monkeypatch.setitem(sys.modules, library, None)


def test_frames_without_pandas(without, tmp_path):
    result = simulate(tiny(), make("empty"), "stream", threads=1)
    rows = np.zeros(1, [("run", "i4"), ("x", "f8")])
    stats.write(tmp_path / "a.h5", {"mine": rows}, {}, {})
    without("pandas")
    with pytest.raises(MissingLibraryError, match=r'^frame\(\) needs pandas: pip install -e "\.\[plot\]"$'):
        result.frame("runs")
    results = stats.load(tmp_path / "a.h5")
    with pytest.raises(stats.StoreError, match=r'data frames need pandas: pip install -e "\.\[plot\]"'):
        results["mine"]
    assert results.array("mine") == rows


def test_parquet_without_pyarrow(without, tmp_path):
    stats.write(tmp_path / "a.h5", {"runs": np.zeros(1, [("run", "i4")])}, {}, {})
    without("pyarrow")
    with pytest.raises(stats.StoreError, match=r'^Parquet needs pyarrow: pip install -e "\.\[parquet\]"$'):
        stats.to_parquet(tmp_path / "a.h5", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_comparisons_without_pandas(without, tmp_path):
    stats.write(tmp_path / "a.h5", {"runs": np.zeros(1, [("run", "i4")])}, {}, {})
    without("pandas")
    with pytest.raises(stats.StoreError, match=r'^a comparison needs pandas: pip install -e "\.\[plot\]"$'):
        stats.compare(tmp_path / "a.h5", tmp_path / "a.h5")


def test_pictures_without_matplotlib(without):
    result = simulate(tiny(), make("empty"), "stream", threads=1)
    without("matplotlib.backends.backend_agg")
    with pytest.raises(stats.StoreError, match=r'^pictures need matplotlib: pip install -e "\.\[plot\]"$'):
        draw_occupancy(result.tables(), "a title")
    with pytest.raises(MissingLibraryError, match=r"^picture\(\) needs matplotlib: pip install -e"):
        result.picture()


def test_what_an_installed_package_says(tmp_path: Path):
    """A copy of the packages without pyproject.toml beside them, as in site-packages."""
    for folder, package in (("pysim", "pysim"), ("stats", "pysim/stats")):
        shutil.copytree(ROOT / folder, tmp_path / package, ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    code = """
from pysim.errors import MissingLibraryError
from pysim.stats.missing import no_matplotlib
print(MissingLibraryError("frame()", "pandas", "plot"))
print(no_matplotlib())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        'frame() needs pandas: pip install "pysim-tb[plot]"',
        'pictures need matplotlib: pip install "pysim-tb[plot]"',
    ]
