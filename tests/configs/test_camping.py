"""Heat maps of slices, channels and banks, and the script that draws them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pysim import stats
from pysim.stats.pictures.heatmap import ROWS, draw_camping, format_camping, image_of, in_use
from tests.support.calls import Done, caller, refused

ROOT = Path(__file__).resolve().parents[2]
run = caller("figure_bank_camping")
SMALL = ("--workload", "columns:rows=1024,cols=256,lead=65536")
SLICES, CHANNELS, BANKS = ROWS


def made_up(busy: np.ndarray, interval: float = 2.0) -> dict[str, Any]:
    """One run whose slices are busy as given, in us: (samples, slices)."""
    samples, slices = busy.shape
    kind = [("run", "i4"), ("sample", "i4"), ("start_us", "f8"), ("end_us", "f8"), ("slice", "i4")]
    rows = np.zeros(busy.size, [*kind, ("backlog_ns", "f8"), ("busy_us", "f8")])
    rows["sample"], rows["slice"] = np.divmod(np.arange(busy.size), slices)
    rows["start_us"] = rows["sample"] * interval
    rows["end_us"] = rows["start_us"] + np.where(rows["sample"] == samples - 1, interval / 2, interval)
    rows["busy_us"] = busy.reshape(-1)
    return {"l2_series": rows}


def test_colours_are_shares_of_the_interval() -> None:
    full = 2
    image, edges = image_of(made_up(np.array([[full, 0, full // 2], [0, full // 2, 0]])), SLICES, 0)
    assert image.tolist() == [[100.0, 0.0], [0.0, 100.0], [50.0, 0.0]]
    assert edges.tolist() == [0.0, 2.0, 3.0]


def test_parts_in_use_at_once() -> None:
    assert in_use(made_up(np.full((3, 8), 50)), SLICES, 0) == (pytest.approx(8.0), 8)
    assert in_use(made_up(np.eye(8, dtype=np.int64) * 90), SLICES, 0) == (pytest.approx(1.0), 8)
    # by traffic: three quarters of it with two parts, the rest with one
    mixed = np.array([[30, 30, 0], [0, 0, 20]])
    assert in_use(made_up(mixed), SLICES, 0) == (pytest.approx(1.75), 3)
    assert in_use(made_up(np.zeros((2, 3), np.int64)), SLICES, 0) == (0.0, 3)


def test_a_run_without_series_is_told() -> None:
    with pytest.raises(stats.StoreError, match="run 1 has no table l2_series: it needs --sample-us"):
        image_of(made_up(np.ones((1, 2), np.int64)), SLICES, 1)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    folder = tmp_path_factory.mktemp("camping")
    done = run(folder, *SMALL, "--quiet", "--threads", 1, "--out", "a.h5")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_figure_shows_what_the_table_says(drawn: tuple[Path, Done]) -> None:
    folder, done = drawn
    results = stats.load(folder / "a.h5")
    results.verify()
    tables = {name: results.array(name) for name in results}
    assert {row.table for row in ROWS} <= set(tables)
    assert tables["runs"]["workload"].tolist() == [b"columns, hash on", b"columns, hash off"]
    for row, parts in zip(ROWS, (64, 64, 1024), strict=True):
        (spread, total), (camped, _) = (in_use(tables, row, run) for run in (0, 1))
        assert total == parts
        assert spread > 0.5 * parts
        assert camped < 0.2 * parts
        images = [image_of(tables, row, run)[0] for run in (0, 1)]
        assert all(len(image) == parts for image in images)
        if "%" in row.unit:
            # a transfer of four sectors, or a batch of writes, counts where it ends
            assert max(image.max() for image in images) < 105
    lines = done.stdout.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("hash o")] == ["hash on", "hash off"]
    assert "slices of 64  channels of 64  banks of 1,024" in done.stdout
    labels = {0: "with", 1: "without"}
    assert format_camping(tables, labels).count("\n") == 3
    pytest.importorskip("matplotlib")
    assert (folder / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert draw_camping(tables, labels, "t")[:8] == b"\x89PNG\r\n\x1a\n"


def test_same_bytes_for_more_threads(drawn: tuple[Path, Done]) -> None:
    folder, _ = drawn
    done = run(folder, *SMALL, "--quiet", "--threads", 3, "--out", "b.h5", "--set", "sim.quantum=40")
    assert done.returncode == 0, done.stderr
    first, second = (stats.load(folder / name) for name in ("a.h5", "b.h5"))
    assert first.attributes["hash"] == second.attributes["hash"]
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()


def test_one_hash_alone_and_json(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--off", "banks", "--json", "--tables", "runs", "--out", "a.h5")
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)
    assert sorted(tables) == ["host", "names", "runs"]
    assert tables["runs"][1]["workload"] == "columns, hash of banks off"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (("--schemes", "stream,graph"), 2, "one scheme"),
        (("--off", "slice"), 2, "did you mean slices?"),
        (("--sample-us", "0"), 2, "must be above 0, as the picture"),
        (("--sample-us", "0.0001"), 2, "sim.sample = 0.0001 us: must be 0 or at least 0.001 us"),
        (("--workload", "colums"), 2, "no workload 'colums': did you mean columns?"),
        (("--workload", "columns:rows=33"), 2, "rows must be a multiple of 32"),
        (("--workload", "columns:cols=64,lead=32"), 2, "lead at least that"),
    ],
)
def test_refused_in_one_line(tmp_path: Path, args: tuple[str, ...], status: int, message: str) -> None:
    refused(run(tmp_path, *args), message, status)
