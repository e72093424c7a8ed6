"""Utilisation by kernel of training, in ten levels."""

from __future__ import annotations

import json

import numpy as np
import pytest

from docs.builders.training import LAYERS, RECURRENT, Layer, Task, tasks_of
from docs.builders.utilization_levels import draw_utilization, format_utilization, levels
from pysim import stats
from pysim.stats import schema
from tests.support.calls import call, refused


def run(folder, *args):
    return call(folder, "-m", "docs.builders.utilization", *args, "--threads", "1", "--quiet")


def test_levels_are_tenths_rounded_up():
    shares = np.array([0.0, 0.05, 0.1, 0.1001, 0.55, 0.9, 0.91, 1.0, 1.02])
    assert levels(shares).tolist() == [1, 1, 1, 2, 6, 9, 10, 10, 10]


@pytest.mark.deep
def test_quick_figure_and_what_is_kept(tmp_path):
    pytest.importorskip("matplotlib")
    done = run(tmp_path, "--subset", "quick", "--out", "u.h5")
    assert done.returncode == 0, done.stderr
    table = stats.load(tmp_path / "u.h5").array("utilization")
    assert len(table) == 7 + 5
    assert set(table["network"].tolist()) == {b"gru", b"cnn"}
    assert (table["alu"] > 0).all()
    assert (table["alu"] <= 1).all()
    assert (table["level"] == levels(table["alu"])).all()
    # a fused multiply-add holds a pipe for two cycles and an issue slot for one
    assert (table["issue"] <= 1).all()
    alu = {(row["network"], row["kernel"]): row["alu"] for row in table}
    assert alu[b"gru", b"product"] > 5 * alu[b"gru", b"sum"]
    assert alu[b"cnn", b"product"] > 5 * alu[b"cnn", b"activation"]
    assert (tmp_path / "u.png").read_bytes().startswith(b"\x89PNG")
    assert "gru: products at levels" in done.stdout
    again = run(tmp_path, "--subset", "quick", "--json", "--force", "--out", "u.h5")
    assert again.returncode == 0, again.stderr
    rows = json.loads(again.stdout)["utilization"]
    assert [row["time_us"] for row in rows] == table["time_us"].tolist()


def test_sizes_are_deepbench_rows():
    assert Layer(7, 7, 832, 16, 256, 1, 0, 1).pixels == 7 * 7 * 16
    assert Layer(224, 224, 3, 16, 64, 7, 3, 2).pixels == 112 * 112 * 16
    assert RECURRENT[0].label == "1760_16_50_vanilla"
    assert LAYERS[0].label == "112_112_64_8_128"
    tasks = tasks_of((RECURRENT[0], LAYERS[0]))
    assert tasks[0] == Task(RECURRENT[0], "product")
    assert len(tasks) == 7 + 5


def test_one_kind_of_network_alone_is_drawn():
    pytest.importorskip("matplotlib")
    table = np.zeros(3, schema.dtype("utilization"))
    table["network"], table["label"] = b"lstm", b"1_2_3_lstm"
    table["kernel"], table["alu"] = [b"product", b"sum", b"weights, back"], [0.52, 0.01, 0.97]
    table["level"] = levels(table["alu"])
    assert draw_utilization(table, "t").startswith(b"\x89PNG")
    text = format_utilization(table)
    assert "6 (52 %" in text
    assert "lstm: products at levels 6 to 10, median 8; others at levels 1 to 1, median 1" in text


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--subset", "quik"), "did you mean quick?"),
        (("--schemes", "graph"), "no --schemes"),
        (("--rename",), "--rename"),
    ],
)
def test_bad_options_are_one_line(tmp_path, args, text):
    refused(run(tmp_path, *args), text)
    assert not list(tmp_path.iterdir())
