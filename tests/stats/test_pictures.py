"""Pictures and reports of result files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.results.schema import DTYPES

from .test_stats import CONFIGURATION, ROOT, make_tables


@pytest.mark.parametrize("schemes", [1, 6])
def test_picture(tmp_path: Path, schemes: int) -> None:
    image_module = pytest.importorskip("matplotlib.image")
    from pysim.stats.pictures.plot import occupancy_picture

    tables = make_tables(schemes)
    occupancy_picture(tmp_path / "a.png", tables, "demo on tiny")
    image = image_module.imread(tmp_path / "a.png")
    assert image.shape[1] == 1440
    assert image.shape[0] > 250 * schemes
    assert len(np.unique((image[..., :3] * 255).astype(int).reshape(-1, 3), axis=0)) > 8
    stats.write(tmp_path / "r.h5", tables, {}, CONFIGURATION, False)
    occupancy_picture(tmp_path / "b.png", stats.load(tmp_path / "r.h5"), "demo on tiny")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_picture_shows_the_right_kernel(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from pysim.stats.pictures import occupancy

    window = occupancy.Window(0.0, 12.0)
    tbs = np.zeros(3, DTYPES["tbs"])
    tbs["kernel"], tbs["sm"], tbs["slot"] = [0, 1, 1], [0, 1, 1], [0, 0, 1]
    tbs["dispatch_ns"], tbs["end_ns"] = [0, 6000, 6000], [6000, 12000, 9000]
    panel = occupancy.Panel(0, "", occupancy.table_columns({"tbs": tbs}, "tbs"), {})
    names = {0: np.array(["a", "b"], object)}
    held = occupancy.heaviest(panel, window)
    full = occupancy.full_residency([panel], {0: held}, names)
    assert full == pytest.approx({"a": 1.0, "b": 2.0})
    image = occupancy.occupancy_image(panel, held, names, ["a", "b"], 2, full, window)
    half, bins = occupancy.BINS // 2, occupancy.BINS
    np.testing.assert_allclose(image[0, half - 1], occupancy._rgb(occupancy.PALETTE[0]))
    np.testing.assert_allclose(image[1, half], occupancy._rgb(occupancy.PALETTE[1]))
    np.testing.assert_array_equal(image[0, half:], 1.0)
    np.testing.assert_array_equal(image[1, :half], 1.0)
    assert (image[1, bins - 1] > image[1, half]).any()  # one TB of two: paler


def test_the_zoom_shows_thin_kernels() -> None:
    """A kernel of 1 us between two of 50 us: no bin of the whole run shows it, one of the zoom does."""
    from pysim.stats.pictures import occupancy

    tbs = np.zeros(200, DTYPES["tbs"])
    tbs["kernel"] = np.arange(200)
    tbs["dispatch_ns"] = 25_500 * np.arange(200) + 24_500 * (np.arange(200) % 2)
    tbs["end_ns"] = tbs["dispatch_ns"] + np.where(np.arange(200) % 2, 1000, 49_000)
    panel = occupancy.Panel(0, "", occupancy.table_columns({"tbs": tbs}, "tbs"), {})
    span = float(tbs["end_ns"].max()) / 1e3
    zoom = occupancy.zoom_window(panel, span)
    assert zoom is not None
    assert zoom.end - zoom.start == pytest.approx(span * occupancy.ZOOM_LAUNCHES / 200)
    whole = occupancy.heaviest(panel, occupancy.Window(0.0, span))
    assert not (whole.kernel % 2).any()
    near = occupancy.heaviest(panel, zoom)
    seen = set(near.kernel.tolist())
    assert 4 <= len([kernel for kernel in seen if kernel % 2]) <= 5
    assert near.cell.min() == 0
    assert near.cell.max() == occupancy.ZOOM_BINS - 1
    few = {name: values[:20] for name, values in panel.tbs.items()}
    assert occupancy.zoom_window(panel._replace(tbs=few), 550.0) is None


@pytest.mark.parametrize("missing", [("tbs",), ("samples",), ("kernels", "names")])
def test_picture_without_tables(tmp_path: Path, missing: tuple[str, ...]) -> None:
    pytest.importorskip("matplotlib")
    from pysim.stats.pictures.plot import occupancy_picture

    tables = {name: rows for name, rows in make_tables().items() if name not in missing}
    occupancy_picture(tmp_path / "a.png", tables, "demo")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_an_empty_picture_is_not_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from pysim.stats.pictures.plot import occupancy_picture

    tables = {name: rows for name, rows in make_tables().items() if name not in ("tbs", "samples")}
    with pytest.raises(stats.StoreError, match="neither TBs nor samples"):
        occupancy_picture(tmp_path / "a.png", tables, "demo")
    assert not (tmp_path / "a.png").exists()


def test_report() -> None:
    runs = make_tables(3)["runs"]
    runs["status"][2], runs["reason"][2] = b"refused", b"needs recorded footprints"
    text = stats.format_runs(runs, ["demo on tiny"], 4)
    lines = text.splitlines()
    assert lines[0] == "demo on tiny"
    assert "gap won" in lines[1]
    assert "a step" in lines[1]
    assert len(lines[3]) == len(lines[4]) == len(lines[1])
    assert lines[3].startswith("scheme_0")
    assert "1.000x" in lines[3]
    assert "40.0 %" in lines[3]
    assert lines[5] == "scheme_2  refused: needs recorded footprints"
    assert "a step" not in stats.format_runs(runs)


def made_of(name: str, **columns: Any) -> Any:
    rows = np.zeros(len(columns["run"]), DTYPES[name])
    for column, values in columns.items():
        rows[column] = values
    return rows


def test_report_of_found_edges() -> None:
    runs = make_tables(5)["runs"]
    runs["scheme"] = [b"stream", b"tb_learned", b"tb_bloom:newest", b"tb_bloom:exact+newest", b"tb_bloom"]
    runs["time_us"], runs["speedup"] = [8, 4, 5, 4, 2], [1, 2, 1.6, 2, 4]
    learned = made_of(
        "learned", run=[1], launches=40, served=30, mispredicted=2, recorded_bytes=2048, fetched_bytes=5120
    )
    bloom = made_of(
        "bloom", run=[2, 3, 4], edges=[1500, 1400, 9], false_edges=[100, 0, 3],
        false_rate=[0.015, 0.015, 2e-5], analytic_rate=[0.0125, 0.0125, 1e-5],
    )  # fmt: skip
    tables = {"runs": runs, "learned": learned, "bloom": bloom}
    lines = [
        "tb_learned             edges learned: 30 of 40 launches served (75.0 %), 2.0 KB recorded,"
        " 5.0 KB fetched, 2 mispredicted",
        "tb_bloom:newest        edges by hints: 1,500, 100 of them from false positives, 1.5 % of tests"
        " (analytic 1.25 %); speedup lost to them 20.0 % of 2.000x",
        "tb_bloom:exact+newest  edges by exact hints: 1,400, no false positives",
        "tb_bloom               edges by hints: 9, 3 of them from false positives, 0.002 % of tests"
        " (analytic 0.001 %)",
    ]
    assert stats.format_edge_discovery(tables).splitlines() == lines
    runs["status"][3] = b"failed"
    less = stats.format_edge_discovery(tables)
    assert [line.split()[0] for line in less.splitlines()] == ["tb_learned", "tb_bloom:newest", "tb_bloom"]
    assert "speedup lost" not in less
    assert stats.format_edge_discovery({"runs": runs}) == ""


def test_imports_nothing_of_the_simulator() -> None:
    late = ("pysim._ffi", "pysim._core", "pysim.engine", "pysim.workloads", "pandas", "matplotlib")
    code = f"import sys, pysim.stats; print([m for m in {late} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
