"""The share of communication, as a user calls the script, from a tiny layer."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from pysim import stats
from pysim.workloads.studies import communication as study
from tests.support.calls import CONFIGS, caller, refused

run = caller("characterise_communication", "--quiet", "--threads", "1")
SMALL = ("--hidden", "256", "--seq", "128", "--shards", "2")


def test_a_tiny_layer_is_simulated_and_projected(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    done = run(tmp_path, *SMALL, "--out", "a.h5", "--picture", "yes")
    assert done.returncode == 0, done.stderr
    for text in ("a GPU sends at 370 GB/s", "published: 40.0 to 75.0 %", "measures latency alone"):
        assert text in done.stdout
    results = stats.load(tmp_path / "a.h5")
    table, checks = (results.array(name) for name in ("communication", "checks"))
    assert len(table) == 3 * len([*study.shapes()])
    kinds = sum(table[f"{kind}_us"] for kind in study.COMPUTE)
    assert table["compute_us"] == pytest.approx(kinds)
    assert table["share"] == pytest.approx(
        table["all_reduce_us"] / (table["compute_us"] + table["all_reduce_us"])
    )
    assert len(checks) == 3 * (len(study.KINDS) + 2)
    assert not checks["error"][: len(study.KINDS) + 2].any()
    assert checks["error"] == pytest.approx(checks["projected"] / checks["simulated"] - 1)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_slower_links_take_longer(tmp_path: Path) -> None:
    done = run(tmp_path, *SMALL, "--gbs", "1", "--latency-us", "9", "--json", "--out", "b.h5")
    assert done.returncode == 0, done.stderr
    (first,) = (row for row in json.loads(done.stdout)["checks"][:7] if row["kind"] == "all_reduce")
    delay = study.Ring(1, 9).layer_us(study.Shape(256, 128, 1, 2))
    assert delay < first["simulated"] < delay + 4 * 5


def test_defaults_are_those_of_the_study() -> None:
    script = runpy.run_path(str(CONFIGS / "characterise_communication.py"))
    assert (script["GBS"], script["LATENCY_US"]) == (study.GBS, study.LATENCY_US)


def test_wrong_options_are_one_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "--gbs", "0"), "--gbs: 0: must be from 1 to")
    refused(run(tmp_path, "--latency-us", "nan"), "--latency-us: nan: must be from 0")
    refused(run(tmp_path, "--hidden", "300"), "hidden = 300: must be a multiple of 128")
    refused(run(tmp_path, *SMALL, "--gpu", "v100"), "fused attention on v100")
    refused(run(tmp_path, "--schemes", "graph"), "--schemes")


def test_no_rows_draw_nothing() -> None:
    pytest.importorskip("matplotlib")
    from pysim.stats.studies.communication_picture import draw_communication

    empty = np.zeros(0, stats.schema.dtype("communication"))
    with pytest.raises(stats.StoreError, match="no layer to draw"):
        draw_communication(empty, "title", (0.4, 0.75))
