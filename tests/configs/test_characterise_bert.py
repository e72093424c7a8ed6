"""The breakdown of a training step of BERT, as a user calls the script, of a tiny network."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pysim import stats
from pysim.workloads.studies import bert_step as study
from tests.support.calls import CONFIGS, caller, refused

run = caller("characterise_bert", "--quiet", "--threads", "1")


def called(monkeypatch: pytest.MonkeyPatch, layers: int, *words: object) -> None:
    """Call the script in this process, with a network of which a step takes a moment."""
    tiny = replace(study.NETWORK, layers=layers, d=128, heads=2, ffn=256, vocabulary=500)
    monkeypatch.setattr(study, "NETWORK", tiny)
    monkeypatch.setattr(sys, "argv", ["script", *map(str, words), "--quiet", "--threads", "1"])
    runpy.run_path(str(CONFIGS / "characterise_bert.py"))["main"]()


def test_a_shortened_step_is_broken_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "a.h5"
    called(monkeypatch, 4, "batch=1,seq=32", "--out", out, "--picture", "yes")
    shown = capsys.readouterr().out
    for text in (
        "3 of 4 layers simulated",
        "1 x 32 tokens, fp16:",
        "extrapolated, off",
        "no target",
        "recalled",
    ):
        assert text in shown
    results = stats.load(out)
    table, (run,) = (results.array(name) for name in ("bert_breakdown", "runs"))
    assert [kind.decode() for kind in table["kind"]] == [*study.CLASSES]
    assert table["kernels"].all()
    assert table["share"] == pytest.approx(table["time_us"] / table["time_us"].sum())
    assert 0 <= run["time_us"] - table["time_us"].sum() < 2  # from the last end to completion
    assert out.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_json_of_cases_with_all_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = ("batch=1,seq=32", "batch=1,seq=32,dtype=fp32")
    called(monkeypatch, 1, *cases, "--simulated", "0", "--json", "--out", tmp_path / "b.h5")
    tables = json.loads(capsys.readouterr().out)
    rows, runs = tables["bert_breakdown"], tables["runs"]
    assert [row["replay_error"] for row in runs] == [0, 0]
    assert [(row["run"], row["dtype"], row["kind"]) for row in rows] == [
        (number, dtype, kind) for number, dtype in enumerate(("fp16", "fp32")) for kind in study.CLASSES
    ]
    for number, run in enumerate(runs):
        spent = sum(row["time_us"] for row in rows if row["run"] == number)
        assert 0 <= run["time_us"] - spent < 2


def test_wrong_options_are_one_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "heads=2"), "no key 'heads'")
    refused(run(tmp_path, "batch=4", "seq=128,batch=4"), "case seq=128,batch=4: the same as batch=4")
    refused(run(tmp_path, "seq=1024"), "bert-large: seq = 1024: at most 512")
    refused(run(tmp_path, "--simulated", "2"), "simulated = 2: must be 0 (all layers), or 3 or more")
    refused(run(tmp_path, "--schemes", "graph"), "--schemes")


def test_no_rows_draw_nothing() -> None:
    pytest.importorskip("matplotlib")
    from pysim.stats.studies.bert_picture import draw_bert

    with pytest.raises(stats.StoreError, match="no case to draw"):
        draw_bert(np.zeros(0, stats.schema.dtype("bert_breakdown")), "title")
